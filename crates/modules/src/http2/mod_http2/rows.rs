//! The directives. Their messages are those of `h2_config.c`.

use std::time::Duration;

use bstr::ByteSlice;
use conf::Arg;
use conf::values::{Unit, timeout};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::http2::PushPlace;

use super::{Http2Module, Resource};
use crate::atoi::{atoi, atol};

type Here<'a, 'b> = Cx<'a, 'b, Http2Module>;

/// Why the directives of worker threads have no effect.
const NO_WORKERS: &str = "the loop of a connection serves its requests; there are no workers";

const AUTH_CONFIG: Override = Override::AUTH_CONFIG;
const FILE_INFO: Override = Override::FILE_INFO;

pub(super) static ROWS: [Row<Http2Module>; 28] = [
    Row::<Http2Module>::new(
        "H2MaxSessionStreams",
        Takes::One(|cx, arg| {
            let value = at_least(arg, 1, "value must be > 0")?;
            cx.server().streams.set(u32::try_from(value).unwrap_or(1));
            Ok(())
        }),
        "n",
        "Sets how many requests of a connection may be served at a time.",
    )
    .default("100"),
    Row::<Http2Module>::new(
        "H2WindowSize",
        Takes::One(|cx, arg| {
            let value = at_least(arg, 1024, "value must be >= 1024")?;
            cx.server().window_bytes.set(u32::try_from(value).unwrap_or(0));
            Ok(())
        }),
        "bytes",
        "Sets how much of a request's body may wait for its handler.",
    )
    .default("65535"),
    Row::<Http2Module>::new(
        "H2StreamMaxMemSize",
        Takes::One(|_, arg| at_least(arg, 1024, "value must be >= 1024").map(drop)),
        "bytes",
        "Sets how much of a response may be kept in memory until the client takes it.",
    )
    .default("65536")
    .state(State::Accepted("a response is made as the client takes it")),
    Row::<Http2Module>::new(
        "H2MinWorkers",
        Takes::One(|_, arg| at_least(arg, 1, "value must be > 0").map(drop)),
        "n",
        "Sets how many worker threads a process has at least.",
    )
    .state(State::Accepted(NO_WORKERS)),
    Row::<Http2Module>::new(
        "H2MaxWorkers",
        Takes::One(|_, arg| at_least(arg, 1, "value must be > 0").map(drop)),
        "n",
        "Sets how many worker threads a process has at most.",
    )
    .state(State::Accepted(NO_WORKERS)),
    Row::<Http2Module>::new(
        "H2MaxWorkerIdleSeconds",
        Takes::One(|_, arg| duration(arg, "Invalid idle limit value").map(drop)),
        "n",
        "Sets the time after which an idle worker thread ends.",
    )
    .default("600")
    .state(State::Accepted(NO_WORKERS)),
    Row::<Http2Module>::new(
        "H2Direct",
        Takes::One(|cx, arg| {
            cx.server().direct.set(on_off(arg)?);
            Ok(())
        }),
        "on|off",
        "Sets whether a connection may begin with HTTP/2, without negotiation.",
    )
    .default("on for h2c, off for h2 protocol"),
    Row::<Http2Module>::new(
        "H2Upgrade",
        Takes::One(|cx, arg| {
            let on = on_off(arg)?;
            match cx.outside_sections() {
                true => cx.server().upgrade.set(on),
                false => cx.dir().upgrade.set(on),
            }
            Ok(())
        }),
        "on|off",
        "Sets whether a request of HTTP/1.1 may change its connection to HTTP/2.",
    )
    .standing(Places::ALL, AUTH_CONFIG)
    .default("on for h2c, off for h2 protocol"),
    Row::<Http2Module>::new(
        "H2ModernTLSOnly",
        Takes::One(|_, arg| on_off(arg).map(drop)),
        "on|off",
        "Sets whether HTTP/2 needs TLS 1.2 or later and a modern cipher.",
    )
    .default("on")
    .state(State::Accepted("TLS has no other versions and ciphers here")),
    Row::<Http2Module>::new(
        "H2Push",
        Takes::One(|cx, arg| {
            let on = on_off(arg)?;
            match cx.outside_sections() {
                true => cx.server().push.set(on),
                false => cx.dir().push.set(on),
            }
            Ok(())
        }),
        "on|off",
        "Sets whether the server may push responses.",
    )
    .standing(Places::ALL, AUTH_CONFIG)
    .default("on"),
    Row::<Http2Module>::new(
        "H2PushDiarySize",
        Takes::One(push_diary_size),
        "n",
        "Sets how many pushed responses a connection remembers.",
    )
    .default("256"),
    Row::<Http2Module>::new(
        "H2PushPriority",
        Takes::Some { least: 2, most: 3, set: push_priority },
        "mime-type [after|before|interleaved] [weight]",
        "Sets the priority of pushed responses.",
    )
    .default("* After 16")
    .state(State::Partial("weights are of no effect")),
    Row::<Http2Module>::new(
        "H2PushResource",
        Takes::Some { least: 1, most: 3, set: push_resource },
        "[add] path [critical]",
        "Declares a response to push, or to name in early hints.",
    )
    .standing(Places::ALL, FILE_INFO.or(AUTH_CONFIG)),
    Row::<Http2Module>::new(
        "H2EarlyHints",
        Takes::One(|cx, arg| {
            cx.server().has_early_hints.set(on_off(arg)?);
            Ok(())
        }),
        "on|off",
        "Sets whether responses 103 are sent.",
    )
    .default("off"),
    Row::<Http2Module>::new(
        "H2EarlyHint",
        Takes::Two(early_hint),
        "name value",
        "Declares a field of responses 103.",
    )
    .standing(Places::ALL, FILE_INFO.or(AUTH_CONFIG)),
    Row::<Http2Module>::new(
        "H2CopyFiles",
        Takes::One(|_, arg| on_off(arg).map(drop)),
        "on|off",
        "Sets whether files are copied before they are handed to the connection.",
    )
    .standing(Places::ALL, FILE_INFO)
    .default("off")
    .state(State::Accepted("handlers and the connection share the loop: nothing is handed over")),
    Row::<Http2Module>::new(
        "H2Padding",
        Takes::One(padding),
        "numbits",
        "Sets the range of random padding, as a power of two.",
    )
    .default("0"),
    Row::<Http2Module>::new(
        "H2OutputBuffering",
        Takes::One(|_, arg| on_off(arg).map(drop)),
        "on|off",
        "Sets whether small writes are gathered.",
    )
    .default("on")
    .state(State::Accepted("what a turn of the loop makes is sent at its end")),
    Row::<Http2Module>::new(
        "H2MaxDataFrameLen",
        Takes::One(|cx, arg| {
            let value = at_least(arg, 0, "value must be 0 or larger")?;
            cx.server().data_bytes.set(usize::try_from(value).unwrap_or(0));
            Ok(())
        }),
        "n",
        "Sets the largest payload of a DATA frame.",
    )
    .default("0"),
    Row::<Http2Module>::new(
        "H2MaxHeaderBlockLen",
        Takes::One(|_, arg| at_least(arg, 0, "value must be 0 or larger").map(drop)),
        "n",
        "Sets the largest block of a response's header fields.",
    )
    .default("0")
    .state(State::Accepted("there is no limit for the server's own responses")),
    Row::<Http2Module>::new(
        "H2MaxStreamErrors",
        Takes::One(|_, arg| at_least(arg, 0, "value must be 0 or larger").map(drop)),
        "n",
        "Sets how many errors of streams a connection may have.",
    )
    .default("8")
    .state(State::Accepted("a budget for all frames without progress bounds them, too")),
    Row::<Http2Module>::new(
        "H2StreamTimeout",
        Takes::One(|cx, arg| {
            cx.server().stream_timeout.set(duration(arg, "Invalid timeout value")?);
            Ok(())
        }),
        "time-interval[s]",
        "Sets how long a request waits for its client.",
    ),
    Row::<Http2Module>::new(
        "H2TLSWarmUpSize",
        Takes::One(|cx, arg| {
            cx.server().warm_up_bytes.set(u64::try_from(atol(&arg.text)).unwrap_or(0));
            Ok(())
        }),
        "amount",
        "Sets how much of a TLS connection is sent in small records at first.",
    )
    .default("1048576"),
    Row::<Http2Module>::new(
        "H2TLSCoolDownSecs",
        Takes::One(|cx, arg| {
            let seconds = u64::try_from(atoi(&arg.text)).unwrap_or(0);
            cx.server().cool_down.set(Duration::from_secs(seconds));
            Ok(())
        }),
        "seconds",
        "Sets after which idle time records are small again; 0: they are never small.",
    )
    .default("0"),
    Row::<Http2Module>::new(
        "H2ProxyRequests",
        Takes::One(|cx, arg| {
            let on = on_off(arg)?;
            // It is the host's, wherever it stands.
            if !cx.in_htaccess() {
                cx.server().proxy_requests.set(on);
            }
            Ok(())
        }),
        "on|off",
        "Sets whether a forward proxy accepts HTTP/2.",
    )
    .standing(Places::ALL, FILE_INFO)
    .default("off"),
    Row::<Http2Module>::new(
        "H2WebSockets",
        Takes::One(|cx, arg| {
            cx.server().websockets.set(on_off(arg)?);
            Ok(())
        }),
        "on|off",
        "Sets whether WebSockets may use a stream.",
    )
    .default("off"),
    Row::<Http2Module>::new(
        "H2SerializeHeaders",
        Takes::One(|cx, arg| {
            if arg.text.eq_ignore_ascii_case(b"on") {
                cx.warn(
                    "AH10307: H2SerializeHeaders: this feature has been disabled and the directive \
                     to enable it is ignored.",
                );
            }
            Ok(())
        }),
        "on|off",
        "Has no effect any more, in Apache either.",
    )
    .default("off")
    .state(State::Accepted("it has no effect in Apache either")),
    Row::<Http2Module>::new(
        "H2SessionExtraFiles",
        Takes::One(|cx, _| {
            cx.warn("H2SessionExtraFiles is obsolete and will be ignored");
            Ok(())
        }),
        "n",
        "Has no effect any more, in Apache either.",
    )
    .state(State::Accepted("it has no effect in Apache either")),
];

