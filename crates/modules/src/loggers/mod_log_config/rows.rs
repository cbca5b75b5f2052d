//! The directives.

use std::sync::Arc;

use conf::Arg;
use conf::expr::Flags;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;

use super::format::Format;
use super::{Condition, Log, LogConfig};

type Here<'a, 't> = Cx<'a, 't, LogConfig>;

pub(super) const ROWS: &[Row<LogConfig>] = &[
    row(
        "CustomLog",
        Takes::Some { least: 2, most: 3, set: custom_log },
        Places::HOST,
        "file|pipe format|nickname [env=[!]environment-variable|expr=expression]",
        "Logs each request to a file or program.",
    ),
    row(
        "GlobalLog",
        Takes::Some { least: 2, most: 3, set: global_log },
        Places::SERVER,
        "file|pipe format|nickname [env=[!]environment-variable|expr=expression]",
        "Logs each request of every host, in addition to the host's own logs.",
    ),
    row(
        "TransferLog",
        Takes::One(transfer_log),
        Places::HOST,
        "file|pipe",
        "Logs each request in the format of the LogFormat without a nickname.",
    ),
    row(
        "LogFormat",
        Takes::Some { least: 1, most: 2, set: log_format },
        Places::HOST,
        "format|nickname [nickname]",
        "Defines the format of access log lines, optionally under a nickname.",
    )
    .default("\"%h %l %u %t \\\"%r\\\" %>s %b\""),
    row(
        "BufferedLogs",
        Takes::Flag(|cx, on| {
            cx.server().buffered.0 = on;
            Ok(())
        }),
        Places::HOST,
        "On|Off",
        "Buffers log lines in memory for up to a second.",
    )
    .default("Off"),
];

const fn row(
    name: &'static str,
    takes: Takes<LogConfig>,
    places: Places,
    syntax: &'static str,
    doc: &'static str,
) -> Row<LogConfig> {
    Row::new(name, takes, syntax, doc).standing(places, Override::NONE)
}

fn custom_log(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let log = log(cx, words)?;
    cx.server().logs.push(log);
    Ok(())
}

fn global_log(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let log = log(cx, words)?;
    cx.server().global_logs.push(log);
    Ok(())
}

fn transfer_log(cx: &mut Here<'_, '_>, file: &Arg) -> Set {
    let log = log(cx, std::slice::from_ref(file))?;
    cx.server().logs.push(log);
    Ok(())
}

/// Source: `add_custom_log`
fn log(cx: &mut Here<'_, '_>, words: &[Arg]) -> Result<Log, Fault> {
    let [file, rest @ ..] = words else { return Err(Fault::new("CustomLog requires a file")) };
    let span = cx.span();
    let build = cx.build();
    let sink = build.log_sink(file)?;
    let format = rest.first().map(|word| word.text.to_vec());
    if let Some(text) = &format
        && text.contains(&b'%')
    {
        let place = rest.first().unwrap_or(file);
        Format::parse(text, &build.registry).map_err(|why| Fault::new(why).at(place))?;
    }
    let condition = rest.get(1).map(|word| condition(cx, word)).transpose()?;
    Ok(Log { sink, file: file.text.to_vec(), format, condition, span })
}

fn condition(cx: &mut Here<'_, '_>, word: &Arg) -> Result<Condition, Fault> {
    if let Some(name) = value_of(&word.text, b"env=") {
        return match name {
            [] | [b'!'] => Err(Fault::new("missing environment variable name").at(word)),
            [b'!', name @ ..] => Ok(Condition::NotEnv(name.to_vec())),
            name => Ok(Condition::Env(name.to_vec())),
        };
    }
    let Some(text) = value_of(&word.text, b"expr=") else {
        return Err(Fault::new("error in condition clause").at(word));
    };
    if text.is_empty() {
        return Err(Fault::new("missing condition").at(word));
    }
    let flags = Flags { dont_vary: true, ..cx.expr_flags() };
    let parsed = expr::parse_bool(&cx.build().registry, text, flags);
    let parsed = parsed.map_err(|error| Fault::new(error.message).at(word))?;
    Ok(Condition::Expr(Arc::new(parsed)))
}

/// What follows `name`, which is in any case.
fn value_of<'w>(word: &'w [u8], name: &[u8]) -> Option<&'w [u8]> {
    let (found, value) = word.split_at_checked(name.len())?;
    found.eq_ignore_ascii_case(name).then_some(value)
}

/// Source: `log_format`
fn log_format(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let [format, rest @ ..] = words else { return Ok(()) };
    let Some(nickname) = rest.first() else {
        let known = cx.server().formats.get(format.text.as_slice()).cloned();
        let text = known.unwrap_or_else(|| format.text.to_vec());
        Format::parse(&text, &cx.build().registry).map_err(|why| Fault::new(why).at(format))?;
        cx.server().default_format.set(text);
        return Ok(());
    };
    Format::parse(&format.text, &cx.build().registry).map_err(|why| Fault::new(why).at(format))?;
    cx.server().formats.insert(nickname.text.to_vec(), format.text.to_vec());
    Ok(())
}
