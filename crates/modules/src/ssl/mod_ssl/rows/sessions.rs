//! Resumable sessions.

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
        "Sets the cache of resumable sessions, which all children share.",
    )
    .state(State::Partial("the storage types are shmcb and none")),
    host(
        "SSLSessionCacheTimeout",
        Takes::One(timeout),
        "seconds",
        "300",
        "Sets how long a session may be resumed, from the cache or by a ticket.",
    ),
    host(
        "SSLSessionTickets",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.tickets, on)),
        "on|off",
        "on",
        "Sends session tickets, encrypted under keys that all children share.",
    ),
    host(
        "SSLSessionTicketKeyFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.ticket_key_file, path)
        }),
        "file-path",
        "",
        "Sets a file with the 48 bytes that encrypt tickets, in Apache's form (name, HMAC secret, \
         AES secret). Servers with the same file resume each other's sessions, also after a \
         restart, if the host has the same name and port and trusts the same clients. Further \
         bytes are ignored; fewer are an error.",
    )
    .state(State::Partial(
        "tickets are interchangeable between Tamarack servers, but not with Apache",
    )),
    global(
        "SSLStaplingCache",
        Takes::One(|cx, arg| store(cx, arg).map(|_| ())),
        "type",
        "",
        "Sets the cache of stapled responses.",
    )
    .state(State::Accepted("each process caches its own responses")),
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
