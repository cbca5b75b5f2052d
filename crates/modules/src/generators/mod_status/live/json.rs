//! The page's data as JSON.

use std::fmt::{Display, Write};

use mpm::scoreboard::{
    Decision, Event, HostCounts, LATENCY_BOUNDS_US, LoopSnapshot, ProcessSnapshot, ProcessState,
    Snapshot,
};
use nix::unistd::{SysconfVar, sysconf};
use server::request::Request;
use server::version::VERSION;

use crate::generators::mod_status::{part, programs};
use crate::loggers::mod_log_config::json::string;

/// Writes the server's present state. Times are milliseconds since 1970, durations microseconds.
pub(super) fn write(request: &Request) -> Vec<u8> {
    let board = request.engine.scoreboard;
    let now_us = request.engine.handle.clock().precise_wall_us();
    // All CPUs, not those that this loop may use: it may be pinned, or the plan may leave some out.
    let cpus = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    let cpus = cpus.and_then(|cpus| usize::try_from(cpus).ok()).unwrap_or(1);
    let (snapshot, hosts) = (board.snapshot(), board.hosts());
    let more = |out: &mut Json| {
        programs::write_json(&board.programs(), out);
        part::of(request).for_each(|part| part.live(request, out));
    };
    document(&snapshot, &hosts, request.server_name(), (now_us, cpus), more)
}

fn document(
    board: &Snapshot,
    hosts: &[HostCounts],
    name: &[u8],
    (now_us, cpus): (u64, usize),
    more: impl FnOnce(&mut Json),
) -> Vec<u8> {
    let mut out = Json::default();
    out.open('{');
    out.text("server", name);
    out.text("version", VERSION.as_bytes());
    out.text("shape", board.shape.name().as_bytes());
    for (name, value) in [
        ("now", now_us / 1000),
        ("started", board.started_us / 1000),
        ("since", board.generation_us / 1000),
        ("generation", u64::from(board.generation)),
        ("requests", board.accesses),
        ("bytes", board.bytes),
        ("accepted", board.accepted),
        ("duration_us", board.duration_us),
        ("cpu_us", cpu_us(board)),
        ("run_delay_us", board.run_delay_us),
        ("migrations", board.migrations),
        ("handed_over", board.handed_over),
        ("taken_over", board.taken_over),
        ("moved", board.moved),
        ("log_lines_dropped", board.log_lines_dropped),
        ("cpus", cpus as u64),
    ] {
        out.number(name, value);
    }
    out.list("bounds_us", &LATENCY_BOUNDS_US);
    out.key("events");
    out.open('{');
    Event::ALL.into_iter().for_each(|event| out.number(event.name(), board.event(event)));
    out.close('}');
    out.key("decisions");
    out.open('{');
    Decision::ALL.into_iter().for_each(|what| out.number(what.name(), board.decision(what)));
    out.close('}');
    out.key("hosts");
    out.open('[');
    hosts.iter().for_each(|host| write_host(host, &mut out));
    out.close(']');
    out.key("processes");
    out.open('[');
    board.processes.iter().for_each(|process| write_process(process, &mut out));
    out.close(']');
    more(&mut out);
    out.close('}');
    out.out
}

fn cpu_us(board: &Snapshot) -> u64 {
    board.supervisor_cpu_user_us
        + board.supervisor_cpu_system_us
        + board.cpu_user_us
        + board.cpu_system_us
        + board.ended_cpu_user_us
        + board.ended_cpu_system_us
}

fn write_host(host: &HostCounts, out: &mut Json) {
    out.item();
    out.open('{');
    out.text("host", &host.label);
    out.list("classes", &host.classes);
    out.number("bytes", host.bytes);
    out.list("buckets", &host.buckets);
    out.close('}');
}

