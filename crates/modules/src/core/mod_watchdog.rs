//! mod_watchdog: the limit on stalls of a loop, after which its process is replaced.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_watchdog.html>

use std::time::Duration;

use conf::Arg;
use conf::values::{Unit, timeout};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::merge::{Outermost, Setting};
use server::module::Module;

/// `mod_watchdog.c`
pub struct Watchdog;

impl Module for Watchdog {
    const NAME: &'static str = "watchdog_module";
    const FILE: &'static str = "mod_watchdog.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Watchdog>] = &[
        Row::<Watchdog>::new(
            "WatchdogInterval",
            Takes::One(interval),
            "time-interval[s]",
            "Sets the interval of modules' background work in Apache.",
        )
        .standing(Places::SERVER, Override::NONE)
        .default("1")
        .state(State::Accepted("background work has its own timers")),
        Row::<Watchdog>::new(
            "LoopStallTimeout",
            Takes::One(stall),
            "seconds|Off",
            "Replaces a process if one of its loops has not turned, or one of its threads has \
             worked on one task, for this time, although it had its share of the CPU and no \
             debugger is attached. Waiting for a client or a backend does not count. Not an \
             Apache directive.",
        )
        .standing(Places::SERVER, Override::NONE)
        .default("30"),
    ];
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `LoopStallTimeout`; zero disables the watchdog.
        pub stall: Outermost<Setting<Duration>>,
    }
}

impl Settings {
    /// `LoopStallTimeout`; zero disables the watchdog.
    pub fn stall_limit(&self) -> Duration {
        self.stall.0.or(STALL_DEFAULT)
    }
}

/// The default of `LoopStallTimeout`: longer than a slow disk may block a loop.
const STALL_DEFAULT: Duration = Duration::from_secs(30);
/// The smallest `LoopStallTimeout`: a loop reports once a second.
const STALL_LEAST: Duration = Duration::from_secs(2);

/// The smallest `WatchdogInterval`.
const LEAST: Duration = Duration::from_millis(100);

fn stall(cx: &mut Cx<'_, '_, Watchdog>, arg: &Arg) -> Set {
    let limit = match arg.text.eq_ignore_ascii_case(b"off") {
        true => Duration::ZERO,
        false => match timeout(&arg.text, Unit::Seconds) {
            None => {
                return Err(
                    Fault::new("LoopStallTimeout must be a number of seconds, or Off").at(arg)
                );
            }
            Some(time) if time < STALL_LEAST => {
                return Err(
                    Fault::new("LoopStallTimeout must be at least 2 seconds, or Off").at(arg)
                );
            }
            Some(time) => time,
        },
    };
    cx.server().stall.0.set(limit);
    Ok(())
}

fn interval(_: &mut Cx<'_, '_, Watchdog>, arg: &Arg) -> Set {
    match timeout(&arg.text, Unit::Seconds) {
        None => Err(Fault::new("Unparse-able WatchdogInterval setting").at(arg)),
        Some(time) if time < LEAST => {
            Err(Fault::new("Invalid WatchdogInterval: minimal value 100ms").at(arg))
        }
        Some(_) => Ok(()),
    }
}
