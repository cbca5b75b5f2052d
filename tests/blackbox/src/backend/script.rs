//! The lines of a test file that declare a backend, and that say what it answers.

use crate::escape::unescape;

use super::ajp::Packet;
use super::fastcgi::Record;
use super::ftp::Reply;
use super::h2::Frame;

/// A backend, as declared: `backend NAME [PROTOCOL] [unix] [refuses] [pooled]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The name that begins its lines.
    pub name: String,
    /// How it understands and shows requests.
    pub protocol: Protocol,
    /// Whether it listens on a UNIX socket.
    pub unix: bool,
    /// Whether it has an address, and no socket listens there.
    pub refuses: bool,
    /// Whether its connections are counted over the whole file.
    pub pooled: bool,
}

/// What a backend speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// HTTP/1.
    Http,
    /// FastCGI.
    Fcgi,
    /// SCGI.
    Scgi,
    /// uwsgi.
    Uwsgi,
    /// AJP 1.3, where a `CPING` is a request of its own.
    Ajp,
    /// HTTP/2 in clear.
    H2c,
    /// FTP, where a connection is a request.
    Ftp,
    /// A descriptor over a UNIX socket: the client's connection, to which the script applies.
    Fdpass,
    /// Any bytes: only `more` ends a request.
    Raw,
}

/// What a backend does with one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exchange {
    /// The backend's name.
    pub backend: String,
    /// In order.
    pub acts: Vec<Act>,
}

/// A step of an exchange.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Sends bytes, whose placeholders are not yet filled.
    Send(Vec<u8>),
    /// Sends a FastCGI record.
    Record(Record),
    /// Sends an AJP packet.
    Packet(Packet),
    /// Sends a frame of HTTP/2.
    Frame(Frame),
    /// Replies to an FTP command.
    Reply(Reply),
    /// Sends 200 and what was received, as a backend without a script does.
    Echo,
    /// Begins when the connection is accepted: before anything was received.
    AtOnce,
    /// Waits for the head of the request.
    Head,
    /// Waits for the whole request. Comes first if no other wait does.
    Request,
    /// Waits for this many bytes beyond the request, or beyond what the last `more` took.
    More(usize),
    /// Waits for this many milliseconds, with what was sent before on its way.
    Pause(u64),
    /// Waits until the server closes, and records whether it does.
    AwaitClose,
    /// Closes the sending side.
    HalfClose,
    /// Closes.
    Close,
    /// Closes by a reset.
    Reset,
}

impl Act {
    /// Whether it waits for the server.
    fn waits(&self) -> bool {
        matches!(self, Act::AtOnce | Act::Head | Act::Request | Act::More(_))
    }
}

impl Exchange {
    /// Its steps, beginning with a wait.
    pub fn complete(&self) -> Vec<Act> {
        let first = (!self.acts.first().is_some_and(Act::waits)).then_some(Act::Request);
        first.into_iter().chain(self.acts.iter().cloned()).collect()
    }
}

impl Declared {
    /// Parses what follows `backend`.
    pub fn parse(text: &str) -> Result<Declared, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !is_name {
            return Err("a backend's name has lower-case letters and digits".into());
        }
        let protocol = Protocol::Http;
        let mut declared = Declared { name, protocol, unix: false, refuses: false, pooled: false };
        for word in words {
            match word {
                "http" => declared.protocol = Protocol::Http,
                "fcgi" => declared.protocol = Protocol::Fcgi,
                "scgi" => declared.protocol = Protocol::Scgi,
                "uwsgi" => declared.protocol = Protocol::Uwsgi,
                "ajp" => declared.protocol = Protocol::Ajp,
                "h2c" => declared.protocol = Protocol::H2c,
                "ftp" => declared.protocol = Protocol::Ftp,
                "fdpass" => declared.protocol = Protocol::Fdpass,
                "raw" => declared.protocol = Protocol::Raw,
                "unix" => declared.unix = true,
                "refuses" => declared.refuses = true,
                "pooled" => declared.pooled = true,
                _ => return Err(format!("backend: unknown word {word:?}")),
            }
        }
        Ok(declared)
    }
}

/// What the first word of a line says about a backend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `one<`, `one<-`, `one:`: written by hand.
    Written,
    /// `one>`, `one|`, `one|-`, `one=`: recorded.
    Recorded,
}

/// The kind of a line that begins with this word, if it belongs to one of these backends.
pub fn kind(backends: &[Declared], word: &str) -> Option<Kind> {
    let signs = backends.iter().filter_map(|backend| word.strip_prefix(backend.name.as_str()));
    signs.into_iter().find_map(|sign| match sign {
        "<" | "<-" | ":" => Some(Kind::Written),
        ">" | "|" | "|-" | "=" => Some(Kind::Recorded),
        _ => None,
    })
}

