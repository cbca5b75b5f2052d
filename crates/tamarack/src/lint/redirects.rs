//! `Redirect` and `RewriteRule` for the same paths: the one that runs first hides the other.
//!
//! In a host, mod_rewrite translates names before mod_alias. The rules of a folder run after both,
//! in fixups; a `Redirect` of the folder itself runs there, too, and has the last word.

use std::path::Path;

use super::Finding;
use super::paths::Paths;
use super::rewriting::Line;
use super::sections::{bare, each};
use crate::explain::places::Directive;

/// A host's document root, and the redirects that apply to its requests.
pub struct HostPaths<'d> {
    root: &'d str,
    redirects: Paths<'d>,
}

/// The hosts of a configuration.
pub fn hosts(top: &[Directive]) -> Vec<HostPaths<'_>> {
    let mut own = Paths::default();
    add_redirects(top, &mut own);
    let root = root_of(top);
    let mut found = Vec::new();
    for host in top.iter().filter(|one| one.name.eq_ignore_ascii_case("VirtualHost")) {
        let inside = host.inside.as_deref().unwrap_or_default();
        let mut redirects = own.clone();
        add_redirects(inside, &mut redirects);
        found.extend(root_of(inside).or(root).map(|root| HostPaths { root, redirects }));
    }
    found.extend(root.map(|root| HostPaths { root, redirects: own }));
    found
}

/// Checks the directives of a configuration.
pub fn check(top: &[Directive], found: &mut Vec<Finding>) {
    let hosts = hosts(top);
    of_host(top, found);
    for host in top.iter().filter(|one| one.name.eq_ignore_ascii_case("VirtualHost")) {
        of_host(host.inside.as_deref().unwrap_or_default(), found);
    }
    each(top, &mut |one| {
        if let Some(inside) = one.inside.as_deref()
            && one.name.eq_ignore_ascii_case("Directory")
        {
            folder(Path::new(bare(&one.args)), inside, &hosts, found);
        }
    });
}

/// Checks the rules of a folder, an `.htaccess` or a `<Directory>`.
pub fn folder(
    folder: &Path,
    directives: &[Directive],
    hosts: &[HostPaths<'_>],
    found: &mut Vec<Finding>,
) {
    let below = |host: &&HostPaths<'_>| folder.starts_with(host.root);
    let Some(host) = hosts.iter().filter(below).max_by_key(|host| host.root.len()) else { return };
    let below = folder.strip_prefix(host.root).unwrap_or(folder).to_string_lossy();
    let base = if below.is_empty() { "/".to_owned() } else { format!("/{below}/") };
    let mut own = Paths::default();
    add_redirects(directives, &mut own);
    for one in directives.iter().filter(|one| is_rule(one)) {
        let Some(line) = Line::of(&one.args) else { continue };
        let Some((literal, _)) = line.literal() else { continue };
        let path = format!("{base}{literal}");
        // A rule that responds by itself ends fixups before mod_alias.
        let responds = line.has(&["R", "REDIRECT", "F", "FORBIDDEN", "G", "GONE"]);
        let of_folder = || own.covering(&path).filter(|_| !responds);
        if let Some((redirect, _)) = host.redirects.covering(&path).or_else(of_folder) {
            found.push(Finding::hint(
                one.span,
                format!(
                    "Redirect {redirect} beats this rule: mod_alias has the last word on {path}"
                ),
                "use mod_rewrite for both: write the Redirect as a RewriteRule with [R]",
            ));
        }
    }
}

/// Finds redirects of a host that its rules hide.
fn of_host(directives: &[Directive], found: &mut Vec<Finding>) {
    let texts: Vec<(&Directive, String)> = plain_rules(directives);
    let mut rules = Paths::default();
    for (one, literal) in &texts {
        rules.add(literal, one.span);
    }
    for one in directives.iter().filter(|one| is_redirect(one)) {
        let Some(path) = path_of(one) else { continue };
        let Some((_, rule)) = rules.covering(&format!("{path}/")) else { continue };
        let rule = directives.iter().find(|one| one.span == rule);
        let finding = Finding::hint(
            one.span,
            format!(
                "'RewriteRule {}' beats this {}: the rules of a host run before mod_alias",
                rule.map(|rule| rule.args.as_str()).unwrap_or_default(),
                one.name
            ),
            "write it as a RewriteRule with [R] before that rule",
        );
        found.push(finding.about(path));
    }
}

/// The rules without conditions that take all paths with a literal beginning.
fn plain_rules(directives: &[Directive]) -> Vec<(&Directive, String)> {
    const REST: [&str; 7] = ["", ".*", ".*$", "(.*)", "(.*)$", "(.+)", "(.+)$"];
    let (mut rules, mut is_conditional) = (Vec::new(), false);
    for one in directives {
        if one.name.eq_ignore_ascii_case("RewriteCond") {
            is_conditional = true;
        }
        if !is_rule(one) {
            continue;
        }
        let is_plain = !std::mem::take(&mut is_conditional);
        let Some(line) = Line::of(&one.args).filter(|_| is_plain) else { continue };
        let passes = line.second == "-" || line.has(&["PT", "PASSTHROUGH", "C", "CHAIN"]);
        match line.literal() {
            Some((literal, rest)) if REST.contains(&rest) && !passes => {
                let end = literal.trim_end_matches('/');
                rules.extend((!end.is_empty()).then(|| (one, end.to_owned())));
            }
            _ => {}
        }
    }
    rules
}

fn add_redirects<'d>(directives: &'d [Directive], paths: &mut Paths<'d>) {
    for one in directives.iter().filter(|one| is_redirect(one)) {
        if let Some(path) = path_of(one) {
            paths.add(path, one.span);
        }
    }
}

fn is_rule(one: &Directive) -> bool {
    one.name.eq_ignore_ascii_case("RewriteRule")
}

fn is_redirect(one: &Directive) -> bool {
    let names = ["Redirect", "RedirectPermanent", "RedirectTemp"];
    names.iter().any(|name| one.name.eq_ignore_ascii_case(name))
}

/// The path of a redirect: the first word that begins with a slash.
fn path_of(one: &Directive) -> Option<&str> {
    let mut words = one.args.split_ascii_whitespace().map(|word| word.trim_matches('"'));
    words.find(|word| word.starts_with('/'))
}

fn root_of(directives: &[Directive]) -> Option<&str> {
    let mut roots = directives.iter().filter(|one| one.name.eq_ignore_ascii_case("DocumentRoot"));
    roots.next_back().map(|one| bare(&one.args).trim_end_matches('/'))
}
