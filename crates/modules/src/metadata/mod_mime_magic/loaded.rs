//! A magic file that was read at startup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use server::host::{Host, Server};
use server::log::Level;
use server::module::Module;

use super::magic::{Fault, Magic};
use super::{MimeMagic, Settings};

/// Most bytes of a magic file.
const MAGIC_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The rules of a file, and what is wrong with it.
#[derive(Debug)]
pub struct Loaded {
    file: PathBuf,
    /// The rules.
    pub magic: Magic,
    faults: Vec<Fault>,
    /// Why it can't be read.
    error: Option<Errno>,
}

impl Loaded {
    /// Reads a file.
    pub fn read(file: &Path) -> Loaded {
        let (magic, faults, error) = match regular::read(file, MAGIC_BYTES_MAX) {
            Ok(text) => {
                let (magic, faults) = Magic::parse(&text);
                (magic, faults, None)
            }
            Err(why) => {
                let error = Errno::from_io_error(&why).unwrap_or(Errno::FBIG);
                (Magic::default(), Vec::new(), Some(error))
            }
        };
        Loaded { file: file.to_owned(), magic, faults, error }
    }

    /// Whether it can't be read, or has a line that can't be parsed.
    pub fn is_faulty(&self) -> bool {
        self.error.is_some() || self.faults.iter().any(|fault| fault.is_fatal)
    }

    fn log(&self, server: &Server, host: &Host) {
        let (module, level) = (MimeMagic::FILE, Level::Error);
        let file = self.file.display();
        if self.error.is_some() {
            let text = format_args!("mod_mime_magic: can't read magic file {file}");
            server.log_host_error(host, module, level, 1515, self.error, text);
        }
        for Fault { line, number, text, .. } in &self.faults {
            // Apache does not say where.
            let text = format_args!("mod_mime_magic: {text} ({file}:{line})");
            server.log_host(host, module, level, *number, text);
        }
    }
}

/// Logs what is wrong with each file, once.
pub(super) fn log_faults(server: &Arc<Server>) {
    let Some(slot) = server.registry.slot_of::<MimeMagic>() else { return };
    let mut seen: Vec<&Arc<Loaded>> = Vec::new();
    for host in std::iter::once(server.main()).chain(&server.hosts) {
        let Some(settings) = host.server.get::<Settings>(slot) else { continue };
        let Some(loaded) = settings.loaded.get() else { continue };
        if !seen.iter().any(|other| Arc::ptr_eq(other, loaded)) {
            loaded.log(server, host);
            seen.push(loaded);
        }
    }
}
