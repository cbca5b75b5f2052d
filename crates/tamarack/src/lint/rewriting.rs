//! Rules of mod_rewrite that do not do what they seem to do.

use super::{Finding, patterns};
use crate::explain::places::Directive;

/// The scope of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The server or a virtual host.
    Server,
    /// A folder: `<Directory>` or `.htaccess`.
    Folder,
    /// `<Location>`
    Location,
}

/// A rule or a condition.
pub struct Line<'d> {
    first: &'d str,
    /// The substitution, or the pattern of a condition.
    pub second: &'d str,
    flags: Vec<String>,
}

/// Checks the rules of a place, and of the sections in it.
pub fn check(all: &[Directive], scope: Scope, found: &mut Vec<Finding>) {
    let has_base = all.iter().any(|one| one.name.eq_ignore_ascii_case("RewriteBase"));
    let set: Vec<&str> = all
        .iter()
        .filter(|one| one.name.eq_ignore_ascii_case("SetEnv"))
        .filter_map(|one| one.args.split_ascii_whitespace().next())
        .collect();
    let mut conditions: Vec<(&Directive, Line<'_>)> = Vec::new();
    let mut ended: Option<Ending<'_>> = None;
    let mut results = Results::of(all);
    let (mut is_chained, mut may_be_skipped) = (false, false);
    for one in all {
        match one.name.to_ascii_lowercase().as_str() {
            "rewritecond" => {
                let Some(line) = Line::of(&one.args) else { continue };
                condition(one, &line, &set, found);
                conditions.push((one, line));
            }
            "rewriterule" => {
                let Some(line) = Line::of(&one.args) else { continue };
                unreached(one, &line, ended.as_ref(), found);
                dangling(&conditions, found);
                without_slash(&conditions, &line, found);
                rule(one, &line, scope, has_base, found);
                slash(one, &line, scope, &results, found);
                if conditions.is_empty() && !is_chained && !may_be_skipped && ended.is_none() {
                    ended = line.ending(one, scope);
                }
                results.add(&line);
                may_be_skipped |= line.has(&["S", "SKIP"]);
                is_chained = line.has(&["C", "CHAIN"]);
                conditions.clear();
            }
            _ => {}
        }
        if let Some(inside) = &one.inside {
            let scope = match one.name.to_ascii_lowercase().as_str() {
                "virtualhost" => Scope::Server,
                "location" | "locationmatch" => Scope::Location,
                _ => Scope::Folder,
            };
            check(inside, scope, found);
        }
    }
}

impl Line<'_> {
    /// Reads the arguments.
    pub fn of(args: &str) -> Option<Line<'_>> {
        let (first, rest) = word(args)?;
        let (second, rest) = word(rest)?;
        let flags = word(rest).map(|(flags, _)| flags).unwrap_or_default();
        let flags = flags.trim_start_matches('[').trim_end_matches(']');
        let flags =
            flags.split(',').map(|flag| flag.trim().to_owned()).filter(|flag| !flag.is_empty());
        Some(Line { first, second, flags: flags.collect() })
    }

    /// Whether it has one of these flags.
    pub fn has(&self, names: &[&str]) -> bool {
        let name_of =
            |flag: &String| flag.split('=').next().unwrap_or_default().to_ascii_uppercase();
        self.flags.iter().any(|flag| names.contains(&name_of(flag).as_str()))
    }

    /// The text with which all paths of the pattern begin, and the rest of the pattern. `None` if
    /// it may match anywhere, or in either case.
    pub fn literal(&self) -> Option<(String, &str)> {
        match self.has(&["NC", "NOCASE"]) {
            true => None,
            false => patterns::literal(self.first),
        }
    }

    /// Whether it refuses requests.
    pub fn denies(&self) -> bool {
        let refuses = |flag: &String| {
            let status = flag.split_once('=').filter(|(name, _)| {
                name.eq_ignore_ascii_case("R") || name.eq_ignore_ascii_case("redirect")
            });
            status.is_some_and(|(_, status)| status.starts_with(['4', '5']))
        };
        self.has(&["F", "FORBIDDEN", "G", "GONE"]) || self.flags.iter().any(refuses)
    }

    /// The paths for which no rule after this one, `one`, is reached.
    fn ending<'d>(&self, one: &'d Directive, scope: Scope) -> Option<Ending<'d>> {
        const ALL: [&str; 8] = ["^", ".*", "^.*", "^.*$", "(.*)", "^(.*)$", "^(.*)", ""];
        const NOT_EMPTY: [&str; 8] = [".", "^.", ".+", "^.+", "^.+$", "(.+)", "^(.+)", "^(.+)$"];
        let fits_all = ALL.contains(&self.first);
        let is_end = self.has(&["L", "LAST", "END", "F", "FORBIDDEN", "G", "GONE"])
            && (fits_all || NOT_EMPTY.contains(&self.first));
        // The path of a URL is never empty, other than that of a folder in itself.
        is_end.then_some(Ending { rule: one, is_of_all: fits_all || scope == Scope::Server })
    }
}

