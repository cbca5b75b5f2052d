//! Sends requests to both servers and reads their responses.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use blackbox::answer::{self, Answer};
use blackbox::client::{Client, Fill};
use blackbox::compare::{Rule, difference};
use blackbox::escape::escape;
use blackbox::http2::{self, Http2};
use blackbox::keeper::Keeper;
use blackbox::program::Server;
use blackbox::render::Renderer;
use blackbox::stall::Deadline;
use blackbox::tls::Tls;

use crate::backends;
use crate::fresh;
use crate::neighbours;
use crate::pair::Side;
use crate::site::{Case, ERROR_LOG, MAIN_LOG, Request, Seat, Site};
use crate::skipped;
use crate::streams;
use crate::verdict::{Exchange, Signature, Verdict};
use crate::wanted;

/// Stands for the site's name in a request.
const HOST: &[u8] = b"@HOST@";

/// How long a server may sleep during a request; it may work on it for a multiple of this.
pub const RESPONSE_LIMIT: Duration = Duration::from_secs(4);
const WORKING_MAX: u32 = 15;
/// The same for Apache, whose look-ups by `-F` and `-U` have no limit in all: they may take hours.
const APACHE_WORKING_MAX: u32 = 3;
/// How long Apache may work on all requests to a site.
const APACHE_WORKED_MAX: Duration = Duration::from_secs(20);
/// How long a connection must stay quiet to count as open, and how long the other server has to
/// close if one did.
const OPEN: Duration = Duration::from_millis(2);
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// How long a line of a log may take after its response, how long where lines of another log have
/// not come in that time, and how often it is looked for.
const LOG_LIMIT: Duration = Duration::from_secs(3);
const LOG_LIMIT_NEXT: Duration = Duration::from_millis(50);
const LOG_LOOKS: Duration = Duration::from_millis(3);
/// How long before a request that waits: longer than what [`wanted`] allows between the times of
/// two responses.
pub const PAUSE: Duration = Duration::from_secs(5);
/// A connection that ended before a response.
pub const NO_ANSWER: &str = "= no answer";
pub const NO_CONNECTION: &str = "= no connection";
/// A connection that only the other server has closed.
const OPEN_STILL: &str = "= open";
/// A response that did not begin within the limit.
pub const TOO_LATE: &str = "= nothing in time";
/// Statuses after which a connection may end although the response does not announce it.
const CLOSING: [&str; 9] = ["400", "408", "411", "413", "414", "417", "431", "500", "501"];
/// Longest page that is shown as a text.
const PAGE_BYTES: usize = 64 * 1024;
/// Sends each case's requests, and returns the results.
pub fn talk_all(
    cases: &[(usize, &Case)],
    tls: &Tls,
    apache: &Side,
    tamarack: Option<&Side>,
) -> Vec<Verdict> {
    let masks = fresh::masks(cases.iter().map(|(_, case)| *case));
    let mut sides = Vec::new();
    for side in std::iter::once(apache).chain(tamarack) {
        sides.extend(Renderer::new(&side.place, &masks).map(|renderer| (side, renderer)));
    }
    let mut log_limit = LOG_LIMIT;
    let mut are_lines_there = true;
    let talk = |&(at, case): &(usize, &Case)| {
        let clients = sides.iter().map(|_| None).collect();
        let streams = sides.iter().map(|_| None).collect();
        let keepers = sides.iter().map(|_| Keeper::default()).collect();
        let (seat, via) = (Seat::Host(at), String::new());
        let default = cases.iter().find(|(_, other)| other.site.is_tls == case.site.is_tls);
        let default = default.map(|(_, first)| &first.site);
        let allowed = Vec::new();
        let main_log = main_log(&sides).filter(|_| are_lines_there).collect();
        let talk = Talk {
            seat,
            cases,
            sides: &sides,
            tls,
            clients,
            streams,
            keepers,
            apache_worked: Duration::ZERO,
            via,
            default,
            log_limit,
            main_log,
            allowed,
            errors: ErrorLogs::of(&sides, seat),
        };
        let (verdict, has_all_lines) = talk.all(case);
        // A line that was not waited for would count for the next site.
        are_lines_there &= has_all_lines;
        if verdict.logs.is_some() {
            log_limit = LOG_LIMIT_NEXT;
        }
        verdict
    };
    cases.iter().map(talk).collect()
}

