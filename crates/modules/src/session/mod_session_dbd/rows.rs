//! The directives of mod_session_dbd.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Takes};

use super::SessionDbd;
use crate::session::mod_session_cookie::Cookie;

pub(super) const ROWS: &[Row<SessionDbd>] = &[
    row(
        "SessionDBDCookieName",
        Takes::Raw(|cx, raw| {
            let cookie = cookie("SessionDBDCookieName", raw)?;
            cx.dir().cookie.set(cookie);
            Ok(())
        }),
        "name attributes",
        "Keeps the key of the session in a cookie of this name, set with these attributes.",
    ),
    row(
        "SessionDBDCookieName2",
        Takes::Raw(|cx, raw| {
            let cookie = cookie("SessionDBDCookieName2", raw)?;
            cx.dir().cookie2.set(cookie);
            Ok(())
        }),
        "name attributes",
        "Keeps the key in a cookie of this name, set by Set-Cookie2 (RFC 2965).",
    ),
    row(
        "SessionDBDCookieRemove",
        Takes::Flag(|cx, on| {
            cx.dir().removes.set(on);
            Ok(())
        }),
        "On|Off",
        "Hides the cookie from programs and from other servers.",
    )
    .default("On"),
    row(
        "SessionDBDPerUser",
        Takes::Flag(|cx, on| {
            cx.dir().per_user.set(on);
            Ok(())
        }),
        "On|Off",
        "Keeps one session for each user who has logged in.",
    )
    .default("Off"),
    row(
        "SessionDBDSelectLabel",
        Takes::One(|cx, arg| {
            let label = label(arg);
            cx.dir().select.set(label);
            Ok(())
        }),
        "label",
        "Names the statement that finds a session.",
    )
    .default("selectsession"),
    row(
        "SessionDBDInsertLabel",
        Takes::One(|cx, arg| {
            let label = label(arg);
            cx.dir().insert.set(label);
            Ok(())
        }),
        "label",
        "Names the statement that inserts a session.",
    )
    .default("insertsession"),
    row(
        "SessionDBDUpdateLabel",
        Takes::One(|cx, arg| {
            let label = label(arg);
            cx.dir().update.set(label);
            Ok(())
        }),
        "label",
        "Names the statement that updates a session.",
    )
    .default("updatesession"),
    row(
        "SessionDBDDeleteLabel",
        Takes::One(|cx, arg| {
            let label = label(arg);
            cx.dir().delete.set(label);
            Ok(())
        }),
        "label",
        "Names the statement that deletes a session.",
    )
    .default("deletesession"),
];

const fn row(
    name: &'static str,
    takes: Takes<SessionDbd>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<SessionDbd> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::AUTH_CONFIG)
}

fn label(arg: &Arg) -> String {
    String::from_utf8_lossy(&arg.text).into_owned()
}

/// Source: `set_dbd_cookie_name`, `check_string`.
fn cookie(directive: &str, raw: &Arg) -> Result<Cookie, Fault> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let text = raw.text.trim_ascii();
    let (name, attributes) = text.split_at(text.iter().position(is_blank).unwrap_or(text.len()));
    if name.is_empty() {
        return Err(Fault::new(format!("{directive} requires at least one argument!")).at(raw));
    }
    if name.iter().any(|byte| matches!(byte, b'=' | b';' | b'&')) {
        return Err(Fault::new(format!("{directive} cannot contain '=', ';' or '&'.")).at(raw));
    }
    Ok(Cookie::new(name, attributes.trim_ascii_start()))
}
