//! mpm_loop: one process with one loop, for small machines. It accepts the directives of event, so
//! that the same configuration works for both.
//!
//! Apache has no such shape.

use server::directive::Row;
use server::hooks::Hooks;
use server::module::Module;

use super::{Kind, Mpm, Settings, numbers, rows};

/// `loop.c`
pub struct Loop;

impl Module for Loop {
    const NAME: &'static str = "mpm_loop_module";
    const FILE: &'static str = "loop.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Loop>] = &ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(numbers::check);
    }
}

impl Mpm for Loop {
    const KIND: Kind = Kind::Loop;
}

const ROWS: [Row<Loop>; 16] = {
    let counts: [Row<Loop>; 8] = rows::join(rows::processes(), rows::threads());
    let own: [Row<Loop>; 9] = rows::join(counts, rows::asynchronous());
    rows::join(rows::common(), own)
};
