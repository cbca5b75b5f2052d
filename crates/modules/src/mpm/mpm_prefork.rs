//! mpm_prefork: processes with one connection each.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/prefork.html>

use server::directive::Row;
use server::hooks::Hooks;
use server::module::Module;

use super::{Kind, Mpm, Settings, numbers, rows};

/// `prefork.c`
pub struct Prefork;

impl Module for Prefork {
    const NAME: &'static str = "mpm_prefork_module";
    const FILE: &'static str = "prefork.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Prefork>] = &ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(numbers::check);
    }
}

impl Mpm for Prefork {
    const KIND: Kind = Kind::Prefork;
}

const ROWS: [Row<Prefork>; 13] = {
    let counts: [Row<Prefork>; 6] = rows::join(rows::processes(), rows::spare_servers());
    rows::join(rows::common(), counts)
};
