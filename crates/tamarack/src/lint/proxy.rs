//! Parameters of `ProxyPass` that have no effect.

use super::Finding;
use super::sections::bare;
use crate::explain::places::Directive;

/// A line with its backend.
struct Pass<'d> {
    line: &'d Directive,
    backend: &'d str,
    parameters: Vec<&'d str>,
}

/// Finds lines whose parameters are ignored: they share the worker of an earlier line.
pub fn check(all: &[Directive], found: &mut Vec<Finding>) {
    let mut earlier: Vec<Pass<'_>> = Vec::new();
    for pass in all.iter().filter_map(Pass::of) {
        let shared = earlier.iter().find(|one| pass.backend.starts_with(one.backend));
        if let Some(shared) = shared.filter(|_| !pass.parameters.is_empty()) {
            found.push(Finding::hint(
                pass.line.span,
                format!(
                    "{} has no effect: the line shares the worker of 'ProxyPass {}' (AH01146)",
                    pass.parameters.join(" "),
                    shared.line.args
                ),
                "put the parameters on the first line of that backend, or put the longer URL first",
            ));
        }
        earlier.push(pass);
    }
    for host in all.iter().filter(|one| one.name.eq_ignore_ascii_case("VirtualHost")) {
        check(host.inside.as_deref().unwrap_or_default(), found);
    }
}

impl Pass<'_> {
    fn of(line: &Directive) -> Option<Pass<'_>> {
        if !line.name.eq_ignore_ascii_case("ProxyPass") {
            return None;
        }
        let mut words = line.args.split_ascii_whitespace().map(bare);
        let backend = words.find(|word| word.contains("://"))?;
        let parameters = words.filter(|word| word.contains('=')).collect();
        Some(Pass { line, backend, parameters })
    }
}
