//! Parses and checks a responder's response (RFC 6960 section 4.2).

use std::fmt;

use rustls_pki_types::CertificateDer;

use super::{CertificateId, NONCE, Request};
use crate::certs;
use crate::der::{
    self, ENUMERATED, GENERALIZED_TIME, OCTET_STRING, OID, Reader, SEQUENCE, context,
};
use crate::signature::Signed;

/// id-pkix-ocsp-basic.
const BASIC: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];
/// The certificates in a response that are examined at most.
const MAX_CERTIFICATES: usize = 16;

/// The status of the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is not revoked.
    Good,
    /// It is revoked.
    Revoked,
    /// The responder does not know it.
    Unknown,
}

/// Why a response is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not an OCSP response.
    Malformed,
    /// The responder reports this error (3 is "try later").
    Responder(u8),
    /// It is signed neither by the issuer nor by a delegate of the issuer.
    Signature,
    /// Its nonce differs from the request's, or is missing.
    Nonce,
    /// It is about another certificate.
    OtherCertificate,
    /// It is too old, or from the future.
    Time,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "could not decode the OCSP response"),
            Self::Responder(code) => write!(f, "OCSP response not successful: {code}"),
            Self::Signature => write!(f, "failed to verify the OCSP response"),
            Self::Nonce => write!(f, "bad OCSP responder answer (bad nonce)"),
            Self::OtherCertificate => write!(f, "failed to retrieve the certificate's status"),
            Self::Time => write!(f, "OCSP response outside validity period"),
        }
    }
}

/// The rules for a response.
#[derive(Clone, Debug)]
pub struct Policy<'a> {
    /// The issuer of the certificate in question.
    pub issuer: &'a CertificateDer<'a>,
    /// SSLOCSPResponderCertificateFile: these may also sign.
    pub trusted: &'a [CertificateDer<'a>],
    /// Off with SSLOCSPNoverify.
    pub verify_signature: bool,
    /// Tolerated difference of clocks, in seconds. Default in Apache: 300.
    pub skew_seconds: i64,
    /// Limit in seconds since thisUpdate; `None` for none. Default in Apache: none.
    pub max_age_seconds: Option<i64>,
    /// Seconds since 1970.
    pub now: i64,
}

/// A certificate's status and its validity period, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: Status,
    /// The start of its validity.
    pub this_update: i64,
    /// The end of its validity, if given.
    pub next_update: Option<i64>,
}

/// Checks an OCSPResponse: signature, nonce, certificate, times.
///
/// # Errors
/// The first fault found.
pub fn verify(der: &[u8], request: &Request, policy: &Policy<'_>) -> Result<Answer, Fault> {
    let basic = basic(der)?;
    let mut reader = Reader::new(basic).enter(SEQUENCE).ok_or(Fault::Malformed)?;
    let signed = Signed::read(&mut reader).ok_or(Fault::Malformed)?;
    if policy.verify_signature && !is_authorized(&signed, reader, policy) {
        return Err(Fault::Signature);
    }
    let data = Data::parse(signed.message).ok_or(Fault::Malformed)?;
    if request.nonce.is_some() && request.nonce.as_deref() != data.nonce {
        return Err(Fault::Nonce);
    }
    let answer = data.answer(&request.id).ok_or(Fault::OtherCertificate)?;
    check_times(&answer, policy)?;
    Ok(answer)
}

/// The BasicOCSPResponse inside, if the response is successful.
fn basic(der: &[u8]) -> Result<&[u8], Fault> {
    let mut response = Reader::new(der).enter(SEQUENCE).ok_or(Fault::Malformed)?;
    match response.content(ENUMERATED) {
        Some([0]) => {}
        Some([code]) => return Err(Fault::Responder(*code)),
        _ => return Err(Fault::Malformed),
    }
    let mut inner = || {
        let mut bytes = response.enter(context(0))?.enter(SEQUENCE)?;
        (bytes.content(OID)? == BASIC).then_some(())?;
        bytes.content(OCTET_STRING)
    };
    inner().ok_or(Fault::Malformed)
}

/// RFC 6960 section 4.2.2.2: signed by the issuer, by a certificate that the issuer issued for
/// OCSP, or by one that the configuration trusts.
fn is_authorized(signed: &Signed<'_>, rest: Reader<'_>, policy: &Policy<'_>) -> bool {
    let by = |certificate: &CertificateDer<'_>| {
        certs::parse(certificate).is_ok_and(|parsed| signed.is_by(parsed.public_key().raw))
    };
    if by(policy.issuer) || policy.trusted.iter().any(by) {
        return true;
    }
    delegates(rest).iter().any(|der| by(der) && is_delegate(der, policy))
}

