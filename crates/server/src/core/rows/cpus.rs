//! Where loops and processes run. Apache has no such directives.

use conf::Arg;
use mpm::affinity::Setting;

use super::Here;
use crate::api::directive::{Fault, Row, Set, Takes};
use crate::config::context::{Override, Places};
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    row(
        "CPUAffinity",
        Takes::One(cpu_affinity),
        "Off|Auto|Core|Thread|LLC|cpu-list",
        "Auto",
        "Binds loops (of the event and loop MPMs) or processes (of prefork and worker) to CPUs. \
         `Auto` gives each loop a CPU of its own where there are enough, physical cores before \
         their second threads and neighbours under one last-level cache, and otherwise the CPUs \
         of one cache; under a CPU quota it binds nothing. `Core` gives each a physical core with \
         all its threads, `Thread` a single CPU, `LLC` the CPUs of one last-level cache; a list \
         such as `0-3,8` is `Thread` within these CPUs, and event starts as many loops. A mask or \
         cpuset that was set from outside is kept to in any case. `tamarack -t -D DUMP_CPU` \
         prints the machine, what is allowed, and who runs where and why.",
    ),
    row(
        "CPUAffinityAdapt",
        Takes::Flag(|cx, on| {
            cx.server().globals.0.cpu_affinity_adapt.set(on);
            Ok(())
        }),
        "On|Off",
        "On",
        "Follows what becomes of the CPUs while the server runs: a loop leaves a CPU that other \
         programs need and returns when it is quiet, new connections go to loops that have time, \
         and changes of the mask, the cpuset, the quota and the CPUs that are online need no \
         restart. Every decision is a line in the error log at `LogLevel mpm:debug` and counted. \
         Without effect where CPUAffinity is `Off`.",
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
    cx.server().globals.0.cpu_affinity.set(setting);
    Ok(())
}
