//! The spawner as a program of its own: the server's file, executed again. It has its line and the
//! board's counters, but nothing of the server's memory, in which private keys are.
//!
//! [`execute`] writes what it must know into its words, and [`run`] reads them:
//!
//! ```text
//! companion line=5 board=7 place=0 programs=400 user=33 group=33 groups=33,4 root=/srv
//! ```
#![expect(unsafe_code, reason = "descriptors by number")]

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::sys::prctl;
use nix::unistd::execv;

use super::line::Line;
use super::spawner;
use crate::descriptors;
use crate::privileges::give_up_root;
use crate::scoreboard::ProgramCounts;
use crate::settings::{Identity, Settings};
use crate::supervisor::reset_in_companion;

/// The first word of the program.
pub const WORD: &str = "companion";

/// The running program's file, also if another one has its name by now.
const OWN_FILE: &std::ffi::CStr = c"/proc/self/exe";

/// What a spawner is given.
pub(crate) struct Given<'s> {
    /// The line, of which it has the companion's end.
    pub line: &'s Line,
    /// The file of the scoreboard.
    pub board: Option<BorrowedFd<'s>>,
    /// Its place on the scoreboard.
    pub place: Option<usize>,
    /// How many programs may run at a time.
    pub programs_max: usize,
    /// Whose identity and root directory it takes.
    pub settings: &'s Settings,
}

/// Executes the spawner in this process, which must be a forked one: the descriptors of the line
/// and the board stay open. Returns only on failure.
pub(crate) fn execute(given: &Given<'_>) -> io::Result<Infallible> {
    let line = given.line.incoming()?;
    for descriptor in [Some(line.as_fd()), given.board].into_iter().flatten() {
        descriptors::keep_open(descriptor)?;
    }
    let name = std::env::args_os().next().unwrap_or_default();
    let words = std::iter::once(name).chain(words(given, line.as_raw_fd()));
    let words: Vec<CString> =
        words.map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?;
    Ok(execv(OWN_FILE, &words)?)
}

/// The words of the program behind its name.
fn words(given: &Given<'_>, line: i32) -> Vec<OsString> {
    let mut words =
        vec![WORD.to_owned(), format!("line={line}"), format!("programs={}", given.programs_max)];
    words.extend(given.board.map(|board| format!("board={}", board.as_raw_fd())));
    words.extend(given.place.map(|place| format!("place={place}")));
    if let Some(Identity { user, group, groups }) = &given.settings.identity {
        let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
        words.push(format!("user={user}"));
        words.push(format!("group={group}"));
        words.push(format!("groups={}", groups.join(",")));
    }
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    words.extend(given.settings.chroot.as_ref().map(|root| {
        let mut word = OsString::from("root=");
        word.push(root);
        word
    }));
    words
}

/// What the words say.
#[derive(Debug, Default, PartialEq)]
struct Words {
    line: i32,
    board: Option<i32>,
    place: Option<usize>,
    programs_max: usize,
    identity: Option<Identity>,
    root: Option<PathBuf>,
}

impl Words {
    /// Reads the words behind [`WORD`]; `None` if the server did not write them.
    fn read(words: &[OsString]) -> Option<Words> {
        let mut read = Words { line: -1, ..Words::default() };
        let (mut user, mut group, mut groups) = (None, None, Vec::new());
        for word in words {
            let bytes = word.as_bytes();
            let at = bytes.iter().position(|byte| *byte == b'=')?;
            let (key, value) = (bytes.get(..at)?, OsStr::from_bytes(bytes.get(at + 1..)?));
            if key == b"root" {
                read.root = Some(Path::new(value).to_owned());
                continue;
            }
            let value = value.to_str()?;
            match key {
                b"line" => read.line = value.parse().ok()?,
                b"board" => read.board = Some(value.parse().ok()?),
                b"place" => read.place = Some(value.parse().ok()?),
                b"programs" => read.programs_max = value.parse().ok()?,
                b"user" => user = Some(value.parse().ok()?),
                b"group" => group = Some(value.parse().ok()?),
                b"groups" if value.is_empty() => {}
                b"groups" => {
                    groups = value.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
                }
                _ => return None,
            }
        }
        read.identity = match (user, group) {
            (Some(user), Some(group)) => Some(Identity { user, group, groups }),
            (None, None) => None,
            _ => return None,
        };
        // Each descriptor has one owner.
        (read.line >= 0 && read.board != Some(read.line)).then_some(read)
    }
}

