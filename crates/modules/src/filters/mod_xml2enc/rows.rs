//! The directives of mod_xml2enc.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::Xml2enc;
use super::charset::{self, Known};

type Here<'a, 't> = Cx<'a, 't, Xml2enc>;

pub(super) const ROWS: &[Row<Xml2enc>] = &[
    Row::<Xml2enc>::new(
        "xml2EncDefault",
        Takes::One(default),
        "name",
        "Sets the character set of text that does not name its own.",
    )
    .standing(Places::ALL, Override::ALL)
    .default("ISO-8859-1"),
    Row::<Xml2enc>::new(
        "xml2EncAlias",
        Takes::EachOf(alias),
        "charset alias [alias ...]",
        "Declares further names of a character set.",
    )
    .standing(Places::SERVER, Override::NONE),
    Row::<Xml2enc>::new(
        "xml2StartParse",
        Takes::Each(|cx, arg| {
            let starts = &mut cx.dir().starts;
            let mut all = starts.get().map(|all| all.to_vec()).unwrap_or_default();
            all.push(arg.text.to_vec());
            starts.set(Arc::new(all));
            Ok(())
        }),
        "element [element ...]",
        "Omits what precedes the first of these elements.",
    )
    .standing(Places::ALL, Override::ALL),
];

/// Unlike other names in the configuration, the default's may be an alias only of an earlier line.
fn default(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let name = cx.server().aliases.0.resolve(&arg.text).to_vec();
    let charset = match charset::known(&name) {
        Known::Charset(charset) => charset,
        Known::Nothing => return Err(Fault::new("Default charset not found").at(arg)),
        Known::Unknown => {
            return Err(Fault::new("Invalid or unsupported default charset").at(arg));
        }
    };
    cx.dir().default.set((arg.text.to_vec(), charset));
    Ok(())
}

fn alias(cx: &mut Here<'_, '_>, charset: &Arg, alias: &Arg) -> Set {
    let (name, alias) = (charset.text.to_vec(), alias.text.to_ascii_uppercase());
    let aliases = &mut cx.server().aliases.0.0;
    match aliases.iter_mut().find(|(known, _)| *known == alias) {
        Some((_, known)) => *known = name,
        None => aliases.push((alias, name)),
    }
    Ok(())
}
