//! A map in a file, which is read again when it changes.

use std::collections::HashSet;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use server::path::{self, StatError};
use server::request::{FileInfo, Request};

use super::index::Index;

/// Most bytes of a file; a larger one has no keys.
const FILE_BYTES_LIMIT: u64 = 256 << 20;

/// Most keys that are recorded as looked up, for the log only.
const ASKED_LIMIT: usize = 4096;

/// The format of a map's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `txt:`
    Text,
    /// `rnd:`: values are lists, of which one is chosen.
    Random,
    /// `dbm=sdbm:`
    Sdbm,
}

/// A map in a file.
#[derive(Debug)]
pub(crate) struct MapFile {
    /// The format.
    pub kind: Kind,
    /// The path; of two files, that of the pages.
    path: Vec<u8>,
    /// The other one of two files.
    directory: Option<Vec<u8>>,
    /// The contents when it was last read; shared by the loops of the process.
    read: Mutex<Option<Arc<Version>>>,
}

/// The contents of a file.
#[derive(Debug)]
struct Version {
    /// The metadata of the file.
    info: FileInfo,
    index: Index,
    /// Keys that were looked up, if they are logged.
    asked: Mutex<HashSet<Vec<u8>>>,
}

/// The result of a look-up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The value, if the key has one.
    pub value: Option<Vec<u8>>,
    /// Whether the key was looked up before; only known if that is logged.
    pub is_known: bool,
}

/// Why a file can't be read: the system's error, and the number of the message.
pub(crate) type Failure<'m> = (Errno, u32, &'m [u8]);

impl MapFile {
    /// Returns the map of a file.
    pub fn new(path: &[u8], kind: Kind) -> MapFile {
        let with = |end: &[u8]| [path, end].concat();
        let (path, directory) = match kind {
            Kind::Sdbm => (with(b".pag"), Some(with(b".dir"))),
            _ => (path.to_vec(), None),
        };
        MapFile { kind, path, directory, read: Mutex::new(None) }
    }

    /// The missing file, if any.
    pub fn missing(&self) -> Option<&[u8]> {
        let all = self.directory.iter().chain([&self.path]);
        all.map(Vec::as_slice).find(|path| path::stat(path).is_err())
    }

    /// Whether it is a DBM file.
    pub fn is_dbm(&self) -> bool {
        self.kind == Kind::Sdbm
    }

    /// Looks up a key.
    ///
    /// # Errors
    /// The failure to log, if the file can't be read.
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

    /// The present contents of the file.
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
            // An expression waits for this request, and can't wait for the pool.
            Ok(read())
        } else {
            request.engine.handle.blocking().run(rt::Work::File, read).await
        };
        let made = made.unwrap_or(Err(Errno::AGAIN));
        made.map_err(|error| (error, numbers.1, self.path.as_slice()))
    }

    /// Reads the file; `info` then belongs to these contents.
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
