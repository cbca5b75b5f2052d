//! The directory walk: from the root to the file, one path segment at a time.
//!
//! Source: `ap_directory_walk` (server/request.c).

use std::rc::Rc;
use std::sync::Arc;

use rustix::io::Errno;

use crate::config::core::{AllowOverride, Links};
use crate::config::section::{Matches, Section};
use crate::engine::plan::Layer;
use crate::errorlog::Verbatim;
use crate::explain::{self, Unread};
use crate::files::path::{self, StatError};
use crate::log::Level;
use crate::phases::matching::{Stop, certain};
use crate::phases::subrequest::parent;
use crate::phases::walk::entered::{Entered, Way};
use crate::phases::walk::gathered::Gathered;
use crate::phases::walk::{PATHNAME, again, enter, forbid, htaccess, match_names, symlink};
use crate::request::{FileInfo, FileKind, Request};

/// Most segments of a path; more are a 403.
pub const SEGMENT_LIMIT: usize = 512;

/// Most bytes of a path, including the NUL, as in the system (`PATH_MAX`); a longer one is a 403.
pub const PATH_LIMIT: usize = 4096;

/// Merges `<Directory>` sections and `.htaccess` files along the request's file name, shortest
/// first, then `<DirectoryMatch>`; splits the part after the file off into `path_info`.
///
/// # Errors
/// As [`locations`](super::locations).
pub fn directories(request: &mut Request) -> Result<(), Stop> {
    let Some(full) = path::canonical(&request.resource.filename) else {
        request.log_core(Level::Error, 28, "invalid path in request", None);
        return Err(Stop::Status(403));
    };
    if full.len() >= PATH_LIMIT {
        // The system refuses the whole path, regardless of its components.
        log_failed(request, &full, Errno::NAMETOOLONG);
        return Err(Stop::Status(403));
    }
    let mut here = Vec::with_capacity(full.len() + 1);
    here.push(b'/');
    let mut walk = Walk {
        before: request.layer.clone(),
        layer: request.layer.clone(),
        matching: Gathered::default(),
        here,
        found: FileInfo { kind: FileKind::Directory, ..FileInfo::default() },
        way: Way::default(),
        begun: None,
        unread: Vec::new(),
    };
    match walk.descend(request, &full) {
        Ok(path_info) => walk.finish(request, path_info),
        Err(stop) => {
            if let Stop::Status(_) = stop {
                walk.leave(request, &full);
            }
            Err(stop)
        }
    }
}

fn log_failed(request: &Request, file: &[u8], errno: Errno) {
    let (uri, file) = (Verbatim::new(&request.resource.uri), Verbatim::new(file));
    if errno == Errno::ACCESS {
        let why = format_args!(
            "access to {uri} denied (filesystem path '{file}') because search permissions are \
             missing on a component of the path"
        );
        return request.log_core_error(Level::Error, 35, errno, why);
    }
    let why = format_args!("access to {uri} failed (filesystem path '{file}')");
    request.log_core_error(Level::Error, 36, errno, why);
}

/// The state of the walk.
struct Walk {
    /// The configuration before the walk.
    before: Rc<Layer>,
    /// The configuration so far, which the next step uses.
    layer: Rc<Layer>,
    matching: Gathered,
    /// The path so far; with a trailing slash for a directory.
    here: Vec<u8>,
    /// The entry at that path.
    found: FileInfo,
    /// What it has examined.
    way: Way,
    /// The directory in which it began, if that is not the root, and the length of its path.
    begun: Option<(usize, Rc<Entered>)>,
    /// For a recording.
    unread: Vec<Unread>,
}

impl Walk {
    /// Descends along `full`, and returns the rest of it.
    fn descend(&mut self, request: &mut Request, full: &[u8]) -> Result<Vec<u8>, Stop> {
        let ends_in_slash = full.last() == Some(&b'/');
        let mut depth = self.begin(request, full)?;
        loop {
            let rest = full.get(self.here.len()..).unwrap_or_default();
            let (segment, after) = match rest.iter().position(|byte| *byte == b'/') {
                Some(slash) => (&rest[..slash], &rest[slash..]),
                None => (rest, &rest[rest.len()..]),
            };
            let (length, folder, examined) = (self.here.len(), self.found, self.way.mark());
            if segment.is_empty() {
                self.keep(request, length, (folder, depth), examined);
                return Ok(rest.to_vec());
            }
            depth += 1;
            if depth > SEGMENT_LIMIT {
                return Err(Stop::Status(403));
            }
            self.here.extend_from_slice(segment);
            let kind = self.step(request)?;
            let is_last = after.is_empty() && !ends_in_slash;
            if kind == FileKind::Directory && !is_last {
                self.here.push(b'/');
                self.enter_directory(request, depth)?;
                continue;
            }
            self.keep(request, length, (folder, depth - 1), examined);
            if kind == FileKind::Directory {
                // `GET /dir`: the directory's own configuration applies, and the name keeps its
                // form so that mod_dir can redirect.
                self.here.push(b'/');
                self.enter_directory(request, depth)?;
                self.here.pop();
                return Ok(Vec::new());
            }
            // If links are followed Apache does not examine what a segment is, and matches
            // sections for directories with the file as well.
            let links = request.core_of(&self.layer).options.flags().links();
            if kind != FileKind::None && after.is_empty() && links == Links::Followed {
                self.here.push(b'/');
                self.enter_sections(request, depth);
                self.here.pop();
            }
            return Ok(after.to_vec());
        }
    }

