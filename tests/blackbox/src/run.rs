//! Runs a test file against a program: sets it up, sends requests, and records or compares.

use std::path::Path;
use std::time::Duration;

use crate::answer::{self, Answer};
use crate::backend::player::Player;
use crate::backend::show::{self, Connections};
use crate::client::{Client, End, Fill};
use crate::compare::{Rule, difference, ignore_body};
use crate::http2;
use crate::keeper::Keeper;
use crate::place::Place;
use crate::program::{Program, end_detached};
use crate::render::Renderer;
use crate::stall::{self, Deadline};
use crate::testfile::{Block, Change, Connection, Item, Step, TestFile};
use crate::tls::Tls;

/// The time limit for a response.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection has to stay quiet to count as open: if nothing is known about it, if the
/// recording says open, and if the server has announced the close or the recording says closed.
const OPEN_UNKNOWN: Duration = Duration::from_millis(200);
const OPEN_EXPECTED: Duration = Duration::from_millis(30);
const CLOSE_EXPECTED: Duration = Duration::from_secs(20);
/// Log lines are written after the last byte is sent.
const LOG_SETTLES: Duration = Duration::from_millis(60);
/// How long to wait for a missing line of a log.
const LOG_LIMIT: Duration = Duration::from_secs(10);
/// The name of the case that the server stops in order.
const END: &str = ": the server's end";
/// Most runs of a file, if the machine stalled each time.
const RUNS_MAX: u32 = 5;

/// A connection, command or log check.
#[derive(Debug)]
pub struct Case {
    /// `area/name: title`.
    pub name: String,
    /// The number of requests or commands in it.
    pub requests: usize,
    /// The failure.
    pub failure: Option<String>,
}

impl Case {
    fn is_good(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether the server did not respond to a request.
    fn lacks_a_response(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.contains(&format!("+ {NO_RESPONSE}")))
    }

    fn is_of_the_end(&self) -> bool {
        self.name.ends_with(END)
    }
}

/// What is recorded for a request without a response.
const NO_RESPONSE: &str = "= no answer";

/// What recordings are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Record the real server.
    Record,
    /// Compare the recordings with the real server.
    Check,
    /// Compare Tamarack with the recordings and its marked differences.
    Run,
}

/// Runs a file. [`Mode::Record`] replaces its recordings.
pub fn run_file(file: &mut TestFile, program: &Program, mode: Mode, tests: &Path) -> Vec<Case> {
    let before = file.clone();
    let mut ask = || {
        file.clone_from(&before);
        Session::new(&before, program, mode, tests).and_then(|session| session.all(file))
    };
    let mut stalls = stall::count();
    let mut result = ask();
    for _ in 1..RUNS_MAX {
        let is_chance = match &result {
            Ok(cases) if cases.iter().all(Case::is_good) => break,
            // No server may die because of a busy machine.
            Ok(cases) if cases.iter().any(Case::is_of_the_end) => false,
            // Apache closes kept connections while its threads are busy.
            Ok(cases) if program.is_apache() && cases.iter().any(Case::lacks_a_response) => true,
            Ok(_) => stall::count() > stalls,
            // Another program took the port between our check and the server's bind; Apache, which
            // is not under test, may fail to start for other reasons on a busy machine.
            Err(failure) => failure.contains("Address already in use") || program.is_apache(),
        };
        if !is_chance {
            break;
        }
        println!("run again, because this failure may be a coincidence: {}", before.name);
        stalls = stall::count();
        result = ask();
    }
    match result {
        Ok(cases) => cases,
        Err(failure) => {
            let fail = |(at, item): (usize, &Item)| Case {
                name: title(&before, item),
                requests: item.blocks().len(),
                failure: Some(if at == 0 { failure.clone() } else { "as above".into() }),
            };
            file.clone_from(&before);
            before.items.iter().enumerate().map(fail).collect()
        }
    }
}

struct Session<'a> {
    file: &'a TestFile,
    program: &'a Program,
    mode: Mode,
    place: Place,
    tls: Tls,
}

impl<'a> Session<'a> {
    fn new(
        file: &'a TestFile,
        program: &'a Program,
        mode: Mode,
        tests: &Path,
    ) -> Result<Self, String> {
        let certificates = tests.join("tls");
        let place = Place::build(file, &certificates)?;
        Ok(Session { file, program, mode, place, tls: Tls::new(&certificates) })
    }

