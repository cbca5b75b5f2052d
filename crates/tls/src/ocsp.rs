//! OCSP (RFC 6960): asks a responder whether a certificate is revoked, for client certificates
//! (SSLOCSP*) and for stapling (SSLStapling*). There is no I/O here: the caller sends an
//! [`HttpRequest`] and passes back the body of the response.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::rand;
use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};

use crate::certs;
use crate::der::{INTEGER, NULL, OCTET_STRING, OID, Reader, SEQUENCE, context, element, sequence};

pub mod check;
pub mod response;

/// A responder's response is truncated here: a bound like mod_ssl's `OCSP_MAX_RESPONSE`.
pub const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

const NONCE_BYTES: usize = 16;

/// id-sha1, the hash of certificate identifiers that every responder knows.
const SHA1: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// id-pkix-ocsp-nonce.
pub(crate) const NONCE: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x02];
const AUTHORITY_INFORMATION: &str = "1.3.6.1.5.5.7.1.1";
const OCSP_ACCESS: &str = "1.3.6.1.5.5.7.48.1";

/// The certificate in question, as responders identify it: RFC 6960 section 4.1.1, CertID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateId {
    der: Vec<u8>,
}

impl CertificateId {
    /// The identifier of a certificate from this issuer; `None` if one of them can't be parsed.
    pub fn of(certificate: &CertificateDer<'_>, issuer: &CertificateDer<'_>) -> Option<Self> {
        let certificate = certs::parse(certificate).ok()?;
        let issuer = certs::parse(issuer).ok()?;
        let sha1 =
            |data: &[u8]| element(OCTET_STRING, digest(&SHA1_FOR_LEGACY_USE_ONLY, data).as_ref());
        let der = sequence(&[
            &sequence(&[&element(OID, SHA1), &element(NULL, &[])]),
            &sha1(certificate.issuer().as_raw()),
            &sha1(&issuer.public_key().subject_public_key.data),
            &element(INTEGER, certificate.raw_serial()),
        ]);
        Some(Self { der })
    }

    /// Whether `other` is the same identifier, with or without the hash's NULL parameters.
    fn is(&self, other: &[u8]) -> bool {
        let fields = |der| {
            let mut id = Reader::new(der).enter(SEQUENCE)?;
            let mut algorithm = id.enter(SEQUENCE)?;
            let oid = algorithm.content(OID)?;
            Some([oid, id.content(OCTET_STRING)?, id.content(OCTET_STRING)?, id.content(INTEGER)?])
        };
        let own = fields(&self.der);
        own.is_some() && own == fields(other)
    }
}

/// A request to a responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The certificate in question.
    pub id: CertificateId,
    /// SSLOCSPUseRequestNonce: the response must contain it.
    pub nonce: Option<Vec<u8>>,
}

impl Request {
    /// Creates a request, with or without a nonce.
    pub fn new(id: CertificateId, with_nonce: bool) -> Self {
        let mut nonce = vec![0; NONCE_BYTES];
        let nonce = (with_nonce && rand::fill(&mut nonce).is_ok()).then_some(nonce);
        Self { id, nonce }
    }

    /// The OCSPRequest in DER.
    pub fn der(&self) -> Vec<u8> {
        let list = sequence(&[&sequence(&[&self.id.der])]);
        let extensions = self.nonce.as_ref().map(|nonce| {
            let value = element(OCTET_STRING, &element(OCTET_STRING, nonce));
            let extension = sequence(&[&element(OID, NONCE), &value]);
            element(context(2), &sequence(&[&extension]))
        });
        sequence(&[&sequence(&[&list, extensions.as_deref().unwrap_or_default()])])
    }
}

/// The address of a responder, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responder {
    /// Host name or address, without brackets.
    pub host: String,
    /// Default: 80.
    pub port: u16,
    /// Path and query, starting with a slash.
    pub path: String,
    /// The URL as written.
    pub url: String,
}

impl Responder {
    /// Parses an `http://` URL; responders use no other scheme (`apr_uri_parse` in
    /// `determine_responder_uri`).
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
        let rest = rest.and_then(|_| url.get(7..))?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or_default()),
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let port = if port.is_empty() { 80 } else { port.parse().ok()? };
        let clean = |text: &str| !text.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
        if host.is_empty() || !clean(url) {
            return None;
        }
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Some(Self { host: host.into(), port, path, url: url.into() })
    }
}

/// The responder named by a certificate (authority information access).
pub fn responder_of(certificate: &X509Certificate<'_>) -> Option<Responder> {
    let extensions = certificate.extensions().iter();
    extensions.filter(|extension| extension.oid.to_id_string() == AUTHORITY_INFORMATION).find_map(
        |extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityInfoAccess(access) => {
                access.accessdescs.iter().find_map(|one| match &one.access_location {
                    GeneralName::URI(url) if one.access_method.to_id_string() == OCSP_ACCESS => {
                        Responder::parse(url)
                    }
                    _ => None,
                })
            }
            _ => None,
        },
    )
}

/// The HTTP request to a responder, or to the proxy before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The host to connect to.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// Head and body.
    pub bytes: Vec<u8>,
}

impl HttpRequest {
    /// A POST in HTTP/1.0 as `modssl_dispatch_ocsp_request` sends it. `proxy` is SSLOCSPProxyURL.
    pub fn new(request: &Request, responder: &Responder, proxy: Option<&Responder>) -> Self {
        let body = request.der();
        let target = if proxy.is_some() { &responder.url } else { &responder.path };
        let head = format!(
            "POST {target} HTTP/1.0\r\nHost: {}:{}\r\nContent-Type: application/ocsp-request\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            responder.host,
            responder.port,
            body.len()
        );
        let peer = proxy.unwrap_or(responder);
        Self { host: peer.host.clone(), port: peer.port, bytes: [head.into_bytes(), body].concat() }
    }
}

/// The body of a responder's HTTP response, if its status is 200.
pub fn http_body(answer: &[u8]) -> Option<&[u8]> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (answer.get(..end)?, answer.get(end + 4..)?);
    let status = head.split(|byte| *byte == b'\n').next()?;
    let is_well = status.starts_with(b"HTTP/1.") && status.get(8..12) == Some(b" 200");
    is_well.then_some(body).filter(|body| body.len() <= MAX_RESPONSE_BYTES)
}

#[cfg(test)]
pub(crate) mod tests;