fn delegates(mut rest: Reader<'_>) -> Vec<CertificateDer<'_>> {
    let Some(mut list) = rest.enter(context(0)).and_then(|mut inner| inner.enter(SEQUENCE)) else {
        return Vec::new();
    };
    std::iter::from_fn(|| list.expect(SEQUENCE))
        .take(MAX_CERTIFICATES)
        .map(|element| CertificateDer::from(element.raw))
        .collect()
}

fn is_delegate(der: &CertificateDer<'_>, policy: &Policy<'_>) -> bool {
    let (Ok(delegate), Ok(issuer)) = (certs::parse(der), certs::parse(policy.issuer)) else {
        return false;
    };
    let for_ocsp = delegate
        .extended_key_usage()
        .is_ok_and(|usage| usage.is_some_and(|usage| usage.value.ocsp_signing));
    let validity = delegate.validity();
    let in_time = validity.not_before.timestamp() - policy.skew_seconds <= policy.now
        && policy.now <= validity.not_after.timestamp() + policy.skew_seconds;
    let by_issuer = delegate.issuer().as_raw() == issuer.subject().as_raw()
        && Signed::of_element(der).is_some_and(|signed| signed.is_by(issuer.public_key().raw));
    for_ocsp && in_time && by_issuer
}

/// `OCSP_check_validity`.
fn check_times(answer: &Answer, policy: &Policy<'_>) -> Result<(), Fault> {
    let Policy { skew_seconds: skew, now, .. } = *policy;
    let future = answer.this_update > now + skew;
    let over = answer.next_update.is_some_and(|next| next < now - skew);
    let backwards = answer.next_update.is_some_and(|next| next < answer.this_update);
    let aged = policy.max_age_seconds.is_some_and(|age| answer.this_update < now - skew - age);
    if future || over || backwards || aged { Err(Fault::Time) } else { Ok(()) }
}

/// The used part of ResponseData.
struct Data<'a> {
    responses: Reader<'a>,
    nonce: Option<&'a [u8]>,
}

impl<'a> Data<'a> {
    fn parse(der: &'a [u8]) -> Option<Self> {
        let mut data = Reader::new(der).enter(SEQUENCE)?;
        data.content(context(0));
        // byName or byKey: the signature identifies the key.
        data.next_element().filter(|id| matches!(id.tag, 0xa1 | 0xa2))?;
        data.content(GENERALIZED_TIME)?;
        let responses = data.enter(SEQUENCE)?;
        let extensions = data.enter(context(1)).and_then(|mut inner| inner.enter(SEQUENCE));
        Some(Self { responses, nonce: extensions.and_then(nonce) })
    }

    fn answer(&self, id: &CertificateId) -> Option<Answer> {
        let mut responses = self.responses;
        std::iter::from_fn(|| responses.enter(SEQUENCE)).find_map(|mut single| {
            if !id.is(single.expect(SEQUENCE)?.raw) {
                return None;
            }
            let status = match single.next_element()?.tag {
                0x80 => Status::Good,
                0xa1 => Status::Revoked,
                _ => Status::Unknown,
            };
            let this_update = seconds(single.content(GENERALIZED_TIME)?)?;
            let next_update = match single.enter(context(0)) {
                Some(mut next) => Some(seconds(next.content(GENERALIZED_TIME)?)?),
                None => None,
            };
            Some(Answer { status, this_update, next_update })
        })
    }
}

fn nonce(mut extensions: Reader<'_>) -> Option<&[u8]> {
    std::iter::from_fn(|| extensions.enter(SEQUENCE)).find_map(|mut extension| {
        let is_nonce = extension.content(OID)? == NONCE;
        extension.content(der::BOOLEAN);
        let value = extension.content(OCTET_STRING)?;
        // Some responders omit the inner OCTET STRING.
        is_nonce.then(|| Reader::new(value).content(OCTET_STRING).unwrap_or(value))
    })
}

/// `20261120234551Z` in seconds since 1970.
fn seconds(text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.len() == 14)?;
    let number = |range: std::ops::Range<usize>| {
        std::str::from_utf8(digits.get(range)?).ok()?.parse::<u32>().ok().map(i64::from)
    };
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(8..10)?, number(10..12)?, number(12..14)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    Some(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Howard Hinnant's `days_from_civil`, for years after 0.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(seconds(b"19700101000000Z"), Some(0));
        assert_eq!(seconds(b"20261120234551Z"), Some(1_795_218_351));
        assert_eq!(seconds(b"20240229120000Z"), Some(1_709_208_000));
        for wrong in
            [&b"20261320234551Z"[..], b"2026112023455Z", b"20261120234551", b"", b"+0261120234551Z"]
        {
            let _ = seconds(wrong);
        }
        assert_eq!(seconds(b"20261320234551Z"), None);
    }
}
