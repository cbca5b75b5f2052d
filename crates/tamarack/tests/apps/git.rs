//! git over HTTP: git-http-backend serves clones, shallow and incremental fetches, and pushes with
//! bodies of every framing; also the same files without a program's help.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::browser::{Browser, Seen, gzipped};
use crate::compared::{FRAMING, Mask};
use crate::services::folder;
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const BACKEND: &str = "/usr/lib/git-core/git-http-backend";

const GIT: Application = Application {
    name: "git",
    needs: &[APACHE, BACKEND],
    folders: &[],
    naming: (&[], &[]),
    writable: &["/var/lib/git"],
    has_database: false,
    runs: Runs::Programs,
    // As git-http-backend(1) recommends: everyone reads, users write; packs come from the server.
    configuration: r#"
DocumentRoot @ROOT@/htdocs
SetEnv GIT_PROJECT_ROOT @ROOT@/var/lib/git
SetEnv GIT_HTTP_EXPORT_ALL
AliasMatch ^/git/(.*/objects/pack/pack-[0-9a-f]{40}\.(pack|idx))$ @ROOT@/var/lib/git/$1
ScriptAlias /git/ /usr/lib/git-core/git-http-backend/
<Directory /usr/lib/git-core>
    Require all granted
</Directory>
<Directory @ROOT@/var/lib/git>
    Require all granted
</Directory>
RewriteEngine On
RewriteCond %{QUERY_STRING} service=git-receive-pack [OR]
RewriteCond %{REQUEST_URI} /git-receive-pack$
RewriteRule ^/git/ - [E=AUTHREQUIRED:yes]
<LocationMatch "^/git/">
    Order Deny,Allow
    Deny from env=AUTHREQUIRED
    AuthType Basic
    AuthName "Git Access"
    AuthBasicProvider file
    AuthUserFile @ROOT@/users
    Require valid-user
    Satisfy Any
</LocationMatch>
"#,
    prepare,
};

const MASKS: &[Mask] = &[
    FRAMING,
    ("[0-9:]{8}\\.[0-9]{6} ", ""),
    ("http\\.c:[0-9]+ +", ""),
    ("(ETag|Last-Modified): .*", "$1"),
];

/// Commits of the large repository.
const COMMITS: usize = 200;

#[test]
fn git() {
    compare(&GIT, script, MASKS);
}

/// A large repository, an empty one, and the user who may write.
fn prepare(root: &Path) {
    // {SHA} of "secret".
    fs::write(root.join("users"), "author:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").unwrap();
    for name in ["large.git", "empty.git"] {
        folder(root, "var/lib/git", 0o755);
        let said = run(root, &["init", "--quiet", "--bare", &format!("var/lib/git/{name}")]);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
    let large = root.join("var/lib/git/large.git");
    let mut import = command(&large, &["fast-import", "--quiet"]);
    let mut import = import.stdin(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&history()).unwrap();
    assert!(import.wait().unwrap().success());
    assert!(run(&large, &["update-server-info"]).status.success());
}

/// The stream of git-fast-import(1) with commits of files that can't be compressed.
fn history() -> Vec<u8> {
    let mut stream = Vec::new();
    let mut state = 1_u32;
    for commit in 1..=COMMITS {
        let size = if commit % 100 == 0 { 4 << 20 } else { 5000 };
        let content: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(size)
        .collect();
        let head = format!(
            "commit refs/heads/master\ncommitter A <a@b> {} +0000\ndata 7\nchange\n\n\
             M 644 inline folder{}/file{commit}\ndata {size}\n",
            1_500_000_000 + commit * 1000,
            commit % 10
        );
        stream.extend_from_slice(head.as_bytes());
        stream.extend_from_slice(&content);
        stream.push(b'\n');
    }
    stream
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_DATE", "1600000000 +0000"),
        ("GIT_COMMITTER_DATE", "1600000000 +0000"),
        ("GIT_TRACE_CURL", "1"),
        ("GIT_TRACE_CURL_NO_DATA", "1"),
    ] {
        command.env(name, value);
    }
    for setting in [
        "user.name=A",
        "user.email=a@b",
        "pack.threads=1",
        "init.defaultBranch=master",
        "gc.auto=0",
    ] {
        command.args(["-c", setting]);
    }
    command.env("HOME", folder).current_dir(folder).args(words);
    command
}

fn run(folder: &Path, words: &[&str]) -> Output {
    command(folder, words).output().unwrap()
}

/// Runs git in a folder of the client's; what it sent and received is seen.
fn git_in(browser: &mut Browser, clone: &str, words: &[&str]) {
    let folder = browser.folder.join(clone);
    let address = format!("http.curloptResolve=apps.test:{}:127.0.0.1", browser.port());
    let said = run(&folder, &[&["-c", &address], words].concat());
    // Of the trace only the heads: all else depends on the machine.
    let traced = String::from_utf8_lossy(&said.stderr).into_owned();
    let is_kept = |line: &&str| {
        let is_trace = line.contains(" http.c:");
        let is_head = line.contains(" header: ");
        let varies = [": Date:", ": Server:", ": Content-Length:", ": Transfer-Encoding:"];
        let varies = line.contains("Recv") && varies.iter().any(|name| line.contains(name));
        !is_trace || is_head && !varies
    };
    let kept: Vec<&str> = traced.lines().filter(is_kept).collect();
    let body = format!("{}\n{}", kept.join("\n"), String::from_utf8_lossy(&said.stdout));
    let request = format!("git {}", words.join(" "));
    assert!(said.status.success(), "{request}\n{traced}");
    browser.seen.push(Seen { request, head: "success\r\n".to_owned(), body: body.into_bytes() });
}

