//! The HTML page, in Apache's layout.
//!
//! Source: `status_handler`.

use mpm::scoreboard::{LoopSnapshot, ProcessSnapshot, Status};
use wire::escape;

use super::number::{bytes, general, kilobytes, time};
use super::report::{
    Report, SECOND_US, built, count_connections, count_loops, date, is_stopping, server_version,
};

/// Letters of the scoreboard per line.
const LINE_LETTERS: usize = 64;

/// Processes per line of the key.
const LINE_PROCESSES: usize = 3;

/// Writes the report, and what follows it. `tables` shows single requests in a table instead of
/// text.
pub(super) fn write(report: &Report, tables: bool, rest: [&[u8]; 2]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8192);
    write_head(report, &mut out);
    if report.board.shape.is_async() {
        write_processes(report, &mut out);
    }
    write_scoreboard(report, &mut out);
    if report.extended {
        match tables {
            true => put(&mut out, TABLE_HEAD),
            false => put(&mut out, "<hr /><h2>Server Details</h2>\n\n"),
        }
        for process in &report.board.processes {
            for seen in process.loops.iter().filter(|seen| has_worked(seen)) {
                match tables {
                    true => write_row(report, process, seen, &mut out),
                    false => write_text(report, process, seen, &mut out),
                }
            }
        }
        if tables {
            put(&mut out, "</table>\n");
            put(&mut out, TABLE_KEY);
        }
    } else {
        let told = "<hr />To obtain a full report with current status information you need to use \
                    the <code>ExtendedStatus On</code> directive.\n";
        put(&mut out, told);
    }
    out.extend_from_slice(&rest.concat());
    put(&mut out, "</body></html>\n");
    out
}

fn put(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    out.extend_from_slice(text.as_ref());
}

fn write_head(report: &Report, out: &mut Vec<u8>) {
    put(
        out,
        "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
         \"http://www.w3.org/TR/html4/strict.dtd\">\n<html><head>\n\
         <title>Apache Status</title>\n</head><body>\n<h1>Apache Server Status for ",
    );
    escape::html(out, &report.server_name);
    put(out, format!(" (via {})</h1>\n\n", report.local));
    put(out, format!("<dl><dt>Server Version: {}</dt>\n", server_version()));
    put(out, format!("<dt>Server MPM: {}</dt>\n", report.board.shape.name()));
    put(out, format!("<dt>Server Built: {}\n</dt></dl><hr /><dl>\n", built()));
    put(out, format!("<dt>Current Time: {}</dt>\n", date(report.now_us)));
    put(out, format!("<dt>Restart Time: {}</dt>\n", date(report.board.restarted_us)));
    let generation = report.board.generation;
    put(out, format!("<dt>Parent Server Config. Generation: {generation}</dt>\n"));
    put(out, format!("<dt>Parent Server MPM Generation: {}</dt>\n", report.generation()));
    put(out, format!("<dt>Server uptime: {}</dt>\n", time(report.uptime_s())));
    let [one, five, fifteen] = report.load;
    put(out, format!("<dt>Server load: {one:.2} {five:.2} {fifteen:.2}</dt>\n"));
    if report.extended {
        write_totals(report, out);
    }
    let [busy, graceful, idle] = report.loops;
    put(
        out,
        format!(
            "<dt>{busy} requests currently being processed, {graceful} workers gracefully \
             restarting, {idle} idle workers</dt>\n</dl>"
        ),
    );
}

fn write_totals(report: &Report, out: &mut Vec<u8>) {
    /// Significant digits of rates.
    const DIGITS: usize = 3;
    let uptime = report.uptime_s() as f64;
    let (accesses, traffic) = (report.accesses(), report.bytes() / 1024);
    let count = accesses as f64;
    let sent = traffic as f64 * 1024.0;
    let duration = report.duration_ms();
    put(
        out,
        format!(
            "<dt>Total accesses: {accesses} - Total Traffic: {} - \
             Total Duration: {duration}</dt>\n",
            kilobytes(traffic)
        ),
    );
    let cpu_s = report.cpu_s();
    let [user, system, ended_user, ended_system] = cpu_s.map(|seconds| general(seconds, 6));
    put(out, format!("<dt>CPU Usage: u{user} s{system} cu{ended_user} cs{ended_system}"));
    let cpu_s: f64 = cpu_s.iter().sum();
    if cpu_s > 0.0 && uptime > 0.0 {
        let load = general(cpu_s / uptime * 100.0, DIGITS);
        put(out, format!(" - {load}% CPU load"));
    }
    put(out, "</dt>\n<dt>");
    if uptime > 0.0 {
        let rate = general(count / uptime, DIGITS);
        put(out, format!("{rate} requests/sec - {}/second", bytes(sent / uptime)));
    }
    if count > 0.0 {
        let separator = if uptime > 0.0 { " - " } else { "" };
        let each = general(duration as f64 / count, DIGITS);
        put(out, format!("{separator}{}/request - {each} ms/request", bytes(sent / count)));
    }
    put(out, "</dt>\n");
}

