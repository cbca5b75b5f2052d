//! Reads and parses an `.htaccess` file on the blocking pool, since that can take long.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bstr::ByteSlice;
use conf::{Arg, Diagnostic, Severity, Span};
use messages::Message;
use regular::looks::Looks;
use rt::Work;
use rustix::io::Errno;

use super::Key;
use super::kept::Kept;
use crate::api::directive::Target;
use crate::config::budget::{Budget, HTACCESS_MEMORY_LIMIT};
use crate::config::build::Build;
use crate::config::context::{Override, Places};
use crate::config::host::{Host, Server};
use crate::config::section::{Lifetime, Section};
use crate::errorlog::Verbatim;
use crate::files::path;
use crate::log::Level;
use crate::phases::subrequest;
use crate::request::{FileInfo, Request};

/// Most bytes of an `.htaccess` file; a longer one is a 403 for its folder.
pub const HTACCESS_BYTES_LIMIT: u64 = 16 * 1024 * 1024;

/// Most warnings of a file that are logged for a request.
const WARNINGS_LIMIT: usize = 16;

/// A file that has to be read before the walk can continue.
pub struct Reading {
    key: Key,
    info: FileInfo,
    directory: Vec<u8>,
    /// The previous version.
    before: Option<Kept>,
    server: Arc<Server>,
    host: Arc<Host>,
    bytes_limit: usize,
    /// The number of its first text, if what it contains is recorded.
    first_text: Option<u32>,
}

/// The files that a request has read: their contents apply to the whole request, even if the files
/// change.
#[derive(Clone, Default)]
struct ReadFiles(Vec<(Vec<u8>, Read)>);

/// The section of a file, or the status that ends the request.
type Read = Result<Arc<Section>, u16>;

/// The file at which the walk has stopped.
struct Wanted(Option<Box<Reading>>);

/// The result of a file that this request has read.
pub(super) fn read_by(request: &Request, file: &[u8]) -> Option<Read> {
    let ReadFiles(files) = request.kept()?;
    files.iter().find(|(read, _)| read == file).map(|(_, read)| read.clone())
}

/// Reads the file at which the walk has stopped, so that the walk can begin again. Returns false if
/// it has not stopped.
pub async fn read_wanted(request: &mut Request) -> bool {
    let Some(reading) = request.kept_mut().and_then(|Wanted(reading)| reading.take()) else {
        return false;
    };
    let file = reading.key.file.clone();
    let read = reading.run(request).await;
    if request.kept::<ReadFiles>().is_none() {
        request.keep(ReadFiles::default());
    }
    if let Some(ReadFiles(files)) = request.kept_mut() {
        files.push((file, read));
    }
    true
}

/// Whether the walk has stopped at a file.
pub fn wants_to_read(request: &Request) -> bool {
    request.kept().is_some_and(|Wanted(reading)| reading.is_some())
}

/// Moves the file at which a subrequest's walk has stopped to the request that created it.
pub fn leave_wanted(sub: &mut Request, to: &mut Request) {
    if let Some(reading) = sub.kept_mut().and_then(|Wanted(reading)| reading.take()) {
        reading.want(to);
    }
}

/// Passes the files that a request has read on to one that it creates.
pub fn hand_down(request: &Request, next: &mut Request) {
    if let Some(read) = request.kept::<ReadFiles>() {
        next.keep(read.clone());
    }
}

/// The outcome of a reading.
enum Outcome {
    Unreadable,
    /// The text is unchanged.
    Same,
    Parsed(Parsed),
}

struct Parsed {
    text: Arc<[u8]>,
    /// `None` if it contains an error.
    section: Option<Arc<Section>>,
    found: Vec<Diagnostic>,
    /// The memory of the section in bytes.
    bytes: usize,
    /// Its directives, for a recording.
    tree: Option<Box<conf::Tree>>,
}

impl Reading {
    pub(super) fn new(request: &Request, key: Key, info: FileInfo, directory: &[u8]) -> Reading {
        let engine = &request.engine;
        Reading {
            before: engine.htaccess.before(&key),
            key,
            info,
            directory: directory.to_vec(),
            server: engine.server.clone(),
            host: request.host.clone(),
            bytes_limit: engine.htaccess.bytes_limit(),
            first_text: engine.recorder.as_ref().map(|recorder| recorder.number_file()),
        }
    }

