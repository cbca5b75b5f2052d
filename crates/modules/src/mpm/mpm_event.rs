//! mpm_event: processes with loops, each with many connections.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/event.html>

use server::directive::Row;
use server::hooks::Hooks;
use server::module::Module;

use super::{Kind, Mpm, Settings, numbers, rows};

/// `event.c`
pub struct Event;

impl Module for Event {
    const NAME: &'static str = "mpm_event_module";
    const FILE: &'static str = "event.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Event>] = &ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(numbers::check);
    }
}

impl Mpm for Event {
    const KIND: Kind = Kind::Event;
}

const ROWS: [Row<Event>; 16] = {
    let counts: [Row<Event>; 8] = rows::join(rows::processes(), rows::threads());
    let own: [Row<Event>; 9] = rows::join(counts, rows::asynchronous());
    rows::join(rows::common(), own)
};
