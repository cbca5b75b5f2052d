//! What the directives set.

use std::net::{IpAddr, ToSocketAddrs};

use conf::Arg;
use conf::values::{Unit, size, timeout};
use server::directive::{Cx, Fault, Set};
use server::within::Within;

use super::spool::Limits;
use super::target::{host_and_port, split_at_text, without_socket};
use super::{
    BadHeader, Blocked, Direct, ErrorOverride, From, Mapping, PathForm, Proxy, RemoteProxy,
    Reverse, Shown, Via,
};
use super::{define, remote};
use crate::atoi::atoi;

pub(super) type Here<'a, 't> = Cx<'a, 't, Proxy>;

/// The smallest buffer, bytes.
const BUFFER_MIN: i32 = 512;
/// The smallest file of ProxySpool, bytes: some writes.
const SPOOL_MIN: u64 = 512 * 1024;
/// The files of ProxySpool of all responses together, if the directive does not say, bytes.
const SPOOL_TOTAL: u64 = 1 << 30;
/// Where mappings do not stand.
const NOT_WITHIN: [Within; 3] = [Within::Limit, Within::Directory, Within::Files];

pub(super) fn pass(cx: &mut Here<'_, '_>, args: &[Arg], matches: bool) -> Set {
    cx.not_within(if matches { "ProxyPassMatch" } else { "ProxyPass" }, &NOT_WITHIN)?;
    let section = cx.path().map(<[u8]>::to_vec);
    let is_tilde = section.is_none() && args.first().is_some_and(|arg| &arg.text[..] == b"~");
    if is_tilde && matches {
        return Err("ProxyPassMatch invalid syntax ('~' usage).".into());
    }
    let args = if is_tilde { args.get(1..).unwrap_or_default() } else { args };
    let (path, words) = match (&section, args) {
        (Some(path), words) => (path.clone(), words),
        (None, [path, words @ ..]) => (path.text.to_vec(), words),
        (None, []) => (Vec::new(), args),
    };
    let texts = words.iter().map(|word| &word.text[..]);
    let (mut mapping, words) =
        Mapping::parse(From::Prefix(path.clone()), texts, section.is_some())?;
    let url = mapping.target.clone();
    if let Some(url) = &url {
        let text = "ProxyPass|ProxyPassMatch uses an invalid \"unix:\" URL";
        mapping.target = Some(without_socket(url).ok_or(text)?.into_owned());
    }
    let is_wild = section.is_some() && conf::fnmatch::has_wildcard(&path);
    if matches || is_tilde || is_wild {
        mapping.from = From::Regex(cx.build().regex(&path, false).map_err(|fault| {
            let message = "Regular expression could not be compiled.".to_owned();
            Fault { message, span: args.first().map(|arg| arg.span), ..fault }
        })?);
    }
    let is_pattern = mapping.is_pattern();
    if mapping.form != PathForm::Decoded {
        cx.server().has_encoded.set(true);
    }
    match section {
        Some(_) => cx.dir().mapping.set(mapping),
        None => cx.server().mappings.push(mapping),
    }
    match url {
        Some(url) => define::for_mapping(cx, &path, &url, is_pattern, &words),
        None => Ok(()),
    }
}

pub(super) fn pass_reverse(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    cx.not_within("ProxyPassReverse", &NOT_WITHIN)?;
    let section = cx.path().map(<[u8]>::to_vec);
    let is_flag = |arg: &Arg| arg.is("interpolate");
    let (from, to, rest) = match (section, args) {
        (Some(_), [_, word, ..]) if !is_flag(word) => {
            return Err("ProxyPassReverse can not have a path when defined in a location".into());
        }
        (Some(path), [url, rest @ ..]) => (path, url, rest),
        (None, [path, url, rest @ ..]) if !is_flag(url) || !rest.is_empty() => {
            (path.text.to_vec(), url, rest)
        }
        _ => return Err("ProxyPassReverse needs a path when not defined in a location".into()),
    };
    let to = to.text.to_vec();
    cx.dir().reverse.push(Reverse { from, to, interpolates: !rest.is_empty() });
    Ok(())
}

