//! Allowed differences. Each rule quotes the line of docs/refused.md or of tests/README.md that
//! allows it; every other difference is a finding.
//!
//! `blackbox` itself leaves out what "What is not compared" in tests/README.md lists, when it
//! renders and compares responses.

use blackbox::compare::{Rule, difference};

use crate::site::Request;

/// An allowed difference.
struct Wanted {
    /// The line that allows it, verbatim.
    cites: &'static str,
    applies: fn(&Request, &[String], &[String]) -> bool,
}

/// All allowed differences.
const WANTED: [Wanted; 1] = [Wanted {
    cites: "`Date` and `Server`; wording of the server's own error pages and their Content-Length",
    applies: differ_in_signature,
}];

/// A listing's last line names the server, as does `Server`.
fn differ_in_signature(_: &Request, apache: &[String], tamarack: &[String]) -> bool {
    let is_plain = |line: &&String| {
        !line.starts_with("| <address>") && !line.starts_with("< Content-Length: ")
    };
    let has_signature = |lines: &[String]| lines.iter().any(|line| line.starts_with("| <address>"));
    let plain = |lines: &[String]| lines.iter().filter(is_plain).cloned().collect::<Vec<_>>();
    has_signature(apache)
        && has_signature(tamarack)
        && difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

/// The line that allows this difference.
pub fn rule(request: &Request, apache: &[String], tamarack: &[String]) -> Option<&'static str> {
    let wanted = WANTED.iter().find(|wanted| (wanted.applies)(request, apache, tamarack));
    wanted.map(|wanted| wanted.cites)
}

#[cfg(test)]
mod tests {
    use super::{WANTED, rule};
    use crate::site::Request;

    #[test]
    fn a_signature_alone_is_wanted() {
        let lines = |server: &str, length: &str| {
            let lines = ["< HTTP/1.1 200 OK", "<", "| x"].map(str::to_owned).to_vec();
            let mut lines = [lines, vec![format!("| <address>{server}</address>")]].concat();
            lines.insert(1, format!("< Content-Length: {length}"));
            lines
        };
        let apache = lines("Apache", "9");
        assert!(rule(&Request::default(), &apache, &lines("Tamarack", "11")).is_some());
        let mut other = lines("Tamarack", "11");
        "| y".clone_into(&mut other[3]);
        assert!(rule(&Request::default(), &apache, &other).is_none());
    }

    #[test]
    fn every_rule_cites_a_line_that_is_there() {
        let texts = [include_str!("../../../docs/refused.md"), include_str!("../../README.md")];
        for wanted in WANTED {
            assert!(texts.iter().any(|text| text.contains(wanted.cites)), "{}", wanted.cites);
        }
    }
}
