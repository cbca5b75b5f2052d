//! Requirements for requests, and the data that they receive.

use std::sync::Arc;

use conf::Arg;
use conf::expr::Flags;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, State, Takes};
use server::expr;

use super::{Here, anywhere, host, text, words};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::config::Condition;

pub(super) const ROWS: &[Row<Ssl>] = &[
    host(
        "SSLOptions",
        Takes::Some { least: 0, most: usize::MAX, set: options },
        "[+|-]option ...",
        "",
        "Sets options: StdEnvVars, ExportCertData, FakeBasicAuth, StrictRequire, OptRenegotiate, \
         LegacyDNStringFormat.",
    )
    .standing(Places::ALL, Override::OPTIONS),
    host(
        "SSLRequireSSL",
        Takes::Nothing(|cx| {
            cx.dir().require_ssl.set(true);
            Ok(())
        }),
        "",
        "",
        "Refuses requests without TLS.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG),
    host(
        "SSLRequire",
        Takes::Raw(require),
        "expression",
        "",
        "Refuses requests over TLS unless the expression is true; superseded by `Require expr`.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG),
    anywhere(
        "SSLUserName",
        Takes::One(user_name),
        "varname",
        "",
        "Sets the variable that contains the user name.",
    ),
    host(
        "SSLRenegBufferSize",
        Takes::One(|_, _| Ok(())),
        "bytes",
        "131072",
        "Limits the buffered part of a request body during a renegotiation.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG)
    .state(State::Accepted("there is no renegotiation")),
];

fn options(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let words = words(args)?;
    let taken = cx.dir().options.take(words.iter().copied());
    taken.map_err(|word| Fault::new(format!("SSLOptions: Illegal option '{word}'")))
}

fn require(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let flags = Flags { ssl_compat: true, dont_vary: true, ..cx.expr_flags() };
    let registry = cx.build().registry.clone();
    let expr = expr::parse_bool(&registry, &arg.text, flags)
        .map_err(|why| Fault::new(format!("SSLRequire: {why}")).at(arg))?;
    let text = String::from_utf8_lossy(&arg.text).into_owned();
    cx.dir().requirements.push(Arc::new(Condition { text, expr }));
    Ok(())
}

fn user_name(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let name = text(arg)?.to_owned();
    cx.dir().user_name.set(name);
    Ok(())
}
