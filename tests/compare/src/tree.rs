//! Generates the random folder of a site.

use crate::identities;
use crate::random::Random;
use crate::site::{Content, File};
use crate::special;

/// Names of files in many folders, with their contents.
const NAMES: [&str; 40] = [
    "a.txt",
    "b.html",
    "index.html",
    "index.txt",
    "c d.txt",
    "A.TXT",
    "n",
    "style.css",
    "x.php",
    "page.html.en",
    "page.html.de",
    "page.html.fr",
    "page.html",
    "page.en.txt",
    "doc.en.html",
    "doc.de.html",
    "doc.html.gz",
    "doc.txt",
    "p%41.txt",
    "q?x.txt",
    "se;mi.txt",
    "plus+.txt",
    "a&b<c>.txt",
    "back\\slash.txt",
    "tilde~",
    ".hidden",
    "README.html",
    "HEADER.html",
    "index.html.en",
    "index.html.de",
    "img.png",
    "data.json",
    "script.js",
    "evil.txt",
    "a..b",
    "z.tar.gz",
    "utf.html.utf8",
    "x.foo.bar",
    "ü.txt",
    "error.html",
];

const FOLDERS: [&str; 10] =
    ["d/", "d/sub/", "docs/", "UP/", ".git/", "e f/", "d/sub/deep/", "d.txt/", "private/", "en/"];

/// Only the handler `type-map` reads type maps.
const TYPE_MAP: &str = "URI: page\n\nURI: page.html.en\nContent-type: text/html\n\
    Content-language: en\n\nURI: page.html.de\nContent-type: text/html;qs=0.8\n\
    Content-language: de\n";

/// Password and group files, the same for all sites: the password of alice and bob is `test`.
const USERS: &str =
    "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\nbob:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n";
const GROUPS: &str = "staff: alice\nall: alice bob\n";

/// A map of names to names, the same for all sites.
const MAP: &str = "a.txt b.html\na index.html\nindex d/\nd docs/a.txt\n1 a.txt\nevil - no\n#x y\n";

/// Users with their passwords and groups, as mod_authn_dbm and mod_authz_dbm have them.
const LOGINS: [(&str, &str); 3] = [
    ("alice", "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=:staff,all"),
    ("bob", "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=:all"),
    ("root", "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=:root"),
];

/// The same as SDBM.
const DBM: [(&str, &str); 5] = [
    ("a.txt", "b.html"),
    ("a", "index.html"),
    ("index", "d/"),
    ("d", "docs/a.txt"),
    ("1", "a.txt"),
];

/// Files, folders and links of a site; `.htaccess` files are added later.
pub fn tree(random: &mut Random) -> Vec<File> {
    let mut files = vec![
        text("auth/users", USERS),
        text("auth/groups", GROUPS),
        text("map.txt", MAP),
        text("auth/dbm.dir", ""),
        text("auth/dbm.pag", &special::sdbm(&LOGINS)),
        text("map.dir", ""),
        text("map.pag", &special::sdbm(&DBM)),
    ];
    files.extend(identities::files());
    let mut folders = vec![String::new()];
    for folder in FOLDERS {
        if random.percent(35) {
            let parent = folder.trim_end_matches('/').rsplit_once('/').map(|(parent, _)| parent);
            if let Some(parent) = parent.filter(|parent| !folders.contains(&format!("{parent}/"))) {
                folders.push(format!("{parent}/"));
                files.push(made(format!("htdocs/{parent}/"), Content::Folder));
            }
            folders.push(folder.to_owned());
            files.push(made(format!("htdocs/{folder}"), Content::Folder));
        }
    }
    for folder in &folders {
        for _ in 0..1 + random.below(5) {
            let name = random.pick(&NAMES);
            add(&mut files, random, format!("htdocs/{folder}{name}"));
        }
    }
    for name in ["a.txt", "index.html", "d/b.html"] {
        if random.percent(40) {
            add(&mut files, random, format!("out/{name}"));
        }
    }
    for _ in 0..random.below(4) {
        link(&mut files, random, &folders);
    }
    if random.percent(25) {
        files.push(text("htdocs/map.var", TYPE_MAP));
    }
    special::add(&mut files, random, &folders);
    files
}

fn add(files: &mut Vec<File>, random: &mut Random, path: String) {
    if files.iter().any(|file| file.path == path) {
        return;
    }
    let content = match random.below(20) {
        0 => Content::Text(String::new()),
        1 | 2 => Content::Size(300 + random.below(9000)),
        _ if path.ends_with(".gz") => Content::Gzip("zipped\n".to_owned()),
        _ => Content::Text(format!("x {}\n", path.rsplit('/').next().unwrap_or_default())),
    };
    let mut file = made(path, content);
    let option = match random.below(30) {
        0 => Some(("mode", "0000")),
        1 => Some(("mode", "0600")),
        2 => Some(("mtime", "2023-05-06T07:08:09")),
        3 => Some(("mtime", "2038-05-06T07:08:09")),
        4 => Some(("uid", "33")),
        5 => Some(("mode", "0755")),
        _ => None,
    };
    file.options.extend(option.map(|(key, value)| (key.to_owned(), value.to_owned())));
    files.push(file);
}

/// A link to a file or a folder, inside and outside, whole and broken, with various owners.
fn link(files: &mut Vec<File>, random: &mut Random, folders: &[String]) {
    let folder = random.pick(folders);
    let name: &str = random.pick(&["l.txt", "link", "l", "index.html", "sub.html"]);
    let path = format!("htdocs/{folder}{name}");
    if files.iter().any(|file| file.path.trim_end_matches('/') == path) {
        return;
    }
    let target: &str = random.pick(&[
        "a.txt",
        "@SITE@/out",
        "@SITE@/out/a.txt",
        "nowhere",
        "..",
        ".",
        "@SITE@/htdocs/d",
        "link",
        "@SITE@/auth/users",
        "@SITE@/htdocs/a.txt",
        "d",
        "b.html",
    ]);
    let mut file = made(path, Content::Link(target.to_owned()));
    if random.percent(40) {
        file.options.push(("uid".to_owned(), "33".to_owned()));
    }
    files.push(file);
}

/// A text file.
fn text(path: &str, text: &str) -> File {
    made(path.to_owned(), Content::Text(text.to_owned()))
}

/// An entry without options.
pub fn made(path: String, content: Content) -> File {
    File { path, content, options: Vec::new() }
}