/// Writes the table of processes (`event`'s own part of the page).
fn write_processes(report: &Report, out: &mut Vec<u8>) {
    put(
        out,
        "\n\n<table rules=\"all\" cellpadding=\"1%\">\n<tr><th rowspan=\"2\">Slot</th>\
         <th rowspan=\"2\">PID</th><th rowspan=\"2\">Stopping</th>\
         <th colspan=\"2\">Connections</th>\n<th colspan=\"3\">Threads</th>\
         <th colspan=\"4\">Async connections</th></tr>\n<tr><th>total</th><th>accepting</th>\
         <th>busy</th><th>graceful</th><th>idle</th><th>wait-io</th><th>writing</th>\
         <th>keep-alive</th><th>closing</th></tr>\n",
    );
    for process in &report.board.processes {
        let old = if process.generation == report.board.generation { "" } else { " (old gen)" };
        let (stopping, accepting) =
            if is_stopping(process) { ("yes", "no") } else { ("no", "yes") };
        let [total, waiting, writing, kept, closing] = count_connections(process);
        let [busy, graceful, idle] = count_loops(process, report.board.generation);
        let (slot, pid) = (process.index, process.pid);
        put(
            out,
            format!(
                "<tr><td>{slot}</td><td>{pid}</td><td>{stopping}{old}</td><td>{total}</td>\
                 <td>{accepting}</td><td>{busy}</td><td>{graceful}</td><td>{idle}</td>\
                 <td>{waiting}</td><td>{writing}</td><td>{kept}</td><td>{closing}</td></tr>\n"
            ),
        );
    }
    let [total, waiting, writing, kept, closing] = report.connections;
    let [busy, graceful, idle] = report.loops;
    let [processes, stopping] = report.processes();
    put(
        out,
        format!(
            "<tr><td>Sum</td><td>{processes}</td><td>{stopping}</td><td>{total}</td>\
             <td>&nbsp;</td><td>{busy}</td><td>{graceful}</td><td>{idle}</td><td>{waiting}</td>\
             <td>{writing}</td><td>{kept}</td><td>{closing}</td></tr>\n</table>\n"
        ),
    );
}

fn write_scoreboard(report: &Report, out: &mut Vec<u8>) {
    put(out, "<pre>");
    for (index, line) in report.letters.chunks(LINE_LETTERS).enumerate() {
        if index > 0 {
            put(out, "\n");
        }
        put(out, line);
    }
    put(out, "</pre>\n<p>Scoreboard Key:<br />\n");
    let key = [
        ('_', "Waiting for Connection", ", \n"),
        ('S', "Starting up", ", \n"),
        ('R', "Reading Request", ",<br />\n"),
        ('W', "Sending Reply", ", \n"),
        ('K', "Keepalive (read)", ", \n"),
        ('D', "DNS Lookup", ",<br />\n"),
        ('C', "Closing connection", ", \n"),
        ('L', "Logging", ", \n"),
        ('G', "Gracefully finishing", ",<br /> \n"),
        ('I', "Idle cleanup of worker", ", \n"),
        ('.', "Open slot with no current process", "<br />\n"),
    ];
    for (letter, meaning, end) in key {
        put(out, format!("\"<b><code>{letter}</code></b>\" {meaning}{end}"));
    }
    put(out, "</p>\n");
    if !report.extended {
        write_pids(report, out);
    }
}

/// Writes which process each letter belongs to, if there is no table.
fn write_pids(report: &Report, out: &mut Vec<u8>) {
    put(out, "PID Key: <br />\n<pre>\n");
    let all = report.board.processes.iter();
    let all = all.flat_map(|process| process.loops.iter().map(move |seen| (process.pid, seen)));
    for (index, (pid, seen)) in all.enumerate() {
        let end = if index % LINE_PROCESSES == LINE_PROCESSES - 1 { "\n" } else { "," };
        put(out, format!("   {pid} in state: {} {end}", seen.status.letter()));
    }
    put(out, "\n</pre>\n");
}

/// Whether a loop has anything to show.
fn has_worked(seen: &LoopSnapshot) -> bool {
    seen.accesses > 0 || !matches!(seen.status, Status::Ready | Status::Dead)
}

const TABLE_HEAD: &str = "\n\n<table border=\"0\"><tr><th>Srv</th><th>PID</th><th>Acc</th>\
    <th>M</th><th>CPU\n</th><th>SS</th><th>Req</th><th>Dur</th><th>Conn</th><th>Child</th>\
    <th>Slot</th><th>Client</th><th>Protocol</th><th>VHost</th><th>Request</th></tr>\n\n";

