//! Sessions that clients may resume.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::sessions::SessionCache;

use super::{Here, file, global, host, number, put, text};
use crate::ssl::mod_ssl::Ssl;

pub(super) const ROWS: &[Row<Ssl>] = &[
    global(
        "SSLSessionCache",
        Takes::One(|cx, arg| {
            cx.server().session_cache.0 = store(cx, arg)?;
            Ok(())
        }),
        "type",
        "none",
        "Names the memory where sessions are kept for clients that come back, shared by all \
         children.",
    )
    .state(State::Partial("shmcb and none are the stores there are")),
    host(
        "SSLSessionCacheTimeout",
        Takes::One(timeout),
        "seconds",
        "300",
        "Tells how long a session may be resumed, from the cache or by a ticket.",
    ),
    host(
        "SSLSessionTickets",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.tickets, on)),
        "on|off",
        "on",
        "Gives sessions to clients to keep, encrypted under keys that all children share.",
    ),
    host(
        "SSLSessionTicketKeyFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.ticket_key_file, path)
        }),
        "file-path",
        "",
        "Names 48 bytes that tickets are encrypted under, in Apache's form (name, HMAC secret, AES \
         secret): servers and restarts with the same file resume each other's sessions, where \
         the host has the same name and port, and trusts the same clients. More bytes are not \
         looked at, fewer are an error.",
    )
    .state(State::Partial(
        "Tamaracks share tickets; those of Apache can't be read, nor can Apache read ours",
    )),
    global(
        "SSLStaplingCache",
        Takes::One(|cx, arg| store(cx, arg).map(|_| ())),
        "type",
        "",
        "Named the memory where stapled responses are kept.",
    )
    .state(State::Accepted("each process keeps its own responses")),
];

fn store(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<SessionCache, Fault> {
    let found = SessionCache::parse(text(arg)?).map_err(|finding| {
        Fault::new(format!("{}: {}", cx.target.directive, finding.message)).at(arg)
    })?;
    let is_shared = matches!(found, SessionCache::Shared { .. });
    if is_shared && !cx.build().registry.is_active("socache_shmcb_module") {
        let message = format!(
            "{}: 'shmcb' session cache not supported (known names: ). Maybe you need to load the \
             appropriate socache module (mod_socache_shmcb?).",
            cx.target.directive
        );
        return Err(Fault::new(message).at(arg));
    }
    Ok(found)
}

fn timeout(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let seconds = number::<i32>(cx, arg).ok().and_then(|seconds| u32::try_from(seconds).ok());
    let seconds =
        seconds.ok_or_else(|| Fault::new("SSLSessionCacheTimeout: Invalid argument").at(arg))?;
    put(cx, |server| &mut server.session_timeout, seconds)
}
