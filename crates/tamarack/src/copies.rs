//! Fast copies of memory, where the C library chooses slow ones.
//!
//! glibc before 2.40 copies some kilobytes and more by `rep movsb`, which AMD's Zen 3 and Zen 4 do
//! 20 times slower if the destination lies a few bytes behind the source in its page. That is how
//! records of TLS and frames of HTTP/2 are made. A variable of the environment that glibc reads at
//! the start of a program has it use other instructions.
//!
//! Source: sourceware.org, bug 30994; docs/decisions/2026-11-27-copies.md

use std::ffi::{OsStr, OsString};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The variable.
const VARIABLE: &str = "GLIBC_TUNABLES";

/// The setting, and a value that no copy reaches, bytes.
const SETTING: &str = "glibc.cpu.x86_rep_movsb_threshold";
const NEVER: &str = "67108864";

const PAGE_BYTES: usize = 4096;

/// A record of TLS.
const COPY_BYTES: usize = 16 * 1024;

/// How many copies of each kind are timed.
const COPIES: usize = 8;

/// How many times as long as others slow copies take, at least: measured 15 to 40.
const SLOW: u32 = 5;

/// Executes this program again if it copies slowly, so that glibc chooses other instructions. The
/// process stays the same, with all that it was given. Returns if it copies well, or can't be
/// executed: then it only costs more.
pub fn execute_for_fast_ones() {
    if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        return;
    }
    let Some(setting) = with_setting(std::env::var_os(VARIABLE).as_deref()) else { return };
    if !are_slow() {
        return;
    }
    let Ok(own) = std::env::current_exe() else { return };
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let program = link(&name, &own).unwrap_or(own);
    let _ = Command::new(program).arg0(name).args(words).env(VARIABLE, setting).exec();
}

/// The link to the program that it was started by, such as `httpd`: lists of processes show its
/// name.
fn link(name: &OsStr, own: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = match name.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(name)],
        false => std::env::split_paths(&path).map(|folder| folder.join(name)).collect(),
    };
    candidates.retain(|candidate| candidate.canonicalize().is_ok_and(|target| target == own));
    candidates.into_iter().next()
}

/// The variable's value with the setting; `None` if it has it.
fn with_setting(before: Option<&OsStr>) -> Option<OsString> {
    let before = before.unwrap_or_default();
    let has_it = before.as_bytes().windows(SETTING.len()).any(|part| part == SETTING.as_bytes());
    if has_it {
        return None;
    }
    let mut value = before.to_owned();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(SETTING);
    value.push("=");
    value.push(NEVER);
    Some(value)
}

/// Whether a copy to a place five bytes behind the source in its page takes much longer than one to
/// a place 64 bytes behind it.
fn are_slow() -> bool {
    let mut memory = vec![1u8; 3 * PAGE_BYTES + 2 * COPY_BYTES];
    let start = memory.as_ptr().addr().next_multiple_of(PAGE_BYTES) - memory.as_ptr().addr();
    let Some((from, to)) =
        memory.get_mut(start..).and_then(|all| all.split_at_mut_checked(COPY_BYTES))
    else {
        return false;
    };
    let mut fastest = |behind: usize| {
        let times = (0..COPIES).map(|_| {
            let begun = Instant::now();
            if let Some(place) = to.get_mut(behind..behind + COPY_BYTES) {
                place.copy_from_slice(black_box(from));
                black_box(place);
            }
            begun.elapsed()
        });
        times.min().unwrap_or(Duration::ZERO)
    };
    let usual = fastest(64);
    fastest(5) > usual * SLOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_added_once() {
        let ours = with_setting(None).unwrap();
        assert_eq!(ours, "glibc.cpu.x86_rep_movsb_threshold=67108864");
        assert_eq!(with_setting(Some(&ours)), None);
        let more = with_setting(Some(OsStr::new("glibc.malloc.check=1"))).unwrap();
        assert_eq!(more, "glibc.malloc.check=1:glibc.cpu.x86_rep_movsb_threshold=67108864");
        assert_eq!(with_setting(Some(&more)), None);
    }
}