/// A word, perhaps in quotes, and the rest.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if text.is_empty() {
        return None;
    }
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\''));
    match quote {
        Some(quote) => {
            let inside = text.get(1..)?;
            let end = inside.find(quote).unwrap_or(inside.len());
            Some((inside.get(..end)?, inside.get(end + 1..).unwrap_or_default()))
        }
        None => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            Some(text.split_at(end))
        }
    }
}

fn condition(one: &Directive, line: &Line<'_>, set: &[&str], found: &mut Vec<Finding>) {
    let mut hint =
        |message: String, remedy: String| found.push(Finding::hint(one.span, message, remedy));
    for name in [
        "HTTP_ACCEPT_LANGUAGE",
        "HTTP_ACCEPT_ENCODING",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_X_FORWARDED_PROTO",
        "HTTP_ORIGIN",
    ] {
        if line.first.contains(&format!("%{{{name}}}")) {
            let field = field_of(name);
            hint(
                format!("%{{{name}}} is always empty: such variables exist for a few fields only"),
                format!("write %{{HTTP:{field}}}"),
            );
        }
    }
    let pattern = line.second.trim_start_matches('!');
    if pattern.to_ascii_lowercase().starts_with("-ip") {
        hint(
            format!("'{pattern}' is a regular expression here, not an address comparison"),
            "write RewriteCond expr \"%{REMOTE_ADDR} -ipmatch '…'\"".to_owned(),
        );
    }
    let number = pattern.trim_start_matches(['<', '>', '=']);
    let compares = pattern.starts_with(['<', '>']) && !number.is_empty();
    if compares && number.bytes().all(|byte| byte.is_ascii_digit()) {
        hint(
            format!("'{pattern}' compares strings: a longer one is always greater"),
            "compare numbers with -gt, -ge, -lt and -le".to_owned(),
        );
    }
    for name in set.iter().filter(|name| line.first.contains(&format!("%{{ENV:{name}}}"))) {
        hint(
            format!("SetEnv {name} is not set yet when rules run"),
            format!("write SetEnvIf Request_URI ^ {name}=…, which runs before them"),
        );
    }
}

/// A field's name by that of its variable.
fn field_of(variable: &str) -> String {
    let words = variable.trim_start_matches("HTTP_").split('_');
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        format!("{first}{}", rest.to_ascii_lowercase())
    };
    words.map(word).collect::<Vec<_>>().join("-")
}

