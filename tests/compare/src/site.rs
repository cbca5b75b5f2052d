//! What is generated and shrunk: a site (files and configuration) and requests to it.

use blackbox::testfile::{Change, Entry};

/// A directive, or a section with its contents.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The directive's name, or the section's without its bracket.
    pub name: String,
    /// The text after the name, as written.
    pub words: String,
    /// The contents; `None` for a directive.
    pub children: Option<Vec<Node>>,
}

/// An entry of the site's folder.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The path under the site's folder; a folder ends in `/`.
    pub path: String,
    /// The contents.
    pub content: Content,
    /// Options of the tree in test files: mode, mtime, uid.
    pub options: Vec<(String, String)>,
}

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A folder.
    Folder,
    /// A symbolic link with this target.
    Link(String),
    /// A file with this text.
    Text(String),
    /// A file with this many bytes of numbered text.
    Size(usize),
    /// A gzip file of this text.
    Gzip(String),
    /// A file with these bytes.
    Bytes(Vec<u8>),
    /// An `.htaccess` file.
    Htaccess(Vec<Node>),
}

/// What a virtual host of TLS begins with.
const TLS: [(&str, &str); 3] = [
    ("SSLEngine", "on"),
    ("SSLCertificateFile", "tls/server.pem"),
    ("SSLCertificateKeyFile", "tls/server.key"),
];

/// Directives with a log of the site, and the file that they name.
const LOGS: [(&str, &str); 3] = [
    ("CustomLog", "logs/@HOST@.log"),
    ("ForensicLog", "logs/@HOST@.forensic"),
    ("ErrorLog", ERROR_LOG),
];

/// A site's own error log.
pub const ERROR_LOG: &str = "logs/@HOST@.err";

/// The forensic log of the main server, and of all hosts without their own.
pub const MAIN_LOG: &str = "logs/main.forensic";

/// Files and configuration of one virtual host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// In the main server; all sites of a start have the same.
    pub global: Vec<Node>,
    /// In the virtual host.
    pub config: Vec<Node>,
    /// The site's folder; `htdocs/` is its document root.
    pub files: Vec<File>,
    /// It is served on the port for TLS.
    pub is_tls: bool,
}

/// A request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// GET, HEAD ….
    pub method: String,
    /// The target as in the request line.
    pub target: Vec<u8>,
    /// `HTTP/1.1`; an empty one is HTTP/0.9.
    pub version: String,
    /// Fields in order; `@HOST@` stands for the site's name.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The bytes after the head.
    pub body: Vec<u8>,
    /// Words of the `with` line of its connection: port, TLS, certificate.
    pub via: String,
    /// It leaves together with the request before.
    pub is_pipelined: bool,
    /// What changes in the site's folder before it is sent.
    pub change: Option<Edit>,
    /// It is sent some seconds after the one before.
    pub waits: bool,
    /// What a backend answers, as lines of a test file; without them, what it received.
    pub script: Vec<String>,
}

/// A change of the site's folder; paths are under it.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// A file with this text, as old as all others.
    Write(String, String),
    /// An `.htaccess` file with these lines.
    Htaccess(String, Vec<Node>),
    /// The file is taken away.
    Remove(String),
    /// From, to.
    Rename(String, String),
}

/// A site and requests to it, on one connection as long as it lasts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Case {
    /// The site.
    pub site: Site,
    /// The requests in order.
    pub requests: Vec<Request>,
}

impl Case {
    /// Removes the directives with these names from all of its configuration.
    pub fn strip(&mut self, names: &[&str]) {
        Node::strip(&mut self.site.global, names);
        Node::strip(&mut self.site.config, names);
        for file in &mut self.site.files {
            if let Content::Htaccess(nodes) = &mut file.content {
                Node::strip(nodes, names);
            }
        }
        for request in &mut self.requests {
            if let Some(Edit::Htaccess(_, nodes)) = &mut request.change {
                Node::strip(nodes, names);
            }
        }
    }
}

/// The position of a site in a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seat {
    /// The main server; its folder is the root.
    Main,
    /// A virtual host whose name and folder have this number.
    Host(usize),
}

