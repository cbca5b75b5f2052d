//! The requests of a test file, and what is compared.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use blackbox::answer::{Answer, Head};
use blackbox::compare::{Rule, difference, ignore_body};
use blackbox::place::Place;
use blackbox::render::Renderer;
use blackbox::testfile::{Block, Connection, Item, Step, TestFile};

use crate::explain::report::Report;
use crate::explain::text::{self, Style};
use crate::explain::{Session, Target};
use crate::{is_left_out, user};
use server::explain::Kind;

/// The longest body that is compared, in bytes.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// The port of clients.
const CLIENT_PORT: u16 = 50_000;

/// The results of requests.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Those that agree.
    pub passed: usize,
    /// Those that do not.
    pub failed: usize,
    /// Those that are not explained, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// Adds those of another file.
    pub fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        for (why, count) in other.skipped {
            *self.skipped.entry(why).or_default() += count;
        }
    }

    /// Counts requests that are not explained.
    pub fn skip(&mut self, why: &'static str, count: usize) {
        *self.skipped.entry(why).or_default() += count;
    }
}

/// The result of a file.
pub enum Outcome {
    /// Its requests were explained.
    Compared(Counts),
    /// There is no place for it.
    Refused(String),
}

/// Explains all requests of a file.
pub async fn all(file: &TestFile, place: &Place, session: &mut Session) -> Counts {
    let mut counts = Counts::default();
    let renderer = Renderer::new(place, &file.masks).unwrap();
    for item in &file.items {
        let Item::Connection(connection) = item else { continue };
        if is_proxied(connection) {
            counts.skip("the PROXY protocol", connection.requests.len());
            continue;
        }
        for (at, block) in connection.requests.iter().enumerate() {
            change(block, place);
            if is_left_out(&format!("{}: {}", file.name, connection.title)) {
                counts.skip("the state of a process or connection", 1);
                continue;
            }
            if needs_backend(file, block) {
                counts.skip("a backend", 1);
                continue;
            }
            let target = match target(connection, block, place) {
                Ok(target) => target,
                Err(why) => {
                    counts.skip(why, 1);
                    continue;
                }
            };
            match compare(&target, block, at > 0, &renderer, session).await {
                Compared::Agrees => counts.passed += 1,
                Compared::NotAsked => counts.skip("a name server or a program", 1),
                Compared::Differs(why) => {
                    counts.failed += 1;
                    println!("{}: {}: request {}\n{why}", file.name, connection.title, at + 1);
                }
            }
        }
    }
    counts
}

/// Whether the connection begins with a header of the PROXY protocol, which is no request's.
fn is_proxied(connection: &Connection) -> bool {
    const HEADERS: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];
    let steps = connection.requests.iter().flat_map(|block| &block.steps);
    let mut sent = steps.filter_map(|step| match step {
        Step::Send(bytes) => Some(bytes),
        _ => None,
    });
    sent.next().is_some_and(|first| HEADERS.iter().any(|header| first.starts_with(header)))
}

/// Whether a backend has answered, or one that refuses was asked.
fn needs_backend(file: &TestFile, block: &Block) -> bool {
    let is_echo = |line: &String| line.starts_with("< Backend: ");
    let is_error = |line: &String| line.starts_with("< HTTP/1.1 5") || line == "= no answer";
    !file.backends.is_empty()
        && (!block.exchanges.is_empty()
            || block.recorded.iter().any(|line| is_echo(line) || is_error(line)))
}

fn change(block: &Block, place: &Place) {
    for step in &block.steps {
        if let Step::Change(change) = step {
            place.change(change).unwrap();
        }
    }
}

/// The request of a block.
///
/// # Errors
/// The reason why it can't be explained.
fn target(connection: &Connection, block: &Block, place: &Place) -> Result<Target, &'static str> {
    const KNOWN: [&str; 7] = ["tls", "sni", "to", "from", "only", "alpn", "show"];
    let key = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
    if !connection.options.iter().all(|word| KNOWN.contains(&key(word).as_str())) {
        return Err("options of the TLS session");
    }
    let sent = sent(block, place)?;
    let first = expected(block).first().map(String::as_str).unwrap_or_default();
    if !first.starts_with("< HTTP/1.") {
        return Err("no response of HTTP/1");
    }
    if expected(block).iter().any(|line| line.starts_with("= broken")) {
        return Err("a response that breaks off");
    }
    // Blank lines before a request count only behind another.
    if sent.starts_with(b"\r") || sent.starts_with(b"\n") {
        return Err("blank lines before the request");
    }
    if !sent.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        return Err("an incomplete head");
    }
    let value = |key: &str| {
        let found =
            connection.options.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.map(str::to_owned)
    };
    let local = place.fill_text(&value("to").unwrap_or_else(|| "127.0.0.1:@PORT@".to_owned()));
    let local: SocketAddr = local.parse().map_err(|_| "an address")?;
    let from = value("from")
        .unwrap_or_else(|| if local.is_ipv6() { "::1" } else { "127.0.0.1" }.to_owned());
    let is_tls = connection.options.iter().any(|word| word == "tls");
    let protocol = match value("only").as_deref() {
        Some("1.2") => "TLSv1.2",
        _ => "TLSv1.3",
    };
    Ok(Target {
        url: connection.title.clone(),
        peer: SocketAddr::new(from.parse().map_err(|_| "an address")?, CLIENT_PORT),
        local,
        tls: is_tls.then_some(protocol),
        http2: false,
        host: value("sni").filter(|name| name != "none").unwrap_or_default(),
        sent,
    })
}

