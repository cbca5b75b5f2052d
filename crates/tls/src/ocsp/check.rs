//! SSLOCSPEnable: checks a client's path with the responders. A handshake can't wait, so this is a
//! step between the handshake and the first request.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslocspenable>, `verify_ocsp_status`.

use rustls_pki_types::CertificateDer;

use super::response::{self, Policy, Status};
use super::{CertificateId, HttpRequest, Request, Responder, responder_of};
use crate::verify::Reason;
use crate::{Finding, certs};

/// The value of SSLOCSPEnable. Default: off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enable {
    /// No responder is asked.
    #[default]
    Off,
    /// Checks the client's certificate only.
    Leaf,
    /// Checks all certificates except the root.
    On,
}

/// The SSLOCSP* directives.
#[derive(Clone, Debug)]
pub struct Settings {
    /// SSLOCSPEnable.
    pub enable: Enable,
    /// `SSLOCSPEnable … no_ocsp_for_cert_ok`: a certificate without a responder is accepted.
    pub missing_responder_is_well: bool,
    /// SSLOCSPDefaultResponder, for certificates that name none.
    pub default_responder: Option<Responder>,
    /// SSLOCSPOverrideResponder: uses the default responder even if a certificate names another.
    pub override_responder: bool,
    /// SSLOCSPUseRequestNonce. Default: on.
    pub use_nonce: bool,
    /// SSLOCSPResponderTimeout, for the caller's connection. Default: 10.
    pub timeout_seconds: u64,
    /// SSLOCSPResponseTimeSkew. Default: 300.
    pub skew_seconds: i64,
    /// SSLOCSPResponseMaxAge. Default: no limit.
    pub max_age_seconds: Option<i64>,
    /// SSLOCSPResponderCertificateFile.
    pub responder_certificates: Vec<CertificateDer<'static>>,
    /// SSLOCSPNoverify. Default: off.
    pub no_verify: bool,
    /// SSLOCSPProxyURL.
    pub proxy: Option<Responder>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enable: Enable::Off,
            missing_responder_is_well: false,
            default_responder: None,
            override_responder: false,
            use_nonce: true,
            timeout_seconds: 10,
            skew_seconds: 300,
            max_age_seconds: None,
            responder_certificates: Vec::new(),
            no_verify: false,
            proxy: None,
        }
    }
}

impl Enable {
    /// Parses `on|leaf|off [no_ocsp_for_cert_ok]`.
    ///
    /// # Errors
    /// Any other word.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(Self, bool), Finding> {
        let mut words = words.into_iter();
        let invalid =
            |word: &str| Finding::error("SSLOCSPEnable", format!("Invalid argument '{word}'"));
        let enable = match words.next().unwrap_or_default() {
            word if word.eq_ignore_ascii_case("off") => Self::Off,
            word if word.eq_ignore_ascii_case("on") => Self::On,
            word if word.eq_ignore_ascii_case("leaf") => Self::Leaf,
            word => return Err(invalid(word)),
        };
        let mut missing_is_well = false;
        for word in words {
            if !word.eq_ignore_ascii_case("no_ocsp_for_cert_ok") {
                return Err(invalid(word));
            }
            missing_is_well = true;
        }
        Ok((enable, missing_is_well))
    }
}

/// A request to make before the connection's first request.
#[derive(Clone, Debug)]
pub struct Question {
    request: Request,
    issuer: CertificateDer<'static>,
    /// The HTTP request and its destination.
    pub http: HttpRequest,
}

impl Question {
    /// Evaluates the responder's response, the body of its HTTP response. Pass `None` if there was
    /// none, which is a failure.
    ///
    /// # Errors
    /// The certificate is revoked or unknown, or the response is invalid.
    pub fn judge(&self, body: Option<&[u8]>, settings: &Settings, now: i64) -> Result<(), Reason> {
        let policy = Policy {
            issuer: &self.issuer,
            trusted: &settings.responder_certificates,
            verify_signature: !settings.no_verify,
            skew_seconds: settings.skew_seconds,
            max_age_seconds: settings.max_age_seconds,
            now,
        };
        let answer = response::verify(body.ok_or(Reason::OcspFailed)?, &self.request, &policy);
        match answer.map(|answer| answer.status) {
            Ok(Status::Good) => Ok(()),
            Ok(Status::Revoked) => Err(Reason::Revoked),
            Ok(Status::Unknown) | Err(_) => Err(Reason::OcspFailed),
        }
    }
}

/// The requests for a verified path, leaf first, root last ([`crate::verify::Verdict::Trusted`]).
///
/// # Errors
/// A certificate has no responder although one is required.
pub fn questions(
    path: &[CertificateDer<'static>],
    settings: &Settings,
) -> Result<Vec<Question>, Reason> {
    let count = match settings.enable {
        Enable::Off => 0,
        Enable::Leaf => 1,
        Enable::On => path.len(),
    };
    let mut questions = Vec::new();
    for pair in path.windows(2).take(count) {
        let [certificate, issuer] = pair else { break };
        match question(certificate, issuer, settings)? {
            Some(question) => questions.push(question),
            None if settings.missing_responder_is_well => {}
            None => return Err(Reason::OcspFailed),
        }
    }
    Ok(questions)
}

fn question(
    certificate: &CertificateDer<'static>,
    issuer: &CertificateDer<'static>,
    settings: &Settings,
) -> Result<Option<Question>, Reason> {
    let parsed = certs::parse(certificate).map_err(|_| Reason::Malformed)?;
    let named = if settings.override_responder { None } else { responder_of(&parsed) };
    let Some(responder) = named.or_else(|| settings.default_responder.clone()) else {
        return Ok(None);
    };
    let id = CertificateId::of(certificate, issuer).ok_or(Reason::Malformed)?;
    let request = Request::new(id, settings.use_nonce);
    let http = HttpRequest::new(&request, &responder, settings.proxy.as_ref());
    Ok(Some(Question { request, issuer: issuer.clone(), http }))
}
