//! `blackbox`: the tests that are data.
//!
//! ```text
//! blackbox record [FILTER…]   asks the installed apache2, writes its responses into the files
//! blackbox check  [FILTER…]   do the recordings still match the installed apache2?
//! blackbox run    [FILTER…]   does Tamarack do the same?  --expect-gaps FILE,
//!                             --mpm NAME: under another MPM than event
//!                             --http2: what HTTP/2 can express, over HTTP/2
//! ```
//!
//! A filter is a part of `area/name`. The format is described in tests/README.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use blackbox::compare::red;
use blackbox::gaps::Gaps;
use blackbox::program::Program;
use blackbox::run::{Case, Mode, run_file};
use blackbox::testfile::{self, TestFile};
use blackbox::{http2, place, unserved, watcher};

/// Files that run at the same time, most of which wait most of the time.
const WORKERS: usize = 16;

fn main() -> ExitCode {
    match start() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("blackbox: {message}");
            ExitCode::from(2)
        }
    }
}

fn start() -> Result<bool, String> {
    let Some(_watcher) = watcher::start()? else {
        return Ok(true);
    };
    let mut arguments = std::env::args().skip(1);
    let mode = match arguments.next().as_deref() {
        Some("record") => Mode::Record,
        Some("check") => Mode::Check,
        Some("run") => Mode::Run,
        _ => return Err("record|check|run [--expect-gaps FILE] [--mpm NAME] [FILTER…]".into()),
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no tests folder")?;
    let mut gaps = Gaps::default();
    if mode == Mode::Run {
        gaps = Gaps::load(&tests.join("GAPS"))?;
    }
    let mut filters = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--expect-gaps" => {
                gaps = Gaps::load(Path::new(&arguments.next().ok_or("--expect-gaps FILE")?))?;
            }
            "--mpm" => {
                let name = arguments.next().ok_or("--mpm prefork|worker|event|loop")?;
                let _ = place::MPM.set(format!("mpm_{name}"));
            }
            "--http2" => http2::ON.store(true, Ordering::Relaxed),
            _ => filters.push(argument),
        }
    }
    let program = match mode {
        Mode::Run => Program::tamarack(tests)?,
        Mode::Record | Mode::Check => Program::Apache,
    };
    let version = program.version()?;
    let recorded = std::fs::read_to_string(tests.join("RECORDED")).unwrap_or_default();
    let other_version = mode == Mode::Check && recorded.trim() != version;
    let mut files = load_all(tests, &filters)?;
    if mode == Mode::Run && filters.is_empty() {
        unserved::leave_out(&mut files, &program, tests)?;
    }
    if http2::is_on() {
        // The known gaps are of HTTP/1.
        gaps = Gaps::default();
        let count = files.len();
        http2::leave_out(&mut files, &http2::differing(tests)?);
        files.retain_mut(http2::reduce);
        println!("over HTTP/2: {} of {count} files", files.len());
    }
    let started = Instant::now();
    let cases = run_all(files, &program, mode, tests)?;
    if mode == Mode::Record {
        std::fs::write(tests.join("RECORDED"), format!("{version}\n"))
            .map_err(|e| e.to_string())?;
    }
    let good = report(&cases, &gaps, filters.is_empty());
    println!("{version}, {:.1} s", started.elapsed().as_secs_f64());
    if other_version {
        println!("recorded from {}: differences are reported, not counted", recorded.trim());
    }
    Ok(good || other_version)
}

fn load_all(tests: &Path, filters: &[String]) -> Result<Vec<TestFile>, String> {
    let mut paths = Vec::new();
    collect(tests, &mut paths).map_err(|e| format!("{}: {e}", tests.display()))?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let relative = path.strip_prefix(tests).unwrap_or(&path).display().to_string();
        if filters.is_empty() || filters.iter().any(|filter| relative.contains(filter.as_str())) {
            files.push(testfile::load(&path, tests)?);
        }
    }
    if files.is_empty() { Err("no test file has this name".into()) } else { Ok(files) }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|kind| kind == "test" || kind == "cli") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Runs the files on a few threads; in record mode writes them.
fn run_all(
    mut files: Vec<TestFile>,
    program: &Program,
    mode: Mode,
    tests: &Path,
) -> Result<Vec<Case>, String> {
    files.retain(|file| {
        let missing = file.missing().map(str::to_owned).or_else(|| program.missing(&file.modules));
        if let Some(missing) = &missing {
            println!("skipped (needs {missing}): {}", file.name);
        }
        missing.is_none()
    });
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let slots: Vec<Mutex<TestFile>> = files.into_iter().map(Mutex::new).collect();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Ok(mut file) = slot.lock() else {
                        continue;
                    };
                    let mut cases = run_file(&mut file, program, mode, tests);
                    let recorded = cases.iter().any(|case| case.failure.is_none());
                    if mode == Mode::Record
                        && recorded
                        && let Err(error) = std::fs::write(&file.path, file.to_text())
                    {
                        let failure = Some(error.to_string());
                        cases.push(Case { name: file.name.clone(), requests: 0, failure });
                    }
                    if let Ok(mut results) = results.lock() {
                        results.extend(cases);
                    }
                }
            });
        }
    });
    let mut cases = results.into_inner().map_err(|_| "a test thread panicked")?;
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(cases)
}

/// Prints failures and the summary, and returns whether all is as expected. `whole`: all files ran,
/// so a gap that did not appear is closed.
fn report(cases: &[Case], gaps: &Gaps, whole: bool) -> bool {
    let (mut passed, mut failed, mut known) = (0, 0, 0);
    let mut requests = 0;
    for case in cases {
        requests += case.requests;
        match (&case.failure, gaps.contains(&case.name)) {
            (None, false) => passed += 1,
            // A gap may be one of an MPM.
            (None, true) if place::MPM.get().is_some() => passed += 1,
            (None, true) => {
                failed += 1;
                let red = red("now passes, remove it from the list of gaps");
                println!("{red} {}", case.name);
            }
            (Some(_), true) => known += 1,
            (Some(failure), false) => {
                failed += 1;
                println!("{} {}\n{}", red("FAILED"), case.name, failure.trim_end());
            }
        }
    }
    let lost =
        if whole { gaps.not_among(cases.iter().map(|case| case.name.as_str())) } else { vec![] };
    for name in &lost {
        println!("{} {name}", red("no such case, remove it from the list of gaps"));
    }
    failed += lost.len();
    if known > 0 {
        println!("{known} known gaps");
    }
    println!("{passed} passed, {failed} failed ({requests} requests)");
    failed == 0
}
