//! The directives of mod_session.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::Session;
use crate::atoi::{atoi, atol};

type Here<'a, 't> = Cx<'a, 't, Session>;

pub(super) const ROWS: &[Row<Session>] = &[
    row(
        "Session",
        Takes::Flag(|cx, on| {
            cx.dir().enabled.set(on);
            Ok(())
        }),
        "On|Off",
        "Loads and saves a session for these requests.",
    )
    .default("Off"),
    row(
        "SessionEnv",
        Takes::Flag(|cx, on| {
            cx.dir().env.set(on);
            Ok(())
        }),
        "On|Off",
        "Puts the values of the session into the variable HTTP_SESSION.",
    )
    .default("Off"),
    row(
        "SessionExclude",
        Takes::One(|cx, arg| {
            cx.dir().excludes.push(arg.text.to_vec());
            Ok(())
        }),
        "path",
        "Names the beginning of paths that have no session.",
    ),
    row(
        "SessionExpiryUpdateInterval",
        Takes::One(update_interval),
        "interval",
        "Sets how many seconds pass before a session is saved only because its end moves.",
    )
    .default("0 (always update)"),
    row(
        "SessionHeader",
        Takes::One(|cx, arg| {
            cx.dir().header.set(arg.text.to_vec());
            Ok(())
        }),
        "header",
        "Names a field by which a response changes values of the session.",
    ),
    row(
        "SessionInclude",
        Takes::One(|cx, arg| {
            cx.dir().includes.push(arg.text.to_vec());
            Ok(())
        }),
        "path",
        "Names the beginning of paths that have a session; without it, all have one.",
    )
    .default("all URLs"),
    row(
        "SessionMaxAge",
        Takes::One(|cx, arg| {
            cx.dir().max_age.set(atol(&arg.text));
            Ok(())
        }),
        "maxage",
        "Sets how many seconds a session lasts without a request; 0 for no end.",
    )
    .default("0"),
];

const fn row(
    name: &'static str,
    takes: Takes<Session>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Session> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::AUTH_CONFIG)
}

fn update_interval(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let seconds = i64::from(atoi(&arg.text));
    if seconds < 0 {
        let why = "SessionExpiryUpdateInterval must be zero (disable) or a positive value";
        return Err(Fault::new(why).at(arg));
    }
    cx.dir().update_interval.set(seconds);
    Ok(())
}
