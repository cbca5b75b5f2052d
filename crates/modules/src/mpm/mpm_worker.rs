//! mpm_worker: processes with threads, each thread with one connection.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/worker.html>

use server::directive::Row;
use server::hooks::Hooks;
use server::module::Module;

use super::{Kind, Mpm, Settings, numbers, rows};

/// `worker.c`
pub struct Worker;

impl Module for Worker {
    const NAME: &'static str = "mpm_worker_module";
    const FILE: &'static str = "worker.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Worker>] = &ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(numbers::check);
    }
}

impl Mpm for Worker {
    const KIND: Kind = Kind::Worker;
}

const ROWS: [Row<Worker>; 15] = {
    let counts: [Row<Worker>; 8] = rows::join(rows::processes(), rows::threads());
    rows::join(rows::common(), counts)
};