fn script(browser: &mut Browser) {
    let url = |browser: &Browser, user: &str, name: &str| {
        format!("http://{user}apps.test:{}/git/{name}.git", browser.port())
    };
    let large = url(browser, "", "large");
    for version in ["0", "2"] {
        let protocol = format!("protocol.version={version}");
        let [whole, shallow, part] =
            ["whole", "shallow", "part"].map(|name| format!("{name}{version}"));
        git_in(browser, "", &["-c", &protocol, "clone", "--quiet", &large, &whole]);
        git_in(browser, "", &["-c", &protocol, "clone", "-q", "--depth=1", &large, &shallow]);
        git_in(browser, &shallow, &["-c", &protocol, "fetch", "--quiet", "--deepen=150"]);
        git_in(browser, &shallow, &["-c", &protocol, "fetch", "--quiet", "--unshallow"]);
        git_in(browser, "", &["-c", &protocol, "clone", "-q", "--filter=blob:none", &large, &part]);
        git_in(browser, &whole, &["fsck", "--no-progress"]);
        git_in(browser, &shallow, &["log", "--oneline"]);
    }
    let empty = url(browser, "author:secret@", "empty");
    push(browser, &empty);
    // A request with as many commits as have no answer is compressed.
    let whole = "whole0";
    git_in(browser, whole, &["remote", "add", "other", &empty]);
    git_in(browser, whole, &["-c", "protocol.version=0", "fetch", "--quiet", "other"]);
    git_in(browser, whole, &["push", "--quiet", "other", "master:copy"]);
    git_in(browser, "", &["ls-remote", &empty]);
    ask(browser);
}

/// Pushes with a body of a known length, and in chunks.
fn push(browser: &mut Browser, url: &str) {
    git_in(browser, "", &["clone", "--quiet", url, "writer"]);
    for (number, size) in [100, 3 << 20].into_iter().enumerate() {
        let mut state = 7_u32;
        let content: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(size)
        .collect();
        fs::write(browser.folder.join(format!("writer/file{number}")), content).unwrap();
        git_in(browser, "writer", &["add", "."]);
        git_in(browser, "writer", &["commit", "--quiet", "--message=change"]);
        let small = "http.postBuffer=65536";
        git_in(browser, "writer", &["-c", small, "push", "--quiet", "origin", "HEAD:master"]);
    }
    git_in(browser, "writer", &["push", "--quiet", "origin", "HEAD:branch", "HEAD:refs/tags/one"]);
    git_in(browser, "writer", &["push", "--quiet", "origin", "--delete", "branch"]);
}

/// What git itself does not ask.
fn ask(browser: &mut Browser) {
    for path in [
        "/git/large.git/HEAD",
        "/git/large.git/info/refs",
        "/git/large.git/objects/info/packs",
        "/git/large.git/info/refs?service=git-upload-pack",
        "/git/large.git/info/refs?service=git-receive-pack",
        "/git/large.git/info/refs?service=git-none",
        "/git/large.git/none",
        "/git/none.git/HEAD",
        "/git/large.git/../../../../etc/passwd",
        "/git/large.git/%2e%2e/empty.git/HEAD",
        "/git/large.git/objects/%2e%2e%2fHEAD",
        "/git/",
        "/git",
        "/git/large.git",
    ] {
        browser.get(path);
        browser.send("HEAD", path, "", b"");
    }
    let packs = browser.get("/git/large.git/objects/info/packs").text();
    let pack = packs.split_whitespace().nth(1).unwrap();
    let pack = format!("/git/large.git/objects/pack/{pack}");
    browser.get(&pack);
    browser.get_with(&pack, "Range: bytes=1000000-1000999\r\n");
    browser.get_with(&pack, "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n");
    let refs = b"0014command=ls-refs\n0000";
    let kind = "Content-Type: application/x-git-upload-pack-request\r\nGit-Protocol: version=2\r\n";
    let path = "/git/large.git/git-upload-pack";
    browser.send("POST", path, kind, refs);
    browser.post_in_chunks(path, kind, refs);
    let coded = format!("{kind}Content-Encoding: gzip\r\n");
    browser.send("POST", path, &coded, &gzipped(refs));
    browser.send("POST", path, &coded, b"not compressed");
    // With a body that it does not read, Apache's mod_cgid may lose what it writes.
    browser.send("POST", path, "Content-Type: text/plain\r\n", b"");
    browser.send("POST", path, kind, b"malformed");
    browser.send("POST", path, kind, b"");
    browser.send("POST", "/git/large.git/git-receive-pack", kind, b"");
    browser.send("POST", "/git/large.git/HEAD", kind, b"");
}
