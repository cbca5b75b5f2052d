//! Maps in the database of mod_dbd: `dbd:` and `fastdbd:`.
//!
//! Source: `lookup_map_dbd`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use crate::database::mod_dbd::{self, Argument, Failure};
use crate::mappers::mod_rewrite::Rewrite;
use crate::random;

/// The most keys that `fastdbd:` remembers; beyond that all are forgotten.
const KEYS_MAX: usize = 16_384;
/// The most bytes of keys and values that it remembers.
const BYTES_MAX: usize = 4 << 20;

/// A map in a database.
#[derive(Debug)]
pub(crate) struct DatabaseMap {
    /// The label of the statement.
    label: String,
    /// `fastdbd:`: what was found, until the process ends. Loops share it.
    known: Option<Mutex<Known>>,
}

/// What was found for keys; `None` if nothing was.
#[derive(Debug, Default)]
struct Known {
    values: HashMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

/// The result of a look-up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The value, if there is one.
    pub value: Option<Vec<u8>>,
    /// Whether it was known before.
    pub is_known: bool,
    /// Whether it is one of several.
    pub is_chosen: bool,
    /// Whether the database could not be asked.
    has_failed: bool,
}

impl DatabaseMap {
    /// The map of a statement.
    pub fn new(label: String, is_fast: bool) -> DatabaseMap {
        DatabaseMap { label, known: is_fast.then(Mutex::default) }
    }

    /// Whether it is `fastdbd:`.
    pub fn is_fast(&self) -> bool {
        self.known.is_some()
    }

    /// Looks up a key. A failure, which is logged, counts as no value.
    pub async fn find(&self, request: &Request, key: &[u8]) -> Found {
        if let Some(known) = &self.known {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(value) = known.values.get(key) {
                return Found { value: value.clone(), is_known: true, ..Found::default() };
            }
        }
        let found = self.ask(request, key).await;
        // Unlike in Apache a failure is not remembered: it would last as long as the process.
        if let Some(known) = self.known.as_ref().filter(|_| !found.has_failed) {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.remember(key, found.value.as_deref());
        }
        found
    }

    async fn ask(&self, request: &Request, key: &[u8]) -> Found {
        let arguments = vec![Argument::Text(key.to_vec())];
        match mod_dbd::query(request, &self.label, arguments).await {
            Ok(outcome) => {
                let mut values: Vec<_> =
                    outcome.rows.into_iter().map(|row| row.into_iter().next().flatten()).collect();
                let is_chosen = values.len() > 1;
                let at = if is_chosen { random::below(values.len()) } else { 0 };
                let value = values.get_mut(at).and_then(Option::take);
                return Found { value, is_chosen, ..Found::default() };
            }
            Err(Failure::NoConnection | Failure::NoStatement) => {
                let text = "rewritemap: No db handle available! Check your database access";
                request.log::<Rewrite>(Level::Error, 2963, format_args!("{text}"));
            }
            Err(Failure::Query(why)) => {
                let key = Verbatim::new(key);
                let text = format_args!("rewritemap: error {why} querying for {key}");
                request.log::<Rewrite>(Level::Error, 657, text);
            }
        }
        Found { has_failed: true, ..Found::default() }
    }
}

impl Known {
    fn remember(&mut self, key: &[u8], value: Option<&[u8]>) {
        let size = key.len() + value.map_or(0, <[u8]>::len);
        if self.values.len() >= KEYS_MAX || self.bytes + size > BYTES_MAX {
            *self = Known::default();
        }
        if size <= BYTES_MAX {
            self.bytes += size;
            self.values.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = Known::default();
        for number in 0..3 * KEYS_MAX {
            known.remember(number.to_string().as_bytes(), Some(b"x"));
            assert!(known.values.len() <= KEYS_MAX);
        }
        known.remember(b"long", Some(&vec![0; BYTES_MAX + 1]));
        assert!(!known.values.contains_key(&b"long"[..]) && known.bytes <= BYTES_MAX);
        known.remember(b"none", None);
        assert_eq!(known.values.get(&b"none"[..]), Some(&None));
    }
}