/// Adds a written line to the exchanges of a request.
pub fn add(backends: &[Declared], exchanges: &mut Vec<Exchange>, line: &str) -> Result<(), String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let name = word.trim_end_matches(['<', '-', ':']);
    let backend = backends.iter().find(|backend| backend.name == name).ok_or("no such backend")?;
    if word.ends_with(':') && rest == "next" {
        exchanges.push(Exchange { backend: name.to_owned(), acts: Vec::new() });
        return Ok(());
    }
    if !exchanges.iter().any(|exchange| exchange.backend == name) {
        exchanges.push(Exchange { backend: name.to_owned(), acts: Vec::new() });
    }
    let own = exchanges.iter_mut().rfind(|exchange| exchange.backend == name);
    let acts = &mut own.ok_or("no such exchange")?.acts;
    if word.ends_with(':') {
        acts.push(control(rest)?);
        return Ok(());
    }
    if word.ends_with('<') && backend.protocol == Protocol::Fcgi {
        acts.push(Act::Record(Record::parse(rest)?));
        return Ok(());
    }
    if word.ends_with('<') && backend.protocol == Protocol::Ajp {
        acts.push(Act::Packet(Packet::parse(rest)?));
        return Ok(());
    }
    if word.ends_with('<') && backend.protocol == Protocol::H2c {
        acts.push(Act::Frame(Frame::parse(rest)?));
        return Ok(());
    }
    if word.ends_with('<') && backend.protocol == Protocol::Ftp {
        acts.push(Act::Reply(Reply::parse(rest)?));
        return Ok(());
    }
    let mut bytes = unescape(rest)?;
    if word.ends_with('<') {
        bytes.extend_from_slice(b"\r\n");
    }
    match acts.last_mut() {
        Some(Act::Send(sent)) => sent.extend(bytes),
        _ => acts.push(Act::Send(bytes)),
    }
    Ok(())
}

fn control(text: &str) -> Result<Act, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
    Ok(match text.split_once(' ').unwrap_or((text, "")) {
        ("after", "accept") => Act::AtOnce,
        ("after", "head") => Act::Head,
        ("after", "request") => Act::Request,
        ("after", "close") => Act::AwaitClose,
        ("echo", "") => Act::Echo,
        ("more", count) => Act::More(number(count)?),
        ("pause", millis) => {
            Act::Pause(millis.parse().map_err(|_| "pause MILLISECONDS".to_owned())?)
        }
        ("half-close", "") => Act::HalfClose,
        ("close", "") => Act::Close,
        ("reset", "") => Act::Reset,
        _ => return Err(format!("a backend can't {text:?}")),
    })
}

#[cfg(test)]
mod tests {
    use super::{Act, Declared, Exchange, Kind, Protocol, add, kind};

    fn declared(text: &str) -> Declared {
        Declared::parse(text).expect("a declaration")
    }

    #[test]
    fn a_declaration_names_protocol_and_place() {
        let php = declared("php fcgi unix");
        assert_eq!((php.protocol, php.unix, php.refuses), (Protocol::Fcgi, true, false));
        assert_eq!(declared("one").protocol, Protocol::Http);
        assert!(declared("gone refuses").refuses);
        assert!(Declared::parse("One").is_err());
        assert!(Declared::parse("one htp").is_err());
    }

    #[test]
    fn a_line_belongs_to_a_backend_by_its_whole_name() {
        let backends = [declared("one"), declared("one2")];
        assert_eq!(kind(&backends, "one<-"), Some(Kind::Written));
        assert_eq!(kind(&backends, "one2>"), Some(Kind::Recorded));
        assert_eq!(kind(&backends, "one|-"), Some(Kind::Recorded));
        assert_eq!(kind(&backends, "one3>"), None);
        assert_eq!(kind(&backends, "<"), None);
    }

    #[test]
    fn lines_become_steps_and_next_begins_another_exchange() {
        let backends = [declared("one"), declared("two")];
        let mut exchanges = Vec::new();
        let lines = ["one< A: 1", "one<- x\\n", "two: after head", "one: close", "one: next"];
        for line in lines {
            add(&backends, &mut exchanges, line).expect("a line");
        }
        let acts: Vec<&[Act]> = exchanges.iter().map(|exchange| &exchange.acts[..]).collect();
        let sent = Act::Send(b"A: 1\r\nx\n".to_vec());
        assert_eq!(acts, [&[sent, Act::Close][..], &[Act::Head][..], &[][..]]);
        assert_eq!(exchanges[2].backend, "one");
        assert!(add(&backends, &mut exchanges, "one: dance").is_err());
    }

    #[test]
    fn an_answer_waits_for_the_whole_request_unless_told_otherwise() {
        let of = |acts: Vec<Act>| Exchange { backend: "one".into(), acts }.complete();
        assert_eq!(of(vec![Act::Close]), [Act::Request, Act::Close]);
        assert_eq!(of(vec![Act::Head, Act::Close]), [Act::Head, Act::Close]);
    }
}
