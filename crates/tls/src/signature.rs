//! Signatures over things that X.509 signs outside certificates: CRLs and OCSP responses.

use crate::der::{Reader, SEQUENCE};

/// `SEQUENCE { signed, AlgorithmIdentifier, BIT STRING }`, the shape of all that X.509 signs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    /// The element that is signed, with its tag.
    pub message: &'a [u8],
    /// The algorithm, without the outer tag, as rustls compares it.
    pub algorithm: &'a [u8],
    /// The signature's bits.
    pub signature: &'a [u8],
}

impl<'a> Signed<'a> {
    /// The three parts at the beginning of a SEQUENCE's content.
    pub fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(Self {
            message: reader.expect(SEQUENCE)?.raw,
            algorithm: reader.content(SEQUENCE)?,
            signature: reader.bits()?,
        })
    }

    /// The parts of a whole element, as a CRL.
    pub fn of_element(der: &'a [u8]) -> Option<Self> {
        Self::read(&mut Reader::new(der).enter(SEQUENCE)?)
    }

    /// Whether the key of a SubjectPublicKeyInfo made the signature.
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
