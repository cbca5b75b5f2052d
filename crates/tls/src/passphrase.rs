//! SSLPassPhraseDialog: the sources of pass phrases, and the reuse of known ones.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslpassphrasedialog>,
//! `ssl_engine_pphrase.c`.

use std::collections::HashMap;
use std::fmt;

use rustls_pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

mod source;

pub use source::{Dialog, DialogSource};

/// How often a wrong pass phrase is asked for again: Apache's BUILTIN_DIALOG_RETRIES.
pub const RETRIES: usize = 5;

/// Longer pass phrases are truncated; OpenSSL's buffer is as long.
pub const MAX_PASSPHRASE: usize = 1024;

/// The key whose pass phrase is requested.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// `servername:port` of the virtual host.
    pub host_id: &'a str,
    /// The index of the host's certificate.
    pub index: usize,
    /// The key's file, as Apache shows it in the prompt.
    pub path: &'a [u8],
}

/// A source of pass phrases; asked again, with the remaining tries, after a wrong one.
pub trait PassphraseSource {
    /// The pass phrase, or `None` to give up. `retry` is set after a wrong one.
    fn ask(&mut self, question: &Question<'_>, retry: Option<usize>) -> Option<Vec<u8>>;
}

/// Why no pass phrase worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// The given ones were wrong.
    Wrong,
    /// None was given.
    Unanswered,
}

/// Decrypted private keys, by the hash of their file. The supervisor keeps them across readings of
/// the configuration, so that a restart does not ask again.
#[derive(Default)]
pub struct KeptKeys {
    keys: HashMap<[u8; 32], PrivateKeyDer<'static>>,
}

impl KeptKeys {
    /// All keys, serialised for a successor: for each the hash of its file, its format, its length,
    /// and the key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sizes = self.keys.values().map(|key| HEAD_BYTES + key.secret_der().len());
        // Not reallocated while it is filled, so that no copy of the keys is left behind.
        let mut bytes = Vec::with_capacity(sizes.sum());
        for (file, key) in &self.keys {
            let form = match key {
                PrivateKeyDer::Pkcs1(_) => PKCS1,
                PrivateKeyDer::Sec1(_) => SEC1,
                _ => PKCS8,
            };
            let der = key.secret_der();
            let Ok(length) = u32::try_from(der.len()) else { continue };
            bytes.extend_from_slice(file);
            bytes.push(form);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(der);
        }
        bytes
    }

    /// The keys of [`to_bytes`](Self::to_bytes), up to the first invalid one.
    pub fn from_bytes(mut bytes: &[u8]) -> Self {
        let mut keys = HashMap::new();
        while let Some((file, key, rest)) = take_key(bytes) {
            keys.insert(file, key);
            bytes = rest;
        }
        Self { keys }
    }
}

/// Bytes before each key of [`KeptKeys::to_bytes`].
const HEAD_BYTES: usize = 32 + 1 + 4;
/// Its format.
const PKCS1: u8 = 1;
const SEC1: u8 = 2;
const PKCS8: u8 = 8;

fn take_key(bytes: &[u8]) -> Option<([u8; 32], PrivateKeyDer<'static>, &[u8])> {
    let (file, rest) = bytes.split_first_chunk::<32>()?;
    let (form, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (der, rest) = rest.split_at_checked(u32::from_be_bytes(*length).try_into().ok()?)?;
    let der = der.to_vec();
    let key = match *form {
        PKCS1 => PrivatePkcs1KeyDer::from(der).into(),
        SEC1 => PrivateSec1KeyDer::from(der).into(),
        PKCS8 => PrivatePkcs8KeyDer::from(der).into(),
        _ => return None,
    };
    Some((*file, key, rest))
}

impl fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptKeys").field("count", &self.keys.len()).finish()
    }
}

/// The known pass phrases, and the source of new ones. Phrases that decrypted a key are tried first
/// on the next, so a phrase common to all keys is asked for once.
pub struct Passphrases<'a> {
    known: Vec<Vec<u8>>,
    kept: KeptKeys,
    source: Option<&'a mut dyn PassphraseSource>,
}

