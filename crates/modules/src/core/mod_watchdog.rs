//! mod_watchdog: how long a loop may hang before its process is replaced.
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
            "Said how often Apache runs what modules do in the background.",
        )
        .standing(Places::SERVER, Override::NONE)
        .default("1")
        .state(State::Accepted("modules that work in the background have timers of their own")),
        Row::<Watchdog>::new(
            "LoopStallTimeout",
            Takes::One(stall),
            "seconds|Off",
            "A process is replaced when one of its loops has not turned, or one of its threads has \
             been at one piece of work, for so long, though it got its share of the CPU and no \
             debugger watches it. Who waits for a client or a backend is at no work. Not one of \
             Apache's.",
        )
        .standing(Places::SERVER, Override::NONE)
        .default("30"),
    ];
}

server::config! {
    /// What the supervisor watches.
    pub struct Settings {
        /// `LoopStallTimeout`; zero for never.
        pub stall: Outermost<Setting<Duration>>,
    }
}

impl Settings {
    /// `LoopStallTimeout`; zero for never.
    pub fn stall_limit(&self) -> Duration {
        self.stall.0.or(STALL_DEFAULT)
    }
}

/// `LoopStallTimeout` where nobody says anything: longer than a slow disk may hold a loop up.
const STALL_DEFAULT: Duration = Duration::from_secs(30);
/// The shortest that is taken: a loop says once a second that it turns.
const STALL_LEAST: Duration = Duration::from_secs(2);

/// The shortest interval that is taken.
const LEAST: Duration = Duration::from_millis(100);

fn stall(cx: &mut Cx<'_, '_, Watchdog>, arg: &Arg) -> Set {
    let limit = match arg.text.eq_ignore_ascii_case(b"off") {
        true => Duration::ZERO,
        false => match timeout(&arg.text, Unit::Seconds) {
            None => return Err(Fault::new("LoopStallTimeout takes seconds, or Off").at(arg)),
            Some(time) if time < STALL_LEAST => {
                return Err(Fault::new("LoopStallTimeout is 2 s at least, or Off").at(arg));
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