impl Node {
    /// A directive.
    pub fn directive(name: &str, words: impl Into<String>) -> Node {
        Node { name: name.to_owned(), words: words.into(), children: None }
    }

    /// A section.
    pub fn section(name: &str, words: impl Into<String>, children: Vec<Node>) -> Node {
        Node { name: name.to_owned(), words: words.into(), children: Some(children) }
    }

    /// Removes the directives with these names, inner ones as well, and levels of mod_log_debug.
    pub fn strip(nodes: &mut Vec<Node>, names: &[&str]) {
        nodes.retain(|node| {
            let is_level = node.name == "LogLevel" && node.words.starts_with("log_debug:");
            !is_level && !names.contains(&node.name.as_str())
        });
        for children in nodes.iter_mut().filter_map(|node| node.children.as_mut()) {
            Node::strip(children, names);
        }
    }

    /// Calls `see` with each node, outer ones first.
    pub fn walk<'a>(nodes: &'a [Node], see: &mut impl FnMut(&'a Node)) {
        for node in nodes {
            see(node);
            Node::walk(node.children.as_deref().unwrap_or_default(), see);
        }
    }

    /// The lines of a configuration file.
    pub fn text(nodes: &[Node], indent: usize) -> String {
        let mut text = String::new();
        let pad = " ".repeat(indent);
        for node in nodes {
            let space = if node.words.is_empty() { "" } else { " " };
            let (name, words) = (&node.name, &node.words);
            match &node.children {
                None => text.push_str(&format!("{pad}{name}{space}{words}\n")),
                Some(children) => {
                    text.push_str(&format!("{pad}<{name}{space}{words}>\n"));
                    text.push_str(&Node::text(children, indent + 4));
                    text.push_str(&format!("{pad}</{name}>\n"));
                }
            }
        }
        text
    }
}

impl Seat {
    /// The host name in requests.
    pub fn host(self) -> String {
        match self {
            Seat::Main => "localhost".to_owned(),
            Seat::Host(number) => format!("s{number:02}.test"),
        }
    }

    /// The site's folder under the root: empty or with a trailing slash.
    fn prefix(self) -> String {
        match self {
            Seat::Main => String::new(),
            Seat::Host(number) => format!("s{number:02}/"),
        }
    }

    /// The text with the site's folder and name in it.
    pub fn fill(self, text: &str) -> String {
        let folder = match self {
            Seat::Main => "@ROOT@".to_owned(),
            Seat::Host(number) => format!("@ROOT@/s{number:02}"),
        };
        text.replace("@SITE@", &folder).replace("@HOST@", &self.host())
    }
}

impl Site {
    /// The site's part of the configuration, without the global part.
    pub fn config(&self, seat: Seat) -> String {
        let text = match seat {
            Seat::Main => Node::text(&self.config, 0),
            Seat::Host(_) => {
                let mut nodes = vec![
                    Node::directive("ServerName", "@HOST@"),
                    Node::directive("DocumentRoot", "\"@SITE@/htdocs\""),
                ];
                if self.is_tls {
                    nodes.extend(TLS.map(|(name, words)| Node::directive(name, words)));
                }
                nodes.extend(self.config.iter().cloned());
                let address = if self.is_tls { "*:@PORT2@" } else { "*:@PORT@" };
                Node::text(&[Node::section("VirtualHost", address, nodes)], 0)
            }
        };
        seat.fill(&text)
    }

    /// The entries of the tree in a test file.
    pub fn tree(&self, seat: Seat) -> Vec<Entry> {
        let prefix = seat.prefix();
        let mut tree = Vec::new();
        if seat != Seat::Main {
            tree.push(entry(format!("{prefix}htdocs/")));
        }
        for file in &self.files {
            let mut made = entry(format!("{prefix}{}", seat.fill(&file.path)));
            made.options.clone_from(&file.options);
            match &file.content {
                Content::Folder => {}
                Content::Link(target) => made.link = Some(seat.fill(target)),
                Content::Text(text) => made.content = seat.fill(text).into_bytes(),
                Content::Bytes(bytes) => made.content.clone_from(bytes),
                Content::Size(size) => made.options.push(("size".into(), size.to_string())),
                Content::Gzip(text) => {
                    made.options.push(("gzip".into(), "1".into()));
                    made.content = text.clone().into_bytes();
                }
                Content::Htaccess(nodes) => {
                    made.content = seat.fill(&Node::text(nodes, 0)).into_bytes();
                }
            }
            tree.push(made);
        }
        tree
    }

