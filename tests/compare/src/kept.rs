//! Converts a case to a test file.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use blackbox::escape::escape;
use blackbox::parse::parse;
use blackbox::program::Program;
use blackbox::run::{Mode, run_file};
use blackbox::testfile::{Change, Entry, TestFile};

use crate::fresh;
use crate::identities;
use crate::site::{Case, Content, Node, Request, Seat};
use crate::talk::PAUSE;
use crate::verdict::Signature;

/// What test files of a kind of sites declare.
#[derive(Clone, Copy)]
pub struct Needs<'a> {
    /// All modules.
    pub modules: &'a [&'a str],
    /// All backends.
    pub backends: &'a [&'a str],
}

/// The text of a test file that shows the difference, recorded from Apache and verified to fail on
/// Tamarack; an error if that does not reproduce it. After the end one form of the file is tried.
pub fn test_file(
    case: &Case,
    signature: &Signature,
    needs: Needs<'_>,
    tamarack: &Program,
    tests: &Path,
    end: Instant,
) -> Result<String, String> {
    let Needs { modules, backends } = needs;
    let mut failure = String::new();
    // A host of TLS stays one: its port is another.
    let seats = [Seat::Main, Seat::Host(0)];
    for seat in seats.into_iter().filter(|seat| *seat != Seat::Main || !case.site.is_tls) {
        for mut modules in [needed(case, modules), modules.to_vec()] {
            if !failure.is_empty() && Instant::now() >= end {
                break;
            }
            modules.extend(case.site.is_tls.then_some("ssl"));
            let needs = Needs { modules: &modules, backends };
            match verified(&text(case, signature, seat, needs), tamarack, tests) {
                Ok(text) => return Ok(text),
                Err(error) => failure = error,
            }
        }
    }
    let mut modules = modules.to_vec();
    modules.extend(case.site.is_tls.then_some("ssl"));
    let needs = Needs { modules: &modules, backends };
    Err(format!("{failure}\n{}", text(case, signature, Seat::Host(0), needs)))
}

/// Records the text and runs it on Tamarack, where it must fail.
fn verified(text: &str, tamarack: &Program, tests: &Path) -> Result<String, String> {
    let mut file = parse(text).map_err(|(line, what)| format!("line {line}: {what}\n{text}"))?;
    "found".clone_into(&mut file.name);
    let failure = |file: &mut TestFile, program: &Program, mode| {
        let cases = run_file(file, program, mode, tests);
        cases.into_iter().find_map(|case| case.failure)
    };
    if let Some(failure) = failure(&mut file, &Program::Apache, Mode::Record) {
        return Err(format!("Apache: {failure}"));
    }
    match failure(&mut file.clone(), tamarack, Mode::Run) {
        Some(_) => Ok(file.to_text()),
        None => Err("the difference does not show in a file of its own".to_owned()),
    }
}

/// Words of sites of `contents`, and their modules.
const OF_CONTENTS: [(&str, &str); 24] = [
    ("Anonymous", "authn_anon"),
    ("AuthForm", "auth_form"),
    ("AuthForm", "request"),
    ("BROTLI_COMPRESS", "brotli"),
    ("BUFFER", "buffer"),
    ("Charset", "charset_lite"),
    ("DATA", "data"),
    ("DBD", "authn_dbd"),
    ("DBD", "authz_dbd"),
    ("DBD", "dbd"),
    ("DBD", "session_dbd"),
    ("INFLATE", "deflate"),
    ("RATE_LIMIT", "env"),
    ("RATE_LIMIT", "ratelimit"),
    ("SUBSTITUTE", "substitute"),
    ("Sed", "sed"),
    ("Session", "session"),
    ("Session", "session_cookie"),
    ("dbm", "authn_dbm"),
    ("dbm", "authz_dbm"),
    ("file-group", "authz_groupfile"),
    ("file-group", "authz_owner"),
    ("file-owner", "authz_owner"),
    ("reflector", "reflector"),
];

/// The modules of the case's directives, and those that others require.
fn needed<'a>(case: &Case, modules: &[&'a str]) -> Vec<&'a str> {
    if modules.contains(&"proxy") || modules == identities::MODULES.as_slice() {
        return modules.to_vec();
    }
    let mut names = BTreeSet::new();
    case.site.walk(&mut |node| {
        names.insert(crate::rows::module(&node.name));
        if node.name == "Require" {
            names.extend(["authz_core", "authz_host", "authz_user", "authn_core"]);
        }
        if node.name.starts_with("Auth") {
            names.extend(["auth_basic", "authn_core", "authn_file", "authz_core", "authz_user"]);
        }
    });
    let text = Node::text(&case.site.config, 0) + &Node::text(&case.site.global, 0);
    let htaccess = case.site.tree(Seat::Main).into_iter().map(|entry| entry.content);
    let text = htaccess.fold(text, |text, more| text + &String::from_utf8_lossy(&more));
    let by_word = [
        ("type-map", "negotiation"),
        ("MultiViews", "negotiation"),
        ("Indexes", "autoindex"),
        ("DEFLATE", "deflate"),
        ("DEFLATE", "filter"),
        ("All", "autoindex"),
        ("UNIQUE_ID", "unique_id"),
        ("ForensicLog", "unique_id"),
        ("forensic-id", "log_forensic"),
        ("{cookie}", "usertrack"),
        ("send-as-is", "asis"),
        ("imap", "imagemap"),
        ("~", "userdir"),
    ];
    let by_word = by_word.iter().chain(&OF_CONTENTS);
    names.extend(by_word.filter(|(word, _)| text.contains(word)).map(|(_, module)| *module));
    let is_needed = |module: &&&str| {
        names.contains(**module) || matches!(**module, "dir" | "mime" | "authz_core")
    };
    modules.iter().filter(is_needed).copied().collect()
}

