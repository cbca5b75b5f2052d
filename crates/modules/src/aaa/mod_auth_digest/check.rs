//! Authentication. Source: `authenticate_digest_user`, `add_auth_info`.

use std::borrow::Cow;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::{Digest, Md5};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::Request;

use super::challenge::{Opaque, ask, fresh};
use super::clients::Counted;
use super::field::{Credentials, Sent, read};
use super::target::refuse_target;
use super::{AuthDigest, Own, nonce, own};
use crate::aaa::mod_auth_basic::is_forward;
use crate::aaa::mod_authn_core::{auth_type, realm};
use crate::aaa::password::hex;
use crate::aaa::provider::{AUTHN, AuthnProvider, RealmHash};

/// How long before its end a nonce is replaced, microseconds (`NEXTNONCE_DELTA`).
const RENEWAL_US: u64 = 30_000_000;

pub(super) fn authenticate<'r>(_: Bound<'r, AuthDigest>, request: &'r mut Request) -> Step<'r> {
    let Some(kind) = auth_type(request).filter(|kind| kind.eq_ignore_ascii_case(b"Digest")) else {
        return Step::DECLINED;
    };
    let uri = request.resource.uri.clone();
    let uri = Verbatim::new(&uri);
    let Some(realm) = realm(request) else {
        request.log::<AuthDigest>(Level::Error, 1780, format_args!("need AuthName: {uri}"));
        return Step::status(500);
    };
    request.auth_type = Some(match kind.as_slice() {
        b"Digest" => Cow::Borrowed("Digest"),
        other => Cow::Owned(String::from_utf8_lossy(other).into_owned()),
    });
    let own = own(request);
    let sent = match request.sent_credentials().map(read) {
        Some(Sent::Whole(sent)) => sent,
        other => {
            log_unread(request, &uri, other.as_ref());
            let opaque = match other {
                Some(Sent::Incomplete { has_opaque: true }) => Opaque::Lost,
                _ => Opaque::New,
            };
            ask(request, &own, opaque, false);
            return Step::status(401);
        }
    };
    request.user = Some(sent.username.clone());
    if let Some(status) = refuse_target(request, &sent) {
        return Step::status(status);
    }
    Step::Pending(Box::pin(async move {
        match check(request, &own, &sent, &realm).await {
            Ok(hash) => {
                // What it is redirected to, or looks up, adds none of its own.
                if request.is_initial() {
                    keep_info(request, &own, &sent, &hash);
                }
                Verdict::Ok
            }
            Err(Refusal::Status(status)) => Verdict::Status(status),
            Err(Refusal::Ask { is_stale }) => {
                ask(request, &own, Opaque::of(sent.opaque.as_deref()), is_stale);
                Verdict::Status(401)
            }
        }
    }))
}

fn log_unread(request: &Request, uri: &Verbatim<'_>, sent: Option<&Sent>) {
    match sent {
        Some(Sent::Other(scheme)) => {
            let scheme = Verbatim::new(scheme);
            let message = format_args!("client used wrong authentication scheme `{scheme}': {uri}");
            request.log::<AuthDigest>(Level::Error, 1781, message);
        }
        Some(Sent::Incomplete { .. }) => {
            let message = format_args!(
                "missing user, realm, nonce, uri, digest, cnonce, or nonce_count in authorization \
                 header: {uri}"
            );
            request.log::<AuthDigest>(Level::Error, 1782, message);
        }
        Some(Sent::Whole(_)) | None => {}
    }
}

/// Why a login is not accepted, as has been logged.
enum Refusal {
    /// The client is asked again.
    Ask { is_stale: bool },
    /// The response has this status.
    Status(u16),
}

const ASK: Refusal = Refusal::Ask { is_stale: false };

