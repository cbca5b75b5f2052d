//! Why a client's certificate is not trusted, in OpenSSL's words, which CGI scripts see.

use std::fmt;

use rustls::CertificateError;

/// A reason in the sense of `X509_verify_cert_error_string`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is not a certificate that can be read.
    Malformed,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// It issued itself and is not an authority.
    SelfSigned,
    /// The chain ends at a root that is not an authority here.
    SelfSignedInChain,
    /// An issuer further up is not known.
    UnknownIssuer,
    /// The issuer of the certificate itself is not known.
    UnverifiableLeaf,
    /// A signature is wrong.
    Signature,
    /// An authority is none, or may not issue so deep.
    InvalidAuthority,
    /// It is not for clients.
    Purpose,
    /// It has an extension that is critical and unknown.
    Extension,
    /// More certificates than SSLVerifyDepth allows.
    ChainTooLong,
    /// It is on a revocation list, or its OCSP responder says so.
    Revoked,
    /// There is no revocation list of its issuer.
    NoRevocationList,
    /// The list's time is over.
    RevocationListExpired,
    /// The list's time has not come.
    RevocationListNotYetValid,
    /// The list is not by the issuer.
    RevocationListSignature,
    /// The list has an extension that is critical.
    RevocationListExtension,
    /// Its OCSP responder did not answer well.
    OcspFailed,
    /// Anything else.
    Rejected,
}

impl Reason {
    /// Whether `optional_no_ca` overlooks it (`ssl_verify_error_is_optional`).
    pub fn is_about_issuer(self) -> bool {
        matches!(
            self,
            Self::SelfSigned
                | Self::SelfSignedInChain
                | Self::UnknownIssuer
                | Self::UnverifiableLeaf
        )
    }

    pub(super) fn of_webpki(error: &webpki::Error) -> Self {
        use webpki::Error as E;
        match error {
            E::CertExpired { .. } => Self::Expired,
            E::CertNotValidYet { .. } => Self::NotYetValid,
            E::UnknownIssuer => Self::UnknownIssuer,
            E::CertRevoked => Self::Revoked,
            E::InvalidSignatureForPublicKey => Self::Signature,
            E::EndEntityUsedAsCa | E::PathLenConstraintViolated => Self::InvalidAuthority,
            E::CaUsedAsEndEntity | E::RequiredEkuNotFoundContext(_) | E::EmptyEkuExtension => {
                Self::Purpose
            }
            E::UnsupportedCriticalExtension => Self::Extension,
            E::MaximumPathDepthExceeded => Self::ChainTooLong,
            E::BadDer | E::BadDerTime | E::MalformedExtensions => Self::Malformed,
            _ => Self::Rejected,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Malformed => "invalid certificate verification context",
            Self::Expired => "certificate has expired",
            Self::NotYetValid => "certificate is not yet valid",
            Self::SelfSigned => "self-signed certificate",
            Self::SelfSignedInChain => "self-signed certificate in certificate chain",
            Self::UnknownIssuer => "unable to get local issuer certificate",
            Self::UnverifiableLeaf => "unable to verify the first certificate",
            Self::Signature => "certificate signature failure",
            Self::InvalidAuthority => "invalid CA certificate",
            Self::Purpose => "unsuitable certificate purpose",
            Self::Extension => "unhandled critical extension",
            Self::ChainTooLong => "certificate chain too long",
            Self::Revoked => "certificate revoked",
            Self::NoRevocationList => "unable to get certificate CRL",
            Self::RevocationListExpired => "CRL has expired",
            Self::RevocationListNotYetValid => "CRL is not yet valid",
            Self::RevocationListSignature => "CRL signature failure",
            Self::RevocationListExtension => "unhandled critical CRL extension",
            Self::OcspFailed => "application verification failure",
            Self::Rejected => "certificate rejected",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// For the alert that the client gets.
impl From<Reason> for CertificateError {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Malformed => Self::BadEncoding,
            Reason::Expired => Self::Expired,
            Reason::NotYetValid => Self::NotValidYet,
            Reason::Signature => Self::BadSignature,
            Reason::Purpose => Self::InvalidPurpose,
            Reason::Extension => Self::UnhandledCriticalExtension,
            Reason::Revoked => Self::Revoked,
            Reason::NoRevocationList
            | Reason::RevocationListNotYetValid
            | Reason::RevocationListSignature
            | Reason::RevocationListExtension => Self::UnknownRevocationStatus,
            Reason::RevocationListExpired => Self::ExpiredRevocationList,
            Reason::OcspFailed | Reason::Rejected => Self::ApplicationVerificationFailure,
            _ => Self::UnknownIssuer,
        }
    }
}
