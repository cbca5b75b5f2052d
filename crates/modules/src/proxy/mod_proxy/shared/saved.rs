//! What BalancerPersist keeps of a balancer and of a member, as a line of words: numbers, and bytes
//! in hexadecimal digits.

use std::fmt::Write;
use std::time::Duration;

use super::balancer_state::{BalancerState, Changed};
use crate::proxy::mod_proxy::lbmethod::MethodProvider;

/// A balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedBalancer {
    pub name: Vec<u8>,
    method: Vec<u8>,
    changed: Changed,
    nonce: Vec<u8>,
    pub members: Vec<SavedMember>,
}

/// A member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedMember {
    pub name: Vec<u8>,
    /// By balancer-manager.
    pub is_added: bool,
    pub numbers: Vec<u64>,
    pub texts: Vec<Vec<u8>>,
}

impl BalancerState {
    pub(super) fn save(&self, name: &[u8], methods: &[(&str, MethodProvider)]) -> SavedBalancer {
        let changed = self.current();
        let method = methods.get(changed.method).map(|(name, _)| name.as_bytes().to_vec());
        SavedBalancer {
            name: name.to_vec(),
            method: method.unwrap_or_default(),
            changed,
            nonce: self.nonce(),
            members: Vec::new(),
        }
    }

    /// Sets it. A method that is not loaded any more is left to the configuration.
    pub(super) fn restore(&self, saved: &SavedBalancer, methods: &[(&str, MethodProvider)]) {
        let method = methods.iter().position(|(name, _)| name.as_bytes() == saved.method);
        let method = method.unwrap_or(self.current().method);
        self.change(&Changed { method, ..saved.changed.clone() });
        self.set_nonce(&saved.nonce);
    }
}

impl SavedBalancer {
    pub fn write(&self, out: &mut String) {
        out.push_str("balancer");
        let changed = &self.changed;
        write_word(out, &self.name);
        write_word(out, &self.method);
        let timeout_us = changed.timeout.map_or(0, |timeout| timeout.as_micros());
        let attempts = changed.max_attempts.map_or(0, |attempts| u64::from(attempts) + 1);
        let _ = write!(out, " {timeout_us} {attempts} {}", u8::from(changed.no_failover));
        let (cookie, path) = changed.sticky.clone().unwrap_or_default();
        write_word(out, &cookie);
        write_word(out, &path);
        write_word(out, &self.nonce);
        out.push('\n');
    }

    pub fn read(line: &mut Reader<'_>) -> Option<SavedBalancer> {
        let (name, method) = (line.bytes()?, line.bytes()?);
        let timeout = Some(Duration::from_micros(line.number()?));
        let max_attempts = u32::try_from(line.number()?).ok()?.checked_sub(1);
        let no_failover = line.number()? > 0;
        let (cookie, path) = (line.bytes()?, line.bytes()?);
        let changed = Changed {
            method: 0,
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
            max_attempts,
            no_failover,
            sticky: (!cookie.is_empty()).then_some((cookie, path)),
        };
        Some(SavedBalancer { name, method, changed, nonce: line.bytes()?, members: Vec::new() })
    }
}

impl SavedMember {
    pub fn write(&self, out: &mut String) {
        out.push_str("member");
        write_word(out, &self.name);
        let _ = write!(out, " {} {}", u8::from(self.is_added), self.numbers.len());
        for number in &self.numbers {
            let _ = write!(out, " {number}");
        }
        for text in &self.texts {
            write_word(out, text);
        }
        out.push('\n');
    }

    pub fn read(line: &mut Reader<'_>) -> Option<SavedMember> {
        let (name, is_added, count) = (line.bytes()?, line.number()? > 0, line.number()?);
        let numbers = (0..count).map(|_| line.number()).collect::<Option<_>>()?;
        let texts = std::iter::from_fn(|| line.bytes()).collect();
        Some(SavedMember { name, is_added, numbers, texts })
    }
}

/// Appends a word that stands for bytes.
pub(super) fn write_word(out: &mut String, bytes: &[u8]) {
    out.push(' ');
    if bytes.is_empty() {
        out.push('-');
    }
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

/// The words of a line.
pub(super) struct Reader<'t>(std::str::Split<'t, char>);

impl<'t> Reader<'t> {
    pub fn new(line: &'t str) -> Reader<'t> {
        Reader(line.split(' '))
    }

    pub fn word(&mut self) -> Option<&'t str> {
        self.0.next()
    }

    pub fn number(&mut self) -> Option<u64> {
        self.word()?.parse().ok()
    }

    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        let word = self.word()?;
        if word == "-" {
            return Some(Vec::new());
        }
        let (pairs, []) = word.as_bytes().as_chunks::<2>() else { return None };
        let digits = |pair: &[u8; 2]| {
            let digits = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        pairs.iter().map(digits).collect()
    }
}