/// The spawner's main function, for the words behind [`WORD`]; returns the exit status. It must be
/// called first, while the process has one thread and owns no descriptor that it has opened.
pub fn run(words: &[OsString]) -> i32 {
    match prepare(words) {
        Ok((line, counts, programs_max)) => spawner::run(&line, programs_max, counts),
        Err(text) => {
            eprintln!("{text}");
            1
        }
    }
}

fn prepare(words: &[OsString]) -> Result<(Line, ProgramCounts, usize), String> {
    let by_hand = || format!("\"{WORD}\" is for the server alone, which starts programs by it");
    let words = Words::read(words).ok_or_else(by_hand)?;
    set_name();
    // SAFETY: the process has just begun, and has opened no descriptor that stays open.
    let [line, board] = [Some(words.line), words.board]
        .map(|number| number.and_then(|number| unsafe { descriptors::take(number) }));
    let line = Line::of_companion(line.ok_or_else(by_hand)?).ok_or_else(by_hand)?;
    let counts = counts(board, words.place).map_err(|error| format!("no counters: {error}"))?;
    // The server's signals have been blocked since the fork: from here on they do nothing.
    reset_in_companion().map_err(|error| format!("can't set signals: {error}"))?;
    give_up_root(words.root.as_deref(), words.identity.as_ref())
        .map_err(|failure| format!("AH{:05}: {failure}", failure.number))?;
    Ok((line, counts, words.programs_max))
}

fn counts(board: Option<OwnedFd>, place: Option<usize>) -> io::Result<ProgramCounts> {
    match board {
        Some(board) => ProgramCounts::of_file(board, place),
        None => ProgramCounts::of_none(),
    }
}

/// Lists of processes would show `exe`.
fn set_name() {
    let word = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&word).file_name().unwrap_or_default();
    if let Ok(name) = CString::new(name.as_bytes()) {
        let _ = prctl::set_name(&name);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn given<'s>(line: &'s Line, board: &'s File, settings: &'s Settings) -> Given<'s> {
        Given { line, board: Some(board.as_fd()), place: Some(3), programs_max: 400, settings }
    }

    #[test]
    fn the_words_are_read_as_they_were_written() {
        let (line, board) = (Line::new().unwrap(), File::open("/dev/null").unwrap());
        let mut settings = crate::listeners::tests::settings(1, &[]);
        let read = |settings: &Settings| {
            let words = words(&given(&line, &board, settings), 5);
            assert_eq!(words[0], WORD);
            Words::read(&words[1..]).unwrap()
        };
        let (board_number, programs_max) = (Some(board.as_raw_fd()), 400);
        let plain = Words {
            line: 5,
            board: board_number,
            place: Some(3),
            programs_max,
            ..Words::default()
        };
        assert_eq!(read(&settings), plain);
        let identity = Some(Identity { user: 33, group: 34, groups: vec![34, 4] });
        let root = PathBuf::from(OsStr::from_bytes(b"/srv/a b=\xff"));
        settings.identity = identity.clone();
        settings.chroot = Some(root.clone());
        assert_eq!(read(&settings), Words { identity, root: Some(root), ..plain });
    }

    #[test]
    fn words_that_no_server_wrote_are_refused() {
        let few: [&[&str]; 7] = [
            &[],
            &["line=-1"],
            &["line=5", "board=5"],
            &["line=5", "user=0"],
            &["line=5", "user=0", "group=x"],
            &["line=5", "colour=red"],
            &["line"],
        ];
        for words in few {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(Words::read(&words), None, "{words:?}");
            assert_eq!(run(&words), 1);
        }
        // No line of a companion.
        assert_eq!(run(&["line=1000000".into()]), 1);
    }
}
