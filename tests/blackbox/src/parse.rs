//! Parses the text of a test file into a [`TestFile`].

use crate::backend::script::{self, Declared, Kind};
use crate::escape::unescape;
use crate::place::{PARENTS, is_port};
use crate::testfile::{Block, Change, Connection, Entry, Item, Step, TestFile};

/// Methods that may be written in lower case with their target, as a shorthand for a raw request.
const SHORTHANDS: [&str; 7] = ["get", "head", "post", "put", "delete", "options", "trace"];

/// An error with its line number, counted from one.
pub type ParseError = (usize, String);

/// Parses a test file. Each hand-written line is kept in the `source` of its item, so that the file
/// can be written again with new recordings.
pub fn parse(text: &str) -> Result<TestFile, ParseError> {
    let mut parser = Parser::default();
    parser.file.ports = 1;
    let words = text.split(|other: char| !other.is_ascii_digit());
    parser.file.numbers = words.filter_map(|word| word.parse().ok()).filter(is_port).collect();
    for (at, line) in text.lines().enumerate() {
        parser.line(line).map_err(|message| (at + 1, message))?;
    }
    parser.finish().map_err(|message| (text.lines().count(), message))
}

#[derive(Default)]
struct Parser {
    file: TestFile,
    /// The indented block of the preamble that is being read.
    indented: Indented,
    /// Comments and empty lines that may belong to the next item.
    pending: Vec<String>,
    /// Whether the current lines are below `differs because`.
    in_differs: bool,
    /// Whether the last line was part of a recording.
    after_recorded: bool,
}

#[derive(Default, PartialEq)]
enum Indented {
    #[default]
    None,
    Config,
    Tree,
}

