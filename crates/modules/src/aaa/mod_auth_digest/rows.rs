//! The directives of mod_auth_digest.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::clients::CLIENT_BYTES;
use super::{AuthDigest, Own};
use crate::aaa::provider::{AUTHN, AuthnProvider};

type Here<'a, 't> = Cx<'a, 't, AuthDigest>;

pub(super) const ROWS: &[Row<AuthDigest>] = &[
    row(
        "AuthDigestAlgorithm",
        Takes::One(algorithm),
        "MD5",
        "Names the algorithm, of which there is one.",
    )
    .default("MD5"),
    row(
        "AuthDigestDomain",
        Takes::Each(domain),
        "URI [URI] ...",
        "Tells clients for which URLs the same login counts.",
    ),
    row(
        "AuthDigestNcCheck",
        Takes::Flag(|cx, on| change(cx, |own| own.counts = on)),
        "On|Off",
        "Refuses a request that counts no higher than one before: a replay.",
    )
    .default("Off"),
    row(
        "AuthDigestNonceLifetime",
        Takes::One(lifetime),
        "seconds",
        "Sets how long a nonce counts: 0 for one request, a negative number forever.",
    )
    .default("300"),
    row(
        "AuthDigestProvider",
        Takes::Each(provider),
        "provider-name [provider-name] ...",
        "Sets the providers of digests, in the order in which they are tried.",
    )
    .default("file"),
    row(
        "AuthDigestQop",
        Takes::Each(qop),
        "auth",
        "Names the quality of protection, of which there is one.",
    )
    .default("auth"),
    Row::new(
        "AuthDigestShmemSize",
        Takes::One(memory),
        "size",
        "Sets how much memory there is for clients that are counted.",
    )
    .standing(Places::HOST, Override::NONE)
    .default("65536"),
];

const fn row(
    name: &'static str,
    takes: Takes<AuthDigest>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<AuthDigest> {
    Row::new(name, takes, syntax, doc).standing(Places::PER_DIR, Override::AUTH_CONFIG)
}

fn change(cx: &mut Here<'_, '_>, change: impl FnOnce(&mut Own)) -> Set {
    let setting = &mut cx.dir().own;
    let mut own = setting.get().map(|own| (**own).clone()).unwrap_or_default();
    change(&mut own);
    setting.set(Arc::new(own));
    Ok(())
}

fn algorithm(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if !arg.is("MD5") {
        let why = format!("Unsupported algorithm in AuthDigestAlgorithm: {}", arg.text);
        return Err(Fault::new(why).at(arg));
    }
    change(cx, |_| ())
}

fn qop(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if !arg.is("auth") {
        return Err(Fault::new("AuthDigestQop is deprecated: only 'auth' is supported").at(arg));
    }
    change(cx, |_| ())
}

fn domain(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    change(cx, |own| {
        if !own.domain.is_empty() {
            own.domain.push(b' ');
        }
        own.domain.extend_from_slice(&arg.text);
    })
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim_start().parse().ok()
}

fn lifetime(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let Some(seconds) = number(&arg.text) else {
        let why = format!("Invalid time in AuthDigestNonceLifetime: {}", arg.text);
        return Err(Fault::new(why).at(arg));
    };
    change(cx, |own| own.lifetime_s = seconds)
}

fn provider(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let name = arg.text.to_string();
    let Some(found) = cx.build().provider::<AuthnProvider>(AUTHN, &name) else {
        return Err(cx.build().unknown_provider("Authn", &name).at(arg));
    };
    if !found.has_digests() {
        let why = format!("The '{name}' Authn provider doesn't support Digest Authentication");
        return Err(Fault::new(why).at(arg));
    }
    change(cx, |own| own.providers.push((name, (*found).clone())))
}

/// The least memory that Apache accepts, for one client.
const LEAST_BYTES: i64 = 88;

fn memory(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let (digits, factor) = match arg.text.split_last() {
        Some((b'k' | b'K', digits)) => (digits, 1024),
        Some((b'm' | b'M', digits)) => (digits, 1024 * 1024),
        _ => (arg.text.as_slice(), 1),
    };
    let Some(bytes) = number(digits).and_then(|number| number.checked_mul(factor)) else {
        let why = format!("Invalid size in AuthDigestShmemSize: {}", arg.text);
        return Err(Fault::new(why).at(arg));
    };
    if bytes < LEAST_BYTES {
        let why = format!("size in AuthDigestShmemSize too small: {bytes} < {LEAST_BYTES}");
        return Err(Fault::new(why).at(arg));
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(CLIENT_BYTES);
    cx.server().memory_bytes.set(bytes);
    Ok(())
}
