//! Rules with patterns that take many steps, or much stack, and requests with texts for them.

use crate::choice::Choice;
use crate::site::{Node, Request};

/// A pattern, and the text that it takes long for: a repeated unit and its end.
struct Pattern {
    text: &'static str,
    unit: &'static str,
    ends: &'static [&'static str],
    /// Its steps double with each unit.
    doubles: bool,
}

const PATTERNS: [Pattern; 5] = [
    Pattern { text: "(a|b|c|d)*evil", unit: "ab", ends: &["evil"], doubles: false },
    Pattern { text: r"^(?:\w|\W)*Bad", unit: "x/", ends: &["Bad"], doubles: false },
    Pattern { text: "^(a+)+$|evil", unit: "a", ends: &["!", "!evil", "!evil"], doubles: true },
    Pattern { text: "^(a+)+$|evil", unit: "a", ends: &["!evil"], doubles: true },
    Pattern { text: "(?:[^!]|!)*x$", unit: "a!", ends: &["x", ""], doubles: false },
];

/// A pattern for paths.
const SEGMENTS: Pattern =
    Pattern { text: "^(/[^/]+)*/?$", unit: "/a", ends: &["", "/"], doubles: false };

/// What the pattern of a rule is matched with.
#[derive(Clone, Copy, PartialEq)]
enum Subject {
    Query,
    Agent,
    Path,
}

/// A rule with such a pattern.
pub struct Rule {
    /// The section.
    pub node: Node,
    pattern: &'static Pattern,
    subject: Subject,
}

/// A rule that denies access.
pub fn rule(choice: &mut Choice) -> Rule {
    let denied = vec![Node::directive("Require", "all denied")];
    if choice.random.percent(20) {
        let node = Node::section("LocationMatch", format!("\"{}\"", SEGMENTS.text), denied);
        return Rule { node, pattern: &SEGMENTS, subject: Subject::Path };
    }
    let pattern = PATTERNS.get(choice.random.below(PATTERNS.len())).unwrap_or(&SEGMENTS);
    let (of, subject) = match choice.random.below(5) {
        0 | 1 => ("QUERY_STRING", Subject::Query),
        // A path does not begin as a pattern may want it to.
        4 if !pattern.doubles => ("REQUEST_URI", Subject::Path),
        _ => ("HTTP_USER_AGENT", Subject::Agent),
    };
    let sign = choice.one(&["=~", "=~", "=~", "!~"]);
    let test = format!("\"%{{{of}}} {sign} m#{}#\"", pattern.text);
    Rule { node: Node::section("If", test, denied), pattern, subject }
}

/// Gives a request a text that is long for the rule, mostly, or some other long text.
pub fn lengthen(choice: &mut Choice, request: &mut Request, rule: &Rule) {
    if choice.random.percent(30) {
        let text = any(choice);
        let subject = match choice.random.below(4) {
            0 => Subject::Path,
            1 | 2 => Subject::Query,
            _ => Subject::Agent,
        };
        return put(request, subject, &text);
    }
    if rule.subject != Subject::Path && choice.random.percent(50) {
        // The rule alone should decide.
        request.target = b"/".to_vec();
        request.method = "GET".to_owned();
    }
    let target = request.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    request.target = target.to_vec();
    let text = text(choice, rule.pattern);
    put(request, rule.subject, &text);
}

fn text(choice: &mut Choice, pattern: &Pattern) -> String {
    let count = match choice.random.below(3) {
        // Around a million steps, and around ten, which are Apache's limit.
        _ if pattern.doubles => 18 + choice.random.below(6),
        0 => 10 + choice.random.below(500),
        _ => 500 + choice.random.below(2500),
    };
    let units = count / pattern.unit.len().max(1);
    pattern.unit.repeat(units) + choice.one(pattern.ends)
}

/// A long text: more than the first stack of a match holds.
pub fn any(choice: &mut Choice) -> String {
    let unit = choice.one(&["a", "/a", "x", "ab", "?a"]);
    let end = choice.one(&["", "evil", "Bad", "/x", "!evil"]);
    let count = 10 + choice.random.below(3000);
    unit.repeat(count) + end
}

fn put(request: &mut Request, subject: Subject, text: &str) {
    match subject {
        Subject::Path => request.target.extend_from_slice(text.as_bytes()),
        Subject::Query => {
            request.target.push(b'?');
            request.target.extend_from_slice(text.as_bytes());
        }
        Subject::Agent => {
            request.fields.retain(|(name, _)| name != "User-Agent");
            request.fields.push(("User-Agent".to_owned(), text.as_bytes().to_vec()));
        }
    }
}
