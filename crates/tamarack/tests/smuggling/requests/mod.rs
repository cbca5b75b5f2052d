//! Requests: the payloads, and what they may cause.

mod bytes;
mod expect;
mod framing;
mod hosts;
mod lines;
mod sizes;

use crate::backend::Backend;
use crate::client::{Answers, exchange};
use crate::expected::Expected;
use crate::payload::{List, Payload, tag, tagged};
use crate::setup::{Setup, at_once};
use crate::strict;

/// Fewer payloads mean that a class is lost.
const LEAST: usize = 1500;

/// A second request, for a body that is not one.
const SMUGGLED: &str = "GET /tTTTT/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn all() -> Vec<Payload> {
    let mut list = List::default();
    framing::add(&mut list);
    sizes::add(&mut list);
    lines::add(&mut list);
    bytes::add(&mut list);
    hosts::add(&mut list);
    expect::add(&mut list);
    assert!(list.payloads.len() >= LEAST, "only {} payloads", list.payloads.len());
    list.payloads
}

/// Sends them all, and compares or records.
pub fn run(is_recording: bool, faults: &mut Vec<String>) {
    let payloads = all();
    let backend = Backend::start();
    let config = format!("ProxyPass / http://127.0.0.1:{}/ retry=0\n", backend.port);
    let setup = Setup::start(is_recording, &config);
    let port = setup.port();
    let sent = at_once(&payloads, |number, payload| {
        let bytes = tagged(&payload.bytes, &tag(number));
        (exchange(port, &bytes), bytes)
    });
    setup.stop(&backend.seen);
    let statuses: Vec<(String, String)> = payloads
        .iter()
        .zip(&sent)
        .map(|(payload, (answers, _))| (payload.name.clone(), answers.statuses.join(" ")))
        .collect();
    let seen = backend.seen.lock().unwrap();
    let expected = Expected::load("requests_expected");
    match is_recording {
        true => expected.record(&statuses),
        false => expected.compare(&statuses, faults),
    }
    for (number, (payload, (answers, bytes))) in payloads.iter().zip(&sent).enumerate() {
        let received = seen.targets.get(&tag(number)).map_or(&[][..], Vec::as_slice);
        for what in verdict(&tag(number), answers, bytes, received) {
            faults.push(format!("{} ({}): {what}", payload.name, tag(number)));
        }
    }
    faults.extend(seen.faults.iter().cloned());
    let (connections, parts) = (seen.connections, seen.parts.len());
    println!("{} requests, {connections} backend connections, {parts} cut", payloads.len());
}

/// What is wrong with what the backend has received for a payload.
fn verdict(tag: &str, answers: &Answers, bytes: &[u8], received: &[Vec<u8>]) -> Vec<String> {
    let mut wrong = Vec::new();
    let shown = || received.iter().map(|target| target.escape_ascii().to_string());
    let is_smuggled = |target: &&Vec<u8>| target.ends_with(b"/smuggled");
    let count = received.iter().filter(is_smuggled).count();
    let allowed = strict::targets(bytes).iter().filter(is_smuggled).count();
    if count > allowed {
        wrong.push(format!("smuggled: {:?}", shown().collect::<Vec<_>>()));
    }
    if answers.tags.iter().any(|given| given != tag) {
        wrong.push(format!("the response of another: {:?}", answers.tags));
    }
    if answers.tags.len() != received.len() {
        wrong.push(format!(
            "{} responses to {:?}",
            answers.tags.len(),
            shown().collect::<Vec<_>>()
        ));
    }
    wrong
}
