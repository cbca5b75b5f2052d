//! A test file as it stands on disk: what to set up, what to send, what came back.
//!
//! The format is described in tests/README.md. [`parse`] reads it; [`TestFile::to_text`] writes it
//! back with every line that a person wrote kept as it was.

use std::path::{Path, PathBuf};

/// One `.test` or `.cli` file.
#[derive(Debug, Clone, Default)]
pub struct TestFile {
    /// `area/name`, as shown in results.
    pub name: String,
    /// Where it stands.
    pub path: PathBuf,
    /// All lines before the first item, as written.
    pub preamble: Vec<String>,
    /// Modules to load, without `mod_` (mpm_event is always there).
    pub modules: Vec<String>,
    /// How many plain ports are listened on (PORT, PORT2 …).
    pub ports: usize,
    /// Whether the configuration stands alone, without the base.
    pub bare: bool,
    /// `needs root` (the tree has other owners) or a path: skipped without it.
    pub needs: Vec<String>,
    /// What the server is to read.
    pub config: String,
    /// The folder to build under the root.
    pub tree: Vec<Entry>,
    /// Patterns and what stands in their place, on both sides of the comparison.
    pub masks: Vec<(String, String)>,
    /// Connections, commands and log checks in order.
    pub items: Vec<Item>,
    /// Comment lines after the last item.
    pub trailer: Vec<String>,
}

/// One entry of the file tree.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path under the root; a folder ends in `/`.
    pub path: String,
    /// `-> TARGET`: a symbolic link.
    pub link: Option<String>,
    /// `key=value` options: mode, mtime, size, uid, gzip.
    pub options: Vec<(String, String)>,
    /// Content lines, unescaped.
    pub content: Vec<u8>,
}

/// What a test file makes happen, one after the other.
#[derive(Debug, Clone)]
pub enum Item {
    /// A TCP or TLS connection with its requests.
    Connection(Connection),
    /// A run of the program with arguments.
    Command(Block),
    /// The lines of a log file after everything else.
    Log(Block),
    /// `error-log contains|lacks TEXT`: (written lines, must be there, text).
    ErrorLog(Vec<String>, bool, String),
}

/// A connection and its requests.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// Lines as written, from the comments above to the last option.
    pub source: Vec<String>,
    /// What it shows.
    pub title: String,
    /// Words of the `with` line: tls, sni=…, to=…, from=….
    pub options: Vec<String>,
    /// In order.
    pub requests: Vec<Block>,
}

/// Written lines with what was recorded for them.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Lines as written.
    pub source: Vec<String>,
    /// For a command or a log: the rest of its first line.
    pub argument: String,
    /// Sent in the same write as the request before.
    pub pipelined: bool,
    /// What to do, in order.
    pub steps: Vec<Step>,
    /// `contains TEXT` (true) and `lacks TEXT` (false), about the body or output.
    pub assertions: Vec<(bool, String)>,
    /// `ignore-body`: that there is one is all that counts.
    pub ignore_body: bool,
    /// What the real server did.
    pub recorded: Vec<String>,
    /// Reason and expectation where Tamarack differs on purpose.
    pub differs: Option<(String, Vec<String>)>,
}

/// One thing that a request does on its connection.
#[derive(Debug, Clone)]
pub enum Step {
    /// Send these bytes (already unescaped, placeholders not yet filled).
    Send(Vec<u8>),
    /// Wait so many milliseconds.
    Pause(u64),
    /// Close our sending side.
    HalfClose,
    /// Wait for an interim answer or any byte.
    WaitInterim,
    /// Change a file under the root before what follows is sent.
    Change(Change),
}

/// A change of the tree while the server runs.
#[derive(Debug, Clone)]
pub enum Change {
    /// `write PATH CONTENT`: in place, with the age that all files have.
    Write(String, Vec<u8>),
    /// `remove PATH`: a file, or a folder with all that is in it.
    Remove(String),
    /// `rename FROM TO`.
    Rename(String, String),
}

impl TestFile {
    /// The file again, with what is recorded now.
    pub fn to_text(&self) -> String {
        let mut lines: Vec<&str> = self.preamble.iter().map(String::as_str).collect();
        let separate = |lines: &mut Vec<&str>| {
            if lines.last().is_some_and(|line| !line.is_empty()) {
                lines.push("");
            }
        };
        let mut differs_lines = Vec::new();
        for item in &self.items {
            for block in item.blocks() {
                if let Some((reason, _)) = &block.differs {
                    differs_lines.push(format!("differs because {reason}"));
                }
            }
        }
        let mut next_differs = differs_lines.iter();
        let mut after_error_log = false;
        for item in &self.items {
            match item {
                Item::ErrorLog(source, ..) => {
                    if !after_error_log {
                        separate(&mut lines);
                    }
                    after_error_log = true;
                    lines.extend(source.iter().map(String::as_str));
                    continue;
                }
                Item::Connection(connection) => {
                    separate(&mut lines);
                    lines.extend(connection.source.iter().map(String::as_str));
                }
                Item::Command(_) | Item::Log(_) => separate(&mut lines),
            }
            for (at, block) in item.blocks().iter().enumerate() {
                if at > 0 {
                    lines.push("");
                }
                lines.extend(block.source.iter().map(String::as_str));
                lines.extend(block.recorded.iter().map(String::as_str));
                if let Some((_, ours)) = &block.differs {
                    lines.extend(next_differs.next().map(String::as_str));
                    lines.extend(ours.iter().map(String::as_str));
                }
            }
        }
        lines.extend(self.trailer.iter().map(String::as_str));
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }
}

impl TestFile {
    /// What of its needs is not there.
    pub fn missing(&self) -> Option<&str> {
        let there = |need: &&String| match need.as_str() {
            "root" => rustix::process::geteuid().is_root(),
            path => Path::new(path).exists(),
        };
        self.needs.iter().find(|need| !there(need)).map(String::as_str)
    }
}

impl Item {
    /// The recorded blocks of this item.
    pub fn blocks(&self) -> &[Block] {
        match self {
            Item::Connection(connection) => &connection.requests,
            Item::Command(block) | Item::Log(block) => std::slice::from_ref(block),
            Item::ErrorLog(..) => &[],
        }
    }
}

/// Reads a test file from disk; `root` is the tests folder that names are relative to.
pub fn load(path: &Path, root: &Path) -> Result<TestFile, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let mut file = crate::parse::parse(&text)
        .map_err(|(line, message)| format!("{}:{line}: {message}", path.display()))?;
    file.name = relative.display().to_string();
    file.path = path.to_owned();
    Ok(file)
}
