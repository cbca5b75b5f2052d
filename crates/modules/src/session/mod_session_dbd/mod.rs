//! mod_session_dbd: keeps sessions in an SQL database, under a key in a cookie or the user's name.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_session_dbd.html>

mod key;
mod rows;

use std::fmt;

use server::directive::Row;
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_session::{Draft, Failed, STORE, Store, Stored};
use super::mod_session_cookie::{Cookie, take_cookie};
use crate::aaa::provider::Pending;
use crate::database::mod_dbd::{self, Argument, Failure, Outcome};

/// `mod_session_dbd.c`
pub struct SessionDbd;

impl Module for SessionDbd {
    const NAME: &'static str = "session_dbd_module";
    const FILE: &'static str = "mod_session_dbd.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<SessionDbd>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, SessionDbd>) {
        hooks.provider(STORE, "dbd", Store { name, is_of_redirects: false, read, write });
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `SessionDBDCookieName`
        cookie: Setting<Cookie>,
        /// `SessionDBDCookieName2`
        cookie2: Setting<Cookie>,
        /// `SessionDBDCookieRemove`
        removes: Setting<bool>,
        /// `SessionDBDPerUser`
        per_user: Setting<bool>,
        /// `SessionDBDSelectLabel`
        select: Setting<String>,
        /// `SessionDBDInsertLabel`
        insert: Setting<String>,
        /// `SessionDBDUpdateLabel`
        update: Setting<String>,
        /// `SessionDBDDeleteLabel`
        delete: Setting<String>,
    }
}

/// The labels of statements that are not given.
const SELECT: &str = "selectsession";
const INSERT: &str = "insertsession";
const UPDATE: &str = "updatesession";
const DELETE: &str = "deletesession";

fn dir(request: &Request) -> Dir {
    request.dir_of::<SessionDbd>().cloned().unwrap_or_default()
}

fn name(request: &Request) -> Option<(Vec<u8>, bool)> {
    let dir = request.dir_of::<SessionDbd>()?;
    if let Some(cookie) = dir.cookie2.get().or_else(|| dir.cookie.get()) {
        return Some((cookie.name().to_vec(), false));
    }
    // As in Apache, it counts that the directive is given, and later what it says.
    let user = request.user.clone().filter(|_| dir.per_user.is_set())?;
    dir.per_user.or(false).then_some((user, false))
}

fn is_anonymous(dir: &Dir) -> bool {
    dir.cookie.is_set() || dir.cookie2.is_set()
}

/// Source: `session_dbd_load`.
fn read<'r>(
    request: &'r mut Request,
    name: &'r [u8],
) -> Pending<'r, Result<Option<Stored>, Failed>> {
    Pending::Wait(Box::pin(async move {
        let dir = dir(request);
        let is_anonymous = is_anonymous(&dir);
        let sent = match is_anonymous {
            true => take_cookie(request, name, dir.removes.or(true)),
            false => Some(name.to_vec()),
        };
        let mut stored = None;
        if let Some(sent) = sent {
            let label = dir.select.get().map_or(SELECT, String::as_str);
            let now_us = request.engine.handle.clock().wall_us();
            let now_us = i64::try_from(now_us).unwrap_or(i64::MAX);
            let arguments = vec![Argument::Text(sent.clone()), Argument::Integer(now_us)];
            let outcome = ask(request, label, arguments, (1854, "selecting")).await?;
            let text = outcome.rows.into_iter().find_map(|row| row.into_iter().next().flatten());
            stored = text.map(|text| Stored {
                text,
                key: if is_anonymous { key::parse(&sent) } else { None },
            });
        }
        request.response.headers_out.add(b"Cache-Control", b"no-cache, private");
        Ok(stored)
    }))
}