fn write_process(process: &ProcessSnapshot, out: &mut Json) {
    let state = match process.state {
        ProcessState::Free => "free",
        ProcessState::Starting => "starting",
        ProcessState::Serving => "serving",
        ProcessState::Quiescing => "finishing",
        ProcessState::Stopping => "stopping",
    };
    out.item();
    out.open('{');
    out.number("slot", process.index as u64);
    out.number("pid", u64::from(process.pid));
    out.number("generation", u64::from(process.generation));
    out.text("state", state.as_bytes());
    out.number("started", process.started_us / 1000);
    out.number("cpu_us", process.cpu_user_us + process.cpu_system_us);
    out.key("loops");
    out.open('[');
    process.loops.iter().for_each(|seen| write_loop(seen, out));
    out.close(']');
    out.close('}');
}

fn write_loop(seen: &LoopSnapshot, out: &mut Json) {
    out.item();
    out.open('{');
    out.text("letter", seen.status.letter().encode_utf8(&mut [0; 4]).as_bytes());
    for (name, value) in [
        ("requests", seen.accesses),
        ("busy_us", seen.busy_us),
        ("run_delay_us", seen.run_delay_us),
        ("migrations", seen.migrations),
        ("heartbeat", seen.heartbeat_us),
        ("connections", seen.connections.total),
        ("reading", seen.connections.reading),
        ("writing", seen.connections.writing),
        ("keep_alive", seen.connections.keep_alive),
        ("closing", seen.connections.closing),
        ("http2", seen.connections.http2),
        ("streams", seen.connections.streams),
    ] {
        out.number(name, value);
    }
    for (name, cpu) in [("cpu", seen.cpu), ("pinned", seen.planned_cpu)] {
        if let Some(cpu) = cpu {
            out.number(name, cpu as u64);
        }
    }
    if seen.is_widened {
        out.number("widened", 1);
    }
    out.close('}');
}

/// A document that is being written. Names must need no escaping.
#[derive(Default)]
pub struct Json {
    out: Vec<u8>,
    /// Whether the innermost object or list has an element.
    has_before: bool,
}

impl Json {
    /// Begins an object or a list.
    pub fn open(&mut self, bracket: char) {
        self.put(bracket);
        self.has_before = false;
    }

    /// Ends it.
    pub fn close(&mut self, bracket: char) {
        self.put(bracket);
        self.has_before = true;
    }

    /// Begins an element of a list.
    pub fn item(&mut self) {
        if self.has_before {
            self.put(',');
        }
        self.has_before = true;
    }

    /// Names the value that follows.
    pub fn key(&mut self, name: &str) {
        self.item();
        self.put(format_args!("\"{name}\":"));
    }

    /// A number with its name.
    pub fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        self.put(value);
    }

    /// A text with its name.
    pub fn text(&mut self, name: &str, value: &[u8]) {
        self.key(name);
        string(value, &mut self.out);
    }

    /// A list of numbers with its name.
    pub fn list(&mut self, name: &str, values: &[u64]) {
        self.key(name);
        self.open('[');
        for value in values {
            self.item();
            self.put(value);
        }
        self.close(']');
    }

    fn put(&mut self, what: impl Display) {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = write!(text, "{what}");
        self.out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use mpm::Scoreboard;

    use super::*;

    #[test]
    fn the_document_is_whole_and_texts_cannot_break_it() {
        let (board, slot) = Scoreboard::of_one_loop().unwrap();
        slot.request_end(10, 20);
        slot.set_cpu(Some(5));
        let host = HostCounts { label: b"a\"</script>".to_vec(), ..HostCounts::default() };
        let text = document(&board.snapshot(), &[host.clone(), host], b"x\\y", (7000, 2), |_| {});
        let text = String::from_utf8(text).unwrap();
        let (mut depth, mut in_text, mut escaped) = (0, false, false);
        for letter in text.chars() {
            match letter {
                _ if escaped => escaped = false,
                '\\' if in_text => escaped = true,
                '"' => in_text = !in_text,
                '{' | '[' if !in_text => depth += 1,
                '}' | ']' if !in_text => depth -= 1,
                _ => {}
            }
        }
        assert_eq!((depth, in_text), (0, false));
        for part in ["\"server\":\"x\\\\y\"", "\"now\":7,", "\"cpu\":5", "\"a\\\"</script>\""] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains(",}") && !text.contains(",]") && !text.contains("[,"), "{text}");
    }
}
