//! OCSP: of clients' certificates, and stapled to our own.

use conf::Arg;
use server::directive::{Fault, Row, Set, Takes};
use tls::ocsp::Responder;
use tls::ocsp::check::Enable;

use super::{Here, fault, file, host, number, put, text, words};
use crate::ssl::mod_ssl::Ssl;

pub(super) const ROWS: &[Row<Ssl>] = &[
    host(
        "SSLOCSPEnable",
        Takes::Some { least: 1, most: 2, set: enable },
        "on|leaf|off",
        "off",
        "Asks responders whether clients' certificates are revoked, before the first request.",
    ),
    host(
        "SSLOCSPDefaultResponder",
        Takes::One(|cx, arg| {
            let url = responder(cx, arg)?;
            put(cx, |server| &mut server.ocsp.default_responder, url)
        }),
        "uri",
        "",
        "Names the responder for certificates that name none.",
    ),
    host(
        "SSLOCSPOverrideResponder",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.ocsp.override_responder, on)),
        "on|off",
        "off",
        "Asks the default responder, whatever a certificate names.",
    ),
    host(
        "SSLOCSPUseRequestNonce",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.ocsp.use_nonce, on)),
        "on|off",
        "on",
        "Puts a nonce into questions, which the answer has to repeat.",
    ),
    host(
        "SSLOCSPResponderTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.ocsp.timeout_seconds, seconds)
        }),
        "seconds",
        "10",
        "Bounds how long a responder may take.",
    ),
    host(
        "SSLOCSPResponseTimeSkew",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.ocsp.skew_seconds, seconds)
        }),
        "seconds",
        "300",
        "Tells how far a responder's clock may be from ours.",
    ),
    host(
        "SSLOCSPResponseMaxAge",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.ocsp.max_age_seconds, seconds)
        }),
        "seconds",
        "-1",
        "Bounds how old a response may be, beside what it says itself.",
    ),
    host(
        "SSLOCSPResponderCertificateFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.ocsp.responder_file, path)
        }),
        "file",
        "",
        "Names certificates of responders that are trusted without an issuer's word.",
    ),
    host(
        "SSLOCSPNoverify",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.ocsp.no_verify, on)),
        "on|off",
        "off",
        "Takes responses without looking at their signatures.",
    ),
    host(
        "SSLOCSPProxyURL",
        Takes::One(|cx, arg| {
            let url = responder(cx, arg)?;
            put(cx, |server| &mut server.ocsp.proxy, url)
        }),
        "url",
        "",
        "Names the proxy through which responders are asked.",
    ),
    host(
        "SSLUseStapling",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.stapling.on, on)),
        "on|off",
        "off",
        "Sends a responder's word about the host's certificate along with it.",
    ),
    host(
        "SSLStaplingResponderTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.timeout_seconds, seconds)
        }),
        "seconds",
        "10",
        "Bounds how long a responder may take when a response is fetched for stapling.",
    ),
    host(
        "SSLStaplingResponseTimeSkew",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.skew_seconds, seconds)
        }),
        "seconds",
        "300",
        "Tells how far the responder's clock may be from ours.",
    ),
    host(
        "SSLStaplingResponseMaxAge",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.max_age_seconds, seconds)
        }),
        "seconds",
        "-1",
        "Bounds how old a stapled response may be, beside what it says itself.",
    ),
    host(
        "SSLStaplingStandardCacheTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.cache_seconds, seconds)
        }),
        "seconds",
        "3600",
        "Tells after how long a response is fetched anew.",
    ),
    host(
        "SSLStaplingErrorCacheTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.error_cache_seconds, seconds)
        }),
        "seconds",
        "600",
        "Tells after how long a responder that failed is asked again.",
    ),
    host(
        "SSLStaplingReturnResponderErrors",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.stapling.return_errors, on)),
        "on|off",
        "on",
        "Staples what the responder says even if it is an error.",
    ),
    host(
        "SSLStaplingFakeTryLater",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.stapling.fake_try_later, on)),
        "on|off",
        "on",
        "Staples \"try later\" where the responder did not answer.",
    ),
    host(
        "SSLStaplingForceURL",
        Takes::One(|cx, arg| {
            let url = responder(cx, arg)?;
            put(cx, |server| &mut server.stapling.force_url, url)
        }),
        "uri",
        "",
        "Names the responder to ask, whatever the certificate names.",
    ),
];

fn enable(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let found = Enable::parse(words(args)?).map_err(fault)?;
    put(cx, |server| &mut server.ocsp.enable, found)
}

fn responder(cx: &Here<'_, '_>, arg: &Arg) -> Result<Responder, Fault> {
    let name = cx.target.directive;
    Responder::parse(text(arg)?)
        .ok_or_else(|| Fault::new(format!("{name}: an http:// URL is needed")).at(arg))
}
