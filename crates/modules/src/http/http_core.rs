//! `http_core.c`: persistent connections, OPTIONS and TRACE.
//!
//! Its settings are in the core's server configuration, next to `Timeout`.

use conf::Arg;
use conf::values::{Unit, timeout};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::{Hooks, Phase, Rank, always};
use server::module::Module;

use super::methods;
use crate::atoi::atol;

/// `http_core.c`, which is always active.
pub struct HttpCore;

impl Module for HttpCore {
    const NAME: &'static str = "http_module";
    const FILE: &'static str = "http_core.c";
    type Server = ();
    type Dir = ();
    const DIRECTIVES: &'static [Row<HttpCore>] = &[
        Row::new(
            "KeepAlive",
            Takes::Flag(|cx, on| {
                cx.target.core_server().keep_alive.set(on);
                Ok(())
            }),
            "On|Off",
            "Allows several requests per connection.",
        )
        .default("On"),
        Row::new(
            "KeepAliveTimeout",
            Takes::One(keep_alive_timeout),
            "num[ms]",
            "Sets how long a connection waits for its next request.",
        )
        .default("5"),
        Row::new(
            "MaxKeepAliveRequests",
            Takes::One(max_keep_alive_requests),
            "number",
            "Limits the number of requests per connection; 0 removes the limit.",
        )
        .default("100"),
    ];

    fn hooks(hooks: &mut Hooks<'_, HttpCore>) {
        hooks.on(Phase::MapToStorage, Rank::MIDDLE, always, methods::options).pure();
        hooks.on(Phase::MapToStorage, Rank::MIDDLE, always, methods::trace).pure();
    }
}

fn keep_alive_timeout(cx: &mut Cx<'_, '_, HttpCore>, arg: &Arg) -> Set {
    let time = timeout(&arg.text, Unit::Seconds)
        .ok_or_else(|| Fault::new("KeepAliveTimeout has wrong format").at(arg))?;
    cx.target.core_server().keep_alive_timeout.set(time);
    Ok(())
}

fn max_keep_alive_requests(cx: &mut Cx<'_, '_, HttpCore>, arg: &Arg) -> Set {
    let number = u32::try_from(atol(&arg.text)).unwrap_or(0);
    cx.target.core_server().max_keep_alive_requests.set(number);
    Ok(())
}
