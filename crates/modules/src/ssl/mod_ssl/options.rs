//! `SSLOptions`.

use server::merge::Merge;

/// `SSLOptions`: a set of words, whose signs change the inherited set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    set: u8,
    added: u8,
    removed: u8,
    relative: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { set: 0, added: 0, removed: 0, relative: true }
    }
}

impl Options {
    /// Set the `SSL_…` variables in the environment.
    pub const STD_ENV_VARS: u8 = 1;
    /// Set those of the certificates as well.
    pub const EXPORT_CERT_DATA: u8 = 2;
    /// Use the certificate's subject as user name for Basic authentication.
    pub const FAKE_BASIC_AUTH: u8 = 4;
    /// `Satisfy Any` does not override `SSLRequire`.
    pub const STRICT_REQUIRE: u8 = 8;
    /// Renegotiate only if necessary. There is no renegotiation.
    pub const OPT_RENEGOTIATE: u8 = 16;
    /// Format names as OpenSSL's oneline form.
    pub const LEGACY_DN_STRING_FORMAT: u8 = 32;

    const WORDS: [(&'static str, u8); 6] = [
        ("StdEnvVars", Options::STD_ENV_VARS),
        ("ExportCertData", Options::EXPORT_CERT_DATA),
        ("FakeBasicAuth", Options::FAKE_BASIC_AUTH),
        ("StrictRequire", Options::STRICT_REQUIRE),
        ("OptRenegotiate", Options::OPT_RENEGOTIATE),
        ("LegacyDNStringFormat", Options::LEGACY_DN_STRING_FORMAT),
    ];

    /// Applies the words of a line. The error is the first unknown word.
    pub fn take<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> Result<(), &'a str> {
        let mut is_first = true;
        for word in words {
            let (sign, name) = match word.as_bytes().first() {
                Some(sign @ (b'+' | b'-')) => (Some(*sign), word.get(1..).unwrap_or_default()),
                _ => (None, word),
            };
            let known = Options::WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let (_, bit) = known.ok_or(name)?;
            if sign.is_none() && is_first {
                *self = Options { set: 0, added: 0, removed: 0, relative: false };
                is_first = false;
            }
            if sign == Some(b'-') {
                (self.set, self.added) = (self.set & !bit, self.added & !bit);
                self.removed |= bit;
            } else {
                (self.set, self.added) = (self.set | bit, self.added | bit);
                self.removed &= !bit;
            }
        }
        Ok(())
    }

    /// Whether an option is set.
    pub fn has(self, option: u8) -> bool {
        self.set & option != 0
    }
}

impl Merge for Options {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if !inner.relative {
            return *inner;
        }
        Options {
            set: outer.set & !inner.removed | inner.added,
            added: outer.added & !inner.removed | inner.added,
            removed: outer.removed & !inner.added | inner.removed,
            relative: outer.relative,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Options {
        let mut options = Options::default();
        options.take(words.split(' ')).unwrap();
        options
    }

    #[test]
    fn signs_change_what_is_inherited() {
        let merged =
            Options::merge(&options("+StdEnvVars +StrictRequire"), &options("-StdEnvVars"));
        assert!(!merged.has(Options::STD_ENV_VARS) && merged.has(Options::STRICT_REQUIRE));
        let merged = Options::merge(&options("+StdEnvVars"), &options("ExportCertData"));
        assert!(!merged.has(Options::STD_ENV_VARS) && merged.has(Options::EXPORT_CERT_DATA));
        let merged = Options::merge(&options("FakeBasicAuth"), &Options::default());
        assert!(merged.has(Options::FAKE_BASIC_AUTH));
        assert_eq!(Options::default().take(["+Nonsense"]), Err("Nonsense"));
    }
}
