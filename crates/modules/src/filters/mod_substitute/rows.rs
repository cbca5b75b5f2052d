//! The directives of mod_substitute.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::Substitute;
use super::rule::{Pattern, Rule};

type Here<'a, 't> = Cx<'a, 't, Substitute>;

pub(super) const ROWS: &[Row<Substitute>] = &[
    Row::new(
        "Substitute",
        Takes::One(substitute),
        "s/pattern/substitution/[infq]",
        "Adds a rule that replaces text in each line of a response.",
    )
    .standing(Places::PER_DIR, Override::FILE_INFO),
    Row::new(
        "SubstituteInheritBefore",
        Takes::Flag(inherit_before),
        "on|off",
        "Sets whether the rules of outer sections are applied before those of inner ones.",
    )
    .standing(Places::PER_DIR, Override::FILE_INFO)
    .default("off"),
    Row::new(
        "SubstituteMaxLineLength",
        Takes::One(line_bytes),
        "bytes(b|B|k|K|m|M|g|G)",
        "Limits the length of lines, before and after substitutions.",
    )
    .standing(Places::PER_DIR, Override::FILE_INFO)
    .default("1m"),
];

fn inherit_before(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.dir().rules.inherits_before = Some(on);
    Ok(())
}

/// Source: `set_pattern`.
fn substitute(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let wrong = |what: &str| Err(Fault::new(format!("Bad Substitute {what}")).at(arg));
    let [b's' | b'S', line @ ..] = arg.text.as_slice() else {
        return wrong("format, must be an s/// pattern");
    };
    const INCOMPLETE: &str = "format, must be a complete s/// pattern";
    let Some((delimiter, line)) = line.split_first() else { return wrong(INCOMPLETE) };
    let mut parts = line.splitn(3, |byte| byte == delimiter);
    let (Some(from), Some(to)) = (parts.next().filter(|from| !from.is_empty()), parts.next())
    else {
        return wrong(INCOMPLETE);
    };
    let (mut caseless, mut is_text, mut flattens) = (false, false, true);
    for flag in parts.next().unwrap_or_default() {
        match flag.to_ascii_lowercase() {
            b'i' => caseless = true,
            b'n' => is_text = true,
            b'f' => flattens = true,
            b'q' => flattens = false,
            _ => return wrong("flag, only s///[infq] are supported"),
        }
    }
    let pattern = match (is_text, caseless) {
        (true, true) => Pattern::Caseless(from.to_ascii_lowercase()),
        (true, false) => Pattern::Text(from.to_vec()),
        (false, _) => Pattern::Regex(cx.build().line_regex(from, caseless).map_err(|fault| {
            Fault { message: "Substitute could not compile regex".to_owned(), ..fault }.at(arg)
        })?),
    };
    let rule = Rule { pattern, replacement: to.to_vec(), flattens };
    Arc::make_mut(&mut cx.dir().rules.list).push(rule);
    Ok(())
}

/// Source: `set_max_line_length`.
fn line_bytes(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let Some(bytes) = parse_bytes(&arg.text) else {
        let why = "SubstituteMaxLineLength must be a non-negative integer optionally suffixed \
                   with 'b', 'k', 'm' or 'g'.";
        return Err(Fault::new(why).at(arg));
    };
    cx.dir().rules.line_bytes = Some(bytes);
    Ok(())
}

fn parse_bytes(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?.trim_start();
    let end = text.bytes().position(|byte| byte.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor: i64 = match unit {
        "" | "b" | "B" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    // A unit alone is 0, as apr_strtoff reads it.
    let number: i64 =
        if digits.is_empty() && !unit.is_empty() { 0 } else { digits.parse().ok()? };
    usize::try_from(number.checked_mul(factor)?).ok()
}
