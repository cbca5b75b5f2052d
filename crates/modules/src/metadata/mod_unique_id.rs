//! mod_unique_id: the variable `UNIQUE_ID`, which is different for every request.
//!
//! The variable alone does not prevent caching: only a use of a variable makes the response
//! uncacheable.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_unique_id.html>

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

use server::hooks::{Bound, Hooks, Phase, Rank, Step, always};
use server::module::Module;
use server::request::{Request, UNIQUE_ID};

/// `mod_unique_id.c`
pub struct UniqueId;

impl Module for UniqueId {
    const NAME: &'static str = "unique_id_module";
    const FILE: &'static str = "mod_unique_id.c";
    type Server = ();
    type Dir = ();
    const ACTS_UNASKED: bool = true;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::PostReadRequest, Rank::MIDDLE, always, set);
        hooks.log_id(log_id);
    }
}

/// Source: `set_unique_id`
fn set<'r>(_: Bound<'r, UniqueId>, request: &'r mut Request) -> Step<'r> {
    let redirected = request.prev.as_ref().and_then(|prev| prev.env.get(UNIQUE_ID));
    let id = match redirected.or_else(|| request.log_id()) {
        Some(id) => id.to_vec(),
        None => fresh(request),
    };
    request.env.set(UNIQUE_ID, &id);
    Step::DECLINED
}

/// Source: `generate_log_id`
fn log_id(request: &Request) -> Vec<u8> {
    request.env.get(UNIQUE_ID).map_or_else(|| fresh(request), <[u8]>::to_vec)
}

/// The time in seconds, ten random bytes of the thread, a counter, and the thread.
///
/// Source: `gen_unique_id`
fn fresh(request: &Request) -> Vec<u8> {
    thread_local! {
        static ROOT: [u8; 16] = random();
        static COUNTER: Cell<u16> = const { Cell::new(0) };
    }
    let seconds = u32::try_from(request.time_us / 1_000_000 % (1 << 32)).unwrap_or(0);
    let counter = COUNTER.get();
    COUNTER.set(counter.wrapping_add(1));
    let root = ROOT.with(|root| *root);
    let (root, thread) = root.split_at(10);
    let thread = thread.get(..4).unwrap_or_default();
    let parts = [&seconds.to_be_bytes()[..], root, &counter.to_be_bytes(), thread];
    encoded(&parts.concat())
}

/// Random bytes.
pub(crate) fn random() -> [u8; 16] {
    let part = |seed: u64| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(seed);
        u128::from(hasher.finish())
    };
    (part(1) << 64 | part(2)).to_be_bytes()
}

/// Six bits per letter, without padding.
fn encoded(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@-";
    let mut out = Vec::with_capacity((bytes.len() * 8).div_ceil(6));
    for part in bytes.chunks(3) {
        let bits = part
            .iter()
            .enumerate()
            .fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for letter in 0..=part.len() {
            let index = usize::try_from(bits >> (18 - 6 * letter) & 63).unwrap_or(0);
            out.push(LETTERS.get(index).copied().unwrap_or(b'A'));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn twenty_bytes_are_27_letters() {
        assert_eq!(encoded(&[0; 20]), [b'A'; 27]);
        assert_eq!(encoded(b"Man"), b"TWFu");
        assert_eq!(encoded(&[0xff, 0xff]), b"--8");
    }
}