/// Source: `session_dbd_save`.
fn write(request: &mut Request, draft: Draft) -> Pending<'_, Result<Option<Vec<u8>>, Failed>> {
    Pending::Wait(Box::pin(async move {
        let dir = dir(request);
        if is_anonymous(&dir) {
            return write_anonymous(request, &dir, draft).await;
        }
        request.response.headers_out.add(b"Cache-Control", b"no-cache, private");
        let Some(user) = request.user.clone() else {
            let uri = Verbatim::new(&request.resource.uri);
            let text = format_args!(
                "peruser sessions can only be saved if a user is logged in, session not saved: \
                 {uri}"
            );
            log(request, 1865, text);
            return Err(Failed);
        };
        let old = Argument::Text(user.clone());
        put(request, &dir, Some(old), &user, draft.text, draft.expiry_us).await?;
        Ok(None)
    }))
}

async fn write_anonymous(
    request: &mut Request,
    dir: &Dir,
    draft: Draft,
) -> Result<Option<Vec<u8>>, Failed> {
    // A key that a client has seen before is worth nothing once the session changes.
    let new = match &draft.key {
        Some(known) if !draft.is_dirty => known.clone(),
        _ => key::random().ok_or(Failed)?,
    };
    let old = draft.key.map(Argument::Text);
    if draft.text.is_empty() {
        let label = dir.delete.get().map_or(DELETE, String::as_str);
        ask(request, label, old.into_iter().collect(), (1864, "removing")).await?;
    } else {
        put(request, dir, old, &new, draft.text, draft.expiry_us).await?;
    }
    let end = match draft.max_age {
        0 => String::new(),
        seconds => format!("Max-Age={seconds};"),
    };
    for (field, cookie) in [(&b"Set-Cookie"[..], &dir.cookie), (b"Set-Cookie2", &dir.cookie2)] {
        let Some(cookie) = cookie.get() else { continue };
        let value = cookie.with_value(&new, &end);
        // As in Apache a successful response has it twice.
        request.response.headers_out.add(field, &value);
        request.response.err_headers_out.add(field, &value);
    }
    Ok(Some(new))
}

/// Updates a session, or inserts it if there is none. Source: `dbd_save`.
async fn put(
    request: &Request,
    dir: &Dir,
    old: Option<Argument>,
    new: &[u8],
    text: Vec<u8>,
    expiry_us: i64,
) -> Result<(), Failed> {
    let values = [Argument::Text(text), Argument::Integer(expiry_us), Argument::Text(new.to_vec())];
    let with_old = values.iter().cloned().chain(old).collect();
    let label = dir.update.get().map_or(UPDATE, String::as_str);
    if ask(request, label, with_old, (1857, "updating")).await?.changed > 0 {
        return Ok(());
    }
    let label = dir.insert.get().map_or(INSERT, String::as_str);
    if ask(request, label, values.to_vec(), (1859, "inserting")).await?.changed > 0 {
        return Ok(());
    }
    let text = format_args!(
        "the session insert query did not cause any rows to be added to the database, session not \
         inserted"
    );
    log(request, 1860, text);
    Err(Failed)
}

/// Executes a statement. Unlike in Apache, no message has the key: a reader of the log could take
/// the session over.
async fn ask(
    request: &Request,
    label: &str,
    arguments: Vec<Argument>,
    (number, what): (u32, &str),
) -> Result<Outcome, Failed> {
    match mod_dbd::query(request, label, arguments).await {
        Ok(outcome) => return Ok(outcome),
        Err(Failure::NoConnection) => {
            log(request, 1851, format_args!("failed to acquire database connection"));
        }
        Err(Failure::NoStatement) => {
            let text = format_args!("failed to find the prepared statement called '{label}'");
            log(request, 1852, text);
        }
        Err(Failure::Query(why)) => {
            let text = format_args!(
                "query execution error {what} a session using database query '{label}': {why}"
            );
            log(request, number, text);
        }
    }
    Err(Failed)
}

fn log(request: &Request, number: u32, text: fmt::Arguments<'_>) {
    request.log::<SessionDbd>(Level::Error, number, text);
}
