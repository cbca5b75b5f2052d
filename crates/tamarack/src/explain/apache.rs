//! `--as apache`: where the response may differ from Apache httpd's.

use server::context::Places as Contexts;
use server::directive::{ErasedRow, State};
use server::explain::{Event, Kind};
use server::registry::Registry;

use super::effective::Line;
use super::places::{Place, Places};
use super::report::place;

/// The first number of log messages that Apache does not have.
const OWN_NUMBERS: u32 = 20_000;

/// A documented difference that concerns the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// What is different.
    pub text: String,
    /// The directive.
    pub place: Option<Place>,
}

/// The differences: directives that apply and do not work as in Apache, and messages that Apache
/// does not have.
pub fn deviations(
    registry: &Registry,
    lines: &[Line],
    event: &Event,
    places: &Places,
) -> Vec<Deviation> {
    let mut found = Vec::new();
    let mut add = |text: String, place: Option<Place>| {
        let deviation = Deviation { text, place };
        if !found.contains(&deviation) {
            found.push(deviation);
        }
    };
    for line in lines {
        let is_of_hosts = |row: &&ErasedRow| row.places.contains(Contexts::VHOST);
        let row = registry.row(&line.name).filter(is_of_hosts);
        let note = match row.map(|row| row.state) {
            Some(State::Partial(note) | State::Refused(note) | State::Accepted(note)) => note,
            Some(State::NotYet) => "has no effect yet",
            Some(State::Done | State::DoneExcept(_)) | None => continue,
        };
        add(format!("{}: {note}", line.name), Some(line.place.clone()));
    }
    event.each(&mut |event| {
        let number = event.fact("number").and_then(|number| number.strip_prefix("AH"));
        let number = number.and_then(|number| number.parse().ok());
        if event.kind == Kind::Log && number.is_some_and(|number: u32| number >= OWN_NUMBERS) {
            let number = event.fact("number").unwrap_or_default();
            add(format!("{number}: {}", event.name), place(places, event));
        }
    });
    found
}
