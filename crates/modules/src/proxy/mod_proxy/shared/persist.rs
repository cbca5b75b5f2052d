//! The file in which BalancerPersist keeps balancers and their members while the server does not
//! run: a line for each, behind one with the digest of the others.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use server::host::Server;
use sha1::{Digest, Sha1};

use super::region::All;
use super::saved::{Reader, SavedBalancer, SavedMember, write_word};
use crate::proxy::mod_proxy::RUNTIME_DIR;
use crate::proxy::mod_proxy::workers::Balancer;

/// The first word of the file, with the version of its format.
const FORMAT: &str = "balancers-1";
/// The name of the file in DefaultRuntimeDir.
const NAME: &str = "balancers.persist";
/// The longest file that is read, bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Writes the file, if BalancerPersist is on. The supervisor calls this before it reads the
/// configuration again, and when the server ends.
///
/// # Errors
/// What can't be written.
pub fn save(server: &Server) -> Result<(), String> {
    let all = All::of(server);
    if !all.persists || all.balancers.is_empty() {
        return Ok(());
    }
    let path = path(server);
    write(&path, text(&all.balancers.iter().map(AsRef::as_ref).collect::<Vec<_>>()).as_bytes())
        .map_err(|error| format!("BalancerPersist: {}: {error}", path.display()))
}

/// Sets the state of balancers and members that the file knows by their names, whatever the
/// configuration says of them, and adds those members that were added.
pub(super) fn restore(server: &Server, all: &All) {
    let Ok(text) = regular::read(path(server), BYTES_MAX) else { return };
    let Some(saved) = std::str::from_utf8(&text).ok().and_then(parse) else { return };
    let mut seen = HashMap::new();
    for balancer in &all.balancers {
        let nth = count(&mut seen, &balancer.name);
        let mut same = saved.iter().filter(|one| one.name == balancer.name);
        if let Some(saved) = same.nth(nth) {
            apply(balancer, saved);
        }
    }
}

/// How many of this name came before: hosts may have balancers of the same name.
fn count<'n>(seen: &mut HashMap<&'n [u8], usize>, name: &'n [u8]) -> usize {
    let count = seen.entry(name).or_default();
    *count += 1;
    *count - 1
}

fn apply(balancer: &Balancer, saved: &SavedBalancer) {
    balancer.state.restore(saved, &balancer.methods);
    let mut spares = balancer.spares.iter();
    let mut added = 0;
    for member in &saved.members {
        if let Some(worker) = balancer.configured.iter().find(|one| one.name == member.name) {
            worker.state.restore(member);
        } else if member.is_added
            && let Some(spare) = spares.next()
        {
            spare.blank.state.restore(member);
            spare.blank.state.set_name(&member.name);
            added += 1;
        }
    }
    balancer.state.set_added(added);
}

fn path(server: &Server) -> PathBuf {
    let folder = server.main().core.globals.0.runtime_dir.get().cloned();
    folder.unwrap_or_else(|| PathBuf::from(RUNTIME_DIR)).join(NAME)
}

/// Writes a new file in the place of the old one, if any.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let other = path.with_extension("new");
    let _ = fs::remove_file(&other);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(CWD, &other, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(text)?;
    fs::rename(&other, path)
}

fn text(balancers: &[&Balancer]) -> String {
    let mut lines = String::new();
    for balancer in balancers {
        balancer.state.save(&balancer.name, &balancer.methods).write(&mut lines);
        for member in balancer.members() {
            let is_added = !balancer.configured.iter().any(|one| one.name == member.name);
            member.state.save(&member.name, is_added).write(&mut lines);
        }
    }
    let mut text = FORMAT.to_owned();
    write_word(&mut text, &Sha1::digest(&lines));
    text + "\n" + &lines
}

/// The balancers of a file; `None` if it is none, or not whole.
fn parse(text: &str) -> Option<Vec<SavedBalancer>> {
    let (head, lines) = text.split_once('\n')?;
    let mut head = Reader::new(head);
    let is_whole = head.word()? == FORMAT && head.bytes()? == Sha1::digest(lines).as_slice();
    let mut balancers: Vec<SavedBalancer> = Vec::new();
    for line in lines.lines().filter(|_| is_whole) {
        let mut line = Reader::new(line);
        match line.word()? {
            "balancer" => balancers.push(SavedBalancer::read(&mut line)?),
            "member" => balancers.last_mut()?.members.push(SavedMember::read(&mut line)?),
            _ => return None,
        }
    }
    is_whole.then_some(balancers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_digest(lines: &str) -> String {
        let mut text = FORMAT.to_owned();
        write_word(&mut text, &Sha1::digest(lines));
        text + "\n" + lines
    }

    #[test]
    fn a_file_that_is_not_whole_is_none() {
        let mut lines = String::new();
        let mut balancer = SavedBalancer::default();
        balancer.name = b"balancer://b".to_vec();
        balancer.write(&mut lines);
        let member = SavedMember {
            name: b"http://h".to_vec(),
            is_added: true,
            numbers: vec![1, u64::MAX],
            texts: vec![b"a".to_vec(), Vec::new()],
        };
        member.write(&mut lines);
        let text = with_digest(&lines);
        let read = parse(&text).unwrap();
        assert_eq!((read.len(), &read[0].members), (1, &vec![member]));
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_none(), "{end}");
        }
        assert!(parse(&with_digest("member 61 1 0 0\n")).is_none());
        assert!(parse(&with_digest("other\n")).is_none());
        assert!(parse(&with_digest("")).unwrap().is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_file_can_be_read(lines: String, words: Vec<String>) {
            let _ = parse(&lines);
            let _ = parse(&with_digest(&lines));
            let _ = parse(&with_digest(&format!("balancer {}\n", words.join(" "))));
            let balancer = "balancer 61 62 0 0 0 - - -";
            let _ = parse(&with_digest(&format!("{balancer}\nmember {}", words.join(" "))));
        }
    }
}
