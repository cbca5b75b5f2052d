//! mod_log_forensic: writes a line before each request and one after it, which show the request
//! that crashed a process.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_log_forensic.html>

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use conf::Arg;
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::host::Server;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::{Request, UNIQUE_ID};
use server::sinks::{SinkId, Target};

/// `mod_log_forensic.c`
pub struct LogForensic;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `ForensicLog`
        log: Setting<SinkId>,
    }
}

impl Module for LogForensic {
    const NAME: &'static str = "log_forensic_module";
    const FILE: &'static str = "mod_log_forensic.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<LogForensic>] = &[Row::<LogForensic>::new(
        "ForensicLog",
        Takes::One(forensic_log),
        "filename|pipe",
        "Logs each request's line and fields before it is processed, and its identifier again \
         afterwards.",
    )];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let is_on = |bound: Bound<'_, LogForensic>| bound.server.log.is_set();
        hooks
            .on(Phase::PostReadRequest, Rank::REALLY_FIRST, is_on, log_before)
            .after(&["mod_unique_id.c"]);
        hooks.on(Phase::LogTransaction, Rank::REALLY_LAST, is_on, log_after);
    }
}

fn forensic_log(cx: &mut Cx<'_, '_, LogForensic>, file: &Arg) -> Set {
    let sink = cx.build().log_sink(file)?;
    cx.server().log.set(sink);
    Ok(())
}

/// Whether this is the `ForensicLog` of a host.
pub fn is_log(server: &Server, target: &Target) -> bool {
    let Some(slot) = server.registry.slot_of::<LogForensic>() else { return false };
    server.hosts.iter().any(|host| {
        let settings = host.server.share::<Settings>(slot);
        let id = settings.as_deref().and_then(|settings| settings.log.get().copied());
        id.and_then(|id| server.sinks.target(id)).as_ref() == Some(target)
    })
}

/// The identifier of a request in the log.
struct Id(Vec<u8>);

/// The number of this process's requests that had no other identifier.
static COUNT: AtomicU32 = AtomicU32::new(0);

fn log_before<'r>(bound: Bound<'r, LogForensic>, request: &'r mut Request) -> Step<'r> {
    if request.prev.is_some() {
        return Step::DECLINED;
    }
    let id = match request.env.get(UNIQUE_ID) {
        Some(id) => id.to_vec(),
        None => {
            let seconds = request.time_us / 1_000_000;
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            format!("{:x}:{seconds:x}:{number:x}", std::process::id()).into_bytes()
        }
    };
    let mut line = vec![b'+'];
    line.extend_from_slice(&id);
    line.push(b'|');
    escape(&request.head.request_line, &mut line);
    for (name, value) in request.head.headers_in.iter() {
        line.push(b'|');
        escape(name, &mut line);
        line.push(b':');
        escape(value, &mut line);
    }
    line.push(b'\n');
    write(bound, request, &line);
    request.notes.set(b"forensic-id", &id);
    request.keep(Id(id));
    Step::OK
}

fn log_after<'r>(bound: Bound<'r, LogForensic>, request: &'r mut Request) -> Step<'r> {
    // A refused head has no line before it.
    if let Some(Id(id)) = request.original().kept::<Id>() {
        let line = [b"-", id.as_slice(), b"\n"].concat();
        write(bound, request, &line);
    }
    Step::OK
}

fn write(bound: Bound<'_, LogForensic>, request: &Request, line: &[u8]) {
    let Some(id) = bound.server.log.get() else { return };
    if let Some(sink) = request.engine.server.sinks.get(*id) {
        sink.write(line, Level::Info as u8);
    }
}

/// Escapes bytes that would begin another field or line (`log_escape`).
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'|' | b':' | b'%' | ..b' ' | 0x7f.. => {
                let _ = write!(out, "%{byte:02x}");
            }
            byte => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_looks_like_another_field() {
        let mut out = Vec::new();
        super::escape(b"a b|c:d%e\n\x7f\xff", &mut out);
        assert_eq!(out, b"a b%7cc%3ad%25e%0a%7f%ff");
    }
}
