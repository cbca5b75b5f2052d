//! `?auto`: names and numbers, a line each, for programs.
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
    line("Scoreboard", String::from_utf8_lossy(&report.letters).into_owned());
    out
}

fn write_totals(report: &Report, line: &mut impl FnMut(&str, String)) {
    let board = &report.board;
    let uptime = report.uptime_s() as f64;
    let count = board.accesses as f64;
    let kilobytes = board.bytes / 1024;
    let bytes = kilobytes as f64 * 1024.0;
    let duration = report.duration_ms();
    line("Total Accesses", board.accesses.to_string());
    line("Total kBytes", kilobytes.to_string());
    line("Total Duration", duration.to_string());
    let [user, system] = report.cpu_s();
    line("CPUUser", "0".to_owned());
    line("CPUSystem", "0".to_owned());
    line("CPUChildrenUser", general(user, DIGITS));
    line("CPUChildrenSystem", general(system, DIGITS));
    if user + system > 0.0 && uptime > 0.0 {
        line("CPULoad", general((user + system) / uptime * 100.0, DIGITS));
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
