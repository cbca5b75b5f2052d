//! `?auto`: names and numbers for programs, one per line.
//!
//! Source: `status_handler`.

use super::number::{general, time};
use super::report::{Report, built, date, server_version};

/// Significant digits of numbers.
const DIGITS: usize = 6;

/// Writes the report.
pub(super) fn write(report: &Report) -> Vec<u8> {
    let mut out = report.server_name.clone();
    out.push(b'\n');
    let mut line = |name: &str, value: String| {
        out.extend_from_slice(format!("{name}: {value}\n").as_bytes());
    };
    line("ServerVersion", server_version());
    line("ServerMPM", report.board.shape.name().to_owned());
    line("Server Built", built().to_owned());
    line("CurrentTime", date(report.now_us));
    line("RestartTime", date(report.board.restarted_us));
    line("ParentServerConfigGeneration", report.board.generation.to_string());
    line("ParentServerMPMGeneration", report.generation().to_string());
    line("ServerUptimeSeconds", report.uptime_s().to_string());
    line("ServerUptime", time(report.uptime_s()).trim_start().to_owned());
    for (name, load) in ["Load1", "Load5", "Load15"].into_iter().zip(report.load) {
        line(name, format!("{load:.2}"));
    }
    if report.extended {
        write_totals(report, &mut line);
    }
    let [busy, graceful, idle] = report.loops;
    line("BusyWorkers", busy.to_string());
    line("GracefulWorkers", graceful.to_string());
    line("IdleWorkers", idle.to_string());
    if report.board.shape.is_async() {
        write_connections(report, &mut line);
    }
    line("Scoreboard", String::from_utf8_lossy(&report.letters).into_owned());
    out
}

/// Writes the lines of shapes whose loops have many connections.
fn write_connections(report: &Report, line: &mut impl FnMut(&str, String)) {
    let [processes, stopping] = report.processes();
    line("Processes", processes.to_string());
    line("Stopping", stopping.to_string());
    let names = [
        "ConnsTotal",
        "ConnsAsyncWaitIO",
        "ConnsAsyncWriting",
        "ConnsAsyncKeepAlive",
        "ConnsAsyncClosing",
    ];
    for (name, count) in names.into_iter().zip(report.connections) {
        line(name, count.to_string());
    }
}

fn write_totals(report: &Report, line: &mut impl FnMut(&str, String)) {
    let uptime = report.uptime_s() as f64;
    let accesses = report.accesses();
    let count = accesses as f64;
    let kilobytes = report.bytes() / 1024;
    let bytes = kilobytes as f64 * 1024.0;
    let duration = report.duration_ms();
    line("Total Accesses", accesses.to_string());
    line("Total kBytes", kilobytes.to_string());
    line("Total Duration", duration.to_string());
    let cpu_s = report.cpu_s();
    let names = ["CPUUser", "CPUSystem", "CPUChildrenUser", "CPUChildrenSystem"];
    for (name, seconds) in names.into_iter().zip(cpu_s) {
        line(name, general(seconds, DIGITS));
    }
    let cpu_s: f64 = cpu_s.iter().sum();
    if cpu_s > 0.0 && uptime > 0.0 {
        line("CPULoad", general(cpu_s / uptime * 100.0, DIGITS));
    }
    line("Uptime", report.uptime_s().to_string());
    if uptime > 0.0 {
        line("ReqPerSec", general(count / uptime, DIGITS));
        line("BytesPerSec", general(bytes / uptime, DIGITS));
    }
    if count > 0.0 {
        line("BytesPerReq", general(bytes / count, DIGITS));
        line("DurationPerReq", general(duration as f64 / count, DIGITS));
    }
}