/// The bytes of a request that needs nothing but them.
fn sent(block: &Block, place: &Place) -> Result<Vec<u8>, &'static str> {
    let mut sent = Vec::new();
    for step in &block.steps {
        match step {
            Step::Send(bytes) => sent.extend(place.fill_bytes(bytes)),
            Step::Change(_) | Step::WaitInterim => {}
            Step::Pause(_) => return Err("a pause"),
            Step::HalfClose => return Err("a connection that the client closes"),
        }
    }
    Ok(sent)
}

fn expected(block: &Block) -> &[String] {
    match &block.differs {
        Some((_, ours)) => ours,
        None => &block.recorded,
    }
}

/// The lines of the last response of a recording.
fn without_interim(lines: &[String]) -> &[String] {
    let is_interim = lines.first().is_some_and(|line| line.starts_with("< HTTP/1.1 1"));
    let is_head = |line: &String| line.starts_with("< HTTP/1.1 ");
    let last = lines.iter().rposition(is_head).filter(|_| is_interim).unwrap_or(0);
    lines.get(last..).unwrap_or_default()
}

/// How a request's answer compares with its recording.
enum Compared {
    Agrees,
    Differs(String),
    /// It depends on a name that the server looks up.
    NotAsked,
}

async fn compare(
    target: &Target,
    block: &Block,
    is_later: bool,
    renderer: &Renderer<'_>,
    session: &mut Session,
) -> Compared {
    let asked = user::as_child(async {
        let mut answer = session.ask(target).await?;
        let body = answer.explained.body(BODY_LIMIT).await.unwrap_or_default();
        let mut is_asked = true;
        answer.event.each(&mut |event| is_asked &= event.outcome != "not asked");
        let (head, size) =
            (answer.explained.head.clone(), answer.explained.request.resource.file.size);
        let report = Report::new(session, target, "", answer);
        let is_file = report.status == 200
            && report.handler.as_deref() == Some("default-handler")
            && !body.is_empty()
            && !changes_body(&report)
            && report.length == Some(size);
        let style = Style { quiet: true, ..Style::default() };
        let verdict = text::write(&report, &session.places, style);
        let wrong = wrong(&verdict, &report, &head, is_file.then_some(&body));
        Some((head, body, is_asked, wrong))
    });
    let (head, body) = match asked.await {
        Some((head, body, true, None)) => (head, body),
        Some((_, _, false, _)) => return Compared::NotAsked,
        Some((_, _, _, Some(why))) => return Compared::Differs(why),
        None => return Compared::Differs("      the request is not complete\n".to_owned()),
    };
    // A client does not wait for a body after HEAD, whatever the server took the request for.
    let body = if target.sent.starts_with(b"HEAD ") { Vec::new() } else { body };
    let mut lines = renderer.answer(&answer(&head, body));
    if block.ignore_body {
        ignore_body(&mut lines);
    }
    // Each request is explained as the first of its connection.
    let of_connection = |line: &String| {
        line.starts_with("= ")
            || is_later
                && (line.starts_with("< Keep-Alive: ") || line.starts_with("< Connection: "))
    };
    lines.retain(|line| !of_connection(line));
    let recorded = without_interim(expected(block)).iter().filter(|line| !of_connection(line));
    let recorded: Vec<String> = recorded.cloned().collect();
    match difference(&recorded, &lines, Rule::Answer) {
        None => Compared::Agrees,
        Some(why) => Compared::Differs(why),
    }
}

/// Whether a filter may have changed more than fields: one that does so before the head is sent
/// leaves nothing to change afterwards.
fn changes_body(report: &Report) -> bool {
    let of_fields = ["mod_headers.c", "mod_expires.c"];
    let mut changes = false;
    report.event.each(&mut |event| {
        let is_other = !of_fields.contains(&event.fact("module").unwrap_or_default());
        changes |= event.kind == Kind::Filter && is_other;
    });
    changes
}

/// What is wrong with the verdict on an answer: its status, its `Location`, or the file whose
/// contents are the body.
fn wrong(said: &str, report: &Report, head: &[u8], body: Option<&Vec<u8>>) -> Option<String> {
    let sent = String::from_utf8_lossy(head);
    let status = sent.split("\r\n").next()?.split_once(' ')?.1;
    let location = sent.split("\r\n").find_map(|line| line.strip_prefix("Location: "));
    let file = report.file.as_deref().unwrap_or_default();
    let is_good = match (location, body) {
        (Some(location), _) => said.contains(&format!("→ {}", text::printable(location))),
        (None, Some(body)) => {
            said.contains(&text::printable(file))
                && std::fs::read(file).is_ok_and(|own| own == *body)
        }
        (None, None) => !said.contains('→'),
    };
    let is_good = is_good && said.starts_with(status.trim_end());
    (!is_good).then(|| format!("      the verdict is {said}      for {sent}\n"))
}

fn answer(head: &[u8], body: Vec<u8>) -> Answer {
    let text = head.strip_suffix(b"\r\n\r\n").unwrap_or(head);
    let mut lines =
        text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let status_line = lines.next().unwrap_or_default().to_vec();
    let field = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line.get(colon + 1..)?;
        let name = String::from_utf8_lossy(line.get(..colon)?).into_owned();
        Some((name, value.strip_prefix(b" ").unwrap_or(value).to_vec()))
    };
    let fields = lines.filter_map(field).collect();
    Answer { head: Some(Head { status_line, fields }), body, ..Answer::default() }
}