fn at_least(arg: &Arg, least: i32, fault: &str) -> Result<i32, Fault> {
    let value = atoi(&arg.text);
    if value < least { Err(Fault::new(fault).at(arg)) } else { Ok(value) }
}

fn on_off(arg: &Arg) -> Result<bool, Fault> {
    if arg.text.eq_ignore_ascii_case(b"on") {
        Ok(true)
    } else if arg.text.eq_ignore_ascii_case(b"off") {
        Ok(false)
    } else {
        Err(Fault::new("value must be On or Off").at(arg))
    }
}

fn duration(arg: &Arg, fault: &str) -> Result<Duration, Fault> {
    timeout(&arg.text, Unit::Seconds).ok_or_else(|| Fault::new(fault).at(arg))
}

fn push_diary_size(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let value = at_least(arg, 0, "value must be >= 0")?;
    if value > 0 && value & (value - 1) != 0 {
        return Err(Fault::new("value must a power of 2").at(arg));
    }
    if value > 1 << 15 {
        return Err(Fault::new("value must <= 65536").at(arg));
    }
    cx.server().push_diary.set(usize::try_from(value).unwrap_or(0));
    Ok(())
}

/// `h2_conf_add_push_priority`
fn push_priority(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [media_type, first, more @ ..] = args else { return Ok(()) };
    let is_weight = more.is_empty() && first.text.first().is_some_and(u8::is_ascii_digit);
    let weight = if is_weight { Some(first) } else { more.first() };
    let is = |word: &str| first.text.eq_ignore_ascii_case(word.as_bytes());
    let place = if is_weight || is("after") {
        PushPlace::After
    } else if is("before") {
        if weight.is_some() {
            return Err(Fault::new("dependency 'Before' does not allow a weight").at(first));
        }
        PushPlace::Before
    } else if is("interleaved") {
        PushPlace::Beside
    } else {
        let fault = "dependency must be one of 'After', 'Before' or 'Interleaved'";
        return Err(Fault::new(fault).at(first));
    };
    if let Some(weight) = weight {
        at_least(weight, 1, "weight must be a number >= 1")?;
    }
    let places = &mut cx.server().push_places;
    // The last line for a media type counts.
    places.insert(0, (media_type.text.to_vec().into(), place));
    Ok(())
}

