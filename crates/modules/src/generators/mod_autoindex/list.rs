//! The contents of a directory, as far as the client may see them.
//!
//! Source: `make_parent_entry`, `make_autoindex_entry`.

use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use conf::fnmatch::{Flags as MatchFlags, fnmatch};
use rt::Work;
use server::path;
use server::request::{FileInfo, FileKind, Request};
use server::subrequest;

use super::DirConfig;
use super::describe;
use super::entry::Entry;
use super::item::{self, DIRECTORY, Facts};
use super::options::Flags;
use super::query::Wanted;
use super::title;
use super::turns::Turns;

/// Most entries of a directory that are read.
const ENTRIES_MAX: usize = 1_000_000;

/// A name in a directory.
pub struct Name {
    name: Vec<u8>,
    is_directory: bool,
    /// What a link leads to.
    target: Option<FileInfo>,
}

/// Reads a directory, without its dangling links. Blocks.
///
/// # Errors
/// Those of opening the directory.
pub fn read(directory: &[u8]) -> io::Result<Vec<Name>> {
    let entries = std::fs::read_dir(path::as_path(directory))?;
    let names = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let kind = entry.file_type().ok()?;
        let target = match kind.is_symlink() {
            true => Some(path::stat(entry.path().as_os_str().as_bytes()).ok()?),
            false => None,
        };
        let is_directory = match &target {
            Some(target) => target.kind == FileKind::Directory,
            None => kind.is_dir(),
        };
        Some(Name { name: entry.file_name().into_vec(), is_directory, target })
    });
    Ok(names.take(ENTRIES_MAX).collect())
}

/// The entry of the parent directory; `None` at the root, or if it is ignored.
pub fn parent(config: &DirConfig, request: &Request, flags: Flags) -> Option<Entry> {
    let uri = request.resource.uri.as_slice();
    let bare = uri.strip_suffix(b"/").unwrap_or(uri);
    let above = bare.iter().rposition(|byte| *byte == b'/')?;
    let path = [&request.resource.filename, &b".."[..]].concat();
    if config.ignored.has(&path) {
        return None;
    }
    let mut entry =
        Entry { name: bare.get(..=above).unwrap_or_default().to_vec(), ..Entry::default() };
    if flags.has(Flags::FANCY) {
        let find = |items| {
            let own = item::find(items, &Facts::path(&path));
            own.or_else(|| item::find(items, &Facts::path(DIRECTORY))).map(<[u8]>::to_vec)
        };
        entry.icon = find(&config.icons);
        entry.alt = Some(find(&config.alts).unwrap_or_else(|| b"PARENTDIR".to_vec()));
        entry.description = describe::find(&config.descriptions, &path).map(<[u8]>::to_vec);
    }
    Some(entry)
}

/// The entries for those of `names` that are shown.
pub async fn entries(
    config: &DirConfig,
    request: &mut Request,
    wanted: &Wanted,
    names: Vec<Name>,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut untitled = Vec::new();
    let mut turns = Turns::begin();
    for name in names {
        turns.give().await;
        if !is_wanted(config, request, wanted, &name.name) {
            continue;
        }
        let Some((entry, page)) = look_up(config, request, wanted.flags, name).await else {
            continue;
        };
        if let Some(page) = page {
            untitled.push((entries.len(), page));
        }
        entries.push(entry);
    }
    if !untitled.is_empty() {
        let pool = request.engine.handle.blocking().clone();
        let titles = pool.run(Work::File, move || title::read_all(&untitled)).await;
        for (index, title) in titles.unwrap_or_default() {
            if let Some(entry) = entries.get_mut(index) {
                entry.description = Some(title);
            }
        }
    }
    entries
}

fn is_wanted(config: &DirConfig, request: &Request, wanted: &Wanted, name: &[u8]) -> bool {
    const HOW: MatchFlags =
        MatchFlags { pathname: false, period: true, ignoring_case: false, no_escape: true };
    if matches!(name, b"." | b"..") {
        return false;
    }
    let fits = |pattern: &Vec<u8>| fnmatch(pattern, name, HOW);
    wanted.pattern.as_ref().is_none_or(fits)
        && !config.ignored.has(&[&request.resource.filename, name].concat())
}

