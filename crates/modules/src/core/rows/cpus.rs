//! CPU affinity of loops and processes. Apache has no such directives.

use conf::Arg;
use mpm::affinity::Setting;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, Takes};

use super::Here;
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    row(
        "CPUAffinity",
        Takes::One(cpu_affinity),
        "Off|Auto|Core|Thread|LLC|cpu-list",
        "Auto",
        "Binds loops (event and loop MPMs) or processes (prefork and worker) to CPUs. `Auto` gives \
         each loop a CPU of its own if there are enough, preferring separate physical cores and \
         a common last-level cache, and otherwise the CPUs of one cache; under a CPU quota it \
         binds nothing. `Core` gives each a physical core with all its threads, `Thread` a \
         single CPU, `LLC` the CPUs of one last-level cache; a list such as `0-3,8` is `Thread` \
         within these CPUs, and event starts as many loops. A mask or cpuset set from outside \
         is always respected. `tamarack -t -D DUMP_CPU` prints the machine, the allowed CPUs, \
         and the assignment with its reasons.",
    ),
    row(
        "CPUAffinityAdapt",
        Takes::Flag(|cx, on| {
            cx.server().globals_mut().cpu_affinity_adapt.set(on);
            Ok(())
        }),
        "On|Off",
        "On",
        "Adapts to CPU usage while the server runs: a loop leaves a CPU that other programs need \
         and returns when it is idle, new connections go to loops with spare time, and changes \
         of the mask, the cpuset, the quota and the online CPUs need no restart. Every decision \
         is logged at `LogLevel mpm:debug` and counted. Has no effect if CPUAffinity is `Off`.",
    ),
];

const fn row(
    name: &'static str,
    takes: Takes<Core>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Core> {
    Row::new(name, takes, syntax, doc).standing(Places::SERVER, Override::NONE).default(default)
}

fn cpu_affinity(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let text = String::from_utf8_lossy(&arg.text);
    let setting = Setting::parse(&text).map_err(|why| Fault::new(why).at(arg))?;
    cx.server().globals_mut().cpu_affinity.set(setting);
    Ok(())
}
