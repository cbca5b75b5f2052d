//! What sites usually have: directives that do something together.

use crate::choice::Choice;
use crate::generate::{nodes, of_all_files};
use crate::rows::{HTACCESS, SECTION, rewriting};
use crate::site::{Content, Edit, File, Node, Request, Site};
use crate::tree::made;

/// What most sites say of the folder that they serve.
pub fn documents(choice: &mut Choice) -> Node {
    let mut inner = nodes(choice, SECTION, 2, 3);
    if choice.random.percent(85) {
        let classes =
            choice.one(&["All", "All", "All", "All", "All", "FileInfo AuthConfig Limit Indexes"]);
        inner.insert(0, Node::directive("AllowOverride", classes));
    }
    if choice.random.percent(60) {
        let options = choice.one(&[
            "+Indexes",
            "Indexes FollowSymLinks MultiViews",
            "+MultiViews +SymLinksIfOwnerMatch",
            "+Indexes +SymLinksIfOwnerMatch",
        ]);
        inner.insert(0, Node::directive("Options", options));
    }
    Node::section("Directory", "\"@SITE@/htdocs\"", inner)
}

/// Who may follow links.
pub fn links(choice: &mut Choice) -> Node {
    let options = choice.one(&[
        "+SymLinksIfOwnerMatch",
        "+SymLinksIfOwnerMatch",
        "FollowSymLinks SymLinksIfOwnerMatch Indexes",
        "-FollowSymLinks",
        "-FollowSymLinks +SymLinksIfOwnerMatch",
    ]);
    let (name, words) = match choice.random.below(3) {
        0 => ("Location", "/".to_owned()),
        1 => ("Directory", choice.folder()),
        _ => ("Directory", "\"@SITE@/htdocs\"".to_owned()),
    };
    Node::section(name, words, vec![Node::directive("Options", options)])
}

/// A log of its own. Lengths of bodies are not in it: those of error pages are the server's own.
pub fn log(choice: &mut Choice) -> Node {
    const WORDS: [&str; 21] = [
        "\\\"%r\\\"",
        "%>s",
        "%s",
        "%u",
        "%l",
        "%m",
        "%U%q",
        "%H",
        "%f",
        "%{User-Agent}i",
        "%{Referer}i",
        "%{X-A}o",
        "%{V}e",
        "%R",
        "%v",
        "%k",
        "%200,206B",
        "%!200,304{Range}i",
        "%{UNIQUE_ID}e",
        "%{cookie}n",
        "%{forensic-id}n",
    ];
    let mut words = vec!["%h", "\\\"%r\\\"", "%>s"];
    words.extend((0..choice.random.below(5)).map(|_| choice.one(&WORDS)));
    let when = choice.one(&["", "", "", "", " env=!bad", " env=V"]);
    Node::directive("CustomLog", format!("logs/@HOST@.log \"{}\"{when}", words.join(" ")))
}

/// Several languages, with what is to be served of them.
pub fn languages(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![
        Node::directive("AddLanguage", "en .en"),
        Node::directive("AddLanguage", "de .de"),
        Node::directive("Options", "+MultiViews"),
    ];
    if choice.random.percent(50) {
        let order = choice.some(&["en", "de", "fr"], 3);
        nodes.push(Node::directive("LanguagePriority", order));
        let force = choice.one(&["Prefer", "Fallback", "Prefer Fallback", "None"]);
        nodes.push(Node::directive("ForceLanguagePriority", force));
    }
    nodes
}

/// Changes of the folder between requests, each followed by a look at what it changed.
pub fn changes(choice: &mut Choice, requests: &mut [Request]) {
    for at in 0..4 + choice.random.below(6) {
        let path = choice.random.pick(&choice.paths.clone());
        let folder = choice.random.pick(&choice.folders.clone());
        let name = choice.one(&["a.txt", "index.html", "new.html", "page.html.de", "n"]);
        let edit = match choice.random.below(8) {
            0..=2 => {
                let nodes = nodes(choice, HTACCESS, 1, 2);
                Edit::Htaccess(format!("htdocs{folder}.htaccess"), nodes)
            }
            3 => Edit::Remove(format!("htdocs{folder}.htaccess")),
            4 => Edit::Write(format!("htdocs{folder}{name}"), format!("change {at}\n")),
            5 if !path.ends_with('/') => {
                Edit::Rename(format!("htdocs{path}"), format!("htdocs{folder}{name}"))
            }
            6 if !path.ends_with('/') => Edit::Remove(format!("htdocs{path}")),
            _ => Edit::Remove(format!("htdocs{folder}{name}")),
        };
        // Names with a space can't be written in a test file.
        let is_plain = |path: &String| !path.contains(' ');
        let is_writable = match &edit {
            Edit::Write(path, _) | Edit::Htaccess(path, _) | Edit::Remove(path) => is_plain(path),
            Edit::Rename(from, to) => is_plain(from) && is_plain(to),
        };
        let request = choice.random.below(requests.len());
        if let Some(request) = requests.get_mut(request).filter(|_| is_writable) {
            request.is_pipelined = false;
            request.change = Some(edit);
        }
    }
}

