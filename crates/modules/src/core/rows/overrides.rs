//! The names of `.htaccess` files, and the directives allowed in them.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::core::{AllowOverride, OptionFlags};
use server::directive::{Fault, Row, Set, Takes};

use super::{Here, host};
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    Row::<Core>::new(
        "AllowOverride",
        Takes::Some { least: 1, most: usize::MAX, set: allow_override },
        "All|None|directive-type [directive-type] ...",
        "Sets which classes of directives .htaccess files may use.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("None"),
    Row::<Core>::new(
        "AllowOverrideList",
        Takes::Some { least: 1, most: usize::MAX, set: allow_override_list },
        "None|directive [directive-type] ...",
        "Sets single directives that .htaccess files may use.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("None"),
    host(
        "AccessFileName",
        Takes::Some { least: 1, most: usize::MAX, set: access_file_name },
        "filename [filename] ...",
        ".htaccess",
        "Sets the names of the configuration files in directories.",
    ),
];

/// Source: `set_override` (server/core.c).
fn allow_override(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let in_directory =
        matches!(cx.target.container, Some("Directory" | "DirectoryMatch" | "Limit"));
    if !in_directory {
        let span = cx.span();
        let (file, line) = cx.build().sources.place(span);
        cx.warn(format!("AH00114: Useless use of AllowOverride in line {line} of {file}."));
    }
    let (mut allowed, mut options) = (AllowOverride::default(), None);
    for word in words {
        let text = word.text.as_slice();
        let (name, value) = match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
            None => (text, None),
        };
        if is(name, "Options") {
            allowed.classes = allowed.classes.or(Override::OPTIONS);
            // Without a list, what `Options All` means: not what only a list can name.
            let list = value.map(|list| listed_options(list, word)).transpose()?;
            options = Some(list.unwrap_or(OptionFlags::ALL));
        } else {
            add_class(&mut allowed, name, value, word)?;
        }
    }
    cx.dir().allow_override.set(allowed);
    if let Some(options) = options {
        cx.dir().allow_override_options.set(options);
    }
    Ok(())
}

fn add_class(
    allowed: &mut AllowOverride,
    name: &[u8],
    value: Option<&[u8]>,
    word: &Arg,
) -> Result<(), Fault> {
    if name.eq_ignore_ascii_case(b"Nonfatal") {
        let value = value.unwrap_or_default();
        if value.eq_ignore_ascii_case(b"Override") || value.eq_ignore_ascii_case(b"All") {
            allowed.nonfatal = Override::ALL;
        }
        if value.eq_ignore_ascii_case(b"Unknown") || value.eq_ignore_ascii_case(b"All") {
            allowed.nonfatal_unknown = true;
        }
        return Ok(());
    }
    let classes = [
        ("Limit", Override::LIMIT),
        ("FileInfo", Override::FILE_INFO),
        ("AuthConfig", Override::AUTH_CONFIG),
        ("Indexes", Override::INDEXES),
    ];
    if let Some((_, class)) = classes.iter().find(|(known, _)| is(name, known)) {
        allowed.classes = allowed.classes.or(*class);
    } else if is(name, "None") {
        allowed.replace_classes(Override::NONE);
    } else if is(name, "All") {
        allowed.replace_classes(Override::ALL);
    } else {
        let shown = bstr::BStr::new(name);
        return Err(Fault::new(format!("Illegal override option {shown}")).at(word));
    }
    Ok(())
}

fn is(word: &[u8], known: &str) -> bool {
    word.eq_ignore_ascii_case(known.as_bytes())
}

/// `Options=Indexes,MultiViews`
fn listed_options(list: &[u8], word: &Arg) -> Result<OptionFlags, Fault> {
    let mut flags = OptionFlags::NONE;
    for name in list.split(|byte| *byte == b',').filter(|name| !name.is_empty()) {
        if is(name, "None") {
            continue;
        }
        let found =
            if is(name, "All") { Some(OptionFlags::ALL) } else { OptionFlags::of_word(name) };
        let shown = bstr::BStr::new(name);
        let found = found.ok_or_else(|| Fault::new(format!("Illegal option {shown}")).at(word))?;
        flags.0 |= found.0;
    }
    Ok(flags)
}

/// Source: `set_override_list` (server/core.c).
fn allow_override_list(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let mut names = Vec::new();
    for word in words.iter().filter(|word| !(words.len() == 1 && word.is("None"))) {
        let name = word.text.to_string().to_ascii_lowercase();
        let registry = cx.build().registry.clone();
        let span = cx.span();
        let (file, line) = cx.build().sources.place(span);
        let is_section = name.starts_with('<');
        let row = registry.row(name.strip_prefix('<').unwrap_or(&name));
        match row.filter(|row| row.is_section == is_section) {
            None => cx.warn(format!(
                "AH00116: Discarding unrecognized directive `{}' in AllowOverrideList at \
                 {file}:{line}",
                word.text
            )),
            Some(row) if !row.places.contains(Places::HTACCESS) => cx.warn(format!(
                "AH02304: Discarding directive `{}' not allowed in AllowOverrideList at \
                 {file}:{line}",
                word.text
            )),
            Some(_) => names.push(name),
        }
    }
    cx.dir().allow_override_list.set(Arc::new(names));
    Ok(())
}

fn access_file_name(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let names = words.iter().map(|word| word.text.to_vec()).collect();
    cx.server().access_file_names.set(names);
    Ok(())
}
