//! Companions, and the programs that they have started, on all pages of mod_status.
//!
//! Apache shows neither. What is added to its own page is there only if a companion runs.

use mpm::scoreboard::{CompanionSnapshot, Programs};
use wire::escape;

use super::live::json::Json;
use super::metrics::{Exposition, Kind};

/// Adds them to the HTML page, before the signature.
pub(super) fn write_page(programs: &Programs, out: &mut Vec<u8>) {
    if programs.companions.is_empty() {
        return;
    }
    let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
    put("<hr />\n<h2>Programs</h2>\n");
    put("<table rules=\"all\" cellpadding=\"1%\">\n<tr><th>Companion</th><th>PID</th>\
         <th>Generation</th><th>Running</th><th>Waiting</th></tr>\n");
    for CompanionSnapshot { name, pid, generation, running, waiting } in &programs.companions {
        let mut text = Vec::new();
        escape::html(&mut text, name);
        let name = String::from_utf8_lossy(&text);
        // Counted from 0 as in Apache.
        let generation = generation.saturating_sub(1);
        put(&format!(
            "<tr><td>{name}</td><td>{pid}</td><td>{generation}</td><td>{running}</td>\
             <td>{waiting}</td></tr>\n"
        ));
    }
    put("</table>\n<p>");
    let texts = totals(programs).map(|(_, words, value)| format!("{value} {words}"));
    put(&texts.join(", "));
    put("</p>\n");
}

/// Adds them to the lines of `?auto`.
pub(super) fn write_auto(programs: &Programs, out: &mut Vec<u8>) {
    if programs.companions.is_empty() {
        return;
    }
    let [running, waiting] = programs.now();
    let mut line = |name: &str, value: u64| {
        out.extend_from_slice(format!("{name}: {value}\n").as_bytes());
    };
    line("Companions", programs.companions.len() as u64);
    line("ProgramsRunning", running);
    line("ProgramsWaiting", waiting);
    for (name, _, value) in totals(programs) {
        line(name, value);
    }
}

/// Adds them to the data of the live page.
pub(super) fn write_json(programs: &Programs, out: &mut Json) {
    out.key("companions");
    out.open('[');
    for one in &programs.companions {
        out.item();
        out.open('{');
        out.text("name", &one.name);
        for (name, value) in [
            ("pid", u64::from(one.pid)),
            ("generation", u64::from(one.generation)),
            ("running", one.running),
            ("waiting", one.waiting),
        ] {
            out.number(name, value);
        }
        out.close('}');
    }
    out.close(']');
    out.key("programs");
    out.open('{');
    out.number("programs_started", programs.started);
    out.number("programs_failed", programs.failed);
    out.number("programs_refused", programs.refused);
    out.close('}');
}

/// Adds them to the metrics.
pub(super) fn write_metrics(programs: &Programs, page: &mut Exposition) {
    let [running, waiting] = programs.now();
    let help = "Companions: processes that start programs for the children.";
    page.single("tamarack_companions", Kind::Gauge, help, programs.companions.len());
    let help = "Programs of companions, by what they do.";
    page.family("tamarack_programs", Kind::Gauge, help);
    page.sample(&[("state", "running")], running);
    page.sample(&[("state", "waiting")], waiting);
    let help = "Programs that companions have started, could not start, and have refused because \
                too many waited.";
    page.family("tamarack_program_starts", Kind::Counter, help);
    page.sample(&[("outcome", "started")], programs.started);
    page.sample(&[("outcome", "failed")], programs.failed);
    page.sample(&[("outcome", "refused")], programs.refused);
}

/// Counts since the server's start: names of lines, words for people, values.
fn totals(programs: &Programs) -> [(&'static str, &'static str, u64); 4] {
    [
        ("ProgramsStarted", "programs started", programs.started),
        ("ProgramsFailed", "could not be started", programs.failed),
        ("ProgramsRefused", "were refused", programs.refused),
        ("CompanionsReplaced", "companions replaced", programs.replaced),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Programs {
        let one = |name: &str, running| CompanionSnapshot {
            name: name.as_bytes().to_vec(),
            pid: 41,
            generation: 2,
            running,
            waiting: 1,
        };
        let companions = vec![one("a <b>", 3), one("\"c\"", u64::MAX)];
        Programs { companions, replaced: 0, started: 7, failed: 2, refused: 1 }
    }

    #[test]
    fn companions_are_on_apache_s_pages_if_there_are_any() {
        let (mut page, mut auto) = (Vec::new(), Vec::new());
        write_page(&Programs::default(), &mut page);
        write_auto(&Programs::default(), &mut auto);
        assert!(page.is_empty() && auto.is_empty());
        write_page(&programs(), &mut page);
        let page = String::from_utf8(page).unwrap();
        let row = "<tr><td>a &lt;b&gt;</td><td>41</td><td>1</td><td>3</td><td>1</td></tr>";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("7 programs started, 2 could not be started, 1 were refused"));
        write_auto(&programs(), &mut auto);
        let auto = String::from_utf8(auto).unwrap();
        let expected = "Companions: 2\nProgramsRunning: 18446744073709551615\n\
                        ProgramsWaiting: 2\nProgramsStarted: 7\nProgramsFailed: 2\n\
                        ProgramsRefused: 1\nCompanionsReplaced: 0\n";
        assert_eq!(auto, expected);
    }
}