/// A file of the future without a tag, which is asked for again some seconds later.
pub fn future(choice: &mut Choice, site: &mut Site, requests: &mut Vec<Request>) {
    let files: Vec<&mut File> = site.files.iter_mut().filter(|file| is_plain_text(file)).collect();
    let at = choice.random.below(files.len().max(1));
    let Some(file) = files.into_iter().nth(at) else { return };
    file.options = vec![("mtime".to_owned(), "2038-05-06T07:08:09".to_owned())];
    let target = file.path.trim_start_matches("htdocs").as_bytes().to_vec();
    if choice.random.percent(75) {
        // Most other directives keep the response from being served from a cache.
        site.config.clear();
        site.files.retain(|file| !matches!(file.content, Content::Htaccess(_)));
    }
    site.config.push(Node::directive("FileETag", "None"));
    let via = requests.last().map(|last| last.via.clone()).unwrap_or_default();
    let request = |waits| Request {
        method: "GET".to_owned(),
        target: target.clone(),
        version: "HTTP/1.1".to_owned(),
        fields: vec![("Host".to_owned(), b"@HOST@".to_vec())],
        via: via.clone(),
        waits,
        ..Request::default()
    };
    requests.extend([false, false, true].map(request));
}

/// A file of `htdocs` with a name that needs no escapes.
fn is_plain_text(file: &File) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    matches!(file.content, Content::Text(_))
        && file.path.starts_with("htdocs/")
        && file.path.chars().all(is_plain)
}

/// Rules, and what switches them on, in one of the places for them; `file` becomes the `.htaccess`
/// file if they are in one.
pub fn rewriting(choice: &mut Choice, file: &mut Option<File>) -> Vec<Node> {
    let mut rules = vec![Node::directive("RewriteEngine", "On")];
    if choice.random.percent(20) {
        rules.push(Node::directive("RewriteBase", choice.one(&["/", "/d/", "/d", "/al"])));
    }
    for _ in 0..1 + choice.random.below(5) {
        for _ in 0..choice.random.below(3) {
            rules.push(Node::directive("RewriteCond", rewriting::condition(choice)));
        }
        rules.push(Node::directive("RewriteRule", rewriting::rule(choice)));
    }
    let maps = [
        "low int:tolower",
        "up int:toupper",
        "esc int:escape",
        "une int:unescape",
        "t \"txt:@SITE@/map.txt\"",
        "one \"rnd:@SITE@/map.txt\"",
        "dbm \"dbm=sdbm:@SITE@/map\"",
    ];
    let mut out: Vec<Node> = maps.map(|map| Node::directive("RewriteMap", map)).into();
    let mut section = |name: &str, words: String| {
        out.push(Node::section(name, words, std::mem::take(&mut rules)));
    };
    match choice.random.below(10) {
        0 => section("Location", format!("\"{}\"", choice.one(&["/", "/d", "/a.txt"]))),
        1 => section("Files", of_all_files(choice)),
        2 => section("If", "\"true\"".to_owned()),
        3 | 4 => section("Directory", choice.folder()),
        5 | 6 => {
            let folder = choice.random.pick(&choice.folders.clone());
            let nodes = std::mem::take(&mut rules);
            *file = Some(made(format!("htdocs{folder}.htaccess"), Content::Htaccess(nodes)));
        }
        _ => {
            rules.retain(|rule| rule.name != "RewriteBase");
            out.append(&mut rules);
        }
    }
    out
}

/// A section with a login that can succeed: these directives belong together.
pub fn login(choice: &mut Choice) -> Option<Node> {
    let mut inner = vec![
        Node::directive("AuthType", "Basic"),
        Node::directive("AuthName", "\"a realm\""),
        Node::directive("AuthUserFile", "\"@SITE@/auth/users\""),
        Node::directive("AuthGroupFile", "\"@SITE@/auth/groups\""),
    ];
    inner
        .push(Node::directive("Require", choice.one(&["valid-user", "user alice", "group staff"])));
    inner.extend(nodes(choice, SECTION, 1, 2));
    let path = choice.path().replace('\\', "\\\\");
    match choice.random.below(3) {
        0 => {
            inner.retain(|node| !node.name.starts_with("Files"));
            Some(Node::section("Location", format!("\"{path}\""), inner))
        }
        1 => Some(Node::section("Directory", choice.folder(), inner)),
        _ => Some(Node::section("Files", of_all_files(choice), inner)),
    }
}
