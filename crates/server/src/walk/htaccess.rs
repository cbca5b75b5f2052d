//! `.htaccess` files: found, parsed, and kept as long as they have not changed.
//!
//! Source: `ap_parse_htaccess` (server/config.c).

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use bstr::ByteSlice;
use conf::{Severity, Span};

use crate::build::Build;
use crate::core::AllowOverride;
use crate::directive::Target;
use crate::log::Level;
use crate::path::{self, StatError};
use crate::request::{FileInfo, FileKind, Request};
use crate::scope::{Override, Places};
use crate::section::{Matches, Section};

/// The most parsed `.htaccess` files that a loop keeps; at the limit it starts over.
pub const HTACCESS_LIMIT: usize = 4096;

/// The longest `.htaccess` file, in bytes; a longer one is a 500 for its folder.
pub const HTACCESS_BYTES_LIMIT: u64 = 16 * 1024 * 1024;

/// A file whose modification is younger than this when it is read may change again without a trace
/// in its time stamp; it is not kept.
const SETTLED_US: u64 = 1_000_000;

/// The parsed `.htaccess` files of one loop.
#[derive(Default)]
pub struct HtaccessCache {
    parsed: RefCell<HashMap<Key, Kept>>,
}

/// A file is parsed anew under other AllowOverride rules.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    host: u32,
    path: Vec<u8>,
    classes: Override,
    options: Option<u16>,
    list: Option<Vec<String>>,
}

#[derive(Clone)]
struct Kept {
    info: FileInfo,
    section: Arc<Section>,
}

/// The section that a directory's `.htaccess` makes; `None` where there is none. A file that can't
/// be read is a 403, one with an error a 500, each with its line in the error log.
pub fn of_directory(
    request: &mut Request,
    directory: &[u8],
    allow: AllowOverride,
    list: Option<Arc<Vec<String>>>,
) -> Result<Option<Arc<Section>>, u16> {
    let host = request.host.clone();
    for name in host.core.access_file_names() {
        let mut file = directory.to_vec();
        file.extend_from_slice(name);
        request.trace_path(&file);
        let info = match path::stat(&file) {
            Ok(info) if info.kind == FileKind::Regular => info,
            Err(StatError::Missing | StatError::SymlinkForbidden) => continue,
            Ok(_) | Err(_) => return Err(unreadable(request, &file)),
        };
        return section_of(request, file, info, directory, allow, list).map(Some);
    }
    Ok(None)
}

fn section_of(
    request: &mut Request,
    file: Vec<u8>,
    info: FileInfo,
    directory: &[u8],
    allow: AllowOverride,
    list: Option<Arc<Vec<String>>>,
) -> Result<Arc<Section>, u16> {
    let key = Key {
        host: request.host.id,
        path: file,
        classes: allow.classes,
        options: allow.options.map(|flags| flags.0),
        list: list.as_deref().cloned(),
    };
    let engine = request.engine.clone();
    if let Some(kept) = engine.htaccess.parsed.borrow().get(&key).filter(|kept| kept.info == info) {
        return Ok(kept.section.clone());
    }
    let section = parse(request, &key.path, info, directory, allow, list)?;
    let settled = request.time_us.saturating_sub(info.mtime_us.max(info.ctime_us)) > SETTLED_US;
    let mut parsed = engine.htaccess.parsed.borrow_mut();
    if parsed.len() >= HTACCESS_LIMIT {
        parsed.clear();
    }
    if settled {
        parsed.insert(key, Kept { info, section: section.clone() });
    } else {
        parsed.remove(&key);
    }
    Ok(section)
}

fn parse(
    request: &mut Request,
    file: &[u8],
    info: FileInfo,
    directory: &[u8],
    allow: AllowOverride,
    list: Option<Arc<Vec<String>>>,
) -> Result<Arc<Section>, u16> {
    let Some(text) = read(file, info) else { return Err(unreadable(request, file)) };
    let server = request.engine.server.clone();
    let mut questions = Questions { registry: &server.registry, allow: &allow, list: &list };
    let (name, defines, macros) = (path::as_path(file), &server.defines, &server.macros);
    let (tree, mut found) = conf::read_htaccess(&text, name, &mut questions, defines, macros);
    let mut build = Build::new(server.registry.clone(), &tree, true);
    build.server_root = server.server_root.clone();
    build.defined = server.defined.clone();
    build.regex_flags = server.regex_flags;
    build.methods = server.methods.clone();
    let mut of_host = request.host.server.clone();
    let mut dir = server.registry.empty_dir();
    let mut target = Target {
        server: &mut of_host,
        dir: &mut dir,
        place: Places::HTACCESS,
        container: None,
        path: Some(directory.to_vec()),
        limited: None,
        allowed: allow.classes,
        allowed_options: allow.options,
        allowed_names: list,
        nonfatal: allow.nonfatal,
        nonfatal_unknown: allow.nonfatal_unknown,
        span: Span::default(),
        directive: "",
        build: &mut build,
    };
    target.apply(&tree.nodes);
    found.append(&mut build.diagnostics);
    let mut failed = false;
    for one in &found {
        failed |= one.severity == Severity::Error;
        request.log_htaccess(file, one);
    }
    if failed { Err(500) } else { Ok(Section::new(Matches::Always, dir, Span::default())) }
}

fn read(file: &[u8], info: FileInfo) -> Option<Vec<u8>> {
    if info.size > HTACCESS_BYTES_LIMIT {
        return None;
    }
    let mut text = Vec::with_capacity(usize::try_from(info.size).ok()? + 1);
    let opened = std::fs::File::open(path::as_path(file)).ok()?;
    opened.take(HTACCESS_BYTES_LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}

fn unreadable(request: &mut Request, file: &[u8]) -> u16 {
    let why = "pcfg_openfile: unable to check htaccess file, ensure it is readable and that its \
               directory is executable";
    let file = String::from_utf8_lossy(file).into_owned();
    request.log_core(Level::Crit, 529, &format!("{file} {why}"), None);
    403
}

/// What reading an `.htaccess` may ask of the server.
struct Questions<'s> {
    registry: &'s crate::slots::Registry,
    allow: &'s AllowOverride,
    list: &'s Option<Arc<Vec<String>>>,
}

impl conf::Host for Questions<'_> {
    fn module_active(&self, name: &conf::BStr) -> bool {
        self.registry.is_active(&name.to_string())
    }
    fn directive_known(&self, name: &conf::BStr) -> bool {
        let name = name.strip_prefix(b"<").unwrap_or(name);
        self.registry.row(&name.to_str_lossy()).is_some()
    }
    /// Conditions and macros are of all classes: with none allowed, they have to be listed.
    fn allowed(&self, name: &conf::BStr) -> bool {
        let listed = self.list.as_ref().is_some_and(|names| {
            names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        });
        listed || self.allow.classes.intersects(Override::ALL)
    }
    fn load_module(&mut self, _: &conf::BStr, _: &std::path::Path) -> Result<(), String> {
        Err("LoadModule not allowed here".to_owned())
    }
}
