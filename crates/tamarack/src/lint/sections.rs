//! Sections that can't match, and a proxy that is open.

use std::path::Path;

use super::{Finding, patterns};
use crate::explain::places::Directive;

/// Checks all sections.
pub fn check(all: &[Directive], found: &mut Vec<Finding>) {
    let roots = document_roots(all);
    each(all, &mut |one| {
        let Some(inside) = &one.inside else { return };
        let denies = restricts(inside);
        let finding = match one.name.to_ascii_lowercase().as_str() {
            "files" | "filesmatch" => files(one),
            "directory" | "directorymatch" => directory(one),
            "location" | "locationmatch" => location(one, &roots),
            _ => None,
        };
        let path = literal(&one.args).filter(|_| patterns::of_section(one).is_none());
        found.extend(finding.map(|finding| {
            let finding = finding.severe_if(denies);
            path.into_iter().fold(finding, Finding::about)
        }));
    });
    proxy(all, found);
}

/// Calls `see` with each directive and those in it.
pub fn each(all: &[Directive], see: &mut impl FnMut(&Directive)) {
    for one in all {
        see(one);
        if let Some(inside) = &one.inside {
            each(inside, see);
        }
    }
}

fn document_roots(all: &[Directive]) -> Vec<String> {
    let mut roots = Vec::new();
    each(all, &mut |one| {
        if one.name.eq_ignore_ascii_case("DocumentRoot") {
            roots.push(bare(&one.args).trim_end_matches('/').to_owned());
        }
    });
    roots
}

/// Whether directives restrict access.
fn restricts(inside: &[Directive]) -> bool {
    let mut restricts = false;
    each(inside, &mut |one| {
        let args = one.args.to_ascii_lowercase();
        restricts |= match one.name.to_ascii_lowercase().as_str() {
            "require" => !args.starts_with("all granted"),
            "deny" | "authtype" | "sslrequire" | "sslrequiressl" => true,
            "satisfy" => args == "all",
            _ => false,
        };
    });
    restricts
}

/// An argument without quotes.
pub fn bare(args: &str) -> &str {
    let args = args.trim();
    let unquoted = args.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    unquoted.unwrap_or(args)
}

/// A literal argument: `None` for a pattern.
fn literal(args: &str) -> Option<&str> {
    let text = bare(args);
    let is_pattern = text.starts_with('~') || text.contains(['*', '?', '[', '^', '$', '(', '\\']);
    (!is_pattern).then_some(text)
}

/// Beginnings of character classes that exclude the slash.
const EXCLUDED: [&str; 2] = ["[^/", r"[^\/"];

fn files(one: &Directive) -> Option<Finding> {
    let text = bare(&one.args);
    let is_expression = one.name.eq_ignore_ascii_case("FilesMatch") || text.starts_with('~');
    // An expression may exclude the slash.
    if !text.contains('/') || (is_expression && EXCLUDED.iter().any(|part| text.contains(part))) {
        return None;
    }
    Some(Finding::hint(
        one.span,
        format!("<{} {}> can't match: file names have no slash", one.name, one.args),
        "write the file name alone, inside a <Directory> for its folder",
    ))
}

fn directory(one: &Directive) -> Option<Finding> {
    let literal = literal(&one.args).filter(|_| patterns::of_section(one).is_none());
    let (path, why) = match literal {
        Some(path) => (path.to_owned(), "there is no such folder".to_owned()),
        None => {
            let folder = patterns::folder(one)?;
            let why = format!("there is no folder {folder}");
            (folder, why)
        }
    };
    (path.starts_with('/') && patterns::is_missing(&path)).then(|| {
        Finding::hint(
            one.span,
            format!("<{} {}> can't match: {why}", one.name, one.args),
            format!("correct the path: <{}> expects a file system path", one.name),
        )
    })
}

fn location(one: &Directive, roots: &[String]) -> Option<Finding> {
    if let Some(pattern) = patterns::of_section(one) {
        return patterns::lacks_slash(pattern).then(|| {
            Finding::hint(
                one.span,
                format!("<{} {}> can't match: a URL path begins with a slash", one.name, one.args),
                "begin the expression with ^/",
            )
        });
    }
    let path = literal(&one.args)?;
    let is_url = path.contains("://");
    if !path.starts_with('/') && !is_url {
        return Some(Finding::hint(
            one.span,
            format!("<Location {}> can't match: a URL path begins with a slash", one.args),
            format!("write <Location /{path}>"),
        ));
    }
    let is_file = |root: &&String| root.len() > 1 && Path::new(path).starts_with(root);
    let root = roots.iter().find(is_file)?;
    Some(Finding::hint(
        one.span,
        format!("<Location {}> can't match: it is a file system path", one.args),
        format!("write <Directory {path}>, or the URL path, without {root}"),
    ))
}

/// Finds `ProxyRequests On` without a restriction of its clients.
fn proxy(all: &[Directive], found: &mut Vec<Finding>) {
    let mut is_restricted = false;
    each(all, &mut |one| {
        let is_proxy = one.name.to_ascii_lowercase().starts_with("proxy");
        is_restricted |= is_proxy && one.inside.as_ref().is_some_and(|inside| restricts(inside));
    });
    each(all, &mut |one| {
        let is_on = one.name.eq_ignore_ascii_case("ProxyRequests")
            && bare(&one.args).eq_ignore_ascii_case("on");
        if is_on && !is_restricted {
            let finding = Finding::hint(
                one.span,
                "any client may use this server as a proxy to any address",
                "turn it off (ProxyPass does not need it), or add <Proxy *> with a Require",
            );
            found.push(finding.severe_if(true));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive(name: &str, args: &str) -> Directive {
        let (name, args) = (name.to_owned(), args.to_owned());
        Directive { name, args, span: conf::Span::default(), inside: None }
    }

    #[test]
    fn only_paths_below_a_root_are_file_system_paths() {
        let roots = ["/srv/www".to_owned()];
        assert!(location(&directive("Location", "/srv/www/a"), &roots).is_some());
        assert!(location(&directive("Location", "/srv/www2"), &roots).is_none());
    }

    #[test]
    fn an_expression_may_exclude_the_slash() {
        assert!(files(&directive("FilesMatch", r#""^[^/]+$""#)).is_none());
        assert!(files(&directive("FilesMatch", r#""^[^\/]+$""#)).is_none());
        assert!(files(&directive("FilesMatch", "a/b")).is_some());
    }

    #[test]
    fn patterns_are_no_literals() {
        assert_eq!(literal("\"/a b\""), Some("/a b"));
        assert_eq!(literal("/a*"), None);
        assert_eq!(literal("~ \"^/a\""), None);
    }
}
