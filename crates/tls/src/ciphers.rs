//! SSLCipherSuite: OpenSSL's cipher strings over the suites that rustls has.
//! <https://docs.openssl.org/3.0/man1/openssl-ciphers/>, `ssl_create_cipher_list`.
//!
//! A class word (`HIGH`, `!aNULL`, `kRSA`) silently selects the matching suites of rustls. A suite
//! that is requested by name and does not exist is reported. Every suite of rustls is ephemeral and
//! uses authenticated encryption, so leaving one out never weakens anything.

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;

use crate::Finding;

mod suite;

pub use suite::{Suite, TLS12, TLS13, suite_of};

const DIRECTIVE: &str = "SSLCipherSuite";

/// OpenSSL's default, used without an SSLCipherSuite.
pub const DEFAULT: &str = "DEFAULT";

/// The part of TLS that an SSLCipherSuite line configures: `SSLCipherSuite [SSL|TLSv1.3] spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// TLS 1.2 and below: a cipher string.
    Tls12,
    /// TLS 1.3: a list of suite names.
    Tls13,
}

impl Target {
    /// Parses the optional first word of the directive.
    ///
    /// # Errors
    /// Any word other than `SSL` and `TLSv1.3`, as in Apache.
    pub fn parse(word: &str) -> Result<Self, Finding> {
        match word {
            "SSL" => Ok(Self::Tls12),
            "TLSv1.3" => Ok(Self::Tls13),
            _ => Err(Finding::error(DIRECTIVE, format!("protocol '{word}' not supported"))),
        }
    }
}

/// The suites of a cipher string, in order of preference.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// In the server's order of preference.
    pub suites: Vec<SupportedCipherSuite>,
    /// Unavailable suites, and words without a meaning.
    pub findings: Vec<Finding>,
}

/// The cipher suites that a configuration asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Whether TLS 1.2 is spoken.
    pub tls12: bool,
    /// The cipher string for TLS 1.2. Default: [`DEFAULT`].
    pub suites: Option<&'a str>,
    /// The list for TLS 1.3. Default: OpenSSL's order.
    pub suites_tls13: Option<&'a str>,
}

impl Wanted<'_> {
    /// The provider with these suites alone. Unusable words, and lists of which nothing is left,
    /// are appended to `findings`.
    pub fn provider(self, findings: &mut Vec<Finding>) -> CryptoProvider {
        let mut suites = match self.suites_tls13.map(tls13) {
            Some(Ok(choice)) => {
                findings.extend(choice.findings);
                choice.suites
            }
            Some(Err(finding)) => {
                findings.push(finding);
                Vec::new()
            }
            None => tls13_default(),
        };
        let spec = self.suites.unwrap_or(DEFAULT);
        let choice = tls12(spec);
        findings.extend(choice.findings);
        if self.tls12 && choice.suites.is_empty() {
            findings.push(nothing_left(spec));
        }
        suites.extend(choice.suites);
        CryptoProvider { cipher_suites: suites, ..crate::provider() }
    }
}

/// Evaluates a cipher string for TLS 1.2. As in mod_ssl, anonymous, unencrypted and export suites
/// are always excluded. An empty list is an error only if TLS 1.2 is enabled, which the caller
/// decides.
pub fn tls12(spec: &str) -> Choice {
    let mut list = List::new();
    let mut findings = Vec::new();
    let rest = list.opening_rule(spec);
    for written in rest.split([':', ' ', ';', ',']).filter(|rule| !rule.is_empty()) {
        list.apply(written, &mut findings);
    }
    Choice { suites: list.active(), findings }
}

/// Evaluates the list of an `SSLCipherSuite TLSv1.3` line: suite names separated by colons.
///
/// # Errors
/// None of the names is a suite of rustls: as in OpenSSL, the list is then invalid.
pub fn tls13(spec: &str) -> Result<Choice, Finding> {
    let mut choice = Choice::default();
    for name in spec.split(':').map(str::trim).filter(|name| !name.is_empty()) {
        match TLS13.iter().find(|suite| suite.name == name) {
            Some(suite) if choice.suites.contains(&suite.suite) => {}
            Some(suite) => choice.suites.push(suite.suite),
            None => choice.findings.push(unavailable(name)),
        }
    }
    if choice.suites.is_empty() {
        let message = format!(
            "Unable to configure permitted TLSv1.3 ciphers: nothing of '{spec}' is available"
        );
        return Err(Finding::error(DIRECTIVE, message).numbered(10127));
    }
    Ok(choice)
}

