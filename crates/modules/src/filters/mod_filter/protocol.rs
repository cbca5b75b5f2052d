//! `FilterProtocol`: how a filter affects the message around the content.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The filter changes the content: validators become invalid.
pub(super) const CHANGE: u8 = 1;
/// The filter changes the length as well.
pub(super) const CHANGE_LENGTH: u8 = 2;
/// Ranges can't be served.
pub(super) const NO_BYTERANGE: u8 = 4;
/// The filter does not run in a proxy.
pub(super) const NO_PROXY: u8 = 8;
/// The response must not be cached.
pub(super) const NO_CACHE: u8 = 16;
/// The filter does not run if a proxied response has `no-transform`.
pub(super) const TRANSFORM: u8 = 32;

/// Parses the directive's flags.
pub(super) fn parse(text: &[u8]) -> u8 {
    let words = text.split(|byte| matches!(byte, b';' | b',' | b' ' | b'\t'));
    words.fold(0, |flags, word| match word.to_ascii_lowercase().as_slice() {
        b"change=yes" => flags | CHANGE | CHANGE_LENGTH,
        b"change=no" => flags & !(CHANGE | CHANGE_LENGTH),
        b"change=1:1" => flags | CHANGE,
        b"byteranges=no" => flags | NO_BYTERANGE,
        b"proxy=no" => flags | NO_PROXY,
        b"proxy=transform" => flags | TRANSFORM,
        b"cache=no" => flags | NO_CACHE,
        _ => flags,
    })
}

/// The flags of providers. They belong to the filter itself: as in Apache, setting them in one
/// section affects all.
#[derive(Default)]
pub(super) struct Protocols(Mutex<BTreeMap<String, Arc<AtomicU8>>>);

impl Protocols {
    /// The cell of a filter's flags.
    pub(super) fn of(&self, filter: &str) -> Arc<AtomicU8> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = filter.to_ascii_lowercase();
        let flags = registered(&name);
        cells.entry(name).or_insert_with(|| Arc::new(AtomicU8::new(flags))).clone()
    }
}

/// The flags that a filter has without the directive (`ap_register_output_filter_protocol`).
fn registered(filter: &str) -> u8 {
    match filter {
        "xml2enc" | "proxy-html" => CHANGE | CHANGE_LENGTH,
        _ => 0,
    }
}

/// Sets a cell.
pub(super) fn set(cell: &AtomicU8, flags: u8) {
    cell.store(flags, Ordering::Relaxed);
}

/// Reads a cell.
pub(super) fn get(cell: &AtomicU8) -> u8 {
    cell.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_flags_and_no_takes_back() {
        let all = CHANGE | CHANGE_LENGTH | NO_BYTERANGE | NO_CACHE;
        assert_eq!(parse(b"change=yes,byteranges=no;CACHE=no"), all);
        assert_eq!(parse(b"change=yes change=no"), 0);
        assert_eq!(parse(b"change=1:1, proxy=no foo"), CHANGE | NO_PROXY);
    }
}