    /// Enters the deepest directory on the way to `full` that a walk has entered before, or the
    /// root; returns the number of slashes in its path.
    fn begin(&mut self, request: &mut Request, full: &[u8]) -> Result<usize, Stop> {
        const ROOT_DEPTH: usize = 1;
        let engine = request.engine.clone();
        // A recording shows every step.
        let found = engine.recording().is_none().then(|| engine.entered.find(request, full));
        let Some((length, entered)) = found.flatten() else {
            self.enter_directory(request, ROOT_DEPTH)?;
            return Ok(ROOT_DEPTH);
        };
        self.here.clear();
        self.here.extend_from_slice(full.get(..length).unwrap_or_default());
        self.layer = entered.layer.clone();
        self.matching = entered.matching.clone();
        self.found = entered.found;
        entered.examine(request, &mut self.way);
        let depth = entered.depth;
        self.begun = Some((length, entered));
        Ok(depth)
    }

    /// Caches the state in the directory that is the first `length` bytes of the path, before
    /// anything in it was examined, unless the walk began there.
    fn keep(
        &self,
        request: &Request,
        length: usize,
        (folder, depth): (FileInfo, usize),
        examined: Option<usize>,
    ) {
        let begun = self.begun.as_ref();
        let Some(examined) = examined.filter(|_| begun.is_none_or(|(of, _)| *of != length)) else {
            return;
        };
        let way = (begun.map(|(_, entered)| &**entered), examined);
        let state = (&self.layer, &self.matching);
        if let Some(entered) = Entered::new(&self.way, way, state, (folder, depth)) {
            let path = self.here.get(..length).unwrap_or_default();
            request.engine.entered.keep(request, &self.before, path, entered);
        }
    }

    /// Sets the request's path to the point of failure: the directory with the broken `.htaccess`,
    /// with a trailing slash, or the segment that must not be entered. The rest is path info.
    fn leave(self, request: &mut Request, full: &[u8]) {
        let is_below_root = self.here.len() > 1 && self.here.last() == Some(&b'/');
        let end = self.here.len() - usize::from(is_below_root);
        self.record(request);
        request.resource.path_info = full.get(end..).unwrap_or_default().to_vec();
        request.resource.filename = self.here;
    }

    /// Applies the sections for this directory, then its `.htaccess`.
    fn enter_directory(&mut self, request: &mut Request, depth: usize) -> Result<(), Stop> {
        self.enter_sections(request, depth);
        let core = request.core_of(&self.layer);
        let list = core.allow_override_list.get().cloned();
        // If it was never set, the files are read as well, and nothing is allowed in them.
        let allow = core.allow_override.get().copied();
        let is_closed = allow.is_some_and(AllowOverride::is_none);
        if is_closed && list.as_ref().is_none_or(|list| list.is_empty()) {
            self.record_unread(request, true);
            return Ok(());
        }
        let options = core.allow_override_options.get().copied();
        let allow = AllowOverride { options, ..allow.unwrap_or_default() };
        let way = &mut self.way;
        if let Some(section) = htaccess::of_directory(request, way, &self.here, allow, list)? {
            self.add(request, &section);
        } else {
            self.record_unread(request, false);
        }
        Ok(())
    }

    /// Notes for a recording that a directory's `.htaccess` does not apply.
    fn record_unread(&mut self, request: &Request, is_forbidden: bool) {
        if request.engine.recording().is_some() {
            self.unread.push(Unread { directory: self.here.clone(), is_forbidden });
        }
    }

    fn record(&self, request: &Request) {
        if request.engine.recording().is_some() {
            let layers = [&*self.before, &*self.layer];
            explain::directory_walk(request, &self.here, &self.unread, layers);
        }
    }

    /// Applies the sections for the path so far, with a trailing slash.
    fn enter_sections(&mut self, request: &Request, depth: usize) {
        let host = request.host.clone();
        for section in host.directories.at(depth) {
            let matched = match &section.matches {
                Matches::Path(path) => *path == self.here,
                Matches::Wildcard(pattern) => conf::fnmatch::fnmatch(pattern, &self.here, PATHNAME),
                _ => false,
            };
            if matched {
                self.add(request, section);
            }
        }
    }

    fn add(&mut self, request: &Request, section: &Arc<Section>) {
        self.matching.add(request, section);
        self.layer = self.matching.onto(request, &self.before);
    }

    /// Stats the path so far; follows a symbolic link if the options allow it.
    fn step(&mut self, request: &mut Request) -> Result<FileKind, u16> {
        let links = request.core_of(&self.layer).options.flags().links();
        let fact = request.engine.fact(&self.here);
        self.way.examine(request, &self.here, fact.as_ref());
        if links != Links::Followed {
            self.way.note_links(request);
        }
        match symlink::stat_by(fact.as_deref(), &self.here, links) {
            Ok(info) => {
                self.found = info;
                Ok(info.kind)
            }
            Err(error) => self.cannot_stat(request, error),
        }
    }