/// OpenSSL's preference among the TLS 1.3 suites, used if no line names any.
pub fn tls13_default() -> Vec<SupportedCipherSuite> {
    TLS13.iter().map(|suite| suite.suite).collect()
}

/// The finding for a cipher string that selects nothing.
pub fn nothing_left(spec: &str) -> Finding {
    let message =
        format!("Unable to configure permitted SSL ciphers: nothing of '{spec}' is available");
    Finding::error(DIRECTIVE, message).numbered(1898)
}

fn unavailable(name: &str) -> Finding {
    Finding::warning(DIRECTIVE, format!("cipher suite {name} is not available and is left out"))
}

/// OpenSSL's working list: suites in order, each either in use or waiting to be added.
struct List {
    entries: Vec<Entry>,
}

struct Entry {
    suite: &'static Suite,
    active: bool,
}

impl List {
    fn new() -> Self {
        Self { entries: TLS12.iter().map(|suite| Entry { suite, active: false }).collect() }
    }

    /// `DEFAULT`, `SUITEB…` and `PROFILE=` are recognised at the beginning of the string only.
    fn opening_rule<'a>(&mut self, spec: &'a str) -> &'a str {
        let spec = spec.trim_start();
        for (word, names) in SUITE_B {
            if let Some(rest) = spec.strip_prefix(word) {
                for name in *names {
                    self.add(|suite| suite.name == *name);
                }
                return rest.trim_start_matches(|c| !":; ,".contains(c));
            }
        }
        let length = spec.find([':', ' ', ';', ',']).unwrap_or(spec.len());
        let (first, rest) = spec.split_at(length);
        if first == DEFAULT || first == "PROFILE=SYSTEM" {
            self.add(|_| true);
            return rest;
        }
        spec
    }

    fn apply(&mut self, rule: &str, findings: &mut Vec<Finding>) {
        if let Some(command) = rule.strip_prefix('@') {
            return self.command(command, findings);
        }
        let (operator, words) = match rule.as_bytes().first() {
            Some(b'!' | b'+' | b'-') => rule.split_at(1),
            _ => ("", rule),
        };
        let mut selectors = Vec::new();
        for word in words.split('+') {
            match Selector::parse(word) {
                Some(selector) => selectors.push(selector),
                None => {
                    if operator.is_empty() {
                        findings.push(unavailable(word));
                    }
                    return;
                }
            }
        }
        let matches = |suite: &Suite| selectors.iter().all(|selector| selector.matches(suite));
        match operator {
            "!" => self.entries.retain(|entry| !matches(entry.suite)),
            "-" => self.deactivate(matches),
            "+" => self.move_active_last(matches),
            _ => self.add(matches),
        }
    }

    fn command(&mut self, command: &str, findings: &mut Vec<Finding>) {
        match (command, command.strip_prefix("SECLEVEL=").map(str::parse::<u8>)) {
            ("STRENGTH", _) => {
                self.entries.sort_by_key(|entry| std::cmp::Reverse(entry.suite.bits));
            }
            (_, Some(Ok(level @ 0..=5))) => self.security_level(level, findings),
            _ => findings.push(Finding::error(DIRECTIVE, format!("unknown command '@{command}'"))),
        }
    }

    /// Levels 0 to 2 are weaker than what rustls requires anyway; from 3 on they also limit keys,
    /// which are not checked here.
    fn security_level(&mut self, level: u8, findings: &mut Vec<Finding>) {
        let bits = match level {
            0..=3 => 128,
            4 => 192,
            _ => 256,
        };
        self.entries.retain(|entry| entry.suite.bits >= bits);
        if level >= 3 {
            findings.push(Finding::warning(
                DIRECTIVE,
                format!(
                    "@SECLEVEL={level} limits the cipher suites only, \
                     not the sizes of keys in certificates"
                ),
            ));
        }
    }

    fn add(&mut self, matches: impl Fn(&Suite) -> bool) {
        let (mut chosen, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| !entry.active && matches(entry.suite));
        chosen.iter_mut().for_each(|entry| entry.active = true);
        self.entries = others;
        self.entries.append(&mut chosen);
    }

    fn deactivate(&mut self, matches: impl Fn(&Suite) -> bool) {
        let (mut chosen, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| entry.active && matches(entry.suite));
        chosen.iter_mut().for_each(|entry| entry.active = false);
        chosen.append(&mut others);
        self.entries = chosen;
    }

    fn move_active_last(&mut self, matches: impl Fn(&Suite) -> bool) {
        let (mut chosen, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| entry.active && matches(entry.suite));
        others.append(&mut chosen);
        self.entries = others;
    }

    fn active(&self) -> Vec<SupportedCipherSuite> {
        self.entries.iter().filter(|entry| entry.active).map(|entry| entry.suite.suite).collect()
    }
}

