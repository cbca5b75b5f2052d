//! The directives of mod_brotli.

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::{Brotli, Settings};
use crate::atoi::atol;
use crate::filters::mod_deflate::AlterEtag;

type Here<'a, 't> = Cx<'a, 't, Brotli>;

pub(super) const ROWS: &[Row<Brotli>] = &[
    Row::<Brotli>::new(
        "BrotliAlterETag",
        Takes::One(alter_etag),
        "AddSuffix|NoChange|Remove",
        "Sets how the ETag of a compressed response changes.",
    )
    .default("AddSuffix"),
    Row::<Brotli>::new(
        "BrotliCompressionMaxInputBlock",
        Takes::One(|cx, arg| {
            let wrong = "BrotliCompressionMaxInputBlock must be between 16 and 24";
            let block = within(arg, 16, 24, wrong)?;
            change(cx, |settings| settings.block = block)
        }),
        "value",
        "Sets the largest block of input, as a power of two in bytes.",
    )
    .default("(automatic)"),
    Row::<Brotli>::new(
        "BrotliCompressionQuality",
        Takes::One(|cx, arg| {
            let wrong = "BrotliCompressionQuality must be between 0 and 11";
            let quality = within(arg, 0, 11, wrong)?;
            change(cx, |settings| settings.quality = quality)
        }),
        "value",
        "Sets the quality of compression, from 0 (fastest) to 11 (smallest).",
    )
    .default("5"),
    Row::<Brotli>::new(
        "BrotliCompressionWindow",
        Takes::One(|cx, arg| {
            let wrong = "BrotliCompressionWindow must be between 10 and 24";
            let window = within(arg, 10, 24, wrong)?;
            change(cx, |settings| settings.window = window)
        }),
        "value",
        "Sets the size of the window, as a power of two in bytes.",
    )
    .default("18"),
    Row::<Brotli>::new(
        "BrotliFilterNote",
        Takes::Some { least: 1, most: 2, set: filter_note },
        "[type] notename",
        "Sets a note for the log with the size of input or output, or their ratio.",
    ),
];

fn change(cx: &mut Here<'_, '_>, change: impl FnOnce(&mut Settings)) -> Set {
    let own = &mut cx.server().own;
    let mut settings = own.get().cloned().unwrap_or_default();
    change(&mut settings);
    own.set(settings);
    Ok(())
}

fn within(arg: &Arg, least: u8, most: u8, otherwise: &str) -> Result<u8, Fault> {
    let value = u8::try_from(atol(&arg.text)).ok();
    let value = value.filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| Fault::new(otherwise).at(arg))
}

fn alter_etag(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let Some(choice) = AlterEtag::of(arg) else {
        let accepted = "BrotliAlterETag accepts only 'AddSuffix', 'NoChange' and 'Remove'";
        return Err(Fault::new(accepted).at(arg));
    };
    change(cx, |settings| settings.etag = choice)
}

fn filter_note(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (kind, name) = match args {
        [name] => (None, name),
        [kind, name, ..] => (Some(kind), name),
        [] => return Ok(()),
    };
    let mut known = true;
    change(cx, |settings| {
        known = settings.notes.add(kind.map(|kind| kind.text.as_slice()), &name.text)
    })?;
    match kind {
        Some(kind) if !known => {
            Err(Fault::new(format!("Unknown BrotliFilterNote type '{}'", kind.text)).at(kind))
        }
        _ => Ok(()),
    }
}
