//! Reads the page as promtool does: by the grammar, and by the rules on families.

use std::collections::{BTreeMap, BTreeSet};

use mpm::Scoreboard;

use super::*;

/// A sample: its name, labels and value.
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Parses a sample strictly: `name{label="value",…} number`.
fn sample(line: &str) -> Option<Sample> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = line.find(|c| !is_name(c))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inner.split_once("=\"")?;
            let mut value = String::new();
            let mut characters = after.char_indices();
            let end = loop {
                match characters.next()? {
                    (at, '"') => break at + 1,
                    (_, '\\') => value.push(match characters.next()?.1 {
                        'n' => '\n',
                        plain @ ('\\' | '"') => plain,
                        _ => return None,
                    }),
                    (_, '\n') => return None,
                    (_, plain) => value.push(plain),
                }
            };
            let is_new = labels.insert(label.to_owned(), value).is_none();
            if !is_new || label.is_empty() || !label.chars().all(is_name) {
                return None;
            }
            let after = after.get(end..)?;
            if let Some(next) = after.strip_prefix(',') {
                inner = next;
            } else {
                rest = after.strip_prefix('}')?;
                break;
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    let value = if value == "+Inf" { f64::INFINITY } else { value.parse().ok()? };
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    starts_well.then(|| Sample { name: name.to_owned(), labels, value })
}

/// Checks a page and returns its samples, by name and labels as written.
fn check(page: &str, format: Format) -> BTreeMap<String, f64> {
    assert!(page.ends_with('\n') && !page.contains("\n\n") && !page.contains('\r'));
    let is_open = format == Format::OpenMetrics;
    assert_eq!(page.ends_with("# EOF\n"), is_open);
    let (mut family, mut kind, mut families) = (String::new(), String::new(), BTreeSet::new());
    let mut samples = BTreeMap::new();
    for line in page.lines().filter(|line| *line != "# EOF") {
        if let Some(text) = line.strip_prefix("# HELP ") {
            let (name, help) = text.split_once(' ').unwrap();
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            assert!(help.ends_with('.') && !help.contains('\\'), "{help}");
            name.clone_into(&mut family);
            kind.clear();
        } else if let Some(text) = line.strip_prefix("# TYPE ") {
            let (name, word) = text.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert!(["counter", "gauge", "histogram"].contains(&word));
            assert_eq!(name.ends_with("_total"), word == "counter" && !is_open, "{name}");
            word.clone_into(&mut kind);
        } else {
            let seen = sample(line).unwrap_or_else(|| panic!("no sample: {line}"));
            let suffix = seen.name.strip_prefix(&family).unwrap_or("?");
            let suffixes: &[&str] = match (kind.as_str(), is_open) {
                ("counter", true) => &["_total"],
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                ("", _) => panic!("{line} stands before its type"),
                _ => &[""],
            };
            assert!(suffixes.contains(&suffix), "{line} is in the family {family}");
            assert!(seen.value >= 0.0, "{line}");
            let key = line.rsplit_once(' ').unwrap().0.to_owned();
            assert!(samples.insert(key, seen.value).is_none(), "{line} comes twice");
            assert_eq!(seen.labels.contains_key("le"), suffix == "_bucket");
        }
    }
    samples
}

fn write(board: &Snapshot, hosts: &[HostCounts], format: Format) -> BTreeMap<String, f64> {
    let mut page = Exposition::new(format);
    super::write(board, hosts, 5_000_000, &mut page);
    let page = String::from_utf8(page.finish()).unwrap();
    check(&page, format)
}

fn host(label: &str) -> HostCounts {
    let mut host = HostCounts { label: label.into(), bytes: 77, ..HostCounts::default() };
    (host.classes[1], host.classes[4]) = (3, 1);
    (host.buckets[0], host.buckets[3], host.duration_us) = (3, 1, 260);
    host
}

#[test]
fn both_formats_keep_to_their_grammar_and_tell_the_same() {
    let (board, slot) = Scoreboard::of_one_loop().unwrap();
    slot.request_end(1000, 250);
    slot.connections().open.up();
    slot.set_cpu(Some(3));
    slot.set_place(&[8], Some(3), true);
    slot.heartbeat(4_000_000);
    board.count(Event::ShapeFull);
    board.count_decision(Decision::Widened);
    let hosts = [host("a.example:80"), host("strange\"\\\nname")];
    let plain = write(&board.snapshot(), &hosts, Format::Prometheus);
    let open = write(&board.snapshot(), &hosts, Format::OpenMetrics);
    assert_eq!(plain, open);
    for (key, value) in [
        ("tamarack_requests_total", 1.0),
        ("tamarack_request_seconds_total", 0.000_25),
        ("tamarack_connections{state=\"keep_alive\"}", 1.0),
        ("tamarack_events_total{event=\"shape_full\"}", 1.0),
        ("tamarack_affinity_decisions_total{decision=\"widened\"}", 1.0),
        ("tamarack_loop_cpu{process=\"0\",loop=\"0\"}", 3.0),
        ("tamarack_loop_widened{process=\"0\",loop=\"0\"}", 1.0),
        ("tamarack_loop_heartbeat_age_seconds{process=\"0\",loop=\"0\"}", 1.0),
        ("tamarack_host_requests_total{host=\"a.example:80\",class=\"5xx\"}", 1.0),
        ("tamarack_host_request_duration_seconds_count{host=\"a.example:80\"}", 4.0),
    ] {
        assert_eq!(plain.get(key), Some(&value), "{key}");
    }
}

#[test]
fn without_hosts_and_loops_the_page_is_still_whole() {
    let board = Scoreboard::new(1, 1).unwrap();
    let seen = write(&board.snapshot(), &[], Format::Prometheus);
    assert_eq!(seen.get("tamarack_requests_total"), Some(&0.0));
}

#[test]
fn the_check_finds_faults() {
    for line in
        ["a b 1", "a{x=1} 1", "a{x=\"1\"}1", "a{x=\"\\q\"} 1", "1a 1", "a{x=\"1\",x=\"2\"} 1"]
    {
        assert!(sample(line).is_none(), "{line}");
    }
    assert!(sample("a{x=\"1\\n\",y=\"\"} +Inf").is_some());
}
