//! `ExtFilterDefine`.
//!
//! Source: `define_filter`, `parse_cmd`.

use bstr::BStr;
use conf::Arg;
use mpm::pipes::split_words;
use server::directive::{Cx, Fault, Set};
use server::filter::{DefinedFilter, DefinedInputFilter, Stage};

use super::{Definition, ExtFilter, input, output};
use crate::atoi::atoi;

/// Defines a filter, and registers it for all hosts: one that lacks the definition fails there.
pub(super) fn define(cx: &mut Cx<'_, '_, ExtFilter>, raw: &Arg) -> Set {
    let mut rest = raw.text.as_slice();
    let name = word(&mut rest).to_vec();
    let lower = name.to_ascii_lowercase();
    if cx.server().filters.contains_key(&lower) {
        return Err(Fault::new(format!("ExtFilter {} is already defined", BStr::new(&name))));
    }
    let mut filter = Definition {
        name,
        is_input: false,
        stage: Stage::RESOURCE,
        words: Vec::new(),
        in_type: None,
        out_type: None,
        enabled_by: None,
        disabled_by: None,
        preserves_length: false,
    };
    while !rest.is_empty() {
        rest = rest.trim_ascii_start();
        parameter(&mut filter, &mut rest).map_err(Fault::new)?;
    }
    let name = String::from_utf8_lossy(&lower).into_owned();
    match filter.is_input {
        true => cx.build().define_input_filter(DefinedInputFilter { name, make: input::make }),
        false => {
            let stage = filter.stage;
            cx.build().define_filter(DefinedFilter { name, stage, make: output::make });
        }
    }
    cx.server().filters.insert(lower, filter);
    Ok(())
}

/// Reads a parameter.
fn parameter(filter: &mut Definition, rest: &mut &[u8]) -> Result<(), String> {
    const PRESERVES: &[u8] = b"preservescontentlength";
    if starts(rest, PRESERVES) {
        let found = word(rest);
        if found.len() != PRESERVES.len() {
            return Err(format!("mangled argument `{}'", BStr::new(found)));
        }
        filter.preserves_length = true;
        return Ok(());
    }
    if take(rest, b"cmd=") {
        filter.words = command(rest)?;
        return Ok(());
    }
    if take(rest, b"mode=") {
        let mode = word(rest);
        filter.is_input = match mode.to_ascii_lowercase().as_slice() {
            b"output" => false,
            b"input" => true,
            _ => return Err(format!("Invalid mode: `{}'", BStr::new(mode))),
        };
    } else if take(rest, b"ftype=") {
        let number = atoi(word(rest)).clamp(0, i32::from(u8::MAX));
        filter.stage = Stage(u8::try_from(number).unwrap_or(0));
    } else if take(rest, b"enableenv=") {
        filter.enabled_by = Some(word(rest).to_vec());
    } else if take(rest, b"disableenv=") {
        filter.disabled_by = Some(word(rest).to_vec());
    } else if take(rest, b"intype=") {
        filter.in_type = Some(word(rest).to_vec());
    } else if take(rest, b"outtype=") {
        filter.out_type = Some(word(rest).to_vec());
    } else {
        return Err(format!("Unexpected parameter: `{}'", BStr::new(rest)));
    }
    Ok(())
}

/// The words of a program, which are in quotes if there is more than one.
fn command(rest: &mut &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let words = match rest.strip_prefix(b"\"") {
        None => vec![word(rest).to_vec()],
        Some(quoted) => {
            let mut is_escaped = false;
            let end = quoted.iter().position(|byte| {
                let ends = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                ends
            });
            let end = end.ok_or("Expected cmd= delimiter")?;
            *rest = quoted.get(end + 1..).unwrap_or_default();
            split_words(quoted.get(..end).unwrap_or_default())
        }
    };
    if words.is_empty() {
        return Err("Invalid cmd= parameter".to_owned());
    }
    Ok(words)
}

/// Whether a text begins with a word; letters of either case are the same.
fn starts(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Removes a word from the beginning of a text; returns whether it was there.
fn take(rest: &mut &[u8], name: &[u8]) -> bool {
    let is_there = starts(rest, name);
    if is_there {
        *rest = rest.get(name.len()..).unwrap_or_default();
    }
    is_there
}

/// Takes the text up to the next blank, and the blanks.
///
/// Source: `ap_getword_white`
fn word<'t>(rest: &mut &'t [u8]) -> &'t [u8] {
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    *rest = behind.trim_ascii_start();
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_at_its_quote_or_at_a_blank() {
        let of = |text: &str| {
            let mut rest = text.as_bytes();
            let words = command(&mut rest).map(|words| {
                let words = words.into_iter().map(|word| String::from_utf8(word).unwrap());
                words.collect::<Vec<_>>().join("|")
            });
            (words, String::from_utf8(rest.to_vec()).unwrap())
        };
        assert_eq!(of("/bin/a b"), (Ok("/bin/a".into()), "b".into()));
        assert_eq!(of("\"/bin/a 'b c' d\" e"), (Ok("/bin/a|b c|d".into()), " e".into()));
        assert_eq!(of(r#""a \"b c\"""#).0, Ok("a|\"b|c\"".into()));
        assert_eq!(of("\"a").0, Err("Expected cmd= delimiter".into()));
        assert_eq!(of("\" \"").0, Err("Invalid cmd= parameter".into()));
    }
}
