//! Whether `explain` says what the server answers: for each request of the recorded test files, its
//! answer is compared with the recording.
//!
//! Left out are requests that are not sent at once, and those whose response depends on the TLS
//! session, on a name server or on a backend. Files that can't be explained are named in
//! `NOT_EXPLAINED`, with the reason.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, unreachable_pub, unused_imports)]

#[path = "../../src/cli.rs"]
mod cli;
#[path = "../../src/dump.rs"]
mod dump;
#[path = "../../src/explain/mod.rs"]
mod explain;
#[path = "../../src/lint/mod.rs"]
mod lint;
#[path = "../../src/load.rs"]
mod load;
#[path = "../../src/loader.rs"]
mod loader;
#[path = "../../src/logs.rs"]
mod logs;
#[path = "../../src/settings.rs"]
mod settings;
#[path = "../../src/startup.rs"]
mod startup;

mod requests;
mod user;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blackbox::place::Place;
use blackbox::testfile::{self, TestFile};

use requests::{Counts, Outcome};

/// Files and connections whose recordings depend on more than one request, or on what is not
/// explained.
const NOT_EXPLAINED: &[(&str, &str)] = &[
    ("mod_cgid/info_log", "explain starts no programs"),
    ("mod_ident/needed", "explain asks no other server"),
    ("mod_ident/unknown", "as above"),
    ("mod_proxy_hcheck/tls", "as above"),
    ("mod_sed/files: Written lines", "explain writes no files"),
    ("mod_sed/files: A file that can't be written", "as above"),
    ("mod_sed/input: A file that can't be written", "as above"),
    ("mod_http2/upgrade", "explain takes each request for the first of its connection"),
    ("mod_actions/program", "explain starts no programs"),
    ("mod_cgi/access", "as above"),
    ("mod_cgi/ranges", "as above"),
    ("mod_cgid/ranges", "as above"),
    ("mod_cgi/advisories", "as above"),
    ("mod_cgi/environment", "as above"),
    ("mod_cgi/heads", "as above"),
    ("mod_cgi/odd_bytes", "as above"),
    ("mod_cgi/running", "as above"),
    ("mod_cgi/script_log", "as above"),
    ("mod_cgi/stderr_fields", "as above"),
    ("mod_cgid/access", "as above"),
    ("mod_data/lengths: A program", "as above"),
    ("mod_data/programs", "as above"),
    ("mod_cgid/advisories", "as above"),
    ("mod_cgid/broken_fields", "as above"),
    ("mod_cgid/unknown_statuses", "as above"),
    ("mod_http2/told_documents", "as above"),
    ("mod_cgid/broken_status", "as above"),
    ("mod_cgid/compressed", "as above"),
    ("mod_cgid/environment", "as above"),
    ("mod_cgid/failed", "as above"),
    ("mod_cgid/heads", "as above"),
    ("mod_cgid/left_running", "as above"),
    ("mod_cgid/many_words", "as above"),
    ("mod_cgid/running", "as above"),
    ("mod_ext_filter/ends_early", "as above"),
    ("mod_ext_filter/input", "as above"),
    ("mod_ext_filter/output", "as above"),
    ("expr/last_modified: A program", "as above"),
    ("mod_allowmethods/by_uri: A program's Location", "as above"),
    ("mod_auth_form/instead_cgi", "as above"),
    ("mod_include/exec", "as above"),
    ("mod_include/exec_query", "as above"),
    ("mod_include/kept_body", "as above"),
    ("mod_include/parsed_twice: The page, and one within another", "as above"),
    ("mod_include/program_output", "as above"),
    ("mod_include/slow_programs", "as above"),
    ("mod_include/logged_variables", "as above"),
    ("mod_suexec/running", "as above"),
    ("mod_suexec/running_prefork", "as above"),
    ("mod_suexec/userdir", "as above"),
    ("mod_auth_digest/refused: Fields, 8", "explain has no memory that processes share"),
    ("mod_auth_digest/refused: Fields, 9", "as above"),
    ("mod_auth_digest/answers", "explain has no nonce of its own that a client could answer"),
    ("mod_auth_digest/changed_field", "as above"),
    ("mod_auth_digest/counted", "as above"),
    ("mod_auth_digest/ended", "as above"),
    ("mod_auth_digest/normalized", "as above"),
    ("mod_auth_digest/once", "as above"),
    ("mod_auth_digest/once_count", "as above"),
    ("mod_auth_digest/once_newer", "as above"),
    ("mod_auth_digest/once_used", "as above"),
    ("mod_auth_digest/once_wrong", "as above"),
    ("mod_authn_socache/digest", "explain has no memory that processes share"),
    ("mod_authn_socache/kept", "as above"),
    ("mod_authn_socache/merged", "as above"),
    ("mod_authn_dbd/digest", "explain asks no databases"),
    ("mod_authn_dbd/passwords", "as above"),
    ("mod_authz_dbd/groups", "as above"),
    ("mod_dbd/hosts", "as above"),
    ("mod_dbd/unprepared", "as above"),
    ("mod_dbd/unset", "as above"),
    ("mod_rewrite/maps_database", "as above"),
    ("mod_session_dbd/anonymous", "as above"),
    ("mod_session_dbd/down", "as above"),
    ("mod_session_dbd/errors", "as above"),
    ("mod_session_dbd/users", "as above"),
    ("mod_wsgi/daemon", "explain runs no applications"),
    ("mod_wsgi/alias_match", "as above"),
    ("mod_wsgi/expectation", "as above"),
    ("mod_wsgi/daemon_edges", "as above"),
    ("mod_wsgi/decisions", "as above"),
    ("mod_wsgi/edges", "as above"),
    ("mod_wsgi/groups", "as above"),
    ("mod_wsgi/home", "as above"),
    ("mod_wsgi/missing_functions", "as above"),
    ("mod_wsgi/proxies", "as above"),
    ("mod_wsgi/request_id", "as above"),
    ("mod_wsgi/responses", "as above"),
    ("mod_wsgi/withheld", "as above"),
    ("core/lookups", "names that one request has looked up are known to the next"),
    ("mod_heartmonitor/file", "explain does not write the file"),
    ("mod_include/vary: Compressed", "the server lacks the field, too: tests/GAPS"),
    ("mod_include/printenv: In a page within", "the page shows what cargo adds to the environment"),
    ("mod_proxy/remote_https: Through the tunnel", "the server is its own backend"),
    ("mod_proxy_balancer/manager_sequence", "the pages show earlier requests"),
    ("mod_proxy_balancer/status", "as above"),
    ("mod_status/event", "the state is that of the process that answers"),
    ("mod_status/prefork", "as above"),
    ("mod_status/worker", "as above"),
    ("mod_ssl/sections: The suite of the section, TLS 1.2", "explain assumes the usual suite"),
];

