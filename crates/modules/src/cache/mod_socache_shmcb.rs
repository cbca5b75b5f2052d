//! mod_socache_shmcb: small objects in memory that all processes share.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_shmcb.html>

use std::sync::{Arc, OnceLock};

use server::config::build::Build;
use server::hooks::Hooks;
use server::host::Server;
use server::module::Module;
use server::request::Request;
use tls::sessions::{DEFAULT_BYTES, MAX_BYTES, MIN_BYTES, SharedSessions, context};

use super::socache::{DEFAULT, Entry, Failed, SOCACHE, Socache, SocacheProvider};
use crate::aaa::provider::Pending;
use crate::random;

/// `mod_socache_shmcb.c`
pub struct SocacheShmcb;

impl Module for SocacheShmcb {
    const NAME: &'static str = "socache_shmcb_module";
    const FILE: &'static str = "mod_socache_shmcb.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, SocacheShmcb>) {
        hooks.provider(SOCACHE, "shmcb", SocacheProvider { create });
        hooks.provider(SOCACHE, DEFAULT, SocacheProvider { create });
    }
}

/// A cache in shared memory: the slots that also have the sessions of TLS.
struct Shmcb {
    id: &'static str,
    bytes: usize,
    /// Unset until the memory exists.
    memory: OnceLock<SharedSessions>,
}

fn create(
    _: &Build,
    id: &'static str,
    argument: Option<&[u8]>,
) -> Result<Arc<dyn Socache>, String> {
    let bytes = size(argument.unwrap_or_default())?;
    Ok(Arc::new(Shmcb { id, bytes, memory: OnceLock::new() }))
}

/// The size in `path(size)`. Source: `socache_shmcb_create`.
fn size(argument: &[u8]) -> Result<usize, String> {
    let Some(open) = argument.iter().rposition(|byte| *byte == b'(') else {
        return match argument.ends_with(b")") {
            true => Err("Invalid argument: no opening parenthesis".to_owned()),
            false => Ok(DEFAULT_BYTES),
        };
    };
    let Some(digits) = argument.get(open + 1..).and_then(|rest| rest.strip_suffix(b")")) else {
        let why = "Invalid argument: no closing parenthesis or cache size missing after pathname \
                   with parenthesis";
        return Err(why.to_owned());
    };
    let digits = digits.trim_ascii_start();
    let is_negative = digits.starts_with(b"-");
    let digits = digits.strip_prefix(b"-").or(digits.strip_prefix(b"+")).unwrap_or(digits);
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err("Invalid argument: cache size not numerical".to_owned());
    }
    let bytes = digits.iter().fold(0usize, |bytes, digit| {
        bytes.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
    });
    if is_negative || bytes < MIN_BYTES {
        return Err(format!("Invalid argument: size has to be >= {MIN_BYTES} bytes"));
    }
    if bytes > MAX_BYTES {
        return Err(format!("Invalid argument: size has to be <= {MAX_BYTES} bytes"));
    }
    Ok(bytes)
}

impl Socache for Shmcb {
    /// The memory outlives a configuration, and its objects do not: a restart empties Apache's
    /// cache, so it may be the way in which a password is withdrawn.
    fn share(&self, _: &Server, shared: &mpm::Shared) -> Result<(), String> {
        let words = shared.words(&format!("socache-{}", self.id), self.bytes / 8);
        let words = words.map_err(|error| format!("mod_socache_shmcb: {error}"))?;
        let generation = random::below(usize::MAX).to_ne_bytes();
        let context = context(&[self.id.as_bytes(), &generation]);
        let _ = self.memory.set(SharedSessions::new(words, context, 0));
        Ok(())
    }

    fn retrieve<'r>(
        &'r self,
        _: &'r Request,
        key: &'r [u8],
    ) -> Pending<'r, Result<Option<Vec<u8>>, Failed>> {
        Pending::Now(Ok(self.memory.get().and_then(|memory| memory.look_up(key))))
    }

    fn store<'r>(&'r self, _: &'r Request, entry: Entry<'r>) -> Pending<'r, Result<(), Failed>> {
        let Some(memory) = self.memory.get() else { return Pending::Now(Err(Failed)) };
        let is_stored = memory.store_for(entry.key, entry.value, entry.lifetime.as_secs());
        Pending::Now(if is_stored { Ok(()) } else { Err(Failed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_in_parentheses() {
        let size = |text: &str| size(text.as_bytes());
        assert_eq!(size(""), Ok(DEFAULT_BYTES));
        assert_eq!(size("logs/cache"), Ok(DEFAULT_BYTES));
        assert_eq!(size("logs/cache(8192)"), Ok(8192));
        assert_eq!(size("lo(gs/cache( +9000)"), Ok(9000));
        for (wrong, why) in [
            ("x)", "no opening parenthesis"),
            ("x(", "no closing"),
            ("x(9", "no closing"),
            ("x(9k)", "not numerical"),
            ("x()", ">= 8192"),
            ("x(-9000)", ">= 8192"),
            ("x(8191)", ">= 8192"),
            ("x(99999999999999999999999)", "<= "),
        ] {
            assert!(size(wrong).is_err_and(|found| found.contains(why)), "{wrong}");
        }
    }
}
