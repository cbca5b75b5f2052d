//! A test file: setup, requests and recorded responses.
//!
//! The format is described in tests/README.md. [`parse`] reads it; [`TestFile::to_text`] writes it
//! back with every hand-written line unchanged.

use std::path::{Path, PathBuf};

use crate::backend::script::{Declared, Exchange};

/// A `.test` or `.cli` file.
#[derive(Debug, Clone, Default)]
pub struct TestFile {
    /// `area/name`, as shown in results.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// All lines before the first item, as written.
    pub preamble: Vec<String>,
    /// Modules to load, without `mod_` (mpm_event is always there).
    pub modules: Vec<String>,
    /// The number of plain ports (PORT, PORT2 …).
    pub ports: usize,
    /// Servers behind the one under test, which the runner plays.
    pub backends: Vec<Declared>,
    /// Whether the configuration is used alone, without the base.
    pub bare: bool,
    /// Where its folder is, if not in the first of [`crate::place::PARENTS`].
    pub parent: Option<&'static str>,
    /// `needs root` (the tree has other owners) or a path: skipped without it.
    pub needs: Vec<String>,
    /// The configuration.
    pub config: String,
    /// The folder to build under the root.
    pub tree: Vec<Entry>,
    /// Patterns and their replacements, for both sides of the comparison.
    pub masks: Vec<(String, String)>,
    /// Connections, commands and log checks in order.
    pub items: Vec<Item>,
    /// Comment lines after the last item.
    pub trailer: Vec<String>,
    /// Numbers in the text that a port could be, such as the length of a body. It gets other ports,
    /// because their numbers are replaced by names wherever they occur.
    pub numbers: Vec<u16>,
}

/// An entry of the file tree.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path under the root; a folder ends in `/`.
    pub path: String,
    /// `-> TARGET`: a symbolic link.
    pub link: Option<String>,
    /// `key=value` options: mode, mtime, size, uid, gid, gzip.
    pub options: Vec<(String, String)>,
    /// Content lines, unescaped.
    pub content: Vec<u8>,
}

/// An action or check of a test file.
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
    /// The title.
    pub title: String,
    /// Words of the `with` line: tls, sni=…, to=…, from=….
    pub options: Vec<String>,
    /// Requests in order.
    pub requests: Vec<Block>,
}

/// Hand-written lines with their recording.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Lines as written.
    pub source: Vec<String>,
    /// For a command or a log: the rest of its first line.
    pub argument: String,
    /// Whether it is sent in the same write as the request before.
    pub pipelined: bool,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// What backends do meanwhile.
    pub exchanges: Vec<Exchange>,
    /// `contains TEXT` (true) and `lacks TEXT` (false), about the body or output.
    pub assertions: Vec<(bool, String)>,
    /// `ignore-body`: the body must only exist.
    pub ignore_body: bool,
    /// The recording of the real server.
    pub recorded: Vec<String>,
    /// Reason and expectation of a deliberate difference.
    pub differs: Option<(String, Vec<String>)>,
}

/// A step of a request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Send these bytes (already unescaped, placeholders not yet filled).
    Send(Vec<u8>),
    /// Wait for this many milliseconds.
    Pause(u64),
    /// Close the sending side.
    HalfClose,
    /// Wait for an interim response or any byte.
    WaitInterim,
    /// Change a file under the root, or a backend, before the next step.
    Change(Change),
}

/// A change of the tree or of a backend while the server runs.
#[derive(Debug, Clone)]
pub enum Change {
    /// `write PATH CONTENT`: in place, with the default modification time.
    Write(String, Vec<u8>),
    /// `remove PATH`: a file, or a folder with its contents.
    Remove(String),
    /// `rename FROM TO`.
    Rename(String, String),
    /// `stop NAME`: the backend refuses connections.
    Stop(String),
    /// `start NAME`: it accepts them again.
    Start(String),
}

impl TestFile {
    /// The text of the file with the current recordings.
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
    /// The first unmet need.
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

/// Reads a test file from disk. Names are relative to `root`, the tests folder.
pub fn load(path: &Path, root: &Path) -> Result<TestFile, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let mut file = crate::parse::parse(&text)
        .map_err(|(line, message)| format!("{}:{line}: {message}", path.display()))?;
    file.name = relative.display().to_string();
    file.path = path.to_owned();
    Ok(file)
}