async fn check(
    request: &mut Request,
    own: &Own,
    sent: &Credentials,
    realm: &[u8],
) -> Result<Vec<u8>, Refusal> {
    let uri = request.resource.uri.clone();
    let uri = Verbatim::new(&uri);
    let user = sent.username.clone();
    let user = Verbatim::new(&user);
    let log = |request: &Request, number, what: std::fmt::Arguments<'_>| {
        request.log::<AuthDigest>(Level::Error, number, what);
        ASK
    };
    if let Some(opaque) = sent.opaque.as_deref().filter(|opaque| !is_number(opaque)) {
        let opaque = Verbatim::new(opaque);
        return Err(log(request, 1787, format_args!("received invalid opaque - got `{opaque}'")));
    }
    // Apache compares with the realm as it is quoted: one with quotes never fits.
    if sent.realm != realm {
        let (got, expected) = (Verbatim::new(&sent.realm), Verbatim::new(realm));
        let what = format_args!("realm mismatch - got `{got}' but expected `{expected}'");
        return Err(log(request, 1788, what));
    }
    if let Some(algorithm) = &sent.algorithm
        && !algorithm.eq_ignore_ascii_case(b"MD5")
    {
        let algorithm = Verbatim::new(algorithm);
        let what = format_args!("unknown algorithm `{algorithm}' received: {uri}");
        return Err(log(request, 1789, what));
    }
    let hash = match look_up(request, own, &sent.username, realm).await {
        // Anything else, such as a list of groups, would be a password that clients can guess.
        RealmHash::Found(hash) if hash.len() == 32 && hash.iter().all(u8::is_ascii_hexdigit) => {
            hash
        }
        RealmHash::Found(_) => {
            let what = format_args!("user `{user}': the stored value is no digest: {uri}");
            request.log::<AuthDigest>(Level::Error, 0, what);
            return Err(Refusal::Status(500));
        }
        RealmHash::UserNotFound => {
            let realm = Verbatim::new(realm);
            let what = format_args!("user `{user}' in realm `{realm}' not found: {uri}");
            return Err(log(request, 1790, what));
        }
        RealmHash::GeneralError => return Err(Refusal::Status(500)),
    };
    if sent.qop.as_deref().is_none_or(|qop| !qop.eq_ignore_ascii_case(b"auth")) {
        let qop = Verbatim::new(sent.qop.as_deref().unwrap_or(b"(null)"));
        let what = format_args!(
            "invalid or missing qop value '{qop}', RFC 2069 is no longer supported: {uri}"
        );
        return Err(log(request, 10560, what));
    }
    let (method, _) = request.clients_line();
    let wanted = response(&hash, sent, &[method, &b":"[..], &sent.uri].concat());
    if verify_slices_are_equal(&wanted, &sent.response).is_err() {
        return Err(log(request, 1794, format_args!("user {user}: password mismatch: {uri}")));
    }
    check_nonce(request, own, sent, realm)?;
    Ok(hash)
}

fn is_number(opaque: &[u8]) -> bool {
    std::str::from_utf8(opaque).is_ok_and(|text| u64::from_str_radix(text, 16).is_ok())
}

/// The digest of a request or a response, whose own part is `of`.
fn response(hash: &[u8], sent: &Credentials, of: &[u8]) -> Vec<u8> {
    let of = hex(&Md5::digest(of));
    let qop = sent.qop.as_deref().unwrap_or_default();
    let parts = [hash, &sent.nonce, &sent.count, &sent.cnonce, qop, &of];
    hex(&Md5::digest(parts.join(&b":"[..])))
}

/// Source: `get_hash`.
async fn look_up(request: &mut Request, own: &Own, user: &[u8], realm: &[u8]) -> RealmHash {
    if own.providers.is_empty() {
        let hooks = &request.engine.server.registry.hooks;
        let Some(provider) = hooks.provider::<AuthnProvider>(AUTHN, "file") else {
            let message = format_args!("No Authn provider configured");
            request.log::<AuthDigest>(Level::Error, 1770, message);
            return RealmHash::GeneralError;
        };
        return look_up_one(&provider, "file", request, user, realm).await;
    }
    let mut found = RealmHash::UserNotFound;
    for (name, provider) in &own.providers {
        found = look_up_one(provider, name, request, user, realm).await;
        if found != RealmHash::UserNotFound {
            break;
        }
    }
    found
}

async fn look_up_one(
    provider: &AuthnProvider,
    name: &str,
    request: &mut Request,
    user: &[u8],
    realm: &[u8],
) -> RealmHash {
    request.notes.set(b"authn_provider_name", name.as_bytes());
    let found = match provider.realm_hash(request, user, realm) {
        Some(pending) => pending.get().await,
        None => RealmHash::GeneralError,
    };
    request.notes.unset(b"authn_provider_name");
    found
}