pub(super) fn cookie(
    cx: &mut Here<'_, '_>,
    args: &[Arg],
    push: impl FnOnce(&mut Here<'_, '_>, Reverse),
) -> Set {
    if let [from, to, rest @ ..] = args {
        // Whatever the word is.
        let interpolates = !rest.is_empty();
        push(cx, Reverse { from: from.text.to_vec(), to: to.text.to_vec(), interpolates });
    }
    Ok(())
}

/// The value of a word.
fn choice<T: Copy>(arg: &Arg, words: &[(&str, T)], text: &str) -> Result<T, Fault> {
    let found = words.iter().find(|(word, _)| arg.is(word));
    found.map(|(_, value)| *value).ok_or_else(|| Fault::new(text).at(arg))
}

pub(super) fn via(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [("off", Via::Off), ("on", Via::On), ("block", Via::Block), ("full", Via::Full)];
    let value = choice(arg, &words, "ProxyVia must be one of: off | on | full | block")?;
    cx.server().via.set(value);
    Ok(())
}

pub(super) fn bad_header(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [
        ("IsError", BadHeader::IsError),
        ("Ignore", BadHeader::Ignore),
        ("StartBody", BadHeader::StartBody),
    ];
    let text = "ProxyBadHeader must be one of: IsError | Ignore | StartBody";
    let value = choice(arg, &words, text)?;
    cx.server().bad_header.set(value);
    Ok(())
}

pub(super) fn shown(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let words = [("off", Shown::Off), ("on", Shown::On), ("full", Shown::Full)];
    let value = choice(arg, &words, "ProxyStatus must be one of: off | on | full")?;
    cx.server().shown.set(value);
    Ok(())
}

pub(super) fn proxy_timeout(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let time = timeout(&arg.text, Unit::Seconds).or_else(|| microseconds(&arg.text));
    let text = "Proxy Timeout must be at least 1 second.";
    let time = time.filter(|time| !time.is_zero());
    cx.server().timeout.set(time.ok_or_else(|| Fault::new(text).at(arg))?);
    Ok(())
}

/// A time with the unit of no other directive.
fn microseconds(text: &[u8]) -> Option<std::time::Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let number = std::str::from_utf8(number).ok()?;
    let number = number.parse().ok().filter(|_| unit.eq_ignore_ascii_case(b"us"))?;
    Some(std::time::Duration::from_micros(number))
}

pub(super) fn source(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let address = looked_up(&arg.text).first().copied();
    let text = "ProxySourceAddress invalid value";
    cx.server().source.set(address.ok_or_else(|| Fault::new(text).at(arg))?);
    Ok(())
}

/// The addresses of a name, which is looked up at once, as in Apache.
fn looked_up(name: &[u8]) -> Vec<IpAddr> {
    let name = std::str::from_utf8(name).ok();
    let found = name.and_then(|name| (name, 0).to_socket_addrs().ok());
    found.into_iter().flatten().map(|address| address.ip()).collect()
}

pub(super) fn block(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let blocked = &mut cx.server().blocked;
    if !blocked.iter().any(|one| one.word.eq_ignore_ascii_case(&arg.text)) {
        let addresses = looked_up(&arg.text);
        blocked.push(Blocked { word: arg.text.to_vec(), addresses });
    }
    Ok(())
}

pub(super) fn direct(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let direct = Direct::parse(&arg.text, |name| !looked_up(name.as_bytes()).is_empty());
    for remark in remote::remarks(&arg.text) {
        cx.warn(remark);
    }
    cx.server().direct.push(direct);
    Ok(())
}

pub(super) fn error_override(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let Some((first, codes)) = args.split_first() else { return Ok(()) };
    let words = [("on", true), ("off", false)];
    let text = "ProxyErrorOverride first parameter must be one of: off | on";
    let is_on = choice(first, &words, text)?;
    if !is_on && !codes.is_empty() {
        return Err("ProxyErrorOverride: status codes must follow a value of 'on'".into());
    }
    let statuses = codes.iter().map(status).collect::<Result<_, Fault>>()?;
    cx.dir().error_override.set(ErrorOverride { is_on, statuses });
    Ok(())
}

