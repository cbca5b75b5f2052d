//! mod_echo: connections on which the client gets back what it sends.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_echo.html>. The protocol itself is
//! `http::connection::echo`.

use server::directive::{Row, Takes};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;

/// `mod_echo.c`
pub struct Echo;

impl Module for Echo {
    const NAME: &'static str = "echo_module";
    const FILE: &'static str = "mod_echo.c";
    type Server = ServerConfig;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Echo>] = &[Row::<Echo>::new(
        "ProtocolEcho",
        Takes::Flag(|cx, on| {
            cx.server().is_on.set(on);
            Ok(())
        }),
        "On|Off",
        "Sends back what clients of a virtual host send, line by line, in place of HTTP.",
    )
    .default("Off")];

    fn hooks(hooks: &mut Hooks<'_, Echo>) {
        hooks.echoes(|own| own.is_on.or(false));
    }
}

server::config! {
    /// Per-host configuration.
    pub struct ServerConfig {
        /// `ProtocolEcho`
        pub is_on: Setting<bool>,
    }
}
