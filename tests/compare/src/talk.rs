//! Sends requests to both servers and reads their responses.

use std::path::Path;
use std::time::Duration;

use blackbox::answer::{self, Answer};
use blackbox::client::{Client, Fill};
use blackbox::compare::{Rule, difference};
use blackbox::escape::escape;
use blackbox::program::Server;
use blackbox::render::Renderer;
use blackbox::stall::Deadline;
use blackbox::tls::Tls;

use crate::pair::{Exchange, Side, Signature, Verdict};
use crate::site::{Case, Request, Seat};
use crate::wanted;

/// How long a server may sleep during a request; it may work on it for a multiple of this.
const RESPONSE_LIMIT: Duration = Duration::from_secs(4);
const WORKING_MAX: u32 = 15;
/// How long a connection must stay quiet to count as open, and how long the other server has to
/// close if one did.
const OPEN: Duration = Duration::from_millis(2);
const CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// Statuses after which a connection may end although the response does not announce it.
const CLOSING: [&str; 9] = ["400", "408", "411", "413", "414", "417", "431", "500", "501"];
/// Sends each case's requests, and returns the results.
pub fn talk_all(cases: &[Case], apache: &Side, tamarack: Option<&Side>) -> Vec<Verdict> {
    let mut sides = Vec::new();
    for side in std::iter::once(apache).chain(tamarack) {
        sides.extend(Renderer::new(&side.place, &[]).map(|renderer| (side, renderer)));
    }
    let talk = |(at, case)| talk(case, Seat::Host(at), &sides);
    cases.iter().enumerate().map(talk).collect()
}

/// Sends a case's requests to both servers, on one connection each while both stay open.
fn talk(case: &Case, seat: Seat, sides: &[(&Side, Renderer)]) -> Verdict {
    let tls = Tls::new(Path::new(""));
    let mut clients: Vec<Option<Client>> = sides.iter().map(|_| None).collect();
    let mut verdict = Verdict::default();
    for request in &case.requests {
        let mut lines = exchange(request, seat, sides, &mut clients, &tls);
        // The connection may have ended silently after the previous response.
        if lines.iter().any(|lines| lines.first().is_some_and(|line| line == "= no answer")) {
            clients.iter_mut().for_each(|client| *client = None);
            lines = exchange(request, seat, sides, &mut clients, &tls);
        }
        let mut lines = lines.into_iter();
        let apache = lines.next().unwrap_or_default();
        let tamarack = lines.next().unwrap_or_else(|| apache.clone());
        let differs = difference(&apache, &tamarack, Rule::Answer).is_some()
            && wanted::rule(request, &apache, &tamarack).is_none();
        let signature = differs.then(|| Signature::new(&apache, &tamarack));
        verdict.exchanges.push(Exchange { apache, tamarack, signature });
    }
    verdict
}

/// Sends a request to all sides, and returns the responses as lines.
fn exchange(
    request: &Request,
    seat: Seat,
    sides: &[(&Side, Renderer)],
    clients: &mut [Option<Client>],
    tls: &Tls,
) -> Vec<Vec<String>> {
    let bytes = request.bytes(seat);
    for ((side, _), client) in sides.iter().zip(&mut *clients) {
        if client.is_none() {
            *client = Client::connect(&[], &side.place, tls).ok();
        }
        if let Some(client) = client {
            client.send(&side.place.fill_bytes(&bytes));
        }
    }
    let root = sides.first().map(|(side, _)| side.place.root.display().to_string());
    let root = root.unwrap_or_default();
    let mut lines = Vec::new();
    let mut is_last = false;
    for ((side, renderer), client) in sides.iter().zip(&mut *clients) {
        let Some(client) = client else {
            lines.push(vec!["= no connection".to_owned()]);
            is_last = true;
            continue;
        };
        let (shown, ends) = response(request, client, &side.server, renderer);
        is_last |= ends;
        lines.push(shown.into_iter().map(|line| line.replace(&root, "@ROOT@")).collect());
    }
    if !is_last && may_close(request, &lines) {
        is_last = ends(clients, &mut lines);
    }
    if is_last {
        clients.iter_mut().for_each(|client| *client = None);
    }
    lines
}

/// Reads a response, and returns whether it is the connection's last.
fn response(
    request: &Request,
    client: &mut Client,
    server: &Server,
    renderer: &Renderer,
) -> (Vec<String>, bool) {
    wait(client, server);
    let limit = Deadline::after(RESPONSE_LIMIT);
    let Some(answer) = answer::read(client, &request.method, limit) else {
        let what = if client.end.is_some() { "= no answer" } else { "= nothing in time" };
        return (vec![what.to_owned()], true);
    };
    let mut lines = renderer.answer(&answer);
    if !client.buffer.is_empty() {
        let more = client.buffer.split(|&byte| byte == b'\r').next().unwrap_or_default();
        lines.push(format!("= more came: {}", escape(more)));
        return (lines, true);
    }
    let ends = client.end.is_some() || announces_close(&answer);
    (lines, ends)
}

/// Waits for the first bytes while the server works on them, or would if it got CPU time.
fn wait(client: &mut Client, server: &Server) {
    for _ in 0..WORKING_MAX {
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
fn may_close(request: &Request, lines: &[Vec<String>]) -> bool {
    let is_last = |lines: &Vec<String>| {
        let status = lines.first().and_then(|line| line.split(' ').nth(2));
        status.is_some_and(|status| CLOSING.contains(&status))
    };
    request.version != "HTTP/1.1" || !request.body.is_empty() || lines.iter().any(is_last)
}

/// Checks whether the servers have closed, and adds a line if only one has.
fn ends(clients: &mut [Option<Client>], lines: &mut [Vec<String>]) -> bool {
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
        let is_same = lines.first() == lines.last();
        closed = is_closed(if is_same { CLOSE_LIMIT } else { OPEN });
        if !closed.iter().all(|&closed| closed) {
            for (lines, closed) in lines.iter_mut().zip(&closed) {
                lines.push(if *closed { "= closed" } else { "= open" }.to_owned());
            }
        }
    }
    closed.iter().any(|&closed| closed)
}