fn status(arg: &Arg) -> Result<u16, Fault> {
    if !arg.text.iter().all(u8::is_ascii_digit) {
        let text = "ProxyErrorOverride: status codes to intercept must be numeric";
        return Err(Fault::new(text).at(arg));
    }
    match u16::try_from(atoi(&arg.text)) {
        Ok(status @ 400..=599) => Ok(status),
        _ => Err(Fault::new(
            "ProxyErrorOverride: status codes to intercept must be valid HTTP Status Codes >=400 \
             && <600",
        )
        .at(arg)),
    }
}

pub(super) fn max_forwards(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.server().max_forwards.set(atoi(&arg.text));
    Ok(())
}

pub(super) fn io_buffer(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let bytes = buffer(arg, "ProxyIOBufferSize")?;
    cx.server().io_buffer.set(bytes);
    Ok(())
}

pub(super) fn receive_buffer(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let bytes = buffer(arg, "ProxyReceiveBufferSize")?;
    cx.server().receive_buffer.set(bytes);
    Ok(())
}

pub(super) fn spool(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let bytes = |arg: &Arg| {
        let why = "ProxySpool takes numbers of bytes, with K, M or G.";
        size(&arg.text).ok_or_else(|| Fault::new(why).at(arg))
    };
    let Some(first) = args.first() else { return Ok(()) };
    let each = bytes(first)?;
    if (1..SPOOL_MIN).contains(&each) {
        return Err(Fault::new("ProxySpool must be at least 512K, or 0 for no files.").at(first));
    }
    let total = args.get(1).map_or(Ok(SPOOL_TOTAL), bytes)?;
    cx.server().spool.set((each > 0).then_some(Limits { each, total }));
    Ok(())
}

fn buffer(arg: &Arg, name: &str) -> Result<usize, Fault> {
    let bytes = atoi(&arg.text);
    if bytes < BUFFER_MIN && bytes != 0 {
        let text = format!("{name} must be >= 512 bytes, or 0 for system default.");
        return Err(Fault::new(text).at(arg));
    }
    Ok(usize::try_from(bytes).unwrap_or(0))
}

pub(super) fn domain(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if arg.text.first() != Some(&b'.') {
        return Err(Fault::new("ProxyDomain: domain name must start with a dot.").at(arg));
    }
    cx.server().domain.set(arg.text.to_vec());
    Ok(())
}

/// Numbers outside of 1 to 100 have no effect.
pub(super) fn growth(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if let Ok(growth @ 1..=100) = u8::try_from(atoi(&arg.text)) {
        cx.server().growth.set(growth);
    }
    Ok(())
}

pub(super) fn remote(cx: &mut Here<'_, '_>, args: &[Arg], is_pattern: bool) -> Set {
    let [matches, url, rest @ ..] = args else { return Ok(()) };
    let text = "ProxyRemote: Bad syntax for a remote proxy server";
    let (scheme, place) =
        split_at_text(&url.text, b"://").ok_or_else(|| Fault::new(text).at(url))?;
    let (host, port) = host_and_port(place.split(|byte| *byte == b'/').next().unwrap_or(place))
        .ok_or_else(|| Fault::new(format!("{text} (bad port number)")).at(url))?;
    let regex = match is_pattern {
        true => Some(cx.build().regex(&matches.text, false).map_err(|fault| Fault {
            message: "Regular expression for ProxyRemoteMatch could not be compiled.".to_owned(),
            span: Some(matches.span),
            ..fault
        })?),
        false => None,
    };
    let remote = RemoteProxy {
        matches: matches.text.to_vec(),
        regex,
        scheme: scheme.to_ascii_lowercase(),
        host: host.to_vec(),
        port: port.and_then(|port| u16::try_from(port).ok()),
        credentials: rest.first().map(|arg| remote::authorization(&arg.text)),
    };
    cx.server().remotes.push(remote);
    Ok(())
}
