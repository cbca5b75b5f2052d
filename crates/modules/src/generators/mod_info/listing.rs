//! Directives with their files and lines.
//!
//! Source: `mod_info_module_cmds` (modules/generators/mod_info.c).

use conf::{FileId, Node};
use wire::escape;

use super::Directives;

/// Writes directives, and the sections around them.
pub(super) struct Listing<'a> {
    directives: &'a Directives,
    /// The names to show, in small letters; `None` for all.
    only: Option<&'a [String]>,
    /// The file of the last line.
    file: Option<FileId>,
    out: &'a mut Vec<u8>,
}

impl<'a> Listing<'a> {
    pub fn write(directives: &'a Directives, only: Option<&'a [String]>, out: &'a mut Vec<u8>) {
        let mut listing = Listing { directives, only, file: None, out };
        listing.nodes(&directives.nodes, 0, &mut Vec::new());
    }

    /// Writes those of a level. `shown` is the number of sections in `around` that have been
    /// opened; returns it, with those that were opened here and are still open.
    fn nodes(&mut self, nodes: &'a [Node], mut shown: usize, around: &mut Vec<&'a Node>) -> usize {
        let level = around.len();
        for node in nodes {
            match node.children.as_deref() {
                Some(children) if !children.is_empty() => {
                    around.push(node);
                    let within = self.nodes(children, shown, around);
                    around.pop();
                    if within > level {
                        shown = level;
                        self.close(node, level);
                    }
                }
                _ if self.is_wanted(node) => {
                    for (level, section) in around.iter().enumerate().skip(shown) {
                        self.line(section, level, false);
                    }
                    shown = level;
                    self.line(node, level, true);
                }
                _ => {}
            }
        }
        shown
    }

    fn is_wanted(&self, node: &Node) -> bool {
        let name = || String::from_utf8_lossy(&node.name).to_ascii_lowercase();
        self.only.is_none_or(|only| only.contains(&name()))
    }

    /// An empty section is shown like a directive, as in Apache.
    fn line(&mut self, node: &Node, level: usize, is_directive: bool) {
        let line = self.directives.sources.last_line(node.span);
        self.begin(node, level, line);
        let end: &[u8] = if node.is_section() { b"&gt;" } else { b"" };
        self.name(node);
        self.out.push(b' ');
        if is_directive {
            self.out.extend_from_slice(b"<i>");
        }
        escape::html(self.out, node.args.bytes());
        self.out.extend_from_slice(end);
        let after: &[u8] = if is_directive { b"</i></tt></dd>\n" } else { b"</tt></dd>\n" };
        self.out.extend_from_slice(after);
    }

    fn name(&mut self, node: &Node) {
        if node.is_section() {
            self.out.extend_from_slice(b"&lt;");
        }
        escape::html(self.out, &node.name);
    }

    fn close(&mut self, node: &Node, level: usize) {
        self.begin(node, level, 0);
        self.out.extend_from_slice(b"&lt;/");
        escape::html(self.out, &node.name);
        self.out.extend_from_slice(b"&gt;</tt></dd>");
    }

    /// Writes the file if it is another one, the line unless it is 0, and blanks.
    fn begin(&mut self, node: &Node, level: usize, line: u32) {
        if self.file != Some(node.span.file) {
            self.file = Some(node.span.file);
            self.out.extend_from_slice(b"<dd><tt><strong>In file: ");
            escape::html(self.out, self.directives.sources.name(node.span.file));
            self.out.extend_from_slice(b"</strong></tt></dd>\n");
        }
        let number = if line > 0 { line.to_string() } else { String::new() };
        self.out.extend_from_slice(b"<dd><tt>");
        let blanks = 4usize.saturating_sub(number.len());
        self.out.extend_from_slice("&nbsp;".repeat(blanks).as_bytes());
        self.out.extend_from_slice(number.as_bytes());
        self.out.extend_from_slice(b":&nbsp;");
        self.out.extend_from_slice("&nbsp;&nbsp;".repeat(level).as_bytes());
    }
}
