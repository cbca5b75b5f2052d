//! Source code that would be sent as text, as responses of the server's own code show.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use server::host::{Host, Server};

use super::{Finding, Severity};
use crate::explain::{Session, target_of};
use crate::load::Loaded;

/// Extensions of files that are meant to be executed, or that hold secrets.
const SOURCE: [&str; 16] = [
    "php", "php3", "php4", "php5", "php7", "php8", "phtml", "inc", "pl", "py", "cgi", "jsp", "asp",
    "aspx", "env", "sql",
];

/// The maximum number of folders of a document root that are searched.
const FOLDERS_LIMIT: usize = 2_000;

/// The number of files after which the search in a document root ends.
const ASKED_LIMIT: usize = 64;

/// Requests one file per extension in each folder.
pub fn check(loaded: &Loaded, server: &Arc<Server>, found: &mut Vec<Finding>) {
    let asked = Session::run(loaded, server.clone(), None, async |mut session| {
        let mut sent: Vec<(PathBuf, String)> = Vec::new();
        for host in &server.hosts {
            for (file, path) in files_of(host) {
                let Some(target) = target_of(server, host, &path) else { continue };
                let Some(mut answer) = session.ask(&target).await else { continue };
                let request = &answer.explained.request;
                let own = request.resource.filename == file.as_os_str().as_encoded_bytes();
                let is_file = own && request.response.status == 200 && request.prev.is_none();
                let length = request.resource.file.size;
                let body = answer.explained.body(64 * 1024 * 1024).await;
                let is_whole = body.is_some_and(|body| body.len() as u64 == length);
                if is_file && is_whole && length > 0 {
                    sent.push((file, target.url.clone()));
                }
            }
        }
        sent
    });
    let mut seen = HashSet::new();
    for (file, url) in asked.unwrap_or_default() {
        if seen.insert(file.clone()) {
            found.push(Finding {
                severity: Severity::Severe,
                span: None,
                message: format!("{} is sent as text: {url}", file.display()),
                remedy:
                    "give it a handler (SetHandler in a <FilesMatch>), deny access, or move it out \
                         of the document root"
                        .to_owned(),
            });
        }
    }
}

/// One file per extension in each folder, with its path below the document root.
fn files_of(host: &Host) -> Vec<(PathBuf, String)> {
    use std::os::unix::ffi::OsStrExt;
    let Some(root) = host.core.document_root.get() else { return Vec::new() };
    let root = Path::new(std::ffi::OsStr::from_bytes(root));
    let (mut waiting, mut found) = (vec![root.to_path_buf()], Vec::new());
    let mut folders = 0;
    while let Some(folder) = waiting.pop() {
        folders += 1;
        if folders > FOLDERS_LIMIT || found.len() >= ASKED_LIMIT {
            break;
        }
        let mut ends = HashSet::new();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
            if name.contains('.') && SOURCE.contains(&end.as_str()) && ends.insert(end) {
                let below =
                    path.strip_prefix(root).map(|below| below.to_string_lossy().into_owned());
                found.extend(below.ok().map(|below| (path, format!("/{below}"))));
            }
        }
    }
    found
}
