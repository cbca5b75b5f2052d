//! Limits on requests.

use conf::Arg;
use server::context::{Override, Places};
use server::core::RangeLimit;
use server::directive::{Fault, Row, Set, State, Takes};

use super::{Here, host};
use crate::atoi::atol;
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    host(
        "LimitRequestLine",
        Takes::One(|cx, arg| {
            let bytes = non_negative("LimitRequestLine", arg, "")?;
            cx.server().limit_request_line.set(bytes);
            Ok(())
        }),
        "bytes",
        "8190",
        "Limits the length of the request line.",
    ),
    host(
        "LimitRequestFieldsize",
        Takes::One(|cx, arg| {
            let bytes = non_negative("LimitRequestFieldsize", arg, "")?;
            cx.server().limit_request_field_size.set(bytes);
            Ok(())
        }),
        "bytes",
        "8190",
        "Limits the length of a header field.",
    ),
    host(
        "LimitRequestFields",
        Takes::One(|cx, arg| {
            let number = non_negative("LimitRequestFields", arg, " (0 = no limit)")?;
            cx.server().limit_request_fields.set(number);
            Ok(())
        }),
        "number",
        "100",
        "Limits the number of header fields.",
    ),
    Row::<Core>::new(
        "LimitRequestBody",
        Takes::One(|cx, arg| {
            let bytes = body_bytes("LimitRequestBody", arg)?;
            cx.dir().limit_request_body.set(bytes);
            Ok(())
        }),
        "bytes",
        "Limits the length of a request body; 0 removes the limit.",
    )
    .standing(Places::ALL, Override::ALL)
    .default("1073741824"),
    Row::<Core>::new(
        "LimitXMLRequestBody",
        Takes::One(|cx, arg| {
            // As with `atol`, other text is 0.
            let message = "LimitXMLRequestBody requires a non-negative integer.";
            let bytes = u64::try_from(atol(&arg.text));
            cx.dir().limit_xml_request_body.set(bytes.map_err(|_| Fault::new(message).at(arg))?);
            Ok(())
        }),
        "bytes",
        "Limits the length of a request body that is parsed as XML.",
    )
    .standing(Places::ALL, Override::ALL)
    .default("1000000")
    .state(State::Accepted("no module parses XML bodies yet")),
    host(
        "LimitInternalRecursion",
        Takes::Some { least: 1, most: 2, set: limit_internal_recursion },
        "number [number]",
        "10",
        "Limits a request's internal redirects, and the nesting of subrequests.",
    ),
    ranges(
        "MaxRanges",
        Takes::One(max_ranges),
        "200",
        "Limits the number of ranges in a response.",
    ),
    ranges(
        "MaxRangeOverlaps",
        Takes::One(max_range_overlaps),
        "20",
        "Limits the number of overlapping ranges in a request.",
    ),
    ranges(
        "MaxRangeReversals",
        Takes::One(max_range_reversals),
        "20",
        "Limits the number of times that the ranges of a request go backwards.",
    ),
    Row::<Core>::new(
        "ReadBufferSize",
        Takes::One(read_buffer_size),
        "bytes",
        "Sets the size of the buffers for reading bodies.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("8192")
    .state(State::Accepted("bodies are read in pieces of 16 KiB, from fast clients of 64 KiB")),
];

const fn ranges(
    name: &'static str,
    takes: Takes<Core>,
    default: &'static str,
    doc: &'static str,
) -> Row<Core> {
    Row::<Core>::new(name, takes, "default | unlimited | none | number-of-ranges", doc)
        .standing(Places::NOT_HTACCESS, Override::NONE)
        .default(default)
}

fn non_negative(name: &str, arg: &Arg, note: &str) -> Result<usize, Fault> {
    usize::try_from(atol(&arg.text)).map_err(|_| {
        let text = &arg.text;
        Fault::new(format!("{name} \"{text}\" must be a non-negative integer{note}")).at(arg)
    })
}

fn body_bytes(name: &str, arg: &Arg) -> Result<u64, Fault> {
    let number = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<u64>().ok());
    let fits = number.filter(|bytes| i64::try_from(*bytes).is_ok());
    fits.ok_or_else(|| Fault::new(format!("{name} requires a non-negative integer.")).at(arg))
}

/// Fewer are too few for some configurations.
const LOW_RECURSION: u16 = 4;

fn limit_internal_recursion(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let read = |word: &Arg| {
        let number = atol(&word.text).min(i64::from(u16::MAX));
        u16::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| Fault::new("The recursion limit must be greater than zero.").at(word))
    };
    let (Some(first), last) = (words.first(), words.last()) else { return Ok(()) };
    let limits = (read(first)?, read(last.unwrap_or(first))?);
    if limits.0 < LOW_RECURSION {
        cx.warn(
            "AH00119: Limiting internal redirects to very low numbers may cause normal requests \
             to fail.",
        );
    }
    if words.len() > 1 && limits.1 < LOW_RECURSION {
        cx.warn(
            "AH00120: Limiting the subrequest depth to a very low level may cause normal requests \
             to fail.",
        );
    }
    cx.server().limit_internal_recursion.set(limits);
    Ok(())
}

fn range_limit(name: &str, default: u32, arg: &Arg) -> Result<RangeLimit, Fault> {
    let number = atol(&arg.text);
    if arg.is("none") {
        Ok(RangeLimit::Most(0))
    } else if arg.is("default") {
        Ok(RangeLimit::Most(default))
    } else if arg.is("unlimited") {
        Ok(RangeLimit::Unlimited)
    } else if number > 0 {
        Ok(RangeLimit::Most(u32::try_from(number).unwrap_or(u32::MAX)))
    } else {
        let words = "requires 'none', 'default', 'unlimited' or a positive integer";
        Err(Fault::new(format!("{name} {words}")).at(arg))
    }
}

fn max_ranges(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let limit = range_limit("MaxRanges", 200, arg)?;
    cx.dir().max_ranges.set(limit);
    Ok(())
}

fn max_range_overlaps(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let limit = range_limit("MaxRangeOverlaps", 20, arg)?;
    cx.dir().max_range_overlaps.set(limit);
    Ok(())
}

fn max_range_reversals(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let limit = range_limit("MaxRangeReversals", 20, arg)?;
    cx.dir().max_range_reversals.set(limit);
    Ok(())
}

fn read_buffer_size(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let number = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<u32>().ok());
    let Some(bytes) = number else {
        let text = &arg.text;
        let fault = format!("parameter must be a number between 0 and (4294967295U)): {text}");
        return Err(Fault::new(fault).at(arg));
    };
    cx.dir().read_buffer_size.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    Ok(())
}
