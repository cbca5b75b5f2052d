//! mod_dumpio: logs what connections receive and send, at `LogLevel dumpio:trace7`. Over TLS it is
//! the content.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_dumpio.html>. The lines are written by
//! `http::connection::dump`; this module decides for which hosts.

use server::directive::{Cx, Row, Set, Takes};
use server::dump::Dump;
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;

/// `mod_dumpio.c`
pub struct Dumpio;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `DumpIOInput`, `DumpIOOutput`. As in Apache, a host with one of them inherits neither.
        dump: Setting<Dump>,
    }
}

impl Module for Dumpio {
    const NAME: &'static str = "dumpio_module";
    const FILE: &'static str = "mod_dumpio.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Dumpio>] = &[
        Row::<Dumpio>::new(
            "DumpIOInput",
            Takes::Flag(|cx, on| set(cx, |dump| dump.input = on)),
            "On|Off",
            "Logs what is received.",
        )
        .default("Off"),
        Row::<Dumpio>::new(
            "DumpIOOutput",
            Takes::Flag(|cx, on| set(cx, |dump| dump.output = on)),
            "On|Off",
            "Logs what is sent.",
        )
        .default("Off"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.dumps(|settings| settings.dump.or(Dump::default()));
    }
}

fn set(cx: &mut Cx<'_, '_, Dumpio>, change: impl FnOnce(&mut Dump)) -> Set {
    let setting = &mut cx.server().dump;
    let mut dump = setting.or(Dump::default());
    change(&mut dump);
    setting.set(dump);
    Ok(())
}
