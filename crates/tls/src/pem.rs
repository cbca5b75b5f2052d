//! Splits PEM files into their blocks, headers included: the headers describe the encryption of
//! OpenSSL's old encrypted keys (RFC 1421 section 4.6), for which the newer RFC 7468 has no place.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rustls_pki_types::CertificateDer;

/// Blocks per PEM file; any further ones are ignored.
pub const MAX_BLOCKS: usize = 4096;

/// One `-----BEGIN label-----` block.
#[derive(Clone, PartialEq, Eq)]
pub struct Block {
    /// `CERTIFICATE`, `RSA PRIVATE KEY`, …
    pub label: String,
    /// `Proc-Type` and `DEK-Info`, in order.
    pub headers: Vec<(String, String)>,
    /// The decoded body.
    pub der: Vec<u8>,
}

impl Block {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The block as a certificate, if it is one.
    pub fn into_certificate(self) -> Option<CertificateDer<'static>> {
        let is_one = matches!(
            self.label.as_str(),
            "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE"
        );
        is_one.then(|| CertificateDer::from(self.der))
    }
}

/// All blocks of a file. Skips text between them, and blocks that are truncated or not base64.
pub fn blocks(text: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).map(trim);
    while let Some(line) = lines.next() {
        let Some(label) = marker(line, b"-----BEGIN ") else { continue };
        if let Some(block) = block(label, &mut lines) {
            blocks.push(block);
        }
        if blocks.len() >= MAX_BLOCKS {
            break;
        }
    }
    blocks
}

/// Whether each block that begins ends, and is base64.
pub fn is_whole(text: &[u8]) -> bool {
    let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).map(trim);
    let begun = lines.filter(|line| marker(line, b"-----BEGIN ").is_some()).count();
    begun.min(MAX_BLOCKS) == blocks(text).len()
}

/// The certificates of a file: its PEM blocks, or the whole file if it is DER.
pub fn certificates(text: &[u8]) -> Vec<CertificateDer<'static>> {
    if is_der(text) {
        return vec![CertificateDer::from(text.to_vec())];
    }
    blocks(text).into_iter().filter_map(Block::into_certificate).collect()
}

/// Whether a file is DER instead of PEM: it begins with a SEQUENCE of a long length.
pub fn is_der(text: &[u8]) -> bool {
    matches!(text, [0x30, 0x81..=0x84, ..])
}

/// Encodes DER as a PEM block, 64 characters per line, as `PEM_write_bio` does.
pub fn encode(label: &str, der: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

fn block<'a>(label: String, lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<Block> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut body = Vec::new();
    loop {
        let line = lines.next()?;
        if let Some(end) = marker(line, b"-----END ") {
            if end != label {
                return None;
            }
            break;
        }
        match std::str::from_utf8(line).ok().and_then(|line| line.split_once(':')) {
            Some((name, value)) => headers.push((name.trim().into(), value.trim().into())),
            None => body.extend_from_slice(line),
        }
    }
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let mut der = GeneralPurpose::new(&STANDARD, lenient).decode(&body).ok()?;
    if label == "TRUSTED CERTIFICATE" {
        der = first_element(&der)?.to_vec();
    }
    Some(Block { label, headers, der })
}

/// In OpenSSL's trusted certificates, trust settings follow the certificate.
fn first_element(der: &[u8]) -> Option<&[u8]> {
    let (rest, _) = x509_parser::parse_x509_certificate(der).ok()?;
    der.get(..der.len() - rest.len())
}

fn marker(line: &[u8], begin: &[u8]) -> Option<String> {
    let label = line.strip_prefix(begin)?.strip_suffix(b"-----")?;
    String::from_utf8(label.to_vec()).ok()
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_and_text_between() {
        let text =
            b"Bag Attributes: x\n-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\n\
            DEK-Info: AES-128-CBC,00\r\n\r\nAAEC\r\n-----END RSA PRIVATE KEY-----\nfoo\n\
            -----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----";
        let blocks = blocks(text);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].header("DEK-Info"), Some("AES-128-CBC,00"));
        assert_eq!(blocks[0].der, [0, 1, 2]);
        assert_eq!(blocks[1].der, [0x30, 0]);
    }

    #[test]
    fn a_broken_block_is_not_one() {
        assert!(blocks(b"-----BEGIN CERTIFICATE-----\nMAA=\n").is_empty());
        assert!(blocks(b"-----BEGIN A-----\nMAA=\n-----END B-----\n").is_empty());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(der in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = encode("CERTIFICATE", &der);
            prop_assert!(text.lines().all(|line| line.len() <= 64));
            prop_assert_eq!(&blocks(text.as_bytes())[0].der, &der);
        }

        #[test]
        fn any_bytes_are_survived(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = blocks(&text);
        }
    }
}
