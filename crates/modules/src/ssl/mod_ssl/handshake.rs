//! Handshakes: which connections use TLS, their configuration, and the verdict on client
//! certificates.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rt::Work;
use rt::tls::{CertificateDer, ClientHello, ProtocolVersion, TlsInfo};
use rustls::{SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::UnixTime;
use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::hooks::{Judgement, TlsChoice, TlsHook};
use server::host::{Host, Server};
use server::module::Module;
use tls::ocsp::check::{self, Question};
use tls::verify::{Mode, Reason, Verdict};

use super::make::Built;
use super::{Ssl, fetch, host_by_id, of_host, policy};

/// The callbacks of the server.
pub const HOOK: TlsHook =
    TlsHook { module: Ssl::FILE, is_on, choose, shown, judge, admit: policy::admit };

fn is_on(client: &ConnectionInfo, server: &Server) -> bool {
    of_host(server, &client.base_host).is_some_and(|own| own.is_on())
}

/// The host that the client names, among those of the address with TLS; otherwise the address's
/// first (`ssl_find_vhost`).
fn choose(client: &ConnectionInfo, server: &Server, hello: &ClientHello<'_>) -> Option<TlsChoice> {
    let named = hello.server_name().and_then(|name| {
        let host = server.vhosts.named(client.local, name.as_bytes())?;
        Some((host, built(server, host)?))
    });
    let (host, built) =
        named.or_else(|| Some((&client.base_host, built(server, &client.base_host)?)))?;
    let certificate = match built.certificates.len() {
        1 => 0,
        _ => {
            let schemes = hello.signature_schemes().iter().copied().filter(is_13);
            built.certificates.choose_by(schemes).unwrap_or(0)
        }
    };
    let first = of_host(server, &client.base_host);
    let of_first = first.and_then(|first| first.protocols.get().copied());
    let offered = hello.alpn().into_iter().flatten();
    // What the client prefers does not lift the limits of the address's first host.
    let own = built.config(of_first);
    let config = built.preferred(own, offered).unwrap_or(own).clone();
    Some(TlsChoice { config, host: host.id, certificate })
}

fn built<'s>(server: &'s Server, host: &'s Host) -> Option<&'s Arc<Built>> {
    of_host(server, host)?.built.0.as_ref()
}

fn of_choice<'s>(server: &'s Server, choice: &TlsChoice) -> Option<&'s Arc<Built>> {
    built(server, host_by_id(server, choice.host)?)
}

/// Whether TLS 1.3 signs handshakes with this scheme (RFC 8446 section 4.2.3).
fn is_13(scheme: &SignatureScheme) -> bool {
    !matches!(
        scheme,
        SignatureScheme::RSA_PKCS1_SHA1
            | SignatureScheme::RSA_PKCS1_SHA256
            | SignatureScheme::RSA_PKCS1_SHA384
            | SignatureScheme::RSA_PKCS1_SHA512
            | SignatureScheme::ECDSA_SHA1_Legacy
    )
}

/// The index of the certificate that was sent: in TLS 1.2 the suite determines the type of its key.
fn shown(server: &Server, choice: &TlsChoice, info: &TlsInfo<'_>) -> usize {
    let Some(built) = of_choice(server, choice).filter(|built| built.certificates.len() > 1) else {
        return choice.certificate;
    };
    if info.version() != Some(ProtocolVersion::TLSv1_2) {
        return choice.certificate;
    }
    let name = info.cipher_suite().and_then(|suite| suite.suite().as_str());
    let kind = match name.is_some_and(|name| name.contains("_ECDSA_")) {
        true => SignatureAlgorithm::ECDSA,
        false => SignatureAlgorithm::RSA,
    };
    built.certificates.of_kind(kind).unwrap_or(choice.certificate)
}

/// Verdict on a client's certificates. The handshake has checked them, except for resumed sessions,
/// whose certificates may have expired or been revoked since, and for OCSP.
fn judge(
    engine: &Engine,
    choice: &TlsChoice,
    certificates: &[CertificateDer<'static>],
) -> Judgement {
    let Some(built) = of_choice(&engine.server, choice) else {
        return Judgement::Refuse("the host no longer exists".to_owned());
    };
    let Some(verifier) = &built.verifier else { return trusted(0) };
    let verdict = verifier.judge(certificates, UnixTime::now());
    if !verifier.admits(&verdict) {
        return Judgement::Refuse(verdict.variable());
    }
    let mode = verifier.mode();
    let path = match verdict {
        Verdict::Absent => return trusted(0),
        Verdict::Failed(reason) if mode == Mode::OfSections => return failed(mode, &reason),
        Verdict::Failed(reason) => {
            return Judgement::Admit { failure: Some(reason.to_string()), depth: 0 };
        }
        Verdict::Trusted(path) => path,
    };
    let depth = path.len().saturating_sub(1);
    match check::questions(&path, &built.ocsp) {
        Ok(questions) if questions.is_empty() => trusted(depth),
        Ok(questions) => {
            let (settings, pool) = (built.ocsp.clone(), engine.handle.blocking().clone());
            Judgement::Wait(Box::pin(async move {
                match pool.run(Work::Responder, move || ask(&questions, &settings)).await {
                    Ok(Ok(())) => trusted(depth),
                    Ok(Err(reason)) => failed(mode, &reason),
                    Err(_) => {
                        Judgement::Refuse("no thread is free to query the responder".to_owned())
                    }
                }
            }))
        }
        Err(reason) => failed(mode, &reason),
    }
}

fn trusted(depth: usize) -> Judgement {
    Judgement::Admit { failure: None, depth }
}

/// Invalid certificates end the connection. If only sections request them, they are ignored
/// elsewhere.
fn failed(mode: Mode, reason: &Reason) -> Judgement {
    match mode {
        Mode::OfSections => Judgement::Ignore(reason.to_string()),
        _ => Judgement::Refuse(reason.to_string()),
    }
}

/// Queries the responders, one after the other.
fn ask(questions: &[Question], settings: &check::Settings) -> Result<(), Reason> {
    let timeout = Duration::from_secs(settings.timeout_seconds);
    for question in questions {
        let answer = fetch::post(&question.http, timeout);
        let body = answer.as_deref().and_then(tls::ocsp::http_body);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        question.judge(body, settings, i64::try_from(now).unwrap_or(i64::MAX))?;
    }
    Ok(())
}
