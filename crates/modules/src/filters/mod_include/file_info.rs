//! `fsize` and `flastmod`.
//!
//! Source: `handle_fsize`, `handle_flastmod`, `find_file`

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::{FileInfo, FileKind};
use server::subrequest;
use wire::Method;

use super::page::Page;
use super::parse::Element;
use super::{clock, entity};
use crate::generators::mod_autoindex::text::size as size_text;

/// `<!--#fsize virtual|file="…" … -->`
pub(super) async fn size(page: &mut Page<'_>, element: &Element) {
    if !page.begins(element, 1, (1350, "missing argument for fsize element in")) {
        return;
    }
    for (name, value) in element.values() {
        let Some(file) = find(page, "fsize", name, value).await else { return page.fail() };
        let text = match page.has_sizes_in_bytes {
            true => grouped(file.size),
            false => size_text(Some(file.size)),
        };
        page.out.put(text.as_bytes());
    }
}

/// `<!--#flastmod virtual|file="…" … -->`
pub(super) async fn last_modified(page: &mut Page<'_>, element: &Element) {
    if !page.begins(element, 1, (1351, "missing argument for flastmod element in")) {
        return;
    }
    for (name, value) in element.values() {
        let Some(file) = find(page, "flastmod", name, value).await else { return page.fail() };
        let text = clock::format(file.mtime_us, &page.time_format, false);
        page.out.put(&text);
    }
}

/// Finds the file of an argument; why there is none is logged.
async fn find(page: &mut Page<'_>, tag: &str, name: &[u8], value: &[u8]) -> Option<FileInfo> {
    let asked = page.substituted(&entity::decoded(value));
    let (shown, document) = (Verbatim::new(&asked), page.file());
    let failed = |page: &Page<'_>, number, what: &str| {
        let text = format_args!("{what} \"{shown}\" in parsed file {document}");
        page.log(Level::Error, number, text);
    };
    let found = match name {
        b"file" => {
            let Some(path) = below(&asked) else {
                failed(page, 2668, "unable to access file");
                return None;
            };
            let sub = subrequest::lookup_below(&mut page.request, &path).await;
            if path.is_empty() || !is_found(sub.response.status, sub.resource.file.kind) {
                failed(page, 2670, "unable to lookup information about");
                return None;
            }
            sub.resource.file
        }
        b"virtual" => {
            let sub = subrequest::lookup_uri(&mut page.request, &asked, Method::GET).await;
            if !is_found(sub.response.status, sub.resource.file.kind) {
                failed(page, 1339, "unable to get information about");
                return None;
            }
            sub.resource.file
        }
        _ => {
            let name = Verbatim::new(name);
            let text = format_args!("unknown parameter \"{name}\" to tag {tag} in {document}");
            page.log(Level::Error, 1340, text);
            return None;
        }
    };
    Some(found)
}

fn is_found(status: u16, kind: FileKind) -> bool {
    status == 200 && kind != FileKind::None
}

/// A path of a file in the folder of the page or below, without its dots; `None` for others.
///
/// Source: `apr_filepath_merge` with `APR_FILEPATH_SECUREROOTTEST` and `APR_FILEPATH_NOTABSOLUTE`
pub(super) fn below(path: &[u8]) -> Option<Vec<u8>> {
    if path.first() == Some(&b'/') {
        return None;
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let ends_open = path.ends_with(b"/");
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                kept.pop()?;
            }
            segment => kept.push(segment),
        }
    }
    let mut path = kept.join(&b'/');
    if ends_open && !path.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_folder() {
        let path = |text: &str| below(text.as_bytes()).map(|path| String::from_utf8(path).unwrap());
        assert_eq!(path("a/./b//../c").as_deref(), Some("a/c"));
        assert_eq!(path("a/").as_deref(), Some("a/"));
        assert_eq!(path(""), Some(String::new()));
        for refused in ["/a", "../a", "a/../../b", ".."] {
            assert_eq!(path(refused), None, "{refused}");
        }
    }

    #[test]
    fn digits_are_grouped() {
        let all = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in all {
            assert_eq!(grouped(number), text);
        }
    }
}