    fn all(&self, file: &mut TestFile) -> Result<Vec<Case>, String> {
        let renderer = Renderer::new(&self.place, &self.file.masks)?;
        let serves = |item: &Item| matches!(item, Item::Connection(_));
        let player = Player::start(&self.place)?;
        let mut server = None;
        if self.file.items.iter().any(serves) {
            server = Some(self.program.serve(&self.place)?);
        }
        let mut cases = Vec::new();
        let mut keeper = Keeper::default();
        let (logs, live): (Vec<&mut Item>, Vec<&mut Item>) = file
            .items
            .iter_mut()
            .partition(|item| matches!(item, Item::Log(_) | Item::ErrorLog(..)));
        for item in live {
            let name = title(self.file, item);
            let requests = item.blocks().len();
            let failure = match item {
                Item::Connection(connection) => {
                    self.connection(connection, &renderer, &player, &mut keeper)
                }
                Item::Command(block) => self.command(block, &renderer),
                Item::Log(_) | Item::ErrorLog(..) => None,
            };
            cases.push(Case { name, requests, failure });
        }
        if !logs.is_empty() {
            self.wait_for_logs(&renderer);
        }
        if let Some(Err(failure)) = server.map(|server| server.stop()) {
            let name = format!("{}{END}", self.file.name);
            cases.push(Case { name, requests: 0, failure: Some(failure) });
        }
        end_detached(&self.place);
        for item in logs {
            let name = title(self.file, item);
            let failure = self.log(item, &renderer);
            cases.push(Case { name, requests: 0, failure });
        }
        Ok(cases)
    }

    /// Waits until the logs have the expected lines, while the server may still write.
    fn wait_for_logs(&self, renderer: &Renderer) {
        let end = Deadline::after(LOG_LIMIT);
        loop {
            std::thread::sleep(LOG_SETTLES);
            let mut items = self.file.items.clone();
            let is_wrong = |item: &mut Item| self.log(item, renderer).is_some();
            let is_missing = self.mode != Mode::Record && items.iter_mut().any(is_wrong);
            if !is_missing || end.left().is_none() {
                return;
            }
        }
    }

    fn connection(
        &self,
        connection: &mut Connection,
        renderer: &Renderer,
        player: &Player,
        keeper: &mut Keeper,
    ) -> Option<String> {
        if http2::is_on() {
            return self.connection_http2(connection, renderer, player, keeper);
        }
        let options = connection.options.clone();
        let mut client = match Client::connect(&options, &self.place, &self.tls) {
            Ok(client) => client,
            Err(failure) => return Some(failure),
        };
        let mut failures = String::new();
        let mut at = 0;
        let mut seen = Connections::default();
        while at < connection.requests.len() {
            let rest = connection.requests.get(at + 1..).unwrap_or_default();
            let group = 1 + rest.iter().take_while(|block| block.pipelined).count();
            let blocks = connection.requests.get(at..at + group).unwrap_or_default();
            let expect = |block: &Block| player.expect(&block.exchanges, &self.place);
            let mut numbers = blocks.iter().map(expect).collect::<Vec<_>>().into_iter();
            self.send(&mut client, blocks, player, keeper);
            for _ in 0..group {
                let last = at + 1 == connection.requests.len();
                let Some(block) = connection.requests.get_mut(at) else {
                    break;
                };
                let session = client
                    .session(&self.tls)
                    .filter(|_| at == 0 && options.iter().any(|word| word == "show"));
                let mut lines: Vec<String> =
                    session.map(|session| format!("= tls {session}")).into_iter().collect();
                let answer = answer::read(&mut client, &method(block), limit());
                match &answer {
                    Some(answer) => lines.extend(shown(answer, renderer, keeper)),
                    None => lines.push(NO_RESPONSE.into()),
                }
                if block.ignore_body {
                    ignore_body(&mut lines);
                }
                let (heard, unasked) = player.heard(numbers.next().unwrap_or(0));
                let heard = show::lines(&self.place, renderer, &heard, &unasked, &mut seen);
                if !block.exchanges.is_empty() {
                    lines.splice(0..0, heard);
                }
                if last || answer.is_none() {
                    lines.push(self.end(&mut client, answer.as_ref(), block));
                    if !client.buffer.is_empty() {
                        let more = client.buffer.split(|&byte| byte == b'\r').next();
                        let more = crate::escape::escape(more.unwrap_or_default());
                        lines.push(format!("= more came: {more}"));
                    }
                }
                let shown = answer.map(|answer| answer.body).unwrap_or_default();
                let shown = self.place.unfill(&String::from_utf8_lossy(&shown));
                if let Some(failure) = self.judge(block, lines, &shown, Rule::Answer) {
                    let sent = block.source.iter().find(|line| line.starts_with('>'));
                    let sent = sent.map_or("", String::as_str);
                    failures.push_str(&format!("    request {}: {sent}\n{failure}", at + 1));
                }
                at += 1;
            }
        }
        (!failures.is_empty()).then_some(failures)
    }