    /// Notes that the walk stops here.
    pub(super) fn want(self, request: &mut Request) {
        request.keep(Wanted(Some(Box::new(self))));
    }

    async fn run(self: Box<Self>, request: &mut Request) -> Read {
        let (key, info, before) = (self.key.clone(), self.info, self.before.clone());
        let engine = request.engine.clone();
        let pool = engine.handle.blocking();
        let outcome = match pool.run(Work::Htaccess, move || self.read_counted()).await {
            Ok((outcome, looks)) => {
                looks.take_over();
                outcome
            }
            Err(why) => {
                let why = format!("an .htaccess file was not read: {why}");
                request.log_core(
                    Level::Error,
                    Message::HtaccessUnread.number(),
                    &why,
                    Some(&key.file),
                );
                return Err(503);
            }
        };
        match (outcome, before) {
            (Outcome::Same, Some(before)) => {
                engine.htaccess.confirm(&key, info, request.time_us);
                Ok(before.section)
            }
            (Outcome::Parsed(parsed), _) => {
                let Parsed { text, section, found, bytes, tree } = parsed;
                for severity in [Severity::Warning, Severity::Error] {
                    log(request, &key.file, &found, severity);
                }
                let Some(section) = section else {
                    engine.htaccess.forget(&engine.plans, &key);
                    return Err(500);
                };
                if let Some((recorder, tree)) = engine.recorder.as_ref().zip(tree) {
                    recorder.keep_file(section.id, *tree);
                }
                Ok(keep(request, &key, info, (text, section, bytes)))
            }
            _ => Err(unreadable(request, &key.file)),
        }
    }

    /// Reads the file, and counts what this thread asks for it.
    fn read_counted(&self) -> (Outcome, Looks) {
        let before = Looks::so_far();
        let outcome = self.read();
        (outcome, before.since())
    }

    fn read(&self) -> Outcome {
        let Some(text) = text_of(&self.key.file, self.info) else { return Outcome::Unreadable };
        if self.before.as_ref().is_some_and(|before| *before.text == *text) {
            return Outcome::Same;
        }
        let taken = Budget::of(usize::MAX);
        let (dir, tree, found) = self.parse(&text, Budget::of(HTACCESS_MEMORY_LIMIT));
        let is_lasting = !tree.looked_at_files;
        let bytes = taken.taken();
        let lifetime = match is_lasting && bytes + text.len() < self.bytes_limit {
            true => Lifetime::Kept,
            false => Lifetime::Request,
        };
        let section = dir.map(|dir| Section::of_htaccess(dir, lifetime));
        let tree = self.first_text.map(|_| Box::new(tree));
        Outcome::Parsed(Parsed { text: text.into(), section, found, bytes, tree })
    }

    /// Returns the configuration if there is no error, the directives, and the findings.
    fn parse(
        &self,
        text: &[u8],
        budget: Budget,
    ) -> (Option<crate::config::registry::Slots>, conf::Tree, Vec<Diagnostic>) {
        let (server, Key { allow, list, file, .. }) = (&self.server, &self.key);
        let mut questions = Questions { registry: &server.registry, reading: self };
        let (tree, mut found) = conf::read_htaccess(
            text,
            path::as_path(file),
            &mut questions,
            &server.defines,
            &server.macros,
            &server.server_root,
        );
        let mut build = Build::new(server.registry.clone(), &tree, true);
        build.budget = Some(budget);
        build.defined = server.defined.clone();
        build.regex_flags = pcre::Flags { interpreted: true, ..server.regex_flags };
        build.methods = server.methods.clone();
        let mut of_host = self.host.server.clone();
        let mut dir = server.registry.empty_dir();
        let mut target = Target {
            server: &mut of_host,
            dir: &mut dir,
            place: Places::HTACCESS,
            container: None,
            path: Some(self.directory.clone()),
            limited: None,
            allowed: allow.classes,
            allowed_options: allow.options,
            allowed_names: list.clone(),
            nonfatal: allow.nonfatal,
            nonfatal_unknown: allow.nonfatal_unknown,
            span: Span::default(),
            directive: "",
            build: &mut build,
        };
        target.apply(&tree.nodes);
        found.append(&mut build.diagnostics);
        let failed = found.iter().any(|one| one.severity == Severity::Error);
        ((!failed).then_some(dir), tree, found)
    }
}

