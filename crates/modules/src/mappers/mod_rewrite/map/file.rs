//! A map that is a file, read again as soon as it changes.

use std::collections::HashSet;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use server::path::{self, StatError};
use server::request::{FileInfo, Request};

use super::index::Index;

/// The largest file that is read, in bytes; a larger one has no keys.
const FILE_BYTES_LIMIT: u64 = 256 << 20;

/// So many keys are remembered as asked, which only the log wants to know.
const ASKED_LIMIT: usize = 4096;

/// What a map's file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// `txt:`
    Text,
    /// `rnd:`: values are lists of which one is chosen.
    Random,
    /// `dbm=sdbm:`
    Sdbm,
}

/// A map that is a file.
#[derive(Debug)]
pub(in super::super) struct MapFile {
    /// What it holds.
    pub kind: Kind,
    /// Its name: the file of pages where there are two.
    path: Vec<u8>,
    /// The other file of two.
    directory: Option<Vec<u8>>,
    /// What it said when it was read last; shared by the loops of the process.
    read: Mutex<Option<Arc<Version>>>,
}

/// What a file said.
#[derive(Debug)]
struct Version {
    /// The state of the file.
    info: FileInfo,
    index: Index,
    /// Keys that were asked for while the log wanted to know.
    asked: Mutex<HashSet<Vec<u8>>>,
}

/// What came of asking.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Asked {
    /// The value, where the key has one.
    pub value: Option<Vec<u8>>,
    /// Whether the key was asked for before. Not known unless it was to be noted.
    pub is_known: bool,
}

/// Why a file can't be asked: the call that failed, and the number of the message.
pub(in super::super) type Failure<'m> = (Errno, u32, &'m [u8]);

impl MapFile {
    /// The map of a file.
    pub fn new(path: &[u8], kind: Kind) -> MapFile {
        let with = |end: &[u8]| [path, end].concat();
        let (path, directory) = match kind {
            Kind::Sdbm => (with(b".pag"), Some(with(b".dir"))),
            _ => (path.to_vec(), None),
        };
        MapFile { kind, path, directory, read: Mutex::new(None) }
    }

    /// The file that is missing.
    pub fn missing(&self) -> Option<&[u8]> {
        let all = self.directory.iter().chain([&self.path]);
        all.map(Vec::as_slice).find(|path| path::stat(path).is_err())
    }

    /// Whether it is of a database.
    pub fn is_dbm(&self) -> bool {
        self.kind == Kind::Sdbm
    }

    /// Looks a key up.
    ///
    /// # Errors
    /// What the log has to say, where the file can't be read.
    pub async fn find(
        self: &Arc<Self>,
        request: &mut Request,
        key: &[u8],
        notes: bool,
    ) -> Result<Asked, Failure<'_>> {
        let version = self.version(request).await?;
        let value = version.index.find(key).map(<[u8]>::to_vec);
        let mut is_known = false;
        if notes {
            let mut asked = version.asked.lock().unwrap_or_else(PoisonError::into_inner);
            is_known = asked.contains(key);
            if !is_known && asked.len() < ASKED_LIMIT {
                asked.insert(key.to_vec());
            }
        }
        Ok(Asked { value, is_known })
    }

    /// What the file says now.
    async fn version(self: &Arc<Self>, request: &mut Request) -> Result<Arc<Version>, Failure<'_>> {
        let numbers = if self.is_dbm() { (662, 656) } else { (661, 655) };
        request.trace_path(&self.path);
        let failed = |error| (error_number(error), numbers.0, self.path.as_slice());
        let info = request.engine.stat(&self.path).map_err(failed)?;
        let known = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.info == info) {
            return Ok(known);
        }
        let map = self.clone();
        let read = move || map.read();
        let made = if request.depth.in_expression {
            // An expression waits for this request, and can wait for no pool.
            Ok(read())
        } else {
            request.engine.handle.blocking().run(rt::Work::File, read).await
        };
        let made = made.unwrap_or(Err(Errno::AGAIN));
        made.map_err(|error| (error, numbers.1, self.path.as_slice()))
    }

    /// Reads the file; `info` is then that of what was read.
    fn read(&self) -> Result<Arc<Version>, Errno> {
        let errno = |why: std::io::Error| Errno::from_io_error(&why).unwrap_or(Errno::IO);
        let (file, stat) = regular::open_with_stat(path::as_path(&self.path)).map_err(errno)?;
        let info = path::info(&stat);
        let mut text = Vec::new();
        if info.size <= FILE_BYTES_LIMIT {
            file.take(FILE_BYTES_LIMIT).read_to_end(&mut text).map_err(errno)?;
        }
        let index = if self.is_dbm() { Index::of_pages(text) } else { Index::of_text(text) };
        let version = Arc::new(Version { info, index, asked: Mutex::default() });
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        *read = Some(version.clone());
        Ok(version)
    }
}

fn error_number(error: StatError) -> Errno {
    match error {
        StatError::Missing | StatError::SymlinkForbidden => Errno::NOENT,
        StatError::Denied => Errno::ACCESS,
        StatError::Other => Errno::IO,
    }
}