const TABLE_KEY: &str = " <hr /> <table>\n \
    <tr><th>Srv</th><td>Child Server number - generation</td></tr>\n \
    <tr><th>PID</th><td>OS process ID</td></tr>\n \
    <tr><th>Acc</th><td>Number of accesses this connection / this child / this slot</td></tr>\n \
    <tr><th>M</th><td>Mode of operation</td></tr>\n\
    <tr><th>CPU</th><td>CPU usage, number of seconds</td></tr>\n\
    <tr><th>SS</th><td>Seconds since beginning of most recent request</td></tr>\n \
    <tr><th>Req</th><td>Milliseconds required to process most recent request</td></tr>\n \
    <tr><th>Dur</th><td>Sum of milliseconds required to process all requests</td></tr>\n \
    <tr><th>Conn</th><td>Kilobytes transferred this connection</td></tr>\n \
    <tr><th>Child</th><td>Megabytes transferred this child</td></tr>\n \
    <tr><th>Slot</th><td>Total megabytes transferred this slot</td></tr>\n </table>\n";

/// Numbers of a loop, for both forms.
struct Shown {
    generation: u32,
    connection_accesses: u64,
    connection_bytes: u64,
    cpu_s: f64,
    since_s: u64,
    last_ms: u64,
    all_ms: u64,
}

impl Shown {
    fn of(report: &Report, process: &ProcessSnapshot, seen: &LoopSnapshot) -> Shown {
        let cpu_us = process.cpu_user_us + process.cpu_system_us;
        let since_us = match seen.last_used_us {
            0 => 0,
            used => report.now_us.saturating_sub(used),
        };
        // An idle loop has no connection.
        let is_at_it = seen.status != Status::Ready;
        Shown {
            generation: process.generation.saturating_sub(1),
            connection_accesses: if is_at_it { seen.connection_accesses } else { 0 },
            connection_bytes: if is_at_it { seen.connection_bytes } else { 0 },
            cpu_s: cpu_us as f64 / SECOND_US as f64,
            since_s: since_us / SECOND_US,
            last_ms: seen.last_duration_us / 1000,
            all_ms: seen.duration_us / 1000,
        }
    }
}

fn write_row(report: &Report, process: &ProcessSnapshot, seen: &LoopSnapshot, out: &mut Vec<u8>) {
    const MEGA: f64 = 1024.0 * 1024.0;
    let shown = Shown::of(report, process, seen);
    let mode = match seen.status {
        plain @ (Status::Ready | Status::Dead | Status::Graceful | Status::IdleKill) => {
            plain.letter().to_string()
        }
        busy => format!("<b>{}</b>", busy.letter()),
    };
    put(
        out,
        format!(
            "<tr><td><b>{}-{}</b></td><td>{}</td><td>{}/{}/{}</td><td>{mode}\n</td>",
            process.index,
            shown.generation,
            process.pid,
            shown.connection_accesses,
            seen.accesses,
            seen.accesses
        ),
    );
    put(
        out,
        format!(
            "<td>{:.2}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{:.2}</td>\
             <td>{:.2}\n</td><td>",
            shown.cpu_s,
            shown.since_s,
            shown.last_ms,
            shown.all_ms,
            shown.connection_bytes as f64 / 1024.0,
            seen.bytes as f64 / MEGA,
            seen.bytes as f64 / MEGA
        ),
    );
    let texts = [
        (&seen.client, "</td><td>"),
        (&seen.protocol, "</td><td nowrap>"),
        (&seen.vhost, "</td><td nowrap>"),
        (&seen.request, "</td></tr>\n\n"),
    ];
    for (text, end) in texts {
        escape::html(out, text);
        put(out, end);
    }
}

fn write_text(report: &Report, process: &ProcessSnapshot, seen: &LoopSnapshot, out: &mut Vec<u8>) {
    let shown = Shown::of(report, process, seen);
    let mode = match seen.status {
        Status::Ready => "Ready",
        Status::Starting => "Starting",
        Status::Reading => "<b>Read</b>",
        Status::Writing => "<b>Write</b>",
        Status::KeepAlive => "<b>Keepalive</b>",
        Status::Logging => "<b>Logging</b>",
        Status::Dns => "<b>DNS lookup</b>",
        Status::Closing => "<b>Closing</b>",
        Status::Dead => "Dead",
        Status::Graceful => "Graceful",
        Status::IdleKill => "Dying",
    };
    let (index, pid, generation) = (process.index, process.pid, shown.generation);
    let accesses = format!("{}|{}|{}", shown.connection_accesses, seen.accesses, seen.accesses);
    let [user, system] = [process.cpu_user_us, process.cpu_system_us]
        .map(|us| general(us as f64 / SECOND_US as f64, 6));
    put(
        out,
        format!(
            "<b>Server {index}-{generation}</b> ({pid}): {accesses} [{mode}] u{user} s{system} \
             cu0 cs0\n {} {} {}({}|{}|{})\n <i>",
            shown.since_s,
            shown.last_ms,
            shown.all_ms,
            bytes(shown.connection_bytes as f64),
            bytes(seen.bytes as f64),
            bytes(seen.bytes as f64)
        ),
    );
    let texts = [
        (&seen.client, " {"),
        (&seen.request, "}</i> <i>("),
        (&seen.protocol, ")</i> <b>["),
        (&seen.vhost, "]</b><br />\n\n"),
    ];
    for (text, end) in texts {
        escape::html(out, text);
        put(out, end);
    }
}
