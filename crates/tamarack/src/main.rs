//! The program: httpd's command line on top of Tamarack.

mod about;
mod child;
mod cli;
mod copies;
mod dump;
mod explain;
mod folder;
mod lint;
mod load;
mod loader;
mod logs;
mod manual;
mod program;
mod settings;
mod startup;

use std::process::ExitCode;

use cli::{Action, Arguments};
use mpm::Mode;
use mpm::companion::executed;

#[global_allocator]
static ALLOCATOR: rt::memory::Counting<mimalloc::MiMalloc> =
    rt::memory::Counting(mimalloc::MiMalloc);

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let name = cli::program_name(&name);
    let words: Vec<_> = words.collect();
    let status = match words.first().and_then(|word| word.to_str()) {
        Some("serve") => {
            copies::execute_for_fast_ones();
            folder::serve(&words[1..])
        }
        Some("explain") => explain::run(&words[1..]),
        Some("lint") => lint::run(&words[1..]),
        Some(executed::WORD) => executed::run(&words[1..]),
        Some("manual") => manual::print(&words[1..]),
        _ => match Arguments::parse(&words) {
            Ok(arguments) => run(&name, &arguments),
            Err(wrong) => {
                if !wrong.is_empty() {
                    eprintln!("{name}: {wrong}");
                }
                eprint!("{}", about::usage(&name));
                1
            }
        },
    };
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

fn run(name: &str, arguments: &Arguments) -> i32 {
    if matches!(arguments.action, Action::Start | Action::StartOnce)
        && !mpm::is_executed_by_server()
    {
        copies::execute_for_fast_ones();
    }
    // Like httpd, go on with standard error if the file can't be opened.
    if let Some(file) = &arguments.startup_log
        && let Err(text) = startup::log_to(name, &arguments.server_root(), file)
    {
        eprintln!("{text}");
    }
    // A server that `-k graceful` started, since none was running, keeps that argument.
    let action = match mpm::is_executed_by_server() {
        true => &Action::Start,
        false => &arguments.action,
    };
    match action {
        Action::Usage => {
            eprint!("{}", about::usage(name));
            1
        }
        Action::Version => {
            dump::print(&about::version());
            0
        }
        Action::Settings => {
            let loaded = load::load(name, arguments);
            let numbers = loaded.server.as_deref().and_then(modules::mpm::Numbers::of);
            dump::print(&about::settings(arguments, numbers.map(|(kind, _)| kind)));
            0
        }
        Action::Modules => {
            dump::print(&about::compiled_in());
            0
        }
        Action::Directives => {
            dump::print(&about::directives());
            0
        }
        Action::Check => dump::check(name, arguments),
        Action::Signal(order) => program::signal(name, arguments, *order, mode(arguments)),
        Action::Start => program::start(name, arguments, mode(arguments)),
        Action::StartOnce => program::start_once(name, arguments, mode(arguments)),
    }
}

fn mode(arguments: &Arguments) -> Mode {
    if arguments.one_process {
        Mode::OneProcess
    } else if arguments.is_defined("FOREGROUND") {
        Mode::Foreground
    } else {
        Mode::Detach
    }
}
