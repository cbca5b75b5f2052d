//! OCSP: for client certificates, and stapled to the server's own.

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
        "Queries responders for the revocation of client certificates before the first request.",
    ),
    host(
        "SSLOCSPDefaultResponder",
        Takes::One(|cx, arg| {
            let url = responder(cx, arg)?;
            put(cx, |server| &mut server.ocsp.default_responder, url)
        }),
        "uri",
        "",
        "Sets the responder for certificates that name none.",
    ),
    host(
        "SSLOCSPOverrideResponder",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.ocsp.override_responder, on)),
        "on|off",
        "off",
        "Uses the default responder even if a certificate names another.",
    ),
    host(
        "SSLOCSPUseRequestNonce",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.ocsp.use_nonce, on)),
        "on|off",
        "on",
        "Adds a nonce to queries, which the response must repeat.",
    ),
    host(
        "SSLOCSPResponderTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.ocsp.timeout_seconds, seconds)
        }),
        "seconds",
        "10",
        "Limits the time for a response.",
    ),
    host(
        "SSLOCSPResponseTimeSkew",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.ocsp.skew_seconds, seconds)
        }),
        "seconds",
        "300",
        "Sets the allowed difference between the responder's clock and the server's.",
    ),
    host(
        "SSLOCSPResponseMaxAge",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.ocsp.max_age_seconds, seconds)
        }),
        "seconds",
        "-1",
        "Limits the age of a response, in addition to its own limit.",
    ),
    host(
        "SSLOCSPResponderCertificateFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.ocsp.responder_file, path)
        }),
        "file",
        "",
        "Sets certificates of responders that are trusted without an issuer.",
    ),
    host(
        "SSLOCSPNoverify",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.ocsp.no_verify, on)),
        "on|off",
        "off",
        "Accepts responses without verifying their signatures.",
    ),
    host(
        "SSLOCSPProxyURL",
        Takes::One(|cx, arg| {
            let url = responder(cx, arg)?;
            put(cx, |server| &mut server.ocsp.proxy, url)
        }),
        "url",
        "",
        "Sets the proxy for queries to responders.",
    ),
    host(
        "SSLUseStapling",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.stapling.on, on)),
        "on|off",
        "off",
        "Staples OCSP responses to the host's certificate.",
    ),
    host(
        "SSLStaplingResponderTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.timeout_seconds, seconds)
        }),
        "seconds",
        "10",
        "Limits the time for fetching a response to staple.",
    ),
    host(
        "SSLStaplingResponseTimeSkew",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.skew_seconds, seconds)
        }),
        "seconds",
        "300",
        "Sets the allowed difference between the responder's clock and the server's.",
    ),
    host(
        "SSLStaplingResponseMaxAge",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.max_age_seconds, seconds)
        }),
        "seconds",
        "-1",
        "Limits the age of a stapled response, in addition to its own limit.",
    ),
    host(
        "SSLStaplingStandardCacheTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.cache_seconds, seconds)
        }),
        "seconds",
        "3600",
        "Sets the interval after which a response is fetched again.",
    ),
    host(
        "SSLStaplingErrorCacheTimeout",
        Takes::One(|cx, arg| {
            let seconds = number(cx, arg)?;
            put(cx, |server| &mut server.stapling.error_cache_seconds, seconds)
        }),
        "seconds",
        "600",
        "Sets the interval after which a failed query is repeated.",
    ),
    host(
        "SSLStaplingReturnResponderErrors",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.stapling.return_errors, on)),
        "on|off",
        "on",
        "Staples the responder's response even if it is an error.",
    ),
    host(
        "SSLStaplingFakeTryLater",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.stapling.fake_try_later, on)),
        "on|off",
        "on",
        "Staples \"try later\" if the responder did not respond.",
    ),
    host(
        "SSLStaplingForceURL",
        Takes::One(|cx, arg| {
            let url = responder(cx, arg)?;
            put(cx, |server| &mut server.stapling.force_url, url)
        }),
        "uri",
        "",
        "Sets the responder to query, overriding the one in the certificate.",
    ),
];

fn enable(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let found = Enable::parse(words(args)?).map_err(|finding| fault(cx, finding))?;
    put(cx, |server| &mut server.ocsp.enable, found)
}

fn responder(cx: &Here<'_, '_>, arg: &Arg) -> Result<Responder, Fault> {
    let name = cx.target.directive;
    Responder::parse(text(arg)?)
        .ok_or_else(|| Fault::new(format!("{name}: expected an http:// URL")).at(arg))
}