impl Parser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let word = line.split(' ').next().unwrap_or("");
        match word {
            "connection" | "command" | "log" | "error-log" => self.start_item(word, line),
            _ if self.file.items.is_empty() => self.preamble(line),
            _ => self.item_line(word, line),
        }
    }

    fn finish(mut self) -> Result<TestFile, String> {
        while self.pending.last().is_some_and(String::is_empty) {
            self.pending.pop();
        }
        self.file.trailer = std::mem::take(&mut self.pending);
        if !self.file.preamble.first().is_some_and(|line| line.starts_with("# ")) {
            return Err("the first line must be a comment that says why the test exists".into());
        }
        if self.file.items.is_empty() {
            return Err("no connection and no command".into());
        }
        Ok(self.file)
    }

    fn preamble(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            self.pending.push(line.to_owned());
            if self.indented == Indented::Config && line.is_empty() {
                self.file.config.push('\n');
            }
            return Ok(());
        }
        self.file.preamble.append(&mut self.pending);
        self.file.preamble.push(line.to_owned());
        if let Some(inner) = line.strip_prefix("    ") {
            return self.indented_line(inner);
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        self.indented = Indented::None;
        match word {
            "config" => {
                self.indented = Indented::Config;
                self.file.bare = rest == "bare";
            }
            "tree" => self.indented = Indented::Tree,
            "modules" => self.file.modules = rest.split_whitespace().map(str::to_owned).collect(),
            "backend" => self.file.backends.push(Declared::parse(rest)?),
            "folder" => {
                let known = PARENTS.into_iter().find(|parent| *parent == rest);
                self.file.parent = Some(known.ok_or("the folder is not one of PARENTS")?);
            }
            "needs" => self.file.needs.push(rest.to_owned()),
            "ports" => self.file.ports = rest.parse().map_err(|_| "ports requires a number")?,
            "mask" => {
                let (pattern, with) =
                    rest.split_once(" => ").ok_or("mask PATTERN => REPLACEMENT")?;
                self.file.masks.push((pattern.to_owned(), with.to_owned()));
            }
            _ => return Err(format!("unknown word {word:?}")),
        }
        Ok(())
    }

    fn indented_line(&mut self, inner: &str) -> Result<(), String> {
        match self.indented {
            Indented::Config => {
                self.file.config.push_str(inner);
                self.file.config.push('\n');
                Ok(())
            }
            Indented::Tree => self.tree_line(inner),
            Indented::None => Err("an indented line outside config and tree".into()),
        }
    }

    fn tree_line(&mut self, line: &str) -> Result<(), String> {
        if let Some(content) = line.strip_prefix("|- ") {
            let entry = self.file.tree.last_mut().ok_or("content before the first path")?;
            entry.content.extend(unescape(content)?);
        } else if let Some(content) = line.strip_prefix("| ").or(line.strip_prefix('|')) {
            let entry = self.file.tree.last_mut().ok_or("content before the first path")?;
            entry.content.extend(unescape(content)?);
            entry.content.push(b'\n');
        } else {
            let (path, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (link, rest) = match rest.strip_prefix("-> ") {
                Some(link) => {
                    let (target, rest) = link.split_once(' ').unwrap_or((link, ""));
                    (Some(target.to_owned()), rest)
                }
                None => (None, rest),
            };
            let options = rest.split_whitespace().map(|option| {
                let (key, value) = option.split_once('=').unwrap_or((option, ""));
                (key.to_owned(), value.to_owned())
            });
            let path = String::from_utf8(unescape(path)?).map_err(|_| "path is not UTF-8")?;
            let entry = Entry { path, link, options: options.collect(), content: Vec::new() };
            self.file.tree.push(entry);
        }
        Ok(())
    }

    fn start_item(&mut self, word: &str, line: &str) -> Result<(), String> {
        if self.file.items.is_empty() {
            // The file's own comment belongs to the preamble, not to the first item.
            let split = self.pending.iter().rposition(String::is_empty).map_or(0, |at| at + 1);
            let own = if self.file.preamble.is_empty() { self.pending.len() } else { split };
            self.file.preamble.extend(self.pending.drain(..own));
        }
        self.in_differs = false;
        self.after_recorded = false;
        let mut source: Vec<String> = self.pending.drain(..).collect();
        let leading = source.iter().take_while(|line| line.is_empty()).count();
        source.drain(..leading);
        source.push(line.to_owned());
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest).to_owned();
        let item = match word {
            "connection" => {
                if rest.is_empty() {
                    return Err("a connection requires a title".into());
                }
                Item::Connection(Connection { source, title: rest, ..Connection::default() })
            }
            "command" => Item::Command(Block { source, argument: rest, ..Block::default() }),
            "log" => Item::Log(Block { source, argument: rest, ..Block::default() }),
            _ => match rest.split_once(' ') {
                Some(("contains", text)) => Item::ErrorLog(source, true, text.to_owned()),
                Some(("lacks", text)) => Item::ErrorLog(source, false, text.to_owned()),
                _ => return Err("error-log contains|lacks TEXT".into()),
            },
        };
        self.file.items.push(item);
        Ok(())
    }

    fn item_line(&mut self, word: &str, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            self.pending.push(line.to_owned());
            return Ok(());
        }
        let recorded = matches!(word, "<" | "|" | "|-" | "=" | "body" | "exit" | "err" | "out")
            || word.starts_with('|')
            || script::kind(&self.file.backends, word) == Some(Kind::Recorded);
        if let Some(reason) = line.strip_prefix("differs because ") {
            self.in_differs = true;
            self.block()?.differs = Some((reason.to_owned(), Vec::new()));
            return Ok(());
        }
        if recorded {
            self.pending.clear();
            self.after_recorded = true;
            let in_differs = self.in_differs;
            let block = self.block()?;
            match &mut block.differs {
                Some((_, ours)) if in_differs => ours.push(line.to_owned()),
                _ => block.recorded.push(line.to_owned()),
            }
            return Ok(());
        }
        self.in_differs = false;
        self.written_line(word, line)
    }

    /// Parses a hand-written line of a connection or command.
    fn written_line(&mut self, word: &str, line: &str) -> Result<(), String> {
        let pending: Vec<String> = self.pending.drain(..).filter(|line| !line.is_empty()).collect();
        if word == "with" {
            let Some(Item::Connection(connection)) = self.file.items.last_mut() else {
                return Err("`with` outside a connection".into());
            };
            connection.options = line.split_whitespace().skip(1).map(str::to_owned).collect();
            connection.source.extend(pending);
            connection.source.push(line.to_owned());
            return Ok(());
        }
        if script::kind(&self.file.backends, word) == Some(Kind::Written) {
            return self.backend_line(pending, line);
        }
        if matches!(word, "request" | "pipelined") {
            self.new_request(word == "pipelined", pending, Some(line))?;
            self.after_recorded = false;
            return Ok(());
        }
        let shorthand = SHORTHANDS.contains(&word);
        let starts = matches!(self.file.items.last(),
            Some(Item::Connection(connection)) if connection.requests.last()
                .is_none_or(|block| shorthand && block.sends()));
        let changes = matches!(word, "write" | "remove" | "rename" | "stop" | "start");
        let sent = matches!(self.file.items.last(), Some(Item::Connection(connection))
            if connection.requests.last().is_some_and(Block::sends));
        if std::mem::take(&mut self.after_recorded) || starts || changes && sent {
            self.new_request(false, pending, None)?;
        } else {
            self.block()?.source.extend(pending);
        }
        let block = self.block()?;
        let head_ended = block.source.last().is_some_and(|line| line == ">");
        match word {
            ">" if (head_ended || !block.exchanges.is_empty()) && line.contains(" HTTP/1.") => {
                return Err(
                    "a second request in one: insert `request` or `pipelined` before it".into()
                );
            }
            ">" | ">-" => {
                let mut bytes = unescape(line.get(word.len() + 1..).unwrap_or(""))?;
                if word == ">" {
                    bytes.extend_from_slice(b"\r\n");
                }
                block.send(&bytes);
            }
            _ if shorthand => return block.shorthand(line),
            "+" => return block.shorthand_header(line.get(2..).unwrap_or("")),
            "pause" => {
                let millis = line.split(' ').nth(1).and_then(|n| n.parse().ok());
                block.steps.push(Step::Pause(millis.ok_or("pause MILLISECONDS")?));
            }
            "write" | "remove" | "rename" | "stop" | "start" => {
                block.steps.push(Step::Change(change(line)?))
            }
            "half-close" => block.steps.push(Step::HalfClose),
            "ignore-body" => block.ignore_body = true,
            "wait-interim" => block.steps.push(Step::WaitInterim),
            "contains" | "lacks" => {
                let text = line.get(word.len() + 1..).unwrap_or("");
                block.assertions.push((word == "contains", text.to_owned()));
            }
            _ => return Err(format!("unknown word {word:?}")),
        }
        block.source.push(line.to_owned());
        Ok(())
    }

    /// Parses what a backend does, which follows the request.
    fn backend_line(&mut self, pending: Vec<String>, line: &str) -> Result<(), String> {
        if self.after_recorded {
            return Err("a backend's answer belongs below its request".into());
        }
        let backends = self.file.backends.clone();
        let block = self.block()?;
        script::add(&backends, &mut block.exchanges, line)?;
        block.source.extend(pending);
        block.source.push(line.to_owned());
        Ok(())
    }

    fn new_request(
        &mut self,
        pipelined: bool,
        mut source: Vec<String>,
        marker: Option<&str>,
    ) -> Result<(), String> {
        let Some(Item::Connection(connection)) = self.file.items.last_mut() else {
            return Err("a request outside a connection".into());
        };
        source.extend(marker.map(str::to_owned));
        connection.requests.push(Block { source, pipelined, ..Block::default() });
        Ok(())
    }

    fn block(&mut self) -> Result<&mut Block, String> {
        let block = match self.file.items.last_mut() {
            Some(Item::Connection(connection)) => connection.requests.last_mut(),
            Some(Item::Command(block) | Item::Log(block)) => Some(block),
            _ => None,
        };
        block.ok_or_else(|| "a line outside a request".into())
    }
}

