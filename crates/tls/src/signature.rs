//! X.509 signatures outside certificates: on CRLs and OCSP responses.

use crate::der::{Reader, SEQUENCE};

/// `SEQUENCE { signed, AlgorithmIdentifier, BIT STRING }`, the structure of everything that X.509
/// signs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    /// The signed element, with its tag.
    pub message: &'a [u8],
    /// The algorithm without its outer tag, as rustls compares it.
    pub algorithm: &'a [u8],
    /// The signature's bits.
    pub signature: &'a [u8],
}

impl<'a> Signed<'a> {
    /// Reads the three parts at the beginning of a SEQUENCE's content.
    pub fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(Self {
            message: reader.expect(SEQUENCE)?.raw,
            algorithm: reader.content(SEQUENCE)?,
            signature: reader.bits()?,
        })
    }

    /// Reads the parts of a whole element, such as a CRL.
    pub fn of_element(der: &'a [u8]) -> Option<Self> {
        Self::read(&mut Reader::new(der).enter(SEQUENCE)?)
    }

    /// Whether the signature was made by the key of a SubjectPublicKeyInfo.
    pub fn is_by(&self, public_key_info: &[u8]) -> bool {
        let parts = || {
            let mut info = Reader::new(public_key_info).enter(SEQUENCE)?;
            Some((info.content(SEQUENCE)?, info.bits()?))
        };
        let Some((key_algorithm, key)) = parts() else { return false };
        crate::provider().signature_verification_algorithms.all.iter().any(|algorithm| {
            algorithm.signature_alg_id().as_ref() == self.algorithm
                && algorithm.public_key_alg_id().as_ref() == key_algorithm
                && algorithm.verify_signature(key, self.message, self.signature).is_ok()
        })
    }
}
