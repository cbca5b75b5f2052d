//! The servers behind both sides: they get their scripts before a request, and say afterwards what
//! they received.

use blackbox::backend::script::{self, Declared};
use blackbox::backend::show::{self, Connections};
use blackbox::render::Renderer;

use crate::pair::Side;
use crate::site::{Request, Seat};

/// Hands out the scripts of requests that leave together, and returns their numbers.
pub fn expect(side: &Side, group: &[Request], seat: Seat) -> Vec<usize> {
    let declared: Vec<Declared> =
        side.place.backends.iter().map(|backend| backend.declared.clone()).collect();
    let number = |request: &Request| {
        let mut exchanges = Vec::new();
        for line in &request.script {
            // The generator's tests parse all lines.
            let _ = script::add(&declared, &mut exchanges, &seat.fill(line));
        }
        side.player.expect(&exchanges, &side.place)
    };
    group.iter().map(number).collect()
}

/// What they received for a request with a script. By which connection is left out: it depends on
/// when the one before was given back.
pub fn heard(side: &Side, renderer: &Renderer, request: &Request, number: usize) -> Vec<String> {
    let (heard, unasked) = side.player.heard(number);
    if request.script.is_empty() {
        return Vec::new();
    }
    let seen = &mut Connections::default();
    let mut lines = show::lines(&side.place, renderer, &heard, &unasked, seen);
    lines.retain(|line| !line.contains("= connection "));
    lines
}