/// One word of a rule.
enum Selector {
    Named(&'static str),
    Class(fn(&Suite) -> bool),
}

impl Selector {
    fn parse(word: &str) -> Option<Self> {
        if let Some(suite) = TLS12.iter().find(|suite| suite.name == word || suite.iana == word) {
            return Some(Self::Named(suite.name));
        }
        class(word).map(Self::Class)
    }

    fn matches(&self, suite: &Suite) -> bool {
        match self {
            Self::Named(name) => suite.name == *name,
            Self::Class(class) => class(suite),
        }
    }
}

/// The suites of rustls in a class. Classes that rustls has no suite for select nothing.
fn class(word: &str) -> Option<fn(&Suite) -> bool> {
    Some(match word {
        "ALL" | "DEFAULT" | "HIGH" | "TLSv1.2" | "ECDHE" | "EECDH" | "kECDHE" | "kEECDH"
        | "ECDH" => |_| true,
        "aRSA" => |suite| !suite.ecdsa,
        "ECDSA" | "aECDSA" => |suite| suite.ecdsa,
        "AES" | "AESGCM" | "FIPS" => |suite| suite.is_aes(),
        "AES128" => |suite| suite.is_aes() && suite.bits == 128,
        "AES256" => |suite| suite.is_aes() && suite.bits == 256,
        "CHACHA20" => |suite| !suite.is_aes(),
        _ if ABSENT_CLASSES.contains(&word) => |_| false,
        _ => return None,
    })
}

/// Classes of OpenSSL 3.0 for which rustls has no suite.
const ABSENT_CLASSES: &[&str] = &[
    "3DES",
    "ADH",
    "AECDH",
    "AESCCM",
    "AESCCM8",
    "ARIA",
    "ARIA128",
    "ARIA256",
    "ARIAGCM",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "CBC",
    "COMPLEMENTOFALL",
    "COMPLEMENTOFDEFAULT",
    "DES",
    "DH",
    "DHE",
    "DSS",
    "EDH",
    "EXP",
    "EXP40",
    "EXP56",
    "EXPORT",
    "EXPORT40",
    "EXPORT56",
    "GOST",
    "GOST2012",
    "GOST89",
    "GOST89MAC",
    "GOST94",
    "IDEA",
    "LOW",
    "MD5",
    "MEDIUM",
    "NULL",
    "PSK",
    "RC2",
    "RC4",
    "RSA",
    "SEED",
    "SHA",
    "SHA1",
    "SHA256",
    "SHA384",
    "SRP",
    "SSLv2",
    "SSLv3",
    "TLSv1",
    "TLSv1.0",
    "aDH",
    "aDSS",
    "aECDH",
    "aGOST",
    "aGOST01",
    "aGOST12",
    "aNULL",
    "aPSK",
    "aSRP",
    "eNULL",
    "kDH",
    "kDHE",
    "kDHEPSK",
    "kDHd",
    "kDHr",
    "kECDH",
    "kECDHEPSK",
    "kECDHe",
    "kECDHr",
    "kEDH",
    "kGOST",
    "kGOST18",
    "kPSK",
    "kRSA",
    "kRSAPSK",
    "kSRP",
];

/// The Suite B words; a word precedes its prefixes.
const SUITE_B: &[(&str, &[&str])] = &[
    ("SUITEB128ONLY", &["ECDHE-ECDSA-AES128-GCM-SHA256"]),
    ("SUITEB128", &["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]),
    ("SUITEB192", &["ECDHE-ECDSA-AES256-GCM-SHA384"]),
];

#[cfg(test)]
mod tests;
