//! SSLProtocol: which protocol versions a host speaks.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslprotocol>, `ssl_cmd_protocol_parse`.

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

use crate::Finding;

const DIRECTIVE: &str = "SSLProtocol";

/// The versions that remain of an SSLProtocol line. Default: all, of which rustls speaks TLS 1.2
/// and 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// TLS 1.0 was not taken away. It is never spoken, but hosts that differ in it are different.
    pub tls10: bool,
    /// The same of TLS 1.1.
    pub tls11: bool,
    /// TLS 1.2 is spoken.
    pub tls12: bool,
    /// TLS 1.3 is spoken.
    pub tls13: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        ALL
    }
}

const ALL: Protocols = Protocols { tls10: true, tls11: true, tls12: true, tls13: true };
const NONE: Protocols = Protocols { tls10: false, tls11: false, tls12: false, tls13: false };

impl Protocols {
    /// Whether both speak the same versions.
    pub fn speaks_as(self, other: Self) -> bool {
        (self.tls12, self.tls13) == (other.tls12, other.tls13)
    }

    /// The versions as rustls wants them.
    pub fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        let mut versions = Vec::new();
        if self.tls13 {
            versions.push(&TLS13);
        }
        if self.tls12 {
            versions.push(&TLS12);
        }
        versions
    }
}

/// Reads the words of an SSLProtocol line. `all` means what rustls has, without a word; TLSv1
/// and TLSv1.1 that are asked for by name are reported.
///
/// # Errors
/// An unknown word, SSLv2 or SSLv3 (as Apache with Debian's OpenSSL), or a line of which nothing
/// remains.
pub fn parse<'a>(
    words: impl IntoIterator<Item = &'a str>,
) -> Result<(Protocols, Vec<Finding>), Finding> {
    let mut chosen = NONE;
    let mut findings = Vec::new();
    for written in words {
        let (sign, word) = split_sign(written);
        let set = set_of(word)
            .ok_or_else(|| Finding::error(DIRECTIVE, format!("Illegal protocol '{word}'")))?;
        if set == NONE {
            // OpenSSL does not have it, so that there is nothing to take away.
            match (sign, word.eq_ignore_ascii_case("SSLv2")) {
                (Some('-'), _) => continue,
                (_, true) => {
                    return Err(Finding::error(DIRECTIVE, "SSLv2 is no longer supported"));
                }
                (_, false) => {
                    let message = "SSLv3 not supported by this version of OpenSSL";
                    return Err(Finding::error(DIRECTIVE, message));
                }
            }
        }
        if set != ALL && (set.tls10 || set.tls11) && sign != Some('-') {
            findings.push(Finding::warning(
                DIRECTIVE,
                format!("{word} is not available: connections with it are refused"),
            ));
        }
        match sign {
            Some('-') => chosen.remove(set),
            Some(_) => chosen.add(set),
            None => {
                if chosen != NONE {
                    findings.push(overrides(word));
                }
                chosen = set;
            }
        }
    }
    if !chosen.tls12 && !chosen.tls13 {
        return Err(Finding::error(DIRECTIVE, "No SSL protocols available [hint: SSLProtocol]")
            .numbered(2231));
    }
    Ok((chosen, findings))
}

fn overrides(word: &str) -> Finding {
    let message = format!(
        "Protocol '{word}' overrides already set parameter(s). Check if a +/- prefix is missing."
    );
    Finding::warning(DIRECTIVE, message).numbered(2532)
}

impl Protocols {
    fn add(&mut self, other: Self) {
        self.tls10 |= other.tls10;
        self.tls11 |= other.tls11;
        self.tls12 |= other.tls12;
        self.tls13 |= other.tls13;
    }

    fn remove(&mut self, other: Self) {
        self.tls10 &= !other.tls10;
        self.tls11 &= !other.tls11;
        self.tls12 &= !other.tls12;
        self.tls13 &= !other.tls13;
    }
}

fn split_sign(word: &str) -> (Option<char>, &str) {
    match word.chars().next() {
        Some(sign @ ('+' | '-')) => (Some(sign), word.get(1..).unwrap_or_default()),
        _ => (None, word),
    }
}

/// The versions of a word: none for those that OpenSSL does not have either.
fn set_of(word: &str) -> Option<Protocols> {
    Some(match word.to_ascii_lowercase().as_str() {
        "sslv2" | "sslv3" => NONE,
        "tlsv1" => Protocols { tls10: true, ..NONE },
        "tlsv1.1" => Protocols { tls11: true, ..NONE },
        "tlsv1.2" => Protocols { tls12: true, ..NONE },
        "tlsv1.3" => Protocols { tls13: true, ..NONE },
        "all" => ALL,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Protocols, usize) {
        let (protocols, findings) = parse(line.split_whitespace()).unwrap();
        (protocols, findings.len())
    }

    #[test]
    fn all_is_quiet() {
        assert_eq!(read("all -SSLv3"), (Protocols::default(), 0));
        let (chosen, findings) = read("all -SSLv2 -SSLv3 -TLSv1 -TLSv1.1");
        assert!(chosen.speaks_as(ALL) && chosen != ALL && findings == 0);
        assert_eq!(read("-all +TLSv1.2 +TLSv1.3"), (chosen, 0));
    }

    #[test]
    fn named_legacy_is_reported() {
        assert_eq!(read("TLSv1.1 +TLSv1.2"), (Protocols { tls11: true, tls12: true, ..NONE }, 1));
    }

    #[test]
    fn a_bare_word_overrides() {
        assert_eq!(read("TLSv1.2 TLSv1.3"), (Protocols { tls13: true, ..NONE }, 1));
        assert_eq!(read("-all +tlsv1.3"), (Protocols { tls13: true, ..NONE }, 0));
    }

    #[test]
    fn nothing_left_is_an_error() {
        assert_eq!(parse(["TLSv1"]).unwrap_err().number, Some(2231));
        assert!(parse(["TLSv9"]).is_err());
        assert!(parse(["+SSLv2"]).is_err());
        assert!(parse(["all", "+SSLv3"]).is_err());
    }
}