/// `h2_conf_add_push_res`
fn push_resource(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (path, last) = match args {
        [add, path, last @ ..] if add.text.eq_ignore_ascii_case(b"add") => (path, last),
        [_, _, third] => return Err(Fault::new("too many parameter").at(third)),
        [path, last @ ..] => (path, last),
        [] => return Ok(()),
    };
    let is_critical = match last.first() {
        None => false,
        Some(last) if last.text.eq_ignore_ascii_case(b"critical") => true,
        Some(last) => return Err(Fault::new("unknown last parameter").at(last)),
    };
    let resource = Resource { path: path.text.to_vec().into(), is_critical };
    match cx.outside_sections() {
        true => cx.server().resources.push(resource),
        false => cx.dir().resources.push(resource),
    }
    Ok(())
}

fn padding(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let bits = at_least(arg, 0, "number of bits must be >= 0")?;
    let bits = u8::try_from(bits).ok().filter(|bits| *bits <= 8);
    let bits = bits.ok_or_else(|| Fault::new("number of bits must be <= 8").at(arg))?;
    cx.server().padding_bits.set(bits);
    Ok(())
}

fn early_hint(cx: &mut Here<'_, '_>, name: &Arg, value: &Arg) -> Set {
    if value.text.trim().is_empty() {
        let fault = "Early Hint header value must not be empty/only space";
        return Err(Fault::new(fault).at(value));
    }
    let hint = (name.text.to_vec().into(), value.text.to_vec().into());
    match cx.outside_sections() {
        true => cx.server().early_hints.push(hint),
        false => cx.dir().early_hints.push(hint),
    }
    Ok(())
}
