//! SSLPassPhraseDialog: where pass phrases come from, and the reuse of those already given.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslpassphrasedialog>,
//! `ssl_engine_pphrase.c`.

use std::collections::HashMap;
use std::fmt;

use rustls_pki_types::PrivateKeyDer;

mod source;

pub use source::{Dialog, DialogSource};

/// So often is a wrong answer followed by another question: Apache's BUILTIN_DIALOG_RETRIES.
pub const RETRIES: usize = 5;

/// Longer pass phrases are cut; OpenSSL's buffer is as long.
pub const MAX_PASSPHRASE: usize = 1024;

/// Whose pass phrase is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// `servername:port` of the virtual host.
    pub host_id: &'a str,
    /// Which of the host's certificates, from 0.
    pub index: usize,
    /// The key's file, as Apache shows it in the prompt.
    pub path: &'a [u8],
}

/// Gives pass phrases; asked again, with the number of tries left, when one was wrong.
pub trait PassphraseSource {
    /// The pass phrase, or `None` to give up. `retry` is set after a wrong answer.
    fn ask(&mut self, question: &Question<'_>, retry: Option<usize>) -> Option<Vec<u8>>;
}

/// Private keys that were decrypted, by the hash of the file they came from. The supervisor keeps
/// them from one reading of the configuration to the next, so that a restart asks nobody.
#[derive(Default)]
pub struct KeptKeys {
    keys: HashMap<[u8; 32], PrivateKeyDer<'static>>,
}

impl fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptKeys").field("count", &self.keys.len()).finish()
    }
}

/// The pass phrases known so far and the source of new ones. Those that opened a key are tried
/// first on the next, so one phrase for all keys is asked for once.
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
    /// Asks `source` for what is not known yet.
    pub fn new(source: &'a mut dyn PassphraseSource) -> Self {
        Self { known: Vec::new(), kept: KeptKeys::default(), source: Some(source) }
    }

    /// Asks nobody: encrypted keys stay locked.
    pub fn none() -> Self {
        Self { known: Vec::new(), kept: KeptKeys::default(), source: None }
    }

    /// The same, with the keys of the last time: for files that have not changed since, nobody is
    /// asked.
    pub fn with_kept(mut self, kept: KeptKeys) -> Self {
        self.kept = kept;
        self
    }

    /// The keys that were decrypted, for the next time.
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
    ) -> Option<T> {
        if let Some(opened) = self.known.iter().find_map(|known| attempt(known)) {
            return Some(opened);
        }
        let source = self.source.as_deref_mut()?;
        for tries in 0..=RETRIES {
            let retry = (tries > 0).then_some(RETRIES + 1 - tries);
            let phrase = source.ask(question, retry)?;
            if let Some(opened) = attempt(&phrase) {
                self.known.push(phrase);
                return Some(opened);
            }
        }
        None
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
        assert_eq!(phrases.open(&QUESTION, attempt), Some(1));
        assert_eq!(phrases.open(&QUESTION, attempt), Some(1));
        drop(phrases);
        assert_eq!(script.1, [None, Some(5)]);
    }

    #[test]
    fn tries_end() {
        let mut script = Script(vec!["wrong"; 10], vec![]);
        assert_eq!(Passphrases::new(&mut script).open(&QUESTION, |_| None::<()>), None);
        assert_eq!(script.1.len(), RETRIES + 1);
        assert_eq!(Passphrases::none().open(&QUESTION, |_| Some(())), None);
    }
}
