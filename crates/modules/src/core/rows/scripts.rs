//! CGI programs: their environment and limits.

use conf::Arg;
use server::context::{Override, Places};
use server::core::ResourceLimit;
use server::directive::{Fault, Row, Set, Takes};

use super::{Here, file_info, one_of};
use crate::atoi::atol;
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    Row::<Core>::new(
        "CGIPassAuth",
        Takes::Flag(|cx, on| {
            cx.dir().cgi_pass_auth.set(on);
            Ok(())
        }),
        "On|Off",
        "Passes the Authorization field to CGI programs.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG)
    .default("Off"),
    file_info(
        "CGIVar",
        Takes::Two(cgi_var),
        "variable rule",
        "",
        "Sets the source of a CGI variable.",
    ),
    limits("RLimitCPU", Takes::Some { least: 1, most: 2, set: limit_cpu }, "seconds"),
    limits("RLimitMEM", Takes::Some { least: 1, most: 2, set: limit_memory }, "bytes"),
    limits("RLimitNPROC", Takes::Some { least: 1, most: 2, set: limit_processes }, "number"),
];

const fn limits(name: &'static str, takes: Takes<Core>, syntax: &'static str) -> Row<Core> {
    Row::<Core>::new(
        name,
        takes,
        syntax,
        "Limits the resources of programs that are started for requests.",
    )
    .standing(Places::ALL, Override::ALL)
}

fn cgi_var(cx: &mut Here<'_, '_>, variable: &Arg, rule: &Arg) -> Set {
    if variable.text.as_slice() != b"REQUEST_URI" {
        let text = &variable.text;
        return Err(Fault::new(format!("Unrecognized CGI variable: \"{text}\"")).at(variable));
    }
    let words = [("current-uri", true), ("original-uri", false)];
    let fault = "Valid rules for REQUEST_URI are 'current-uri' and 'original-uri'";
    let current = one_of(rule, &words, fault)?;
    cx.dir().cgi_current_uri.set(current);
    Ok(())
}

/// Source: `unixd_set_rlimit` (os/unix/unixd.c).
fn resource_limit(words: &[Arg]) -> ResourceLimit {
    let read = |word: &Arg| match word.is("max") {
        true => None,
        false => Some(u64::try_from(atol(&word.text)).unwrap_or(0)),
    };
    (words.first().and_then(read), words.get(1).map(read))
}

fn limit_cpu(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    cx.dir().limit_cpu.set(resource_limit(words));
    Ok(())
}

fn limit_memory(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    cx.dir().limit_memory.set(resource_limit(words));
    Ok(())
}

fn limit_processes(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    cx.dir().limit_processes.set(resource_limit(words));
    Ok(())
}