/// The requests to one site, on a connection to each side while all of them stay open.
struct Talk<'a> {
    seat: Seat,
    /// All sites that are served.
    cases: &'a [(usize, &'a Case)],
    sides: &'a [(&'a Side, Renderer<'a>)],
    tls: &'a Tls,
    clients: Vec<Option<Client>>,
    /// The same over HTTP/2.
    streams: Vec<Option<Http2>>,
    /// What the site's client knows of each side.
    keepers: Vec<Keeper>,
    /// For how long Apache has worked on the requests to the site.
    apache_worked: Duration,
    /// How the connections were made.
    via: String,
    /// The first site of the port.
    default: Option<&'a Site>,
    log_limit: Duration,
    /// Where the main server's log begins for this site, on each side; empty if it is not compared.
    main_log: Vec<u64>,
    /// The request lines whose responses differ, or may, as a rule allows: so do their lines in the
    /// log.
    allowed: Vec<Vec<u8>>,
    /// What the error logs say of the site.
    errors: ErrorLogs,
}

impl Talk<'_> {
    /// The results, and whether all lines of the logs were waited for.
    fn all(mut self, case: &Case) -> (Verdict, bool) {
        let mut verdict = Verdict::default();
        let mut is_repeated = false;
        for group in case.requests.chunk_by(|_, next| next.is_pipelined) {
            self.change(group);
            if group.iter().any(|request| request.waits) {
                std::thread::sleep(PAUSE);
            }
            let log = ErrorLogs::of(self.sides, self.seat);
            let are_alike = self.are_alike();
            let (lines, was_unheard) = self.exchange_again(group);
            // One side may have the requests in its logs twice.
            is_repeated |= was_unheard;
            if self.is_apache_late(lines.first()) {
                // What it does not say is no evidence about Tamarack.
                return (verdict, false);
            }
            let mut lines = lines.into_iter();
            let apache = lines.next().unwrap_or_default();
            let tamarack = lines.next().unwrap_or_else(|| apache.clone());
            let mut found = None;
            let mut is_allowed = false;
            // Behind a body that does not end where its length says, no response can be told.
            let mut is_lost = false;
            let mut errors = String::new();
            for ((request, apache), tamarack) in group.iter().zip(apache).zip(tamarack) {
                if wanted::may_be_undecided(&case.site, request) {
                    // Even where both respond alike, they do so for other reasons.
                    self.allowed.push(line(&request.bytes(self.seat)));
                }
                if difference(&apache, &tamarack, Rule::Answer).is_some() {
                    errors = log.more();
                    let rule = self.rule(case, request, [&apache, &tamarack], &errors);
                    // A response that may differ may also end the connection on one side: then the
                    // requests that were sent with it get none there.
                    let follows =
                        is_lost || is_allowed && (is_unheard(&apache) != is_unheard(&tamarack));
                    let is_unlike =
                        !are_alike && Keeper::has_credentials(&request.bytes(self.seat));
                    let is_decided = rule.is_some()
                        || is_unlike
                        || is_no_evidence(&apache)
                        || is_framing_alone(&apache, &tamarack);
                    is_allowed |= is_decided;
                    is_lost |= rule == Some(wanted::OF_REFLECTED_LENGTH);
                    match is_decided || follows {
                        true => self.allowed.push(line(&request.bytes(self.seat))),
                        false => found = found.or(Some(Signature::new(&apache, &tamarack))),
                    }
                }
                is_lost |= is_misframed(&apache);
                verdict.exchanges.push(Exchange { apache, tamarack, ..Exchange::default() });
            }
            if is_allowed {
                // The connections may have counted different numbers of responses.
                self.hang_up();
            }
            // What the first does may hang on those that came with it.
            if let Some(last) = verdict.exchanges.last_mut() {
                last.signature = found;
                last.errors = errors;
            }
        }
        self.hang_up();
        verdict.logs = if is_repeated { None } else { self.logs(case) };
        let has_all_lines = !is_repeated && verdict.logs.is_none();
        (verdict, has_all_lines)
    }

    /// Whether clients have the same credentials: after a response that may differ, they may not.
    fn are_alike(&self) -> bool {
        self.keepers.windows(2).all(|pair| match pair {
            [one, other] => one.is_like(other),
            _ => true,
        })
    }

    /// Whether Apache has not responded in time, or has worked for too long on the site.
    fn is_apache_late(&self, responses: Option<&Vec<Vec<String>>>) -> bool {
        let is_late = responses.is_some_and(|all| all.iter().any(|lines| is_late(lines)));
        is_late || self.apache_worked > APACHE_WORKED_MAX
    }

    /// What both sides respond to requests, which are sent again if the connection had ended
    /// silently after the previous response, or if only one has ended after this one: while one
    /// server works, the other's `KeepAliveTimeout` may be over. With whether they were.
    fn exchange_again(&mut self, group: &[Request]) -> (Vec<Vec<Vec<String>>>, bool) {
        let lines = self.exchange(group);
        let is_unheard = |side: &Vec<Vec<String>>| {
            side.first().and_then(|lines| lines.first()).is_some_and(|line| line == NO_ANSWER)
        };
        let has_end = |side: &Vec<Vec<String>>| {
            side.last().and_then(|lines| lines.last()).is_some_and(|line| line == OPEN_STILL)
        };
        if !lines.iter().any(|side| is_unheard(side) || has_end(side)) {
            return (lines, false);
        }
        self.hang_up();
        (self.exchange(group), true)
    }

    /// The line that allows a difference, because of the site itself or of others.
    fn rule(
        &self,
        case: &Case,
        request: &Request,
        [apache, tamarack]: [&[String]; 2],
        errors: &str,
    ) -> Option<&'static str> {
        let own = wanted::rule(&case.site, request, apache, tamarack, errors);
        // The first site of the port responds to what names no host of it, or can't be read.
        let is_unread = tamarack.iter().any(|line| line.starts_with("< HTTP/1.1 400 "))
            || is_unreadable(&request.target);
        let names_site = |(name, value): &(String, Vec<u8>)| {
            name == "Host" && value.windows(HOST.len()).any(|part| part == HOST)
        };
        let is_of_default = is_unread || !request.fields.iter().any(names_site);
        let of_default = |default| {
            let own = wanted::rule(default, request, apache, tamarack, errors);
            own.filter(|_| is_of_default)
                .or_else(|| neighbours::rule_of_default(default, request, apache, tamarack))
        };
        let all = self.cases.iter().map(|(_, case)| *case);
        own.or_else(|| self.default.and_then(of_default))
            .or_else(|| neighbours::rule_of_neighbours(all, apache, tamarack))
            .or_else(|| skipped::rule_of_skipped(case, apache, tamarack))
    }

    /// The first side's folder is served by all.
    fn change(&self, group: &[Request]) {
        let edits = group.iter().filter_map(|request| request.change.as_ref());
        for change in edits.map(|edit| edit.change(self.seat)) {
            if let Some((side, _)) = self.sides.first() {
                // A file that is not there any more can't be taken away.
                let _ = side.place.change(&change);
            }
        }
    }

    fn hang_up(&mut self) {
        self.clients.iter_mut().for_each(|client| *client = None);
        self.streams.iter_mut().for_each(|client| *client = None);
    }

    /// Requests that leave together, to all sides: for each side the responses as lines.
    fn exchange(&mut self, group: &[Request]) -> Vec<Vec<Vec<String>>> {
        let via = group.first().map(|request| self.seat.fill(&request.via)).unwrap_or_default();
        if via != self.via {
            self.hang_up();
            self.via = via;
        }
        let options: Vec<String> = self.via.split_whitespace().map(str::to_owned).collect();
        if http2::is_on() {
            return self.exchange_streams(group, &options);
        }
        let bytes: Vec<u8> = group.iter().flat_map(|request| request.bytes(self.seat)).collect();
        let mut numbers = Vec::new();
        let clients = self.clients.iter_mut().zip(&mut self.keepers);
        for ((side, _), (client, keeper)) in self.sides.iter().zip(clients) {
            numbers.push(backends::expect(side, group, self.seat));
            if client.is_none() {
                *client = Client::connect(&options, &side.place, self.tls).ok();
            }
            if let Some(client) = client {
                client.send(&keeper.fill(side.place.fill_bytes(&bytes)));
            }
        }
        let root = self.sides.first().map(|(side, _)| side.place.root.display().to_string());
        let root = root.unwrap_or_default();
        let mut all = Vec::new();
        let mut is_last = false;
        let mosts = std::iter::once(APACHE_WORKING_MAX).chain(std::iter::repeat(WORKING_MAX));
        let clients = self.clients.iter_mut().zip(&mut self.keepers);
        for ((((side, renderer), (client, keeper)), most), numbers) in
            self.sides.iter().zip(clients).zip(mosts).zip(numbers)
        {
            let mut lines = Vec::new();
            for (at, request) in group.iter().enumerate() {
                let Some(client) = client else {
                    lines.push(vec![NO_CONNECTION.to_owned()]);
                    is_last = true;
                    continue;
                };
                let more = at + 1 < group.len();
                let began = Instant::now();
                wait(client, &side.server, most);
                if most == APACHE_WORKING_MAX {
                    self.apache_worked += began.elapsed();
                }
                let (mut shown, ends) = response(request, (client, keeper), renderer, more);
                is_last |= ends;
                let number = numbers.get(at).copied().unwrap_or_default();
                shown.extend(backends::heard(side, renderer, request, number));
                lines.push(shown.into_iter().map(|line| line.replace(&root, "@ROOT@")).collect());
            }
            let is_over = lines.iter().any(|lines| is_late(lines));
            all.push(lines);
            if is_over {
                break;
            }
        }
        if !is_last && group.iter().enumerate().any(|(at, request)| may_close(request, &all, at)) {
            is_last = ends(&mut self.clients, &mut all);
        }
        if is_last {
            self.hang_up();
        }
        all
    }

    /// The same over HTTP/2.
    fn exchange_streams(&mut self, group: &[Request], options: &[String]) -> Vec<Vec<Vec<String>>> {
        let root = self.sides.first().map(|(side, _)| side.place.root.display().to_string());
        let root = root.unwrap_or_default();
        let mut all = Vec::new();
        let clients = self.streams.iter_mut().zip(&mut self.keepers);
        for ((side, renderer), (client, keeper)) in self.sides.iter().zip(clients) {
            let numbers = backends::expect(side, group, self.seat);
            let mut lines = Vec::new();
            for (at, request) in group.iter().enumerate() {
                if client.is_none() {
                    let connected = Client::connect(options, &side.place, self.tls);
                    *client = connected.ok().map(Http2::new);
                }
                let pair = (&mut *client, &mut *keeper);
                let mut shown = streams::exchange(request, self.seat, side, renderer, pair);
                let number = numbers.get(at).copied().unwrap_or_default();
                shown.extend(backends::heard(side, renderer, request, number));
                lines.push(shown.into_iter().map(|line| line.replace(&root, "@ROOT@")).collect());
            }
            all.push(lines);
        }
        // What has ended on one side may be in order on the other.
        if self.streams.iter().any(Option::is_none) {
            self.hang_up();
        }
        all
    }

    /// What the site's logs say on each side, where it has some and they differ.
    fn logs(&self, case: &Case) -> Option<Vec<Vec<String>>> {
        // The lines of an error log do not say which request they belong to.
        let is_told_apart = |name: &&str| self.allowed.is_empty() || *name != ERROR_LOG;
        let is_comparable = |name: &&str| !self.main_log.is_empty() || *name != MAIN_LOG;
        let names = case.site.logs().filter(is_told_apart).filter(is_comparable);
        let names: Vec<String> = names.map(|name| self.seat.fill(name)).collect();
        if names.is_empty() || http2::is_on() {
            return None;
        }
        let root = self.sides.first().map(|(side, _)| side.place.root.display().to_string())?;
        let limit = Deadline::after(self.log_limit);
        loop {
            let keepers = &self.keepers;
            let read = |(at, (side, renderer)): (usize, &(&Side, Renderer))| {
                let mut lines = Vec::new();
                for name in &names {
                    let text = std::fs::read(side.place.root.join(name)).unwrap_or_default();
                    let begin = self.main_log.get(at).filter(|_| name == MAIN_LOG);
                    let begin = begin.map_or(0, |begin| usize::try_from(*begin).unwrap_or(0));
                    renderer.text(text.get(begin..).unwrap_or_default(), &mut lines);
                }
                let allowed: Vec<String> =
                    self.allowed.iter().flat_map(|of| in_logs(of, renderer)).collect();
                // The end of a request in a forensic log does not say which one it is.
                let is_end = |line: &str| !allowed.is_empty() && line.starts_with("| -UNIQUE-ID");
                let is_compared =
                    |line: &String| !is_end(line) && !allowed.iter().any(|of| line.contains(of));
                let unsend = |line: String| match keepers.get(at) {
                    Some(keeper) => cookies(keeper.unsend(line, &|line| renderer.mask(line))),
                    None => line,
                };
                let lines = lines.into_iter().map(|line| unsend(line.replace(&root, "@ROOT@")));
                lines.filter(is_compared).collect::<Vec<_>>()
            };
            // A line is written after its response has left.
            let logs: Vec<Vec<String>> = self.sides.iter().enumerate().map(read).collect();
            match logs.as_slice() {
                [apache, tamarack] if difference(apache, tamarack, Rule::Log).is_some() => {}
                _ => return None,
            }
            if limit.left().is_none() {
                let is_allowed = match logs.as_slice() {
                    // Beyond a limit, Apache goes on and says more.
                    [apache, tamarack] => {
                        wanted::rule_of_logs(&case.site, apache, tamarack).is_some()
                            || wanted::limit(&self.errors.more()).is_some()
                    }
                    _ => false,
                };
                return (!is_allowed).then_some(logs);
            }
            std::thread::sleep(LOG_LOOKS);
        }
    }
}

