//! Compares expected and actual lines.

/// The strictness of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Responses of a connection, and what backends received: the order of fields is ignored, `*`
    /// matches any value, and a canned body must only exist.
    Answer,
    /// Logs: the order is ignored. Both programs write a line after its response is sent, so the
    /// next connection, on another thread, may be logged first.
    Log,
    /// Commands on the recorded program: equal.
    Exact,
    /// Commands on Tamarack: as `Exact` if the command succeeds; if it fails, and on standard
    /// error, each recorded line must appear, in this order.
    Output,
}

/// `None` if they agree, otherwise both sides as a coloured difference.
pub fn difference(expected: &[String], got: &[String], rule: Rule) -> Option<String> {
    let agree = match rule {
        Rule::Log => sorted(expected) == sorted(got),
        Rule::Exact => expected == got,
        Rule::Output => outputs_agree(expected, got),
        Rule::Answer => {
            let (expected, got) = without_canned(expected, got);
            let (expected, got) = (in_order(expected), in_order(got));
            let same = expected.len() == got.len()
                && expected.iter().zip(&got).all(|(expected, got)| line_agrees(expected, got));
            return if same { None } else { Some(show(&expected, &got)) };
        }
    };
    if agree { None } else { Some(show(expected, got)) }
}

fn sorted(lines: &[String]) -> Vec<&String> {
    let mut lines: Vec<&String> = lines.iter().collect();
    lines.sort();
    lines
}

fn line_agrees(expected: &str, got: &str) -> bool {
    expected == got
        || expected.strip_suffix('*').is_some_and(|field| {
            field.starts_with("< ") && field.ends_with(": ") && got.starts_with(field)
        })
}

/// What begins a line of a head: `<`, or `NAME>` in what a backend received.
fn party(line: &str) -> Option<&str> {
    let (word, _) = line.split_once(' ')?;
    if word == "<" {
        return Some(word);
    }
    let name = word.strip_suffix('>')?;
    let is_backend = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_backend.then_some(word)
}

/// Sorts the fields of each head by name; fields with the same name keep their order.
fn in_order(mut lines: Vec<String>) -> Vec<String> {
    let mut start = 0;
    while start < lines.len() {
        let party = lines.get(start).and_then(|line| party(line)).map(str::to_owned);
        let fields = |line: &&String| party.is_some() && self::party(line) == party.as_deref();
        let count = lines.iter().skip(start).take_while(fields).count();
        let ends: &[char] = if party.as_deref() == Some("<") { &[':'] } else { &[':', '='] };
        if count > 1
            && let Some(head) = lines.get_mut(start + 1..start + count)
        {
            head.sort_by_cached_key(|line| line.split(ends).next().unwrap_or("").to_owned());
        }
        start += count.max(1);
    }
    lines
}

/// Excludes the body of a response from comparison.
pub fn ignore_body(lines: &mut Vec<String>) {
    let before = lines.len();
    lines.retain(|line| !is_body(line));
    let end = lines.iter().rposition(|line| line == "<").map_or(0, |at| at + 1);
    if lines.len() < before {
        lines.insert(end, "body ignored".to_owned());
    }
    for line in lines {
        if line.starts_with("< Content-Length: ") {
            "< Content-Length: *".clone_into(line);
        }
    }
}

fn is_body(line: &str) -> bool {
    line.starts_with('|') || line.starts_with("body ")
}

/// Both sides of a response whose body is one of the server's own pages: any body matches, and one
/// side may have a length that the other lacks.
fn without_canned(expected: &[String], got: &[String]) -> (Vec<String>, Vec<String>) {
    if !expected.iter().any(|line| line == "body canned") {
        return (expected.to_vec(), got.to_vec());
    }
    let told = |line: &&String| !line.starts_with("< Content-Length: ");
    let (bodies, mut rest): (Vec<String>, Vec<String>) =
        got.iter().filter(told).cloned().partition(|line| is_body(line));
    if !bodies.is_empty() {
        let end = rest.iter().rposition(|line| line == "<").map_or(0, |at| at + 1);
        rest.insert(end, "body canned".to_owned());
    }
    (expected.iter().filter(told).cloned().collect(), rest)
}

