//! mod_socache_dbm: small objects in a DBM file.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_dbm.html>

mod sdbm;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::unistd::{Uid, fchown};
use rt::Work;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use server::config::build::Build;
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use self::sdbm::{PAIR_BYTES_MAX, Sdbm};
use super::socache::{Entry, Failed, SOCACHE, Socache, SocacheProvider};
use crate::aaa::provider::Pending;
use crate::arch::mod_unixd;
use crate::proxy::mod_proxy::RUNTIME_DIR;

/// `mod_socache_dbm.c`
pub struct SocacheDbm;

/// What the name of the file begins with if none is given (`DEFAULT_DBM_PREFIX`).
const PREFIX: &str = "socache-dbm-";
/// The permissions of the file: others are not to read the hashes of passwords in it.
const MODE: u32 = 0o600;
/// How often objects that are over are removed, seconds.
const EXPIRY_S: u64 = 60;
/// The longest wait for the file.
const WAIT: Duration = Duration::from_secs(5);
/// Bytes of the time in front of a value: when it is over, microseconds.
const TIME_BYTES: usize = 8;

impl Module for SocacheDbm {
    const NAME: &'static str = "socache_dbm_module";
    const FILE: &'static str = "mod_socache_dbm.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, SocacheDbm>) {
        hooks.provider(SOCACHE, "dbm", SocacheProvider { create });
    }
}

/// A cache in a file.
struct Dbm {
    /// The path without its extensions; `None` for the default.
    path: Option<PathBuf>,
    id: &'static str,
    file: std::sync::OnceLock<Arc<Files>>,
}

/// The two files of a cache.
struct Files {
    pages: PathBuf,
    directory: PathBuf,
    /// When this process last removed what is over, seconds since 1970.
    expired_s: AtomicU64,
}

fn create(
    build: &Build,
    id: &'static str,
    argument: Option<&[u8]>,
) -> Result<Arc<dyn Socache>, String> {
    let path = argument.filter(|path| !path.is_empty()).map(|path| build.path(path));
    Ok(Arc::new(Dbm { path, id, file: std::sync::OnceLock::new() }))
}

impl Socache for Dbm {
    /// Makes the file for the user of the children. Source: `socache_dbm_init`.
    fn share(&self, server: &Server, _: &mpm::Shared) -> Result<(), String> {
        let base = self.path.clone().unwrap_or_else(|| {
            let folder = server.main().core.globals.0.runtime_dir.get();
            let folder = folder.map_or_else(|| Path::new(RUNTIME_DIR), PathBuf::as_path);
            folder.join(format!("{PREFIX}{}", self.id))
        });
        let file = Files::at(&base);
        let user = server.registry.slot_of::<mod_unixd::Unixd>();
        let user = user.and_then(|slot| server.main().server.get::<mod_unixd::Settings>(slot));
        let user = user.and_then(|own| own.user.0.get()).map(|user| Uid::from_raw(user.id));
        file.make(user.filter(|_| nix::unistd::geteuid().is_root())).map_err(|why| {
            format!("AH00804: Cannot create socache DBM file `{}': {why}", base.display())
        })?;
        let _ = self.file.set(Arc::new(file));
        Ok(())
    }

    fn retrieve<'r>(
        &'r self,
        request: &'r Request,
        key: &'r [u8],
    ) -> Pending<'r, Result<Option<Vec<u8>>, Failed>> {
        Pending::Wait(Box::pin(async move {
            let key = key.to_vec();
            let what = (809, "reading (fetch)");
            self.work(request, what, move |files| files.find(&key)).await
        }))
    }

    fn store<'r>(
        &'r self,
        request: &'r Request,
        entry: Entry<'r>,
    ) -> Pending<'r, Result<(), Failed>> {
        Pending::Wait(Box::pin(async move {
            let (key, size) = (entry.key.to_vec(), entry.key.len() + entry.value.len());
            if size + TIME_BYTES > PAIR_BYTES_MAX {
                let limit = PAIR_BYTES_MAX - TIME_BYTES;
                let text = format_args!("data size too large for DBM socache: {size} >= {limit}");
                request.log::<SocacheDbm>(Level::Error, 806, text);
                return Err(Failed);
            }
            let until_us = now_us().saturating_add(micros(entry.lifetime));
            let value = [&until_us.to_ne_bytes()[..], entry.value].concat();
            let what = (807, "writing (store)");
            self.work(request, what, move |files| files.store(&key, &value)).await
        }))
    }
}

impl Dbm {
    /// Does what may wait for a disk, or for another process.
    async fn work<T: Send + 'static>(
        &self,
        request: &Request,
        (number, what): (u32, &str),
        job: impl FnOnce(&Files) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Failed> {
        let Some(files) = self.file.get().cloned() else { return Err(Failed) };
        let pool = request.engine.handle.blocking().clone();
        let name = files.pages.with_extension("");
        let why = match pool.run_within(WAIT, Work::File, move || job(&files)).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(why)) => Errno::from_io_error(&why).unwrap_or(Errno::NOSPC),
            Err(_) => Errno::TIMEDOUT,
        };
        let text = format_args!("Cannot open socache DBM file `{}' for {what}", name.display());
        request.log_error::<SocacheDbm>(Level::Error, number, why, text);
        Err(Failed)
    }
}

impl Files {
    fn at(base: &Path) -> Files {
        let with = |end: &str| {
            let mut path = base.as_os_str().to_owned();
            path.push(end);
            PathBuf::from(path)
        };
        let expired_s = AtomicU64::new(now_us() / 1_000_000);
        Files { pages: with(".pag"), directory: with(".dir"), expired_s }
    }

    /// Makes the files, and empties them of what is over.
    fn make(&self, user: Option<Uid>) -> io::Result<()> {
        for path in [&self.pages, &self.directory] {
            let file = options().create(true).open(path)?;
            if user.is_some() {
                fchown(&file, user, None)?;
            }
        }
        let sdbm = self.open(FlockOperation::LockExclusive)?;
        let now_us = now_us();
        sdbm.retain(|value| until_us(value) > now_us)
    }

    /// Opens the files under a lock, which their end releases.
    fn open(&self, lock: FlockOperation) -> io::Result<Sdbm> {
        let open = |path: &Path| options().open(path);
        let sdbm = Sdbm { pages: open(&self.pages)?, directory: open(&self.directory)? };
        flock(&sdbm.pages, lock)?;
        Ok(sdbm)
    }

    fn find(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let found = self.open(FlockOperation::LockShared)?.find(key)?;
        let live = found.filter(|value| until_us(value) > now_us());
        Ok(live.map(|mut value| value.split_off(TIME_BYTES.min(value.len()))))
    }

    fn store(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let sdbm = self.open(FlockOperation::LockExclusive)?;
        let now_us = now_us();
        let (now_s, last_s) = (now_us / 1_000_000, self.expired_s.load(Ordering::Relaxed));
        if now_s.saturating_sub(last_s) >= EXPIRY_S {
            self.expired_s.store(now_s, Ordering::Relaxed);
            sdbm.retain(|value| until_us(value) > now_us)?;
        }
        sdbm.store(key, value)
    }
}

fn options() -> OpenOptions {
    let mut options = File::options();
    let flags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).bits();
    options.read(true).write(true).mode(MODE).custom_flags(flags.cast_signed());
    options
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// When a value is over.
fn until_us(value: &[u8]) -> u64 {
    value.first_chunk::<TIME_BYTES>().map_or(0, |time| u64::from_ne_bytes(*time))
}