    /// Sends the requests on a connection of HTTP/2.
    fn connection_http2(
        &self,
        connection: &mut Connection,
        renderer: &Renderer,
        player: &Player,
        keeper: &mut Keeper,
    ) -> Option<String> {
        let mut failures = String::new();
        let mut client = match Client::connect(&connection.options, &self.place, &self.tls) {
            Ok(client) => http2::Http2::new(client),
            Err(failure) => return Some(failure),
        };
        for (at, block) in connection.requests.iter_mut().enumerate() {
            let mut bytes = Vec::new();
            for step in &block.steps {
                match step {
                    Step::Send(more) => bytes.extend(self.place.fill_bytes(more)),
                    Step::Change(change) => self.change(change, player),
                    Step::Pause(_) | Step::HalfClose | Step::WaitInterim => {}
                }
            }
            let request = http2::Request::parse(&keeper.fill(bytes))?;
            let answer = client.exchange(&request, limit());
            let mut lines = match &answer {
                Some(answer) => shown(answer, renderer, keeper),
                None => vec![NO_RESPONSE.into()],
            };
            if block.ignore_body {
                ignore_body(&mut lines);
            }
            http2::comparable(&mut lines);
            let shown = answer.map(|answer| answer.body).unwrap_or_default();
            let shown = self.place.unfill(&String::from_utf8_lossy(&shown));
            if let Some(failure) = self.judge(block, lines, &shown, Rule::Answer) {
                let sent = block.source.iter().find(|line| line.starts_with('>'));
                let sent = sent.map_or("", String::as_str);
                failures.push_str(&format!("    request {}: {sent}\n{failure}", at + 1));
            }
        }
        (!failures.is_empty()).then_some(failures)
    }

    fn send(&self, client: &mut Client, blocks: &[Block], player: &Player, keeper: &mut Keeper) {
        let mut bytes = Vec::new();
        for step in blocks.iter().flat_map(|block| &block.steps) {
            if let Step::Send(more) = step {
                bytes.extend(self.place.fill_bytes(more));
                continue;
            }
            client.send(&keeper.fill(std::mem::take(&mut bytes)));
            match step {
                Step::Pause(millis) => std::thread::sleep(Duration::from_millis(*millis)),
                Step::HalfClose => client.half_close(),
                Step::WaitInterim => {
                    if client.buffer.is_empty() {
                        client.fill(limit());
                    }
                }
                Step::Change(change) => self.change(change, player),
                Step::Send(_) => {}
            }
        }
        client.send(&keeper.fill(bytes));
    }

    fn change(&self, change: &Change, player: &Player) {
        let changed = match change {
            Change::Stop(name) => player.stop(name),
            Change::Start(name) => player.restart(name),
            _ => self.place.change(change),
        };
        if let Err(error) = changed {
            eprintln!("{}: {change:?}: {error}", self.file.name);
        }
    }