    /// The names of the files that its directives log to.
    pub fn logs(&self) -> impl Iterator<Item = &'static str> {
        let names = LOGS
            .iter()
            .filter(|(directive, _)| self.config.iter().any(|node| node.name == *directive));
        let main = self.global.iter().any(|node| node.words == MAIN_LOG).then_some(MAIN_LOG);
        names.map(|(_, name)| *name).chain(main)
    }

    /// Visits every directive and section, including those of `.htaccess` files.
    pub fn walk<'a>(&'a self, see: &mut impl FnMut(&'a Node)) {
        Node::walk(&self.global, see);
        Node::walk(&self.config, see);
        for file in &self.files {
            if let Content::Htaccess(nodes) = &file.content {
                Node::walk(nodes, see);
            }
        }
    }

    /// Removes owners, which only root can change.
    pub fn without_owners(&mut self) {
        for file in &mut self.files {
            file.options.retain(|(key, _)| key != "uid");
        }
    }
}

impl Edit {
    /// As a test file has it.
    pub fn change(&self, seat: Seat) -> Change {
        let path = |path: &str| format!("{}{path}", seat.prefix());
        match self {
            Edit::Write(at, text) => Change::Write(path(at), seat.fill(text).into_bytes()),
            Edit::Htaccess(at, nodes) => {
                Change::Write(path(at), seat.fill(&Node::text(nodes, 0)).into_bytes())
            }
            Edit::Remove(at) => Change::Remove(path(at)),
            Edit::Rename(from, to) => Change::Rename(path(from), path(to)),
        }
    }
}

fn entry(path: String) -> Entry {
    Entry { path, link: None, options: Vec::new(), content: Vec::new() }
}

impl Request {
    /// The bytes of the request.
    pub fn bytes(&self, seat: Seat) -> Vec<u8> {
        let mut bytes = self.method.clone().into_bytes();
        bytes.push(b' ');
        match self.target.strip_prefix(b"http://@HOST@") {
            Some(rest) => {
                bytes.extend_from_slice(format!("http://{}", seat.host()).as_bytes());
                bytes.extend_from_slice(rest);
            }
            None => bytes.extend_from_slice(&self.target),
        }
        if self.version.is_empty() {
            bytes.extend_from_slice(b"\r\n");
            return bytes;
        }
        bytes.extend_from_slice(format!(" {}\r\n", self.version).as_bytes());
        for (name, value) in &self.fields {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            match std::str::from_utf8(value) {
                Ok(text) => {
                    bytes.extend_from_slice(text.replace("@HOST@", &seat.host()).as_bytes())
                }
                Err(_) => bytes.extend_from_slice(value),
            }
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Request, Seat, Site};

    #[test]
    fn a_site_can_stand_in_a_virtual_host_and_alone() {
        let inner = vec![Node::directive("Options", "-Indexes")];
        let config = vec![Node::section("Directory", "\"@SITE@/htdocs\"", inner)];
        let site = Site { config, ..Site::default() };
        let alone = "<Directory \"@ROOT@/htdocs\">\n    Options -Indexes\n</Directory>\n";
        assert_eq!(site.config(Seat::Main), alone);
        assert!(site.config(Seat::Host(3)).contains("ServerName s03.test"));
        assert!(site.config(Seat::Host(3)).contains("<Directory \"@ROOT@/s03/htdocs\">"));
    }

    #[test]
    fn a_request_names_its_host() {
        let request = Request {
            method: "GET".into(),
            target: b"/".to_vec(),
            version: "HTTP/1.1".into(),
            fields: vec![("Host".into(), b"@HOST@".to_vec())],
            ..Request::default()
        };
        assert_eq!(request.bytes(Seat::Host(0)), b"GET / HTTP/1.1\r\nHost: s00.test\r\n\r\n");
    }
}
