//! A browser as far as a script needs one: it keeps cookies, fills in forms, and remembers what it
//! has seen.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use crate::client::{Answer, Client};

/// The boundary of forms with files.
const CUT: &str = "-----------------------------cut";

pub struct Browser {
    ports: [u16; 2],
    /// The port in use, and the connection to it.
    port: u16,
    client: Client,
    cookies: BTreeMap<String, String>,
    /// The path of the last request up to its last slash, which relative redirects lead to.
    base: String,
    /// Where programs of the client may write.
    pub folder: PathBuf,
    pub seen: Vec<Seen>,
}

/// A request and its response.
pub struct Seen {
    pub request: String,
    pub head: String,
    pub body: Vec<u8>,
}

/// A file for an upload.
pub struct File<'a> {
    pub field: &'a str,
    pub name: &'a str,
    pub content: &'a [u8],
}

impl Browser {
    pub fn new(ports: [u16; 2], folder: PathBuf) -> Browser {
        let port = ports[0];
        let client = Client::connect(port).unwrap();
        Browser {
            ports,
            port,
            client,
            cookies: BTreeMap::new(),
            base: String::new(),
            folder,
            seen: Vec::new(),
        }
    }

    /// From now on asks the host that is configured as Fedora does it.
    pub fn use_fedora(&mut self) {
        self.port = self.ports[1];
        self.client = Client::connect(self.port).unwrap();
    }

    /// The port in use.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, "", b"")
    }

    pub fn get_with(&mut self, path: &str, fields: &str) -> Answer {
        self.send("GET", path, fields, b"")
    }

    /// Follows a redirect of the server itself.
    pub fn follow(&mut self, answer: &Answer) -> Answer {
        let location = answer.field("Location").unwrap_or_else(|| panic!("{}", answer.text()));
        let path = location.strip_prefix("http://apps.test").unwrap_or(location);
        let path = match path.find('/') {
            Some(0) => path.to_owned(),
            _ => format!("{}{path}", self.base),
        };
        self.get(&path)
    }

    /// Submits a form without files.
    pub fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Answer {
        let pairs =
            form.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.send("POST", path, kind, body.as_bytes())
    }

    /// Submits a form with a file.
    pub fn upload(&mut self, path: &str, form: &[(&str, &str)], file: &File<'_>) -> Answer {
        let mut body = Vec::new();
        for (name, value) in form {
            let part = format!(
                "--{CUT}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            body.extend_from_slice(part.as_bytes());
        }
        let (field, name) = (file.field, file.name);
        let part = format!(
            "--{CUT}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(part.as_bytes());
        body.extend_from_slice(file.content);
        body.extend_from_slice(format!("\r\n--{CUT}--\r\n").as_bytes());
        let kind = format!("Content-Type: multipart/form-data; boundary={CUT}\r\n");
        self.send("POST", path, &kind, &body)
    }

    /// Sends a POST in chunks.
    pub fn post_in_chunks(&mut self, path: &str, fields: &str, body: &[u8]) -> Answer {
        let mut chunks = Vec::new();
        for piece in body.chunks(7) {
            chunks.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunks.extend_from_slice(&[piece, b"\r\n"].concat());
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        let fields = format!("{fields}Transfer-Encoding: chunked\r\n");
        self.send("POST", path, &fields, &chunks)
    }

    pub fn send(&mut self, method: &str, path: &str, fields: &str, body: &[u8]) -> Answer {
        let plain = path.split('?').next().unwrap();
        self.base = plain.get(..=plain.rfind('/').unwrap()).unwrap().to_owned();
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let cookies = match cookies.collect::<Vec<_>>().join("; ") {
            none if none.is_empty() => none,
            some => format!("Cookie: {some}\r\n"),
        };
        let length = match method {
            "POST" if !fields.contains("chunked") => format!("Content-Length: {}\r\n", body.len()),
            _ => String::new(),
        };
        let request = format!("{method} {path} HTTP/1.1\r\nHost: apps.test\r\n{fields}");
        self.client.send(format!("{request}{cookies}{length}\r\n").as_bytes()).unwrap();
        self.client.send(body).unwrap();
        let answer = if method == "HEAD" { self.client.head() } else { self.client.answer() };
        let answer = answer.unwrap_or_else(|error| panic!("{request}: {error}"));
        if answer.closes() {
            self.client = Client::connect(self.port).unwrap();
        }
        self.keep_cookies(&answer);
        let (head, body) = (answer.head.clone(), answer.body.clone());
        self.seen.push(Seen { request, head, body });
        answer
    }

    fn keep_cookies(&mut self, answer: &Answer) {
        for line in answer.head.lines() {
            let Some(cookie) = line.strip_prefix("Set-Cookie: ") else { continue };
            let pair = cookie.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}

/// The names and values of the form that contains `mark`: its hidden fields.
pub fn hidden<'a>(page: &'a str, mark: &str) -> Vec<(&'a str, &'a str)> {
    let mut forms = page.split("<form").skip(1).map(|form| form.split("</form>").next().unwrap());
    let form = forms.find(|form| form.contains(mark));
    let form = form.unwrap_or_else(|| panic!("no form with {mark}:\n{page}"));
    let inputs = form.split("<input").skip(1).map(|input| input.split('>').next().unwrap());
    let inputs = inputs.filter(|input| attribute(input, "type") == Some("hidden"));
    let pair = |input| Some((attribute(input, "name")?, attribute(input, "value").unwrap_or("")));
    inputs.filter_map(pair).collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    [('"', format!("{name}=\"")), ('\'', format!("{name}='"))].into_iter().find_map(
        |(end, begin)| {
            let at = tag.match_indices(&begin).find(|(at, _)| {
                tag.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace))
            })?;
            tag.get(at.0 + begin.len()..)?.split(end).next()
        },
    )
}

/// The text between two others.
pub fn between<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = page.split_once(begin).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once(end)).map(|(found, _)| found);
    found.unwrap_or_else(|| panic!("no {begin}…{end}:\n{page}"))
}

/// A name or value in a form without files.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        b' ' => "+".to_owned(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Compresses a body.
pub fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(content, flate2::Compression::new(6));
    encoder.read_to_end(&mut coded).unwrap();
    coded
}

/// A file of 20 MB.
pub fn large_file() -> Vec<u8> {
    (0..20_u32 << 20).map(|at| (at * 31 % 251) as u8).collect()
}