    /// Whether the server leaves the connection open after the last response.
    fn end(&self, client: &mut Client, answer: Option<&Answer>, block: &Block) -> String {
        let recorded = |word: &str| {
            let expected = expected(block, self.mode);
            self.mode != Mode::Record && expected.iter().any(|line| line.starts_with(word))
        };
        let announced = answer.and_then(|answer| answer.head.as_ref()).is_some_and(|head| {
            head.field("Connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
        });
        let wait = match () {
            () if announced || recorded("= closed") || recorded("= cut") => CLOSE_EXPECTED,
            () if recorded("= open") => OPEN_EXPECTED,
            () => OPEN_UNKNOWN,
        };
        let end = Deadline::after(wait);
        while client.fill(end) == Fill::More {}
        match &client.end {
            None => "= open".into(),
            Some(End::Closed) => "= closed".into(),
            Some(End::Cut) => "= cut off without close_notify".into(),
            Some(End::Alert(alert)) => format!("= alert {alert}"),
        }
    }

    fn command(&self, block: &mut Block, renderer: &Renderer) -> Option<String> {
        let arguments = split_words(&self.place.fill_text(&block.argument));
        let output = match self.program.run(&arguments, &self.place) {
            Ok(output) => output,
            Err(failure) => return Some(failure),
        };
        let lines = renderer.output(&output, &self.program.path().display().to_string());
        let shown = lines.join("\n");
        let rule = if self.program.is_apache() { Rule::Exact } else { Rule::Output };
        self.judge(block, lines, &shown, rule)
    }

    fn log(&self, item: &mut Item, renderer: &Renderer) -> Option<String> {
        let read = |name: &str| {
            let path = self.place.root.join(self.place.fill_text(name));
            std::fs::read(&path).map_err(|e| format!("    {}: {e}\n", path.display()))
        };
        match item {
            Item::Log(block) => {
                let text = match read(&block.argument) {
                    Ok(text) => text,
                    Err(failure) => return Some(failure),
                };
                let mut lines = Vec::new();
                renderer.text(&text, &mut lines);
                let shown = lines.join("\n");
                self.judge(block, lines, &shown, Rule::Log)
            }
            Item::ErrorLog(_, must, text) => {
                let log = match read("logs/error.log") {
                    Ok(log) => self.place.unfill(&String::from_utf8_lossy(&log)),
                    Err(failure) => return Some(failure),
                };
                (log.contains(text.as_str()) != *must)
                    .then(|| format!("    the error log is:\n{log}\n"))
            }
            Item::Connection(_) | Item::Command(_) => None,
        }
    }

    /// Compares or records.
    fn judge(
        &self,
        block: &mut Block,
        lines: Vec<String>,
        shown: &str,
        rule: Rule,
    ) -> Option<String> {
        let broken = lines.iter().find(|line| line.starts_with("= broken"));
        let mut failure = String::new();
        for (must, text) in &block.assertions {
            if shown.contains(text.as_str()) != *must {
                let word = if *must { "contains" } else { "lacks" };
                failure.push_str(&format!("      does not hold: {word} {text}\n"));
            }
        }
        match self.mode {
            Mode::Record => {
                // A backend may have broken off.
                if let Some(broken) = broken.filter(|_| self.file.backends.is_empty()) {
                    failure.push_str(&format!("      {broken}\n"));
                }
                block.recorded = lines;
            }
            Mode::Check | Mode::Run => {
                let expected = expected(block, self.mode);
                if expected.is_empty() && rule == Rule::Answer {
                    failure.push_str("      nothing is recorded: `blackbox record`\n");
                } else if let Some(difference) = difference(expected, &lines, rule) {
                    failure.push_str(&difference);
                }
            }
        }
        (!failure.is_empty()).then_some(failure)
    }
}

/// The lines of a response, without what only this server can have made.
fn shown(answer: &Answer, renderer: &Renderer, keeper: &mut Keeper) -> Vec<String> {
    keeper.learn(answer);
    renderer.answer(answer).into_iter().map(|line| keeper.unfill(line)).collect()
}

fn expected(block: &Block, mode: Mode) -> &[String] {
    match &block.differs {
        Some((_, ours)) if mode == Mode::Run => ours,
        _ => &block.recorded,
    }
}

fn limit() -> Deadline {
    Deadline::after(ANSWER_LIMIT)
}

/// The name of an item in results.
fn title(file: &TestFile, item: &Item) -> String {
    let title = match item {
        Item::Connection(connection) => connection.title.clone(),
        Item::Command(block) => format!("command {}", block.argument),
        Item::Log(block) => format!("log {}", block.argument),
        Item::ErrorLog(_, true, text) => format!("error-log contains {text}"),
        Item::ErrorLog(_, false, text) => format!("error-log lacks {text}"),
    };
    format!("{}: {title}", file.name)
}

fn method(block: &Block) -> String {
    let first = block.steps.iter().find_map(|step| match step {
        Step::Send(bytes) => Some(bytes),
        _ => None,
    });
    let skip = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    let word = first.into_iter().flatten().skip_while(skip).take_while(|byte| **byte != b' ');
    String::from_utf8_lossy(&word.copied().collect::<Vec<u8>>()).into_owned()
}

/// Splits a command line into words; quotes of both kinds enclose spaces.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::split_words;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(split_words("-C \"Define A b\" '' x"), ["-C", "Define A b", "", "x"]);
    }
}
