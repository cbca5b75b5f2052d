//! HTTP: strictness, methods, slashes, timeouts, protocols.

use std::time::Duration;

use conf::Arg;
use conf::values::{Unit, timeout};
use server::context::{Override, Places};
use server::core::{EncodedSlashes, Trace};
use server::directive::{Fault, Row, Set, State, Takes};

use super::{Here, global, host, one_of};
use crate::atoi::atol;
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    host(
        "Timeout",
        Takes::One(set_timeout),
        "seconds",
        "60",
        "Sets how long the server waits for a client to send or receive data.",
    ),
    host(
        "HttpProtocolOptions",
        Takes::Each(http_protocol_options),
        "[Strict|Unsafe] [RegisteredMethods|LenientMethods] [Allow0.9|Require1.0]",
        "Strict LenientMethods Allow0.9",
        "Sets how strictly the syntax of requests is checked.",
    ),
    global(
        "RegisterHttpMethod",
        Takes::Each(register_http_method),
        "method [method [...]]",
        "",
        "Registers further request methods.",
    ),
    host(
        "TraceEnable",
        Takes::One(trace_enable),
        "[on|off|extended]",
        "on",
        "Sets whether TRACE is allowed, and whether it may have a body.",
    ),
    host(
        "MergeSlashes",
        Takes::Flag(|cx, on| {
            cx.server().merge_slashes.set(on);
            Ok(())
        }),
        "ON|OFF",
        "ON",
        "Merges adjacent slashes of a path before matching.",
    ),
    host(
        "MergeTrailers",
        Takes::Flag(|cx, on| {
            cx.server().merge_trailers.set(on);
            Ok(())
        }),
        "[on|off]",
        "off",
        "Merges a request's trailer fields into its header fields once they have arrived.",
    ),
    host(
        "AllowEncodedSlashes",
        Takes::One(allow_encoded_slashes),
        "On|Off|NoDecode",
        "Off",
        "Sets the treatment of %2F in a path.",
    ),
    host(
        "Protocol",
        Takes::One(|cx, arg| {
            cx.server().protocol.set(arg.text.to_ascii_lowercase());
            Ok(())
        }),
        "protocol",
        "",
        "Sets the protocol of a virtual host: http or https.",
    ),
    host(
        "Protocols",
        Takes::Some { least: 1, most: usize::MAX, set: protocols },
        "protocol ...",
        "http/1.1",
        "Sets the protocols for negotiation: http/1.1, h2, h2c.",
    ),
    host(
        "ProtocolsHonorOrder",
        Takes::One(protocols_honor_order),
        "On|Off",
        "On",
        "Sets whether the order of Protocols or the client's takes precedence.",
    ),
    host(
        "FlushMaxPipelined",
        Takes::One(flush_max_pipelined),
        "number",
        "5",
        "Sets how many responses to pipelined requests may be gathered before they are sent.",
    )
    .state(State::Accepted("every response is sent at once")),
    host(
        "FlushMaxThreshold",
        Takes::One(flush_max_threshold),
        "number-of-bytes",
        "65535",
        "Sets how many bytes of responses may be gathered before they are sent.",
    )
    .state(State::Accepted("every response is sent at once")),
    Row::<Core>::new(
        "AcceptFilter",
        Takes::Two(accept_filter),
        "protocol accept_filter",
        "Sets whether the kernel defers a connection until its first bytes arrive.",
    )
    .standing(Places::SERVER, Override::NONE),
];

fn set_timeout(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let seconds = u64::try_from(atol(&arg.text)).unwrap_or(0);
    let time = timeout(&arg.text, Unit::Seconds).unwrap_or(Duration::from_secs(seconds));
    cx.server().timeout.set(time);
    Ok(())
}

fn http_protocol_options(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let server = cx.server();
    let (choice, value, names) = match arg.text.to_ascii_lowercase().as_slice() {
        b"strict" => (&mut server.protocol_strict, true, "'Strict' and 'Unsafe'"),
        b"unsafe" => (&mut server.protocol_strict, false, "'Strict' and 'Unsafe'"),
        b"registeredmethods" => (
            &mut server.protocol_registered_methods,
            true,
            "'RegisteredMethods' and 'LenientMethods'",
        ),
        b"lenientmethods" => (
            &mut server.protocol_registered_methods,
            false,
            "'RegisteredMethods' and 'LenientMethods'",
        ),
        b"allow0.9" => (&mut server.protocol_allow_09, true, "'Allow0.9' and 'Require1.0'"),
        b"require1.0" => (&mut server.protocol_allow_09, false, "'Allow0.9' and 'Require1.0'"),
        _ => {
            let words = "HttpProtocolOptions accepts 'Unsafe' or 'Strict' (default), \
                         'RegisteredMethods' or 'LenientMethods' (default), and 'Require1.0' or \
                         'Allow0.9' (default)";
            return Err(Fault::new(words).at(arg));
        }
    };
    if choice.get().is_some_and(|before| *before != value) {
        let clash = format!("HttpProtocolOptions {names} are mutually exclusive");
        return Err(Fault::new(clash).at(arg));
    }
    choice.set(value);
    Ok(())
}

fn register_http_method(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let registered = cx.build().methods.register(&arg.text);
    registered.map(|_| ()).map_err(|why| Fault::new(why.to_string()).at(arg))
}

fn trace_enable(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [("on", Trace::On), ("off", Trace::Off), ("extended", Trace::Extended)];
    let fault = "TraceEnable must be one of 'on', 'off', or 'extended'";
    let choice = one_of(arg, &words, fault)?;
    cx.server().trace_enable.set(choice);
    Ok(())
}

fn allow_encoded_slashes(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [
        ("on", EncodedSlashes::On),
        ("off", EncodedSlashes::Off),
        ("nodecode", EncodedSlashes::NoDecode),
    ];
    let choice = one_of(arg, &words, "AllowEncodedSlashes must be On, Off, or NoDecode")?;
    cx.server().allow_encoded_slashes.0 = choice;
    Ok(())
}

fn protocols(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let names = words.iter().map(|word| word.text.to_vec()).collect();
    cx.server().protocols.set(names);
    Ok(())
}

fn protocols_honor_order(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let fault = "ProtocolsHonorOrder must be 'on' or 'off'";
    let on = one_of(arg, &[("on", true), ("off", false)], fault)?;
    cx.server().protocols_honor_order.set(on);
    Ok(())
}

fn flush_max_pipelined(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let number = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<i32>().ok());
    let Some(number) = number.filter(|number| *number >= -1) else {
        let text = &arg.text;
        let fault = format!("parameter must be a number between -1 and (2147483647): {text}");
        return Err(Fault::new(fault).at(arg));
    };
    cx.server().flush_max_pipelined.set(number);
    Ok(())
}

fn flush_max_threshold(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let number = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<u32>().ok());
    let Some(number) = number else {
        let text = &arg.text;
        let fault = format!("parameter must be a number between 0 and (4294967295U)): {text}");
        return Err(Fault::new(fault).at(arg));
    };
    cx.server().flush_max_threshold.set(number);
    Ok(())
}

fn accept_filter(cx: &mut Here<'_, '_>, protocol: &Arg, filter: &Arg) -> Set {
    // `Listen` has its protocols in lower case.
    let (protocol, filter) = (protocol.text.to_ascii_lowercase(), filter.text.to_vec());
    cx.server().globals_mut().accept_filters.insert(protocol, filter);
    Ok(())
}
