//! The directives of mod_brotli.

use conf::Arg;
use server::directive::{Fault, Row, Takes};

use super::Brotli;
use crate::atoi::atol;
use crate::filters::settings;

pub(super) const ROWS: &[Row<Brotli>] = &[
    Row::<Brotli>::new(
        "BrotliAlterETag",
        Takes::One(settings::alter_etag),
        "AddSuffix|NoChange|Remove",
        "Sets how the ETag of a compressed response changes.",
    )
    .default("AddSuffix"),
    Row::<Brotli>::new(
        "BrotliCompressionMaxInputBlock",
        Takes::One(|cx, arg| {
            let wrong = "BrotliCompressionMaxInputBlock must be between 16 and 24";
            let block = within(arg, 16, 24, wrong)?;
            settings::change(cx, |effort| effort.block = block)
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
            settings::change(cx, |effort| effort.quality = quality)
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
            settings::change(cx, |effort| effort.window = window)
        }),
        "value",
        "Sets the size of the window, as a power of two in bytes.",
    )
    .default("18"),
    Row::<Brotli>::new(
        "BrotliFilterNote",
        Takes::Some { least: 1, most: 2, set: settings::filter_note },
        "[type] notename",
        "Sets a note for the log with the size of input or output, or their ratio.",
    ),
];

fn within(arg: &Arg, least: u8, most: u8, otherwise: &str) -> Result<u8, Fault> {
    let value = u8::try_from(atol(&arg.text)).ok();
    let value = value.filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| Fault::new(otherwise).at(arg))
}
