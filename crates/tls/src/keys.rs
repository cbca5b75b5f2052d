//! Private keys: PKCS#8, PKCS#1 and SEC1, plain or encrypted.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslcertificatekeyfile>

use std::fmt;

use pkcs8::EncryptedPrivateKeyInfo;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use crate::legacy_key::{self, Failure};
use crate::passphrase::{Passphrases, Question, Unopened};
use crate::pem::{self, Block};

/// Why a private key can't be loaded.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The file has no private key.
    Missing,
    /// The format of the key or of its encryption is not supported.
    Unsupported(String),
    /// No pass phrase decrypted it.
    Locked,
    /// It needs a pass phrase, and none was given.
    Unanswered,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no private key in it"),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
            Self::Locked => write!(f, "Pass phrase incorrect"),
            Self::Unanswered => write!(
                f,
                "it needs a pass phrase, and there is no terminal to ask at: start the server at a \
                 terminal, or use SSLPassPhraseDialog exec:"
            ),
        }
    }
}

/// The first private key of a PEM (or DER) file, decrypted if necessary.
///
/// # Errors
/// See [`KeyError`].
pub fn load(
    text: &[u8],
    question: &Question<'_>,
    passphrases: &mut Passphrases<'_>,
) -> Result<PrivateKeyDer<'static>, KeyError> {
    if pem::is_der(text) {
        return of_der(text);
    }
    let block = pem::blocks(text)
        .into_iter()
        .find(|block| block.label.ends_with("PRIVATE KEY"))
        .ok_or(KeyError::Missing)?;
    if !is_encrypted(&block) {
        return plain(&block.label, block.der);
    }
    let file = crate::sessions::context(&[text]);
    if let Some(key) = passphrases.kept(&file) {
        return Ok(key);
    }
    // An unsupported format can't be decrypted by any pass phrase: don't ask for one.
    if decrypt(&block, b"") == Err(Failure::Unsupported) {
        return Err(KeyError::Unsupported("the encryption of the private key".into()));
    }
    let label = if block.label == "ENCRYPTED PRIVATE KEY" { "PRIVATE KEY" } else { &block.label };
    let der = passphrases.open(question, |passphrase| {
        let der = decrypt(&block, passphrase).ok()?;
        // A wrong pass phrase yields valid padding once in 256 times.
        starts_as_sequence(&der).then_some(der)
    });
    let der = der.map_err(|unopened| match unopened {
        Unopened::Wrong => KeyError::Locked,
        Unopened::Unanswered => KeyError::Unanswered,
    })?;
    let key = plain(label, der)?;
    passphrases.keep(file, &key);
    Ok(key)
}

/// Whether a file's private key needs a pass phrase.
pub fn needs_passphrase(text: &[u8]) -> bool {
    pem::blocks(text).iter().any(is_encrypted)
}

/// All keys of a PEM file that are not encrypted.
pub fn all_plain(text: &[u8]) -> Vec<PrivateKeyDer<'static>> {
    let blocks = pem::blocks(text).into_iter();
    let keys = blocks.filter(|block| block.label.ends_with("PRIVATE KEY") && !is_encrypted(block));
    keys.filter_map(|block| plain(&block.label, block.der).ok()).collect()
}

fn is_encrypted(block: &Block) -> bool {
    block.label == "ENCRYPTED PRIVATE KEY"
        || block.header("Proc-Type").is_some_and(|value| value.ends_with("ENCRYPTED"))
}

fn decrypt(block: &Block, passphrase: &[u8]) -> Result<Vec<u8>, Failure> {
    if block.label != "ENCRYPTED PRIVATE KEY" {
        let info = block.header("DEK-Info").ok_or(Failure::Unsupported)?;
        return legacy_key::dek_info(info, &block.der, passphrase);
    }
    let Ok(info) = EncryptedPrivateKeyInfo::try_from(block.der.as_slice()) else {
        return legacy_key::pbes1(&block.der, passphrase);
    };
    if info.encryption_algorithm.pbes2().is_none() {
        return legacy_key::pbes1(&block.der, passphrase);
    }
    match info.decrypt(passphrase) {
        Ok(document) => Ok(document.as_bytes().to_vec()),
        Err(_) => Err(Failure::WrongPassphrase),
    }
}

fn plain(label: &str, der: Vec<u8>) -> Result<PrivateKeyDer<'static>, KeyError> {
    Ok(match label {
        "PRIVATE KEY" => PrivatePkcs8KeyDer::from(der).into(),
        "RSA PRIVATE KEY" => PrivatePkcs1KeyDer::from(der).into(),
        "EC PRIVATE KEY" => PrivateSec1KeyDer::from(der).into(),
        _ => return Err(KeyError::Unsupported(format!("a key of the kind '{label}'"))),
    })
}

fn of_der(der: &[u8]) -> Result<PrivateKeyDer<'static>, KeyError> {
    PrivateKeyDer::try_from(der.to_vec())
        .map_err(|_| KeyError::Unsupported("this form of DER".into()))
}

fn starts_as_sequence(der: &[u8]) -> bool {
    der.first() == Some(&0x30)
}

#[cfg(test)]
mod tests;