impl fmt::Debug for Passphrases<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passphrases").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl<'a> Passphrases<'a> {
    /// Asks `source` for unknown pass phrases.
    pub fn new(source: &'a mut dyn PassphraseSource) -> Self {
        Self { known: Vec::new(), kept: KeptKeys::default(), source: Some(source) }
    }

    /// Never asks: encrypted keys stay locked.
    pub fn none() -> Self {
        Self { known: Vec::new(), kept: KeptKeys::default(), source: None }
    }

    /// Adds the keys kept from the last reading: files that have not changed since need no pass
    /// phrase.
    pub fn with_kept(mut self, kept: KeptKeys) -> Self {
        self.kept = kept;
        self
    }

    /// The decrypted keys, for the next reading.
    pub fn into_kept(mut self) -> KeptKeys {
        std::mem::take(&mut self.kept)
    }

    pub(crate) fn kept(&self, file: &[u8; 32]) -> Option<PrivateKeyDer<'static>> {
        self.kept.keys.get(file).map(PrivateKeyDer::clone_key)
    }

    pub(crate) fn keep(&mut self, file: [u8; 32], key: &PrivateKeyDer<'static>) {
        self.kept.keys.insert(file, key.clone_key());
    }

    /// Tries the known pass phrases, then asks, until `attempt` succeeds.
    pub(crate) fn open<T>(
        &mut self,
        question: &Question<'_>,
        mut attempt: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<T, Unopened> {
        if let Some(opened) = self.known.iter().find_map(|known| attempt(known)) {
            return Ok(opened);
        }
        let Some(source) = self.source.as_deref_mut() else { return Err(Unopened::Unanswered) };
        for tries in 0..=RETRIES {
            let retry = (tries > 0).then_some(RETRIES + 1 - tries);
            let Some(phrase) = source.ask(question, retry) else {
                return Err(if tries == 0 { Unopened::Unanswered } else { Unopened::Wrong });
            };
            if let Some(opened) = attempt(&phrase) {
                self.known.push(phrase);
                return Ok(opened);
            }
        }
        Err(Unopened::Wrong)
    }
}

impl Drop for Passphrases<'_> {
    fn drop(&mut self) {
        for phrase in &mut self.known {
            phrase.fill(0);
            std::hint::black_box(phrase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Script(Vec<&'static str>, Vec<Option<usize>>);

    impl PassphraseSource for Script {
        fn ask(&mut self, _: &Question<'_>, retry: Option<usize>) -> Option<Vec<u8>> {
            self.1.push(retry);
            (!self.0.is_empty()).then(|| self.0.remove(0).into())
        }
    }

    const QUESTION: Question<'_> = Question { host_id: "h:443", index: 0, path: b"k.pem" };

    #[test]
    fn a_known_phrase_is_reused() {
        let mut script = Script(vec!["wrong", "right"], vec![]);
        let mut phrases = Passphrases::new(&mut script);
        let attempt = |phrase: &[u8]| (phrase == b"right").then_some(1);
        assert_eq!(phrases.open(&QUESTION, attempt), Ok(1));
        assert_eq!(phrases.open(&QUESTION, attempt), Ok(1));
        drop(phrases);
        assert_eq!(script.1, [None, Some(5)]);
    }

    #[test]
    fn tries_end() {
        let mut script = Script(vec!["wrong"; 10], vec![]);
        let opened = Passphrases::new(&mut script).open(&QUESTION, |_| None::<()>);
        assert_eq!(opened, Err(Unopened::Wrong));
        assert_eq!(script.1.len(), RETRIES + 1);
        let opened = Passphrases::none().open(&QUESTION, |_| Some(()));
        assert_eq!(opened, Err(Unopened::Unanswered));
    }

    #[test]
    fn kept_keys_go_to_another_program() {
        let keys: [([u8; 32], PrivateKeyDer<'static>); 3] = [
            ([1; 32], PrivatePkcs1KeyDer::from(vec![0x30, 1]).into()),
            ([2; 32], PrivateSec1KeyDer::from(vec![0x30; 300]).into()),
            ([3; 32], PrivatePkcs8KeyDer::from(Vec::new()).into()),
        ];
        let mut passphrases = Passphrases::none();
        keys.iter().for_each(|(file, key)| passphrases.keep(*file, key));
        let bytes = passphrases.into_kept().to_bytes();
        assert_eq!(bytes.len(), bytes.capacity());
        let there = Passphrases::none().with_kept(KeptKeys::from_bytes(&bytes));
        for (file, key) in &keys {
            assert_eq!(there.kept(file).as_ref(), Some(key));
        }
        // Invalid input yields no key, and no panic.
        for end in 0..bytes.len() {
            assert!(KeptKeys::from_bytes(&bytes[..end]).keys.len() < 3);
        }
        assert!(KeptKeys::from_bytes(&[0xff; 400]).keys.is_empty());
    }
}