fn outputs_agree(expected: &[String], got: &[String]) -> bool {
    let part = |lines: &[String], word: &str| -> Vec<String> {
        let after = lines.iter().skip_while(|line| *line != word).skip(1);
        after.take_while(|line| line.starts_with('|')).cloned().collect()
    };
    let succeeded = expected.first().is_some_and(|line| line == "exit 0");
    let (out, err) = (part(expected, "out"), part(expected, "err"));
    let out_agrees =
        if succeeded { out == part(got, "out") } else { appear_in_order(&out, &part(got, "out")) };
    expected.first() == got.first() && out_agrees && appear_in_order(&err, &part(got, "err"))
}

fn appear_in_order(expected: &[String], got: &[String]) -> bool {
    let mut rest = got.iter();
    expected.iter().all(|line| rest.any(|other| other == line))
}

/// Lines of both sides in the expected order: `-` is missing, `+` is unexpected.
fn show(expected: &[String], got: &[String]) -> String {
    let mut text = String::new();
    let extra = |line: &String| format!("      {}\n", green(&format!("+ {line}")));
    let mut rest = got;
    for line in expected {
        match rest.iter().position(|other| line_agrees(line, other)) {
            Some(at) => {
                text.extend(rest.iter().take(at).map(extra));
                text.push_str(&format!("        {line}\n"));
                rest = rest.get(at + 1..).unwrap_or_default();
            }
            None => text.push_str(&format!("      {}\n", red(&format!("- {line}")))),
        }
    }
    text.extend(rest.iter().map(extra));
    text
}

/// Red text, unless `NO_COLOR` is set.
pub fn red(text: &str) -> String {
    coloured("31", text)
}

fn green(text: &str) -> String {
    coloured("32", text)
}

fn coloured(code: &str, text: &str) -> String {
    match std::env::var_os("NO_COLOR") {
        Some(_) => text.to_owned(),
        None => format!("\x1b[{code}m{text}\x1b[0m"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Rule, difference};

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn agree(expected: &str, got: &str, rule: Rule) -> bool {
        difference(&lines(expected), &lines(got), rule).is_none()
    }

    #[test]
    fn the_order_of_fields_is_free_and_their_values_are_not() {
        let expected = "< HTTP/1.1 200 OK\n< Date: *\n< A: 1\n<\n| x";
        assert!(agree(expected, "< HTTP/1.1 200 OK\n< A: 1\n< Date: now\n<\n| x", Rule::Answer));
        assert!(!agree(expected, "< HTTP/1.1 200 OK\n< A: 2\n< Date: now\n<\n| x", Rule::Answer));
        assert!(!agree(expected, "< HTTP/1.1 200 OK\n< A: 1\n<\n| x", Rule::Answer));
        assert!(!agree(
            expected,
            "< HTTP/1.1 200 OK\n< Date: n\n< A: 1\n< B: 1\n<\n| x",
            Rule::Answer
        ));
    }

    #[test]
    fn a_canned_body_has_to_be_there() {
        let expected = "< HTTP/1.1 404 Not Found\n<\nbody canned\n= open";
        assert!(agree(expected, "< HTTP/1.1 404 Not Found\n<\n| own\n= open", Rule::Answer));
        let longer = "< HTTP/1.1 404 Not Found\n< Content-Length: 4\n<\n| own\n= open";
        assert!(agree(expected, longer, Rule::Answer));
        assert!(!agree(expected, "< HTTP/1.1 404 Not Found\n<\n= open", Rule::Answer));
    }

    #[test]
    fn a_failing_command_may_say_more() {
        let expected = "exit 1\nerr\n| AH1\n| AH2";
        assert!(agree(expected, "exit 1\nerr\n| AH1\n| caret\n| AH2", Rule::Output));
        assert!(!agree(expected, "exit 1\nerr\n| AH2\n| AH1", Rule::Output));
        assert!(!agree(expected, "exit 0\nerr\n| AH1\n| AH2", Rule::Output));
        assert!(!agree("exit 0\nout\n| a", "exit 0\nout\n| a\n| b", Rule::Output));
    }
}
