//! The directives of mod_deflate.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};

use crate::atoi::atol;

use super::{Deflate, Unpacking};
use crate::filters::settings;

type Here<'a, 't> = Cx<'a, 't, Deflate>;

pub(super) const ROWS: &[Row<Deflate>] = &[
    Row::<Deflate>::new(
        "DeflateFilterNote",
        Takes::Some { least: 1, most: 2, set: settings::filter_note },
        "[type] notename",
        "Sets a note for the log with the size of input or output, or their ratio.",
    ),
    Row::<Deflate>::new(
        "DeflateWindowSize",
        Takes::One(|cx, arg| {
            let bits = within(arg, 1, 15, "DeflateWindowSize must be between 1 and 15")?;
            settings::change(cx, |packing| packing.window_bits = bits)
        }),
        "value",
        "Sets the compression window size, as a power of two in bytes.",
    )
    .default("15"),
    Row::<Deflate>::new(
        "DeflateBufferSize",
        Takes::One(|cx, arg| {
            let bytes = atol(&arg.text);
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            let wrong = || Fault::new("DeflateBufferSize should be positive").at(arg);
            let bytes = bytes.ok_or_else(wrong)?;
            settings::change(cx, |packing| packing.buffer_bytes = bytes)
        }),
        "value",
        "Sets how many compressed bytes are gathered before they are sent.",
    )
    .default("8096"),
    Row::<Deflate>::new(
        "DeflateMemLevel",
        Takes::One(|_, arg| {
            within(arg, 1, 9, "DeflateMemLevel must be between 1 and 9").map(|_| ())
        }),
        "value",
        "Sets how much memory zlib uses.",
    )
    .default("9")
    .state(State::Accepted("zlib-rs chooses its memory use")),
    Row::<Deflate>::new(
        "DeflateCompressionLevel",
        Takes::One(|cx, arg| {
            let level = within(arg, 1, 9, "Compression Level must be between 1 and 9")?;
            settings::change(cx, |packing| packing.level = Some(u32::from(level)))
        }),
        "value",
        "Sets the compression level, from 1 (fastest) to 9 (smallest).",
    )
    .default("Zlib's default"),
    Row::<Deflate>::new(
        "DeflateAlterETag",
        Takes::One(settings::alter_etag),
        "AddSuffix|NoChange|Remove",
        "Sets how the ETag of a compressed or decompressed response changes.",
    )
    .default("AddSuffix"),
    Row::<Deflate>::new(
        "DeflateInflateLimitRequestBody",
        Takes::One(limit_request_body),
        "value",
        "Limits the decompressed size of a request body in bytes.",
    )
    .standing(Places::ALL, Override::NONE)
    .default("None, but LimitRequestBody applies after deflation"),
    Row::<Deflate>::new(
        "DeflateInflateRatioLimit",
        Takes::One(|cx, arg| {
            let ratio = positive(arg, "DeflateInflateRatioLimit must be positive")?;
            unpacking(cx, |unpacking| unpacking.ratio_limit = u64::from(ratio))
        }),
        "value",
        "Limits the ratio of decompressed to compressed size of a request body.",
    )
    .standing(Places::ALL, Override::NONE)
    .default("200"),
    Row::<Deflate>::new(
        "DeflateInflateRatioBurst",
        Takes::One(|cx, arg| {
            let burst = positive(arg, "DeflateInflateRatioBurst must be positive")?;
            unpacking(cx, |unpacking| unpacking.ratio_burst = burst)
        }),
        "value",
        "Sets how many times in a row a request body may exceed the ratio before it is refused.",
    )
    .standing(Places::ALL, Override::NONE)
    .default("3"),
];

fn unpacking(cx: &mut Here<'_, '_>, change: impl FnOnce(&mut Unpacking)) -> Set {
    let own = &mut cx.dir().own;
    let mut unpacking = own.get().copied().unwrap_or_default();
    change(&mut unpacking);
    own.set(unpacking);
    Ok(())
}

fn within(arg: &Arg, least: u8, most: u8, otherwise: &str) -> Result<u8, Fault> {
    let value = u8::try_from(atol(&arg.text)).ok();
    let value = value.filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| Fault::new(otherwise).at(arg))
}

fn positive(arg: &Arg, otherwise: &str) -> Result<u32, Fault> {
    let value = u32::try_from(atol(&arg.text)).ok().filter(|value| *value > 0);
    value.ok_or_else(|| Fault::new(otherwise).at(arg))
}

fn limit_request_body(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let digits = std::str::from_utf8(&arg.text).ok();
    let Some(limit) = digits.and_then(|digits| digits.parse::<u64>().ok()) else {
        let wrong = "DeflateInflateLimitRequestBody requires a non-negative integer.";
        return Err(Fault::new(wrong).at(arg));
    };
    unpacking(cx, |unpacking| unpacking.limit = Some(limit))
}