/// Source: `check_nonce`, `check_nc`.
fn check_nonce(
    request: &mut Request,
    own: &Own,
    sent: &Credentials,
    realm: &[u8],
) -> Result<(), Refusal> {
    let stale = Err(Refusal::Ask { is_stale: true });
    let opaque = sent.opaque.as_deref().unwrap_or_default();
    let (user, nonce) = (Verbatim::new(&sent.username), Verbatim::new(&sent.nonce));
    let Some(number) = nonce::number(&sent.nonce, realm, opaque) else {
        let message = format_args!("invalid nonce {nonce} received - hash is not the server's");
        request.log::<AuthDigest>(Level::Error, 1776, message);
        return stale;
    };
    let now_us = request.time_us;
    if own.lifetime_s != 0 && number > now_us {
        let message = format_args!("invalid nonce {nonce} received - user attempted time travel");
        request.log::<AuthDigest>(Level::Error, 1777, message);
        return stale;
    }
    let lifetime_us = u64::try_from(own.lifetime_s).unwrap_or(0).saturating_mul(1_000_000);
    if own.lifetime_s > 0 && now_us - number > lifetime_us {
        let message = format_args!("user {user}: nonce expired - sending new nonce");
        request.log::<AuthDigest>(Level::Info, 1778, message);
        return stale;
    }
    if !own.knows_clients() {
        return Ok(());
    }
    let Opaque::Of(client, _) = Opaque::of(sent.opaque.as_deref()) else {
        let message = format_args!("client is no longer known - sending new nonce");
        request.log::<AuthDigest>(Level::Info, 10618, message);
        return stale;
    };
    if own.lifetime_s == 0 && !is_count(&sent.count) {
        return Err(no_count(request, sent));
    }
    if own.lifetime_s == 0 && !client.use_once(number) {
        let message =
            format_args!("user {user}: one-time-nonce {nonce} already used - sending new nonce");
        request.log::<AuthDigest>(Level::Info, 1779, message);
        return stale;
    }
    if own.counts && own.lifetime_s != 0 {
        let text = std::str::from_utf8(&sent.count).unwrap_or_default();
        let Ok(count) = u64::from_str_radix(text, 16) else {
            return Err(no_count(request, sent));
        };
        let highest = match client.count(number, count) {
            Counted::Higher => None,
            Counted::TooOften => return stale,
            Counted::NotAbove(highest) => Some(highest),
        };
        if let Some(highest) = highest {
            let message = format_args!(
                "Warning, possible replay attack: nonce-count check failed: {count} is not above \
                 {highest} for nonce {nonce}"
            );
            request.log::<AuthDigest>(Level::Error, 1774, message);
            return Err(ASK);
        }
    }
    Ok(())
}

fn no_count(request: &Request, sent: &Credentials) -> Refusal {
    let count = Verbatim::new(&sent.count);
    let message = format_args!("invalid nc {count} received - not a number");
    request.log::<AuthDigest>(Level::Error, 1773, message);
    ASK
}

/// Whether a count that means nothing is a number to Apache (`strtol`).
fn is_count(text: &[u8]) -> bool {
    let number = text.trim_ascii_start();
    let number = number.strip_prefix(b"-").or(number.strip_prefix(b"+")).unwrap_or(number);
    let hex = number.strip_prefix(b"0x").or(number.strip_prefix(b"0X"));
    let digits = hex.filter(|digits| digits.first().is_some_and(u8::is_ascii_hexdigit));
    let digits = digits.unwrap_or(number);
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = if count == 0 { text.first() } else { digits.get(count) };
    rest.is_none_or(u8::is_ascii_whitespace)
}

/// A field for the response to a user.
struct Info(Vec<u8>);

/// Keeps the field that proves to the client that the server knows its password.
fn keep_info(request: &mut Request, own: &Own, sent: &Credentials, hash: &[u8]) {
    let proof = response(hash, sent, &[&b":"[..], &sent.uri].concat());
    let opaque = sent.opaque.clone().unwrap_or_default();
    let next = match is_ending(request, own, sent) {
        true => fresh(request, own, &opaque),
        false => None,
    };
    let next = next.map(|nonce| [&b", nextnonce=\""[..], &nonce, b"\""].concat());
    let field = [
        &b"rspauth=\""[..],
        &proof,
        b"\"",
        &next.unwrap_or_default(),
        b", cnonce=\"",
        &quoted(&sent.cnonce),
        b"\", nc=",
        &sent.count,
        b", qop=",
        sent.qop.as_deref().unwrap_or_default(),
    ]
    .concat();
    request.keep(Info(field));
}

/// Adds that field, unless an earlier hook has ended the request. Source: `add_auth_info`.
pub(super) fn add_info<'r>(_: Bound<'r, AuthDigest>, request: &'r mut Request) -> Step<'r> {
    let Some(Info(field)) = request.kept_mut() else { return Step::OK };
    let field = std::mem::take(field);
    if field.is_empty() {
        return Step::OK;
    }
    let name: &[u8] = match is_forward(request) {
        true => b"Proxy-Authentication-Info",
        false => b"Authentication-Info",
    };
    request.response.headers_out.merge(name, &field);
    Step::OK
}

/// Whether a nonce is to be replaced.
fn is_ending(request: &mut Request, own: &Own, sent: &Credentials) -> bool {
    let Ok(lifetime_s) = u64::try_from(own.lifetime_s) else { return false };
    if lifetime_s == 0 {
        return true;
    }
    let realm = realm(request).unwrap_or_default();
    let opaque = sent.opaque.as_deref().unwrap_or_default();
    let age_us = nonce::number(&sent.nonce, &realm, opaque)
        .map_or(0, |number| request.time_us.saturating_sub(number));
    age_us + RENEWAL_US > lifetime_s.saturating_mul(1_000_000)
}

/// The text of a quoted string.
fn quoted(text: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b'"' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    };
    text.iter().flat_map(escaped).collect()
}
