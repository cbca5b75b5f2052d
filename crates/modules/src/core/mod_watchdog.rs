//! mod_watchdog.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_watchdog.html>

use std::time::Duration;

use conf::Arg;
use conf::values::{Unit, timeout};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::module::Module;
use server::scope::{Override, Places};

/// `mod_watchdog.c`
pub struct Watchdog;

impl Module for Watchdog {
    const NAME: &'static str = "watchdog_module";
    const FILE: &'static str = "mod_watchdog.c";
    type Server = ();
    type Dir = ();
    const DIRECTIVES: &'static [Row<Watchdog>] = &[Row::<Watchdog>::new(
        "WatchdogInterval",
        Takes::One(interval),
        "time-interval[s]",
        "Said how often Apache runs what modules do in the background.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("1")
    .state(State::Accepted("modules that work in the background have timers of their own"))];
}

/// The shortest interval that is taken.
const LEAST: Duration = Duration::from_millis(100);

fn interval(_: &mut Cx<'_, '_, Watchdog>, arg: &Arg) -> Set {
    match timeout(&arg.text, Unit::Seconds) {
        None => Err(Fault::new("Unparse-able WatchdogInterval setting").at(arg)),
        Some(time) if time < LEAST => {
            Err(Fault::new("Invalid WatchdogInterval: minimal value 100ms").at(arg))
        }
        Some(_) => Ok(()),
    }
}
