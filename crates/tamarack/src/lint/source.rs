//! What responses of the server's own code show: source code that would be sent as text, and
//! `.htaccess` files that are not read or have errors.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use server::explain::Kind;
use server::host::{Host, Server};

use super::{Finding, Severity, files};
use crate::explain::{Answer, Session, Target, target_of, within};
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

/// The time for a response: one that takes longer is not checked.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of responses that may take longer, before no more are made.
const LATE_LIMIT: usize = 3;

/// Requests one file per extension in each folder, and each folder with an `.htaccess`.
pub fn check(loaded: &Loaded, server: &Arc<Server>, found: &mut Vec<Finding>) {
    let asked = Session::run(loaded, server.clone(), None, async |mut session| {
        let (mut sent, mut late): (Vec<(PathBuf, String)>, _) = (Vec::new(), Vec::new());
        for host in &server.hosts {
            for (file, path) in files_of(host) {
                let url = is_sent(&mut session, host, &file, &path, &mut late).await;
                sent.extend(url.map(|url| (file, url)));
            }
        }
        let mut about_files = Vec::new();
        for file in files::all(server).iter().take(ASKED_LIMIT) {
            about_files.extend(htaccess(&mut session, file, &mut late).await);
        }
        let is_given_up = late.len() >= LATE_LIMIT;
        about_files.extend(late.into_iter().map(lateness));
        if is_given_up {
            about_files.push(Finding {
                severity: Severity::Hint,
                span: None,
                about: None,
                message: format!(
                    "{LATE_LIMIT} responses took too long: no further ones were checked"
                ),
                remedy: "mend these first".to_owned(),
            });
        }
        (sent, about_files)
    });
    let Ok((sent, about_files)) = asked else { return };
    found.extend(about_files);
    let mut seen = HashSet::new();
    for (file, url) in sent {
        if seen.insert(file.clone()) {
            found.push(Finding {
                severity: Severity::Severe,
                span: None,
                about: None,
                message: format!("{} is sent as text: {url}", file.display()),
                remedy:
                    "give it a handler (SetHandler in a <FilesMatch>), deny access, or move it out \
                         of the document root"
                        .to_owned(),
            });
        }
    }
}

/// Makes a response, unless too many have taken too long; notes if it does.
async fn ask(session: &mut Session, target: &Target, late: &mut Vec<String>) -> Option<Answer> {
    if late.len() >= LATE_LIMIT {
        return None;
    }
    let answer = session.ask_within(PATIENCE, target).await;
    answer.unwrap_or_else(|_| {
        late.push(target.url.clone());
        None
    })
}

fn lateness(url: String) -> Finding {
    Finding {
        severity: Severity::Hint,
        span: None,
        about: None,
        message: format!("{url} takes more than {} s, and was not checked", PATIENCE.as_secs()),
        remedy: "look for rules in a loop, such as [N], with tamarack explain".to_owned(),
    }
}

/// The URL of a file, if its contents are sent as they are.
async fn is_sent(
    session: &mut Session,
    host: &Host,
    file: &Path,
    path: &str,
    late: &mut Vec<String>,
) -> Option<String> {
    let target = target_of(&session.server, host, path)?;
    let mut answer = ask(session, &target, late).await?;
    let request = &answer.explained.request;
    let own = request.resource.filename == file.as_os_str().as_encoded_bytes();
    let is_file = own && request.response.status == 200 && request.prev.is_none();
    let length = request.resource.file.size;
    let body = within(PATIENCE, answer.explained.body(64 * 1024 * 1024)).await.ok()??;
    (is_file && body.len() as u64 == length && length > 0).then_some(target.url)
}

/// What a request to the folder of an `.htaccess` shows of that file.
async fn htaccess(session: &mut Session, file: &Path, late: &mut Vec<String>) -> Option<Finding> {
    use std::os::unix::ffi::OsStrExt;
    let folder = file.parent()?;
    let root_of = |host: &Host| {
        let root = Path::new(std::ffi::OsStr::from_bytes(host.core.document_root.get()?));
        folder.starts_with(root).then(|| root.to_path_buf())
    };
    let server = session.server.clone();
    let (host, root) = server.hosts.iter().find_map(|host| Some((host, root_of(host)?)))?;
    let below = folder.strip_prefix(&root).ok()?.to_string_lossy();
    let path = if below.is_empty() { "/".to_owned() } else { format!("/{below}/") };
    let answer = ask(session, &target_of(&server, host, &path)?, late).await?;
    let (name, folder) = (file.to_string_lossy(), format!("{}/", folder.to_string_lossy()));
    let mut found = None;
    answer.event.each(&mut |event| {
        let is_unread = event.kind == Kind::NoHtaccess && event.outcome == "not read";
        // The cause may come first: `(13)Permission denied: FILE …`.
        let text = event.name.split_once(&*name).filter(|_| event.kind == Kind::Log);
        let text = text.map(|(_, text)| text);
        if is_unread && event.name == folder {
            found = Some(("is not read: AllowOverride None".to_owned(), "allow what it needs"));
        } else if let Some(text) = text {
            let text = text.trim_start_matches([':', ' ']);
            found = Some((format!("makes all responses below it errors: {text}"), "correct it"));
        }
    });
    let (text, remedy) = found?;
    let (severity, message) = (Severity::Hint, format!("{} {text}", session.places.short(&name)));
    let remedy = format!("{remedy}, or change AllowOverride or the rights of the file");
    Some(Finding { severity, span: None, about: None, message, remedy })
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