fn dangling(conditions: &[(&Directive, Line<'_>)], found: &mut Vec<Finding>) {
    if let Some((one, line)) = conditions.last()
        && line.has(&["OR", "ORNEXT"])
    {
        found.push(Finding::hint(
            one.span,
            "the last condition has [OR], so it holds for every input",
            "remove [OR] from the rule's last condition",
        ));
    }
}

/// A rule after which no other is reached.
struct Ending<'d> {
    rule: &'d Directive,
    /// Whether it is so for the empty path, too.
    is_of_all: bool,
}

/// The paths that rules leave for those after them.
struct Results {
    /// Whether one may begin with a slash, other than that of the URL.
    with_slash: bool,
    /// Whether one may begin otherwise.
    without_slash: bool,
}

impl Results {
    /// Those of no rule; of all, if the rules may begin again.
    fn of(all: &[Directive]) -> Results {
        let mut results = Results { with_slash: false, without_slash: false };
        let rules = all.iter().filter(|one| one.name.eq_ignore_ascii_case("RewriteRule"));
        let lines: Vec<Line<'_>> = rules.filter_map(|one| Line::of(&one.args)).collect();
        if lines.iter().any(|line| line.has(&["N", "NEXT"])) {
            lines.iter().for_each(|line| results.add(line));
        }
        results
    }

    fn add(&mut self, line: &Line<'_>) {
        let is_kept = line.second == "-" || line.second.contains("://");
        let is_unknown = line.second.starts_with(['$', '%']);
        let has_slash = line.second.starts_with('/');
        self.with_slash |= !is_kept && (is_unknown || has_slash);
        self.without_slash |= !is_kept && !has_slash;
    }
}

fn unreached(
    one: &Directive,
    line: &Line<'_>,
    ended: Option<&Ending<'_>>,
    found: &mut Vec<Finding>,
) {
    let is_never = |ended: &&Ending<'_>| ended.is_of_all || patterns::literal(line.first).is_some();
    if let Some(before) = ended.filter(is_never) {
        let args = &before.rule.args;
        let finding = Finding::hint(
            one.span,
            format!("never reached: 'RewriteRule {args}' ends the rules for every path"),
            "put it before that rule",
        );
        found.push(finding.severe_if(line.denies()));
    }
}

/// Finds conditions of a rule on the URL's path that can't hold, since it begins with a slash.
fn without_slash(conditions: &[(&Directive, Line<'_>)], rule: &Line<'_>, found: &mut Vec<Finding>) {
    // The rule runs if another condition holds.
    let is_any = conditions.iter().any(|(_, line)| line.has(&["OR", "ORNEXT"]));
    for (one, line) in conditions {
        if line.first == "%{REQUEST_URI}" && patterns::lacks_slash(line.second) {
            let finding = Finding::hint(
                one.span,
                format!("'{}' can't match: a URL path begins with a slash", line.second),
                "begin the expression with ^/",
            );
            found.push(finding.severe_if(rule.denies() && !is_any));
        }
    }
}

/// Finds patterns that can't match because of their first letter.
fn slash(
    one: &Directive,
    line: &Line<'_>,
    scope: Scope,
    results: &Results,
    found: &mut Vec<Finding>,
) {
    let after_slash = line.first.strip_prefix("^/");
    let has_slash = after_slash.is_some_and(|rest| !rest.starts_with(['?', '*', '{']));
    let (is_wrong, why, remedy, may_match) = match scope {
        Scope::Folder => (
            has_slash,
            "in a folder, the path has no leading slash",
            "remove the leading slash",
            results.with_slash,
        ),
        Scope::Server => (
            patterns::lacks_slash(line.first) && !results.without_slash,
            "in a host, the path begins with a slash",
            "begin the expression with ^/",
            false,
        ),
        Scope::Location => return,
    };
    if is_wrong {
        let message = format!("'{}' can't match here: {why}", line.first);
        let finding = Finding::hint(one.span, message, remedy);
        found.push(finding.severe_if(line.denies() && !may_match));
    }
}

fn rule(one: &Directive, line: &Line<'_>, scope: Scope, has_base: bool, found: &mut Vec<Finding>) {
    let mut hint =
        |message: String, remedy: &str| found.push(Finding::hint(one.span, message, remedy));
    let is_relative =
        !line.second.starts_with(['/', '-', '%', '$']) && !line.second.contains("://");
    if scope == Scope::Folder && !has_base && is_relative && line.has(&["R", "REDIRECT"]) {
        hint(
            "a relative redirect without RewriteBase reveals the folder's path to the client"
                .to_owned(),
            "begin the target with a slash, or add RewriteBase",
        );
    }
    if scope == Scope::Location {
        hint(
            "rules in <Location> match file names, and rarely do what they seem to".to_owned(),
            "move the rule to the virtual host or to a <Directory>",
        );
    }
    let known = ["DPI", "DISCARDPATH"];
    for flag in line.flags.iter().filter(|flag| flag.to_ascii_uppercase().starts_with('D')) {
        if !known.contains(&flag.to_ascii_uppercase().as_str()) {
            hint(format!("the unknown flag [{flag}] is ignored"), "correct or remove it");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_words_and_flags() {
        let line = Line::of("^a$ \"/b c\" [R=301,NC]").unwrap();
        assert_eq!((line.first, line.second), ("^a$", "/b c"));
        assert!(line.has(&["R"]) && line.has(&["NC"]) && !line.has(&["L"]));
        assert!(Line::of("^a - [R=404]").unwrap().denies());
        assert!(!line.denies());
    }

    #[test]
    fn literals_end_before_the_first_choice() {
        let literal = |args: &str| Line::of(args).unwrap().literal().map(|(text, _)| text);
        assert_eq!(literal(r"^old/a\.html$ /b").as_deref(), Some("old/a.html"));
        assert_eq!(literal("^items?/ /b").as_deref(), Some("item"));
        assert_eq!(literal(r"^a\d /b").as_deref(), Some("a"));
        assert_eq!(
            (literal("old /b"), literal("^a|b /b"), literal("^a /b [NC]")),
            (None, None, None)
        );
    }
}