/// The present end of the main server's log on each side.
fn main_log(sides: &[(&Side, Renderer<'_>)]) -> impl Iterator<Item = u64> {
    let end =
        |side: &Side| std::fs::metadata(side.place.root.join(MAIN_LOG)).map_or(0, |log| log.len());
    sides.iter().map(move |(side, _)| end(side))
}

/// The request line.
fn line(request: &[u8]) -> Vec<u8> {
    request.split(|byte| *byte == b'\r').next().unwrap_or_default().to_vec()
}

/// The request line as `%r` in quotes, and as mod_log_forensic, show it in a log: with their
/// escapes, and with the masks of the log.
fn in_logs(line: &[u8], renderer: &Renderer) -> Vec<String> {
    let shown = |mark: char, escaped: &dyn Fn(u8) -> String| {
        let text: String = line.iter().map(|&byte| escaped(byte)).collect();
        let mut lines = Vec::new();
        renderer.text(format!("{mark}{text}{mark}").as_bytes(), &mut lines);
        lines.iter().map(|line| line.trim_start_matches("|- ").to_owned()).collect::<Vec<_>>()
    };
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte);
    let quoted = shown('"', &|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b'\t' => "\\t".to_owned(),
        _ if is_plain(byte) => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    let forensic = shown('|', &|byte| match byte {
        b'|' | b'%' | b':' => format!("%{byte:02x}"),
        _ if is_plain(byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    });
    quoted.into_iter().chain(forensic).collect()
}

/// The error logs of the side under test, the server's and the site's own, from their present ends
/// on.
struct ErrorLogs([(PathBuf, u64); 2]);

impl ErrorLogs {
    fn of(sides: &[(&Side, Renderer<'_>)], seat: Seat) -> ErrorLogs {
        let root = sides.last().map(|(side, _)| side.place.root.clone()).unwrap_or_default();
        let names = ["logs/error.log".to_owned(), seat.fill(ERROR_LOG)];
        ErrorLogs(names.map(|name| {
            let path = root.join(name);
            let begin = std::fs::metadata(&path).map_or(0, |log| log.len());
            (path, begin)
        }))
    }

    /// What has been written since.
    fn more(&self) -> String {
        let more = |(path, begin): &(PathBuf, u64)| {
            let text = std::fs::read(path).unwrap_or_default();
            let begin = usize::try_from(*begin).unwrap_or(usize::MAX);
            String::from_utf8_lossy(text.get(begin..).unwrap_or_default()).into_owned()
        };
        self.0.iter().map(more).collect()
    }
}

/// A line in which cookies with a changed byte are as others: a counter or a time in them may be
/// that of the next ones by chance.
fn cookies(line: String) -> String {
    let Some((before, rest)) = line.split_once("@COOKIES ") else { return line };
    let Some((_, after)) = rest.split_once('@') else { return line };
    format!("{before}@COOKIES@{after}")
}

/// Reads a response, and returns whether it is the connection's last.
fn response(
    request: &Request,
    (client, keeper): (&mut Client, &mut Keeper),
    renderer: &Renderer,
    is_more_asked: bool,
) -> (Vec<String>, bool) {
    let limit = Deadline::after(RESPONSE_LIMIT);
    let Some(answer) = answer::read(client, &request.method, limit) else {
        let what = if client.end.is_some() { NO_ANSWER } else { TOO_LATE };
        return (vec![what.to_owned()], true);
    };
    keeper.learn(&answer);
    let lines = lines(request, &answer, renderer).into_iter();
    let unsend = |line| match request.method == "TRACE" {
        true => cookies(keeper.unsend(line, &|line| renderer.mask(line))),
        false => line,
    };
    let mut lines: Vec<String> = lines.map(|line| unsend(keeper.unfill(line))).collect();
    lines.extend(entries(&answer).map(|entry| format!("= entry {}", renderer.mask(&entry))));
    if !client.buffer.is_empty() && !is_more_asked {
        let more = client.buffer.split(|&byte| byte == b'\r').next().unwrap_or_default();
        // The wording of a page is the server's own.
        let more = if more.starts_with(b"<!DOCTYPE") { "a page".to_owned() } else { escape(more) };
        lines.push(format!("= more came: {more}"));
        return (lines, true);
    }
    // What would come next belongs to a body that is cut off.
    let is_cut = answer.broken.is_some();
    let ends = client.end.is_some() || is_cut || announces_close(&answer);
    (lines, ends)
}

/// The lines of a response. A request that is sent back names the port, which differs, and so may
/// a page that the server makes: they are shown as texts even if they are long.
pub fn lines(request: &Request, answer: &Answer, renderer: &Renderer) -> Vec<String> {
    let field = |name| answer.head.as_ref().and_then(|head| head.field(name));
    let is_of = |media_type: &[u8]| {
        field("Content-Type").is_some_and(|kind| kind.starts_with(media_type))
            && field("Content-Encoding").is_none()
    };
    let is_request = request.method == "TRACE" && is_of(b"message/http");
    let is_page = answer.body.len() <= PAGE_BYTES && is_of(b"text/html");
    let mut lines = renderer.answer(answer);
    let digest = lines.iter().position(|line| line.starts_with("body length="));
    if let Some(digest) = digest.filter(|_| is_request || is_page) {
        let mut text = Vec::new();
        renderer.text(&answer.body, &mut text);
        lines.splice(digest..=digest, text);
    }
    lines
}

/// What the server's own page of variants, or of similar names, lists, and which page it says is
/// wrong: the wording around that may differ.
pub fn entries(answer: &Answer) -> impl Iterator<Item = String> {
    let status = answer.head.as_ref().map_or(0, |head| head.status());
    let body = if matches!(status, 300 | 406) { answer.body.as_slice() } else { &[] };
    let text = String::from_utf8_lossy(body).into_owned();
    let is_entry = |line: &&str| line.contains("<li>") || line.contains("<tt>");
    text.lines().filter(is_entry).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Whether responses differ in nothing but a length that is masked ([`fresh::masks`]).
fn is_framing_alone(apache: &[String], tamarack: &[String]) -> bool {
    let without = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| *line != "< Content-Length: *").cloned().collect()
    };
    difference(&without(apache), &without(tamarack), Rule::Answer).is_none()
}

/// A response whose announced length is not that of its body: what follows a program's head that
/// can't be read may count for the error page, and the next response for a body that does not come.
/// It is no evidence about Tamarack.
fn is_misframed(lines: &[String]) -> bool {
    const NEXT: &str = "HTTP/1.1 ";
    let begins = |line: &String| line.starts_with("= broken:") || line.starts_with("= more came:");
    let body = lines.iter().skip_while(|line| *line != "<").nth(1);
    let body = body.and_then(|line| line.strip_prefix("| ").or(line.strip_prefix("|- ")));
    let is_next = |text: &str| text.starts_with(NEXT) || !text.is_empty() && NEXT.starts_with(text);
    lines.iter().any(begins) || body.is_some_and(is_next)
}

/// Whether a target is neither a path nor a URL, for which the first site of the port responds.
fn is_unreadable(target: &[u8]) -> bool {
    let is_url = target.windows(3).any(|part| part == b"://");
    !target.starts_with(b"/") && !is_url && target != b"*"
}

/// A request without a response.
fn is_unheard(lines: &[String]) -> bool {
    lines.first().is_some_and(|line| line == NO_ANSWER || line == NO_CONNECTION)
}

/// A response of Apache that says nothing about Tamarack.
fn is_no_evidence(lines: &[String]) -> bool {
    is_misframed(lines) || is_garbage(lines)
}

/// A target with control characters: Apache has used memory that holds something else by then, as
/// for a `Redirect` in an `<Else>`. Tamarack's can be right.
fn is_garbage(lines: &[String]) -> bool {
    let is_control = |target: &str| target.contains("\\x0") || target.contains("\\x1");
    lines.iter().any(|line| line.strip_prefix("< Location: ").is_some_and(is_control))
}

/// A response that did not begin in time.
fn is_late(lines: &[String]) -> bool {
    lines.first().is_some_and(|line| line == TOO_LATE)
}

/// Waits for the first bytes while the server works on them, or would if it got CPU time.
fn wait(client: &mut Client, server: &Server, most: u32) {
    for _ in 0..most {
        let before = server.work();
        let limit = Deadline::after(RESPONSE_LIMIT);
        if !client.buffer.is_empty() || client.fill(limit) != Fill::Timeout {
            return;
        }
        if server.work().saturating_sub(before) < RESPONSE_LIMIT / 4 {
            return;
        }
    }
}

fn announces_close(answer: &Answer) -> bool {
    let close = |value: &[u8]| value.eq_ignore_ascii_case(b"close");
    answer.head.as_ref().is_none_or(|head| head.field("Connection").is_some_and(close))
}

/// Whether a server may close after this response without announcing it.
fn may_close(request: &Request, all: &[Vec<Vec<String>>], at: usize) -> bool {
    let is_last = |lines: &Vec<Vec<String>>| {
        let status = lines.get(at).and_then(|lines| lines.first()?.split(' ').nth(2));
        status.is_some_and(|status| CLOSING.contains(&status))
    };
    request.version != "HTTP/1.1" || !request.body.is_empty() || all.iter().any(is_last)
}

/// Checks whether the servers have closed, and adds a line if only one has.
fn ends(clients: &mut [Option<Client>], all: &mut [Vec<Vec<String>>]) -> bool {
    let mut is_closed = |wait: Duration| -> Vec<bool> {
        let end = Deadline::after(wait);
        let look = |client: &mut Option<Client>| {
            client.as_mut().is_none_or(|client| client.fill(end) == Fill::End)
        };
        clients.iter_mut().map(look).collect()
    };
    let mut closed = is_closed(OPEN);
    if closed.iter().any(|&closed| closed) && !closed.iter().all(|&closed| closed) {
        // If they already differ, their ends add no information.
        let is_same = all.first() == all.last();
        closed = is_closed(if is_same { CLOSE_LIMIT } else { OPEN });
        if !closed.iter().all(|&closed| closed) {
            let last = all.iter_mut().filter_map(|lines| lines.last_mut());
            for (lines, closed) in last.zip(&closed) {
                lines.push(if *closed { "= closed" } else { OPEN_STILL }.to_owned());
            }
        }
    }
    closed.iter().any(|&closed| closed)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use blackbox::answer::{Answer, Head};
    use blackbox::place::Place;
    use blackbox::render::Renderer;
    use blackbox::testfile::TestFile;

    use super::{in_logs, is_garbage, is_misframed, is_unreadable, line, lines};
    use crate::site::Request;

    #[test]
    fn a_target_of_foreign_memory_is_no_evidence() {
        assert!(is_garbage(&["< Location: j\\x11D\\x9ciU\\x00".to_owned()]));
        assert!(!is_garbage(&["< Location: http://other.test/\\xc3\\xa4".to_owned()]));
    }

    #[test]
    fn what_names_the_port_is_alike_even_if_it_is_long() -> Result<(), String> {
        let file = TestFile { ports: 1, ..TestFile::default() };
        let shown = |method: &str, kind: &str| {
            let place = Place::build(&file, Path::new("tls"))?;
            let text = format!("TRACE /{} HTTP/1.1\nHost: x:@PORT@\n", "a".repeat(8_000));
            let fields = vec![("Content-Type".to_owned(), kind.as_bytes().to_vec())];
            let head = Some(Head { status_line: b"HTTP/1.1 200 OK".to_vec(), fields });
            let body = place.fill_text(&text).into_bytes();
            let request = Request { method: method.to_owned(), ..Request::default() };
            Ok::<_, String>(lines(
                &request,
                &Answer { head, body, ..Answer::default() },
                &Renderer::new(&place, &[])?,
            ))
        };
        for (method, kind) in [("TRACE", "message/http"), ("GET", "text/html")] {
            let (one, other) = (shown(method, kind)?, shown(method, kind)?);
            assert!(one.last().is_some_and(|line| line == "| Host: x:@PORT@") && one == other);
        }
        Ok(())
    }

    #[test]
    fn a_target_is_a_path_or_a_url() {
        assert!(is_unreadable(b"%2Fa") && is_unreadable(b"a/b"));
        assert!(!is_unreadable(b"/a") && !is_unreadable(b"*") && !is_unreadable(b"http://a/b"));
    }

    #[test]
    fn the_next_response_may_count_for_a_body() {
        let lines = |body: &str| ["< HTTP/1.1 206 Partial Content", "<", body].map(str::to_owned);
        assert!(is_misframed(&lines("|- HTTP")) && is_misframed(&lines("| HTTP/1.1 301 Moved")));
        assert!(!is_misframed(&lines("| <html>")) && !is_misframed(&lines("|- ")));
    }

    #[test]
    fn a_request_line_is_found_in_a_log_as_the_log_shows_it() -> Result<(), String> {
        let place = Place::build(&TestFile::default(), Path::new("tls"))?;
        let masks = [("[A-Za-z0-9@_-]{27}".to_owned(), "UNIQUE-ID".to_owned())];
        let renderer = Renderer::new(&place, &masks)?;
        let request = format!("GET /{}\\\"%|\u{e9} HTTP/1.1\r\nHost: x\r\n", "a".repeat(30));
        let shown = in_logs(&line(request.as_bytes()), &renderer);
        let mut logs = Vec::new();
        let id = "-".repeat(27);
        let custom = format!("h \"GET /{}\\\\\\\"%|\\xc3\\xa9 HTTP/1.1\" 200\n", "a".repeat(30));
        let forensic = format!("+{id}|GET /{}\\\"%25%7c%c3%a9 HTTP/1.1|Host%3ax\n", "a".repeat(30));
        renderer.text((custom + &forensic).as_bytes(), &mut logs);
        for log in &logs {
            assert!(shown.iter().any(|form| log.contains(form)), "{log} {shown:?}");
        }
        // Another request begins alike.
        let other = in_logs(b"GET / HTTP/1.1", &renderer);
        assert!(logs.iter().all(|log| !other.iter().any(|form| log.contains(form))));
        Ok(())
    }
}