    fn cannot_stat(&mut self, request: &mut Request, error: StatError) -> Result<FileKind, u16> {
        let is_dangling = || request.engine.lstat(&self.here).is_ok_and(|entry| entry.is_symlink);
        if error == StatError::SymlinkForbidden || is_dangling() {
            let why = "Symbolic link not allowed or link target not accessible";
            // Beside the file of its request, Apache looks at a link alone, unless it dangles.
            let main = request.main.as_deref().map(|main| main.filename.as_slice());
            let prev = request.prev.as_deref().map(|prev| prev.resource.filename.as_slice());
            let own = parent(&self.here);
            let is_beside = main.or(prev).is_some_and(|known| parent(known) == own);
            let is_alone = is_beside && rustix::fs::stat(path::as_path(&self.here)).is_ok();
            let number = if is_alone { 32 } else { 37 };
            request.log_core(Level::Error, number, why, Some(&self.here));
            return Err(forbid(request));
        }
        let errno = match error {
            StatError::Missing => {
                self.found = FileInfo::default();
                return Ok(FileKind::None);
            }
            StatError::Denied => Errno::ACCESS,
            _ => rustix::fs::stat(path::as_path(&self.here)).err().unwrap_or(Errno::IO),
        };
        log_failed(request, &self.here, errno);
        Err(forbid(request))
    }

    /// Applies `<DirectoryMatch>`, and stores the results in the request.
    fn finish(mut self, request: &mut Request, path_info: Vec<u8>) -> Result<(), Stop> {
        if !request.host.directories.regexes().is_empty() {
            self.match_sections(request, &path_info)?;
        }
        self.record(request);
        if self.matching.is_some() {
            let is_there = self.found.kind != FileKind::None && path_info.is_empty();
            again::merged(request, |_, before| is_there && before.is_in(&self.folder()));
        }
        if self.here == b"/" {
            // It was entered unseen.
            self.step(request)?;
        }
        request.resource.filename = self.here;
        // A variant that is looked up has the path info of its request.
        if !path_info.is_empty() || !request.is_file_lookup() {
            request.resource.path_info = path_info;
        }
        request.resource.file = self.found;
        request.resource.canonical_filename.clone_from(&request.resource.filename);
        enter(request, self.layer);
        Ok(())
    }

    /// Matches the whole path. A look-up or an error document in the folder of its request has the
    /// sections of that: Apache repeats no walk of the same folder.
    fn match_sections(&mut self, request: &mut Request, path_info: &[u8]) -> Result<(), Stop> {
        let host = request.host.clone();
        let folder = self.folder();
        let is_there = self.found.kind != FileKind::None && path_info.is_empty();
        let before = request.kept::<MatchedSections>();
        let before = before.filter(|matched| is_there && matched.folder == folder).cloned();
        if let Some(matched) = before {
            for section in host.directories.regexes() {
                if matched.sections.contains(&section.id) {
                    self.add(request, section);
                }
            }
            return Ok(self.look_again(request)?);
        }
        let mut sections = Vec::new();
        for section in host.directories.regexes() {
            let Matches::Regex(regex) = &section.matches else { continue };
            if certain(match_names(regex, &self.here, request)?)? {
                sections.push(section.id);
                self.add(request, section);
            }
        }
        if self.found.kind == FileKind::Directory && self.here.last() != Some(&b'/') {
            // The entries of a folder that was named without its slash are walked to.
            request.forget::<MatchedSections>();
        } else {
            request.keep(MatchedSections { folder, sections });
        }
        Ok(())
    }

    /// In the folder of its request, a file may be a link only if all sections allow it, those of
    /// regular expressions included.
    fn look_again(&self, request: &mut Request) -> Result<(), u16> {
        let links = request.core_of(&self.layer).options.flags().links();
        if links == Links::Followed || self.found.kind == FileKind::Directory {
            return Ok(());
        }
        if let Some(trace) = &mut request.depends.trace {
            trace.links_matter = true;
        }
        if symlink::stat(&request.engine, &self.here, links).is_ok() {
            return Ok(());
        }
        let why = "Symbolic link not allowed or link target not accessible";
        request.log_core(Level::Error, 32, why, Some(&self.here));
        Err(forbid(request))
    }

    /// The folder of the path so far, or that folder itself, with a trailing slash.
    fn folder(&self) -> Vec<u8> {
        if self.found.kind == FileKind::Directory {
            let slash: &[u8] = if self.here.last() == Some(&b'/') { b"" } else { b"/" };
            return [&self.here, slash].concat();
        }
        let end = self.here.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        self.here.get(..end).unwrap_or_default().to_vec()
    }
}

/// The `<DirectoryMatch>` sections of a request, for look-ups in its folder.
#[derive(Clone)]
pub(in crate::phases) struct MatchedSections {
    /// With a trailing slash.
    folder: Vec<u8>,
    /// [`Section::id`]
    sections: Vec<u64>,
}