fn text(case: &Case, signature: &Signature, seat: Seat, needs: Needs<'_>) -> String {
    let parts = signature.parts.join(", ");
    let modules = needs.modules.join(" ");
    let mut text = format!("# Where both differed in: {parts}.\nmodules {modules}\n");
    needs.backends.iter().for_each(|backend| text.push_str(&format!("backend {backend}\n")));
    if case.site.is_tls {
        text.push_str("ports 2\n");
    }
    for (pattern, with) in fresh::masks(std::iter::once(case)) {
        text.push_str(&format!("mask {pattern} => {with}\n"));
    }
    let has_owner = |file: &crate::site::File| file.options.iter().any(|(key, _)| key == "uid");
    if case.site.files.iter().any(has_owner) {
        text.push_str("needs root\n");
    }
    let config = seat.fill(&Node::text(&case.site.global, 0)) + &case.site.config(seat);
    if !config.is_empty() {
        text.push_str("\nconfig\n");
        config.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    let tree = case.site.tree(seat);
    if !tree.is_empty() {
        text.push_str("\ntree\n");
        tree.iter().for_each(|entry| text.push_str(&entry_text(entry)));
    }
    if signature.parts == ["configuration"] {
        return text + "\ncommand -t -d @ROOT@ -f conf/httpd.conf\n";
    }
    let mut via = None;
    for request in &case.requests {
        if via != Some(&request.via) {
            text.push_str("\nconnection What is asked\n");
            if !request.via.is_empty() {
                text.push_str(&format!("with {}\n", seat.fill(&request.via)));
            }
        } else {
            let word = if request.is_pipelined { "pipelined" } else { "request" };
            text.push_str(&format!("\n{word}\n"));
        }
        via = Some(&request.via);
        if let Some(edit) = &request.change {
            text.push_str(&change_text(&edit.change(seat)));
        }
        text.push_str(&request_text(request, seat));
    }
    for name in case.site.logs() {
        text.push_str(&seat.fill(&format!("\nlog {name}\n")));
    }
    text
}

fn change_text(change: &Change) -> String {
    match change {
        Change::Write(path, content) => format!("write {path} {}\n", escape(content)),
        Change::Remove(path) => format!("remove {path}\n"),
        Change::Stop(name) => format!("stop {name}\n"),
        Change::Start(name) => format!("start {name}\n"),
        Change::Rename(from, to) => format!("rename {from} {to}\n"),
    }
}

fn entry_text(entry: &Entry) -> String {
    let mut text = format!("    {}", escape(entry.path.as_bytes()).replace(' ', "\\x20"));
    if let Some(link) = &entry.link {
        text.push_str(&format!(" -> {link}"));
    }
    for (key, value) in &entry.options {
        text.push_str(&format!(" {key}={value}"));
    }
    text.push('\n');
    for line in entry.content.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => text.push_str(format!("    | {}", escape(line)).trim_end()),
            None => text.push_str(&format!("    |- {}", escape(line))),
        }
        text.push('\n');
    }
    text
}

/// The lines of the head verbatim, and the body without a line end.
fn request_text(request: &Request, seat: Seat) -> String {
    let bytes = request.bytes(seat);
    let head = bytes.len() - request.body.len();
    let mut text = String::new();
    if request.waits {
        text.push_str(&format!("pause {}\n", PAUSE.as_millis()));
    }
    for line in bytes.get(..head).unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
        let line = escape(line.strip_suffix(b"\r\n").unwrap_or(line));
        text.push_str(format!("> {line}").trim_end());
        text.push('\n');
    }
    if !request.body.is_empty() {
        text.push_str(&format!(">- {}\n", escape(&request.body)));
    }
    for line in &request.script {
        text.push_str(&format!("{}\n", seat.fill(line)));
    }
    text
}

/// The directives of a case, including those of its `.htaccess` files, for the list of findings.
pub fn directives(case: &Case) -> Vec<String> {
    let mut names = Vec::new();
    case.site.walk(&mut |node| names.push(node.name.clone()));
    if case.site.files.iter().any(|file| matches!(file.content, Content::Htaccess(_))) {
        names.push(".htaccess".to_owned());
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::{Needs, text};
    use crate::rows::MODULES;
    use crate::site::Seat;
    use crate::verdict::Signature;
    use crate::{generate, proxies};

    #[test]
    fn every_case_can_be_written_and_read_back() {
        let files = Needs { modules: &MODULES, backends: &[] };
        let behind = Needs { modules: &proxies::MODULES, backends: &proxies::BACKENDS };
        for number in 0..30 {
            let cases = generate::batch(11, number).into_iter().map(|case| (case, files));
            let more = proxies::batch(11, number).into_iter().map(|case| (case, behind));
            for (case, needs) in cases.chain(more) {
                for seat in [Seat::Main, Seat::Host(0)] {
                    let signature = Signature::new(&["< a".into()], &["< b".into()]);
                    let written = text(&case, &signature, seat, needs);
                    let file = match blackbox::parse::parse(&written) {
                        Ok(file) => file,
                        Err((line, what)) => unreachable!("line {line}: {what}\n{written}"),
                    };
                    let tree = case.site.tree(seat);
                    assert_eq!(file.tree.len(), tree.len(), "{written}");
                    for (read, made) in file.tree.iter().zip(&tree) {
                        assert_eq!((&read.path, &read.link), (&made.path, &made.link));
                        assert_eq!(read.content, made.content, "{}", made.path);
                    }
                }
            }
        }
    }
}
