//! Directives that the reader of configuration files executes while it reads.
//!
//! These rows exist for `-L`, the manual and AllowOverride; a setter that runs nevertheless (for a
//! directive that the reader leaves in the tree) has nothing to do.

use conf::{Arg, Node};
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, State, Takes};

use super::{Here, one_of};
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    line("Include", "file-path|directory-path|wildcard", "Includes other configuration files.")
        .standing(Places::NOT_HTACCESS, Override::NONE),
    line(
        "IncludeOptional",
        "file-path|directory-path|wildcard",
        "Includes other configuration files, if there are any.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    line(
        "Define",
        "parameter-name [parameter-value]",
        "Defines a name for <IfDefine> and, with a value, for ${name}.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    line("UnDefine", "parameter-name", "Removes a name that Define or -D has set.")
        .standing(Places::NOT_HTACCESS, Override::NONE),
    Row::<Core>::new("Error", Takes::Raw(error), "message", "Causes an error with this message.")
        .standing(Places::ALL, Override::ALL),
    section(
        "IfDefine",
        "[!]parameter-name",
        "Encloses directives that are used if a name is \
        defined.",
    ),
    section(
        "IfDirective",
        "[!]directive-name",
        "Encloses directives that are used if a directive \
        exists.",
    ),
    section("IfFile", "[!]filename", "Encloses directives that are used if a file exists."),
    section(
        "IfModule",
        "[!]module-file|module-identifier",
        "Encloses directives that are used if a module is active.",
    ),
    section(
        "IfSection",
        "[!]section-name",
        "Encloses directives that are used if a section \
        exists.",
    ),
    Row::<Core>::new(
        "RegexDefaultOptions",
        Takes::Some { least: 1, most: usize::MAX, set: regex_default_options },
        "[none] [+|-]option [[+|-]option] ...",
        "Sets the options of all following regular expressions.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("DOTALL DOLLAR_ENDONLY"),
    windows(
        "ScriptInterpreterSource",
        "Registry|Registry-Strict|Script",
        "Sets how Windows finds a script's interpreter.",
    ),
    windows("UNCList", "hostname [hostname...]", "Sets hosts of Windows network paths."),
    windows("CGIMapExtension", "cgi-path .extension", "Maps suffixes on NetWare."),
    windows("GprofDir", "/tmp/gprof/|/tmp/gprof/%", "Sets a directory for profiles of Apache."),
];

const fn line(name: &'static str, syntax: &'static str, doc: &'static str) -> Row<Core> {
    Row::<Core>::new(name, Takes::Raw(executed), syntax, doc)
}

const fn section(name: &'static str, syntax: &'static str, doc: &'static str) -> Row<Core> {
    Row::<Core>::new(name, Takes::Section(transparent), syntax, doc)
        .standing(Places::ALL, Override::ALL)
}

/// A directive that Apache itself does not have on Linux.
const fn windows(name: &'static str, syntax: &'static str, doc: &'static str) -> Row<Core> {
    Row::<Core>::new(name, Takes::Raw(|_, _| Err("it does not exist".into())), syntax, doc)
        .standing(Places::ALL, Override::ALL)
        .state(State::Refused("Apache has it on other systems only"))
}

fn executed(_: &mut Here<'_, '_>, _: &Arg) -> Set {
    Ok(())
}

fn error(_: &mut Here<'_, '_>, raw: &Arg) -> Set {
    let words = conf::word::first_word(&raw.text).filter(|(_, length)| *length == raw.text.len());
    let message = words.map_or_else(|| raw.text.to_string(), |(word, _)| word.to_string());
    if message.is_empty() {
        return Err("The Error directive was used with no message.".into());
    }
    Err(Fault::new(message).at(raw))
}

fn transparent(cx: &mut Here<'_, '_>, _: &Arg, nodes: &[Node]) -> Set {
    cx.apply(nodes);
    Ok(())
}

/// Source: `set_regex_default_options` (server/core.c).
fn regex_default_options(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let mut flags = cx.build().regex_flags;
    for word in words {
        if word.is("none") {
            flags = pcre::Flags { interpreted: flags.interpreted, ..pcre::Flags::NONE };
            continue;
        }
        let (on, name) = match word.text.split_first() {
            Some((b'+', name)) => (true, name),
            Some((b'-', name)) => (false, name),
            // Without a sign, it replaces what was set before.
            _ => (true, word.text.as_slice()),
        };
        let replaces = name.len() == word.text.len();
        let name = Arg { text: name.into(), span: word.span };
        let fault = format!("RegexDefaultOptions: option '{}' unknown", name.text);
        let names = [("ICASE", 0), ("DOTALL", 1), ("DOLLAR_ENDONLY", 2)];
        let option = one_of(&name, &names, &fault)?;
        if replaces {
            flags = pcre::Flags { interpreted: flags.interpreted, ..pcre::Flags::NONE };
        }
        match option {
            0 => flags.caseless = on,
            1 => flags.dotall = on,
            _ => flags.dollar_endonly = on,
        }
    }
    cx.build().regex_flags = flags;
    Ok(())
}
