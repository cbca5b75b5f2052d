//! gitweb: a program in Perl behind an alias, with files of its own beside it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::browser::Browser;
use crate::compared::{FRAMING, Mask};
use crate::packages::correct;
use crate::services::folder;
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const GITWEB: Application = Application {
    name: "gitweb",
    needs: &[APACHE, "/etc/apache2/conf-available/gitweb.conf", "/usr/share/gitweb/gitweb.cgi"],
    folders: &["/usr/share/gitweb", "/etc/gitweb.conf"],
    naming: (&["/etc/gitweb.conf"], &["/var/lib/git"]),
    writable: &["/var/lib/git"],
    has_database: false,
    runs: Runs::Programs,
    configuration: "DocumentRoot @ROOT@/htdocs\nInclude conf-available/gitweb.conf\n\
                    SetEnv GITWEB_CONFIG @ROOT@/etc/gitweb.conf\n",
    prepare,
};

const MASKS: &[Mask] = &[
    FRAMING,
    ("[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} 20[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT", "DATE"),
];

#[test]
fn gitweb() {
    compare(&GITWEB, script, MASKS);
}

/// A repository with two commits and a tag.
fn prepare(root: &Path) {
    correct(root, "/etc/apache2/conf-available/gitweb.conf", &["/usr/share/gitweb"]);
    folder(root, "var/lib/git", 0o755);
    let repository = root.join("var/lib/git/one.git");
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(root).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", root);
        command.env("GIT_AUTHOR_DATE", "1500000000 +0200");
        command.env("GIT_COMMITTER_DATE", "1500000001 +0200");
        command.args(["-c", "user.name=Ä", "-c", "user.email=a@b"]);
        command.args(["-c", "init.defaultBranch=master"]).args(words);
        assert!(command.output().unwrap().status.success(), "{words:?}");
    };
    let work = root.join("work");
    let work = work.to_str().unwrap();
    git(&["init", "--quiet", work]);
    for text in ["one\n", "one\n<two> & größer\n"] {
        fs::write(root.join("work/file.txt"), text).unwrap();
        fs::write(root.join("work/image.bin"), [0, 255, 7, 10]).unwrap();
        git(&["-C", work, "add", "."]);
        git(&["-C", work, "commit", "--quiet", "--message", text]);
    }
    git(&["-C", work, "tag", "--annotate", "v1", "--message=first"]);
    git(&["clone", "--quiet", "--bare", work, repository.to_str().unwrap()]);
    fs::write(repository.join("description"), "A repository\n").unwrap();
}

fn script(browser: &mut Browser) {
    for path in ["/gitweb", "/gitweb/", "/gitweb/gitweb.cgi", "/gitweb/index.cgi"] {
        browser.get(path);
    }
    for action in [
        "summary",
        "shortlog",
        "log",
        "heads",
        "tags",
        "tree",
        "rss",
        "atom",
        "commit",
        "commitdiff",
        "commitdiff_plain",
        "blob;f=file.txt",
        "blob_plain;f=file.txt",
        "blob_plain;f=image.bin",
        "blob;f=image.bin",
        "blame;f=file.txt",
        "history;f=file.txt",
        "snapshot;sf=tgz",
        "patch",
        "search;s=one",
        "tag;h=v1",
        "project_index",
        "opml",
        "none",
        "blob;f=none",
        "forks",
    ] {
        browser.get(&format!("/gitweb/?p=one.git;a={action}"));
    }
    for path in [
        "/gitweb/gitweb.cgi/one.git",
        "/gitweb/gitweb.cgi/one.git/blob/HEAD:/file.txt",
        "/gitweb/?p=none.git",
        "/gitweb/?p=../../etc",
        "/gitweb/?o=age&s=one",
        "/gitweb/?a=project_index",
        "/gitweb/?a=opml",
        "/gitweb/static/gitweb.css",
        "/gitweb/static/git-logo.png",
        "/gitweb/static/",
        "/gitweb/none",
    ] {
        browser.get(path);
        browser.send("HEAD", path, "", b"");
        browser.get_with(path, "Accept-Encoding: gzip\r\n");
        browser.get_with(path, "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n");
    }
    let feed = "/gitweb/?p=one.git;a=rss";
    browser.send("HEAD", feed, "", b"");
    browser.get_with(feed, "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n");
    browser.get_with(feed, "If-Modified-Since: Fri, 01 Jan 2010 00:00:00 GMT\r\n");
    browser.post("/gitweb/", &[("p", "one.git"), ("a", "summary")]);
}