/// Caches a parsed file if possible; returns the section in force.
fn keep(
    request: &mut Request,
    key: &Key,
    info: FileInfo,
    parsed: (Arc<[u8]>, Arc<Section>, usize),
) -> Arc<Section> {
    let engine = request.engine.clone();
    let (cache, plans) = (&engine.htaccess, &engine.plans);
    if parsed.1.lifetime == Lifetime::Request {
        // Other requests read it themselves; none may get a copy of this one's response.
        request.depends.pure = false;
        cache.forget(plans, key);
        return parsed.1;
    }
    // Another request may have read the same meanwhile.
    if let Some(kept) = cache.before(key).filter(|kept| kept.text == parsed.0) {
        cache.confirm(key, info, request.time_us);
        return kept.section;
    }
    let section = parsed.1.clone();
    cache.keep(plans, key.clone(), info, parsed, request.time_us);
    section
}

/// Logs the findings of one severity. Every request to the folder does: since a file may consist of
/// wrong lines, only the first error is logged in full, as in Apache, which stops there, and a
/// limited number of warnings.
fn log(request: &Request, file: &[u8], found: &[Diagnostic], severity: Severity) {
    let shown = match severity {
        Severity::Error => 1,
        Severity::Warning => WARNINGS_LIMIT,
    };
    let of_kind: Vec<_> = found.iter().filter(|one| one.severity == severity).collect();
    for (at, one) in of_kind.iter().take(shown).enumerate() {
        let is_last = at + 1 == shown;
        request.log_htaccess(file, one, if is_last { of_kind.len() - shown } else { 0 });
    }
}

fn text_of(file: &[u8], info: FileInfo) -> Option<Vec<u8>> {
    if info.size > HTACCESS_BYTES_LIMIT {
        return None;
    }
    let mut text = Vec::with_capacity(usize::try_from(info.size).ok()? + 1);
    let opened = regular::open(path::as_path(file)).ok()?;
    opened.take(HTACCESS_BYTES_LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}

pub(super) fn unreadable(request: &mut Request, file: &[u8]) -> u16 {
    let opened = regular::open(path::as_path(file));
    let error = opened.err().and_then(|error| error.raw_os_error());
    let errno = error.map_or(Errno::FBIG, Errno::from_raw_os_error);
    let directory = Verbatim::new(subrequest::parent(file));
    let file = Verbatim::new(file);
    if errno == regular::NOT_REGULAR {
        let server = &request.engine.server;
        let why = format_args!("Access to file {file} denied by server: not a regular file");
        server.log("core.c", Level::Error, 554, why);
    }
    let why = format_args!(
        "{file} pcfg_openfile: unable to check htaccess file, ensure it is readable and that \
         '{directory}' is executable"
    );
    request.log_core_error(Level::Crit, 529, errno, why);
    403
}

/// The queries of the reader about an `.htaccess`.
struct Questions<'s> {
    registry: &'s crate::config::registry::Registry,
    reading: &'s Reading,
}

impl conf::Host for Questions<'_> {
    fn module_active(&self, name: &conf::BStr) -> bool {
        self.registry.is_active(&name.to_string())
    }
    fn directive_known(&self, name: &conf::BStr) -> bool {
        let name = name.strip_prefix(b"<").unwrap_or(name);
        self.registry.row(&name.to_str_lossy()).is_some()
    }
    /// Conditions and macros belong to all classes: if none is allowed, they must be listed.
    fn allowed(&self, name: &conf::BStr) -> bool {
        let Key { allow, list, .. } = &self.reading.key;
        let listed = list.as_ref().is_some_and(|names| {
            names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        });
        listed || allow.classes.intersects(Override::ALL)
    }
    fn first_file(&self) -> u32 {
        self.reading.first_text.unwrap_or_default()
    }
    fn forgives(&self) -> bool {
        self.reading.key.allow.nonfatal != Override::NONE
    }
    fn load_module(&mut self, name: &Arg, _: &Path) -> Result<(), Box<Diagnostic>> {
        Err(Box::new(name.error("LoadModule not allowed here")))
    }
}