fn change(line: &str) -> Result<Change, String> {
    let mut words = line.splitn(3, ' ');
    let (word, path, rest) = (words.next(), words.next(), words.next());
    let path = path.ok_or("a change requires a path")?.to_owned();
    Ok(match word {
        Some("write") => Change::Write(path, unescape(rest.unwrap_or(""))?),
        Some("stop") => Change::Stop(path),
        Some("start") => Change::Start(path),
        Some("rename") => Change::Rename(path, rest.ok_or("rename FROM TO")?.to_owned()),
        _ => Change::Remove(path),
    })
}

impl Block {
    fn sends(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Send(_)))
    }

    fn send(&mut self, bytes: &[u8]) {
        match self.steps.last_mut() {
            Some(Step::Send(sent)) => sent.extend_from_slice(bytes),
            _ => self.steps.push(Step::Send(bytes.to_vec())),
        }
    }

    /// Expands `get /path` and similar to a raw request.
    fn shorthand(&mut self, line: &str) -> Result<(), String> {
        let (method, target) = line.split_once(' ').ok_or("a method requires a target")?;
        let lines =
            [format!("> {} {target} HTTP/1.1", method.to_uppercase()), "> Host: localhost".into()];
        for line in lines {
            self.send(&unescape(&line[2..])?);
            self.send(b"\r\n");
            self.source.push(line);
        }
        self.send(b"\r\n");
        self.source.push(">".into());
        Ok(())
    }

    /// `+ Name: value` below a shorthand: inserts it before the empty line; `Host` replaces Host.
    fn shorthand_header(&mut self, header: &str) -> Result<(), String> {
        let Some(">") = self.source.last().map(String::as_str) else {
            return Err("+ only follows a shorthand request".into());
        };
        self.source.pop();
        let host = "> Host: ";
        if header.starts_with("Host: ")
            && let Some(at) = self.source.iter().rposition(|line| line.starts_with(host))
        {
            self.source.remove(at);
        }
        self.source.push(format!("> {header}"));
        self.source.push(">".into());
        let start = self.source.iter().rposition(|line| line.contains(" HTTP/1.")).unwrap_or(0);
        let mut bytes = Vec::new();
        for line in &self.source[start..] {
            bytes.extend(unescape(line.get(2..).unwrap_or(""))?);
            bytes.extend_from_slice(b"\r\n");
        }
        if let Some(Step::Send(sent)) = self.steps.last_mut() {
            *sent = bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::testfile::{Item, Step};

    const SAMPLE: &str = "# Why.\nmodules alias\n\nconfig\n    Alias /a /b\n\n# One.\nconnection \
        Two requests\nwith tls\n> GET / HTTP/1.1\n>\n< HTTP/1.1 200 OK\n<\n| hi\n= open\n\n\
        > GET /b HTTP/1.1\n>\n< HTTP/1.1 404 Not Found\n<\ndiffers because we can\n\
        < HTTP/1.1 403 Forbidden\n<\n";

    #[test]
    fn what_is_read_is_written_back() {
        let file = parse(SAMPLE).unwrap_or_default();
        assert_eq!(file.to_text(), SAMPLE);
        assert_eq!(file.modules, ["alias"]);
        let Some(Item::Connection(connection)) = file.items.first() else {
            unreachable!("a connection");
        };
        assert_eq!(connection.requests.len(), 2);
        assert_eq!(connection.requests[0].recorded.len(), 4);
        assert!(connection.requests[1].differs.is_some());
    }

    #[test]
    fn a_shorthand_becomes_the_raw_request() {
        let text = "# Why.\n\nconnection T\nget /a\n+ Host: b\n+ X: y\n";
        let file = parse(text).unwrap_or_default();
        let Some(Item::Connection(connection)) = file.items.first() else {
            unreachable!("a connection");
        };
        let Step::Send(bytes) = &connection.requests[0].steps[0] else {
            unreachable!("bytes");
        };
        assert_eq!(bytes, b"GET /a HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n");
        assert!(file.to_text().contains("> GET /a HTTP/1.1\n> Host: b\n> X: y\n>\n"));
    }

    #[test]
    fn an_unknown_line_is_an_error_with_its_number() {
        assert_eq!(parse("# Why.\nfrobnicate\n").err().map(|e| e.0), Some(2));
    }
}