/// Whether a file, or a connection of one, is left out.
fn is_left_out(name: &str) -> bool {
    NOT_EXPLAINED.iter().any(|(known, _)| name == *known)
}

/// A variable of the environment in which test files run.
const VARIABLE: (&str, &str) = ("BLACKBOX", "from the environment");

fn main() -> ExitCode {
    if std::env::var_os(VARIABLE.0).is_none() {
        return again();
    }
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut paths = Vec::new();
    collect(&tests, &mut paths).unwrap();
    paths.sort();
    let mut counts = Counts::default();
    for path in paths {
        let file = testfile::load(&path, &tests).unwrap();
        let is_chosen = filters.is_empty() || filters.iter().any(|part| file.name.contains(part));
        if !is_chosen {
            continue;
        }
        if is_left_out(&file.name) || file.missing().is_some() {
            counts.skip("whole files", 1);
            continue;
        }
        match of_file(&file, &tests) {
            Outcome::Compared(compared) => counts.add(compared),
            Outcome::Refused(why) => {
                println!("{}: {why}", file.name);
                counts.failed += 1;
            }
        }
    }
    let Counts { passed, failed, skipped } = counts;
    let left_out: usize = skipped.values().sum();
    println!(
        "agreement of explain and recordings: {passed} passed, {failed} failed, {left_out} skipped"
    );
    for (why, count) in skipped {
        println!("  {count:4} skipped: {why}");
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program in that environment.
fn again() -> ExitCode {
    let program = std::env::current_exe().unwrap();
    let words = std::env::args_os().skip(1);
    let mut command = std::process::Command::new(program);
    let status = command.args(words).env(VARIABLE.0, VARIABLE.1).status().unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|kind| kind == "test") {
            paths.push(path);
        }
    }
    Ok(())
}

fn of_file(file: &TestFile, tests: &Path) -> Outcome {
    let place = match Place::build(file, &tests.join("tls")) {
        Ok(place) => place,
        Err(why) => return Outcome::Refused(why),
    };
    // Relative folders of users count from where the server is started.
    std::env::set_current_dir(&place.root).unwrap();
    let arguments = cli::Arguments {
        server_root: Some(place.root.clone()),
        file: Some("conf/httpd.conf".into()),
        ..cli::Arguments::default()
    };
    let loaded = load::load("agreement", &arguments);
    let Some(server) = loaded.server.clone() else {
        // Recorded for the refusal, by commands.
        let mut counts = Counts::default();
        counts.skip("whole files", 1);
        return Outcome::Compared(counts);
    };
    let asked = explain::Session::run(&loaded, server, None, async |mut session| {
        requests::all(file, &place, &mut session).await
    });
    asked.map_or_else(|error| Outcome::Refused(error.to_string()), Outcome::Compared)
}
