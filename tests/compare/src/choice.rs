//! The source of values: random numbers, and the contents of the site.

use crate::random::Random;
use crate::site::{Content, File};

/// Patterns as in directives, without quotes.
pub const PATTERNS: [&str; 33] = [
    r"\.txt$",
    r"^/d",
    r"^/(.*)$",
    r"\.html?$",
    r"/\\.git",
    r"\\.html$",
    r"\\.txt$",
    r"^/(.*)\\.",
    r"/[^/]*\\.[a-z]+$",
    "a",
    "^/docs(/[^/]+)*$",
    r"(?i)^/UP",
    r"^/([^/]+)/(.*)$",
    r"\.(gif|png|txt)$",
    "^$",
    ".",
    r"^/(?<name>[a-z]+)",
    r"/+",
    r"\s",
    r"%",
    r"^/e f",
    "[A-Z]",
    r"(a|b|c|d)*evil",
    r"^(?:\w|\W)*Bad",
    r"^(a+)+$|evil",
    r"^/al",
    r"index",
    r"^\.",
    r"\d+",
    r"sub/",
    r"/$",
    r"^/r(.*)",
    r"([^.]+)\.([^.]+)$",
];

/// Those of them that most paths match.
const BROAD: [&str; 5] = [r"^/(.*)$", "a", ".", "/+", r"\.(gif|png|txt)$"];

/// A path as a quoted word.
pub fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\"))
}

/// A generator of values: names, paths, patterns and words.
pub struct Choice {
    /// The source of randomness.
    pub random: Random,
    /// Paths of all files and folders as a client names them, unescaped.
    pub paths: Vec<String>,
    /// Folders of `htdocs`, each with a trailing slash; the first is `/`.
    pub folders: Vec<String>,
    /// The site is served with TLS.
    pub is_tls: bool,
    /// The main server has the names of [`crate::identities::global`].
    pub has_aliases: bool,
}

impl Choice {
    /// Returns a generator of values about these files.
    pub fn new(random: Random, files: &[File]) -> Choice {
        let folders = vec!["/".to_owned()];
        let (is_tls, has_aliases) = (false, false);
        let mut choice = Choice { random, paths: Vec::new(), folders, is_tls, has_aliases };
        for file in files {
            let Some(path) = file.path.strip_prefix("htdocs") else {
                continue;
            };
            choice.paths.push(path.to_owned());
            // Links are asked for more often: who may follow them is a matter of its own.
            if matches!(file.content, Content::Link(_)) {
                choice.paths.extend([path.to_owned(), path.to_owned()]);
            }
            if matches!(file.content, Content::Folder) {
                choice.folders.push(path.to_owned());
            }
        }
        choice
    }

    /// One of the words.
    pub fn one(&mut self, words: &[&'static str]) -> &'static str {
        let at = self.random.below(words.len());
        words.get(at).copied().unwrap_or_default()
    }

    /// The same as a value.
    pub fn word(&mut self, words: &[&'static str]) -> String {
        self.one(words).to_owned()
    }

    /// A few of the words, with repetitions.
    pub fn some(&mut self, words: &[&'static str], most: usize) -> String {
        let count = 1 + self.random.below(most);
        let picked: Vec<&str> = (0..count).map(|_| self.one(words)).collect();
        picked.join(" ")
    }

    /// A path as a client names it, of an existing file or folder, or nearly.
    pub fn path(&mut self) -> String {
        match self.random.below(12) {
            0 => self.word(&[
                "/",
                "/al/",
                "/al/a.txt",
                "/r",
                "/r/x",
                "/loc",
                "/nope",
                "/al2",
                "/~anna/a.txt",
                "/cgi-bin/a.txt",
            ]),
            1..=3 => self.random.pick(&self.folders.clone()),
            4 => self.random.pick(&self.folders.clone()).trim_end_matches('/').to_owned(),
            _ => self.random.pick(&self.paths.clone()),
        }
    }

    /// A path of which most rules leave much of the site alone.
    pub fn narrow_path(&mut self) -> String {
        let path = self.path();
        if path.len() > 1 || self.random.percent(10) {
            path
        } else {
            self.random.pick(&self.paths.clone())
        }
    }

    /// A quoted folder of the file system.
    pub fn folder(&mut self) -> String {
        let folder = match self.random.below(8) {
            0 => "/out".to_owned(),
            1 | 2 => "/htdocs".to_owned(),
            3 => "/htdocs/".to_owned(),
            _ => format!("/htdocs{}", self.random.pick(&self.folders.clone())),
        };
        let folder = match self.random.below(6) {
            0 => folder.trim_end_matches('/').to_owned(),
            _ => folder,
        };
        format!("\"@SITE@{folder}\"")
    }

    /// The last part of a path.
    pub fn name(&mut self) -> String {
        let path = self.path();
        path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// A regular expression that few paths match, unquoted or quoted.
    pub fn narrow_pattern(&mut self) -> String {
        let is_broad = |pattern: &str| BROAD.contains(&pattern.trim_matches(['"', '\'']));
        let pattern = self.pattern();
        if is_broad(&pattern) && self.random.percent(85) { self.narrow_pattern() } else { pattern }
    }

    /// A regular expression, unquoted or quoted.
    pub fn pattern(&mut self) -> String {
        let pattern = self.one(&PATTERNS);
        match self.random.below(3) {
            // A doubled backslash is a single one without quotes, too.
            0 | 1 if pattern.contains(r"\\") => pattern.to_owned(),
            0 if !pattern.contains(' ') => pattern.to_owned(),
            1 if !pattern.contains(' ') && !pattern.contains('\'') => format!("'{pattern}'"),
            _ => format!("\"{pattern}\""),
        }
    }

    /// A shell pattern for a file's name, or the name.
    pub fn glob(&mut self) -> String {
        match self.random.below(3) {
            0 => format!("\"{}\"", self.name()),
            _ => self.word(&[
                "*", "\"*\"", "*.txt", "*.html", "a*", "?.txt", "[a-c]*", "*.h?ml", "\"*.*\"",
                "index*", ".*", "d", "*\\.txt",
            ]),
        }
    }
}