/// Looks a name up by a subrequest. Returns the entry, and the file whose title is to be read.
async fn look_up(
    config: &DirConfig,
    request: &mut Request,
    flags: Flags,
    name: Name,
) -> Option<(Entry, Option<Vec<u8>>)> {
    let path = [request.resource.filename.as_slice(), &name.name].concat();
    let mut shown = name.name;
    if name.is_directory {
        shown.push(b'/');
    }
    let sub = subrequest::lookup_listed(request, &shown).await;
    let forbidden = flags.has(Flags::SHOW_FORBIDDEN) && matches!(sub.response.status, 401 | 403);
    let can_be_had = matches!(sub.response.status, 200..=399) || forbidden;
    // A link that must not be followed still shows what it leads to.
    let file = match name.target {
        Some(target) if sub.resource.file.kind == FileKind::None => target,
        _ => sub.resource.file,
    };
    if !can_be_had || !matches!(file.kind, FileKind::Directory | FileKind::Regular) {
        return None;
    }
    let mut entry = Entry { name: shown, ..Entry::default() };
    if !flags.has(Flags::FANCY) && !flags.has(Flags::TABLE) {
        return Some((entry, None));
    }
    entry.mtime_us = Some(file.mtime_us);
    // A rule of the directory may have given it another name (`redirect:/…`).
    let path = if name.is_directory { &path } else { &sub.resource.filename };
    let facts = Facts {
        path,
        media_type: sub.response.content_type.as_deref(),
        encoding: sub.response.content_encoding.as_deref(),
        path_only: name.is_directory,
    };
    let own = |items| item::find(items, &facts).map(<[u8]>::to_vec);
    entry.icon = own(&config.icons);
    entry.alt = own(&config.alts);
    if name.is_directory {
        let default = |items| item::find(items, &Facts::path(DIRECTORY)).map(<[u8]>::to_vec);
        entry.icon = entry.icon.or_else(|| default(&config.icons));
        entry.alt = entry.alt.or_else(|| default(&config.alts)).or_else(|| Some(b"DIR".to_vec()));
        entry.is_folder = flags.has(Flags::FOLDERS_FIRST);
    } else {
        entry.size = Some(file.size);
    }
    entry.description = describe::find(&config.descriptions, path).map(<[u8]>::to_vec);
    let is_page = sub.response.status == 200
        && sub.response.content_encoding.is_none()
        && sub.response.content_type.as_deref().is_some_and(is_html);
    let scan = flags.has(Flags::SCAN_TITLES) && entry.description.is_none() && is_page;
    Some((entry, scan.then_some(sub.resource.filename)))
}

fn is_html(media_type: &[u8]) -> bool {
    let start = media_type.get(..9).unwrap_or_default();
    start.eq_ignore_ascii_case(b"text/html") || media_type == b"text/x-server-parsed-html"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_directory_is_one_and_a_dangling_one_is_left_out() {
        let place = std::env::temp_dir().join(format!("tamarack-index-{}", std::process::id()));
        std::fs::create_dir_all(place.join("sub")).unwrap();
        let _ = std::os::unix::fs::symlink("sub", place.join("link"));
        let _ = std::os::unix::fs::symlink("nowhere", place.join("dead"));
        std::fs::write(place.join("a.txt"), "a").unwrap();
        let mut names = read(place.to_str().unwrap().as_bytes()).unwrap();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        let found: Vec<_> = names.iter().map(|n| (n.name.as_slice(), n.is_directory)).collect();
        let _ = std::fs::remove_dir_all(&place);
        let wanted: [(&[u8], bool); 3] = [(b"a.txt", false), (b"link", true), (b"sub", true)];
        assert_eq!(found, wanted);
        assert!(read(b"/nowhere/at/all").is_err());
    }
}
