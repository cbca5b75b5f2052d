//! Differences that directives allow which `AllowOverride Nonfatal=` skips.

use crate::rows;
use crate::site::{Case, Content, Edit, Node};

/// The line that allows a difference because of a skipped directive of mod_access_compat or
/// mod_rewrite.
const OF_SKIPPED: &str =
    "Lifting the access control of outer sections (`Order`, `Allow`, `Deny`, `Satisfy`)";

/// The line that allows responses of other statuses.
pub fn rule_of_skipped(
    case: &Case,
    apache: &[String],
    tamarack: &[String],
) -> Option<&'static str> {
    let mut skips = false;
    case.site.walk(&mut |node| {
        skips |= node.name == "AllowOverride" && node.words.contains("Nonfatal=");
    });
    let mut has_rules = false;
    case.site.walk(&mut |node| has_rules |= node.name == "RewriteRule");
    let restricts =
        |nodes: &Vec<Node>| has(nodes, "access_compat") || has_rules && has(nodes, "rewrite");
    let may_differ = skips && apache.first() != tamarack.first();
    (may_differ && htaccess(case).any(restricts)).then_some(OF_SKIPPED)
}

/// What stands in `.htaccess` files, from the beginning or later.
pub fn htaccess(case: &Case) -> impl Iterator<Item = &Vec<Node>> {
    let in_files = case.site.files.iter().filter_map(|file| match &file.content {
        Content::Htaccess(nodes) => Some(nodes),
        _ => None,
    });
    let in_changes = case.requests.iter().filter_map(|request| match &request.change {
        Some(Edit::Htaccess(_, nodes)) => Some(nodes),
        _ => None,
    });
    in_files.chain(in_changes)
}

/// Whether they contain a directive of a module.
fn has(nodes: &[Node], module: &str) -> bool {
    let mut has = false;
    Node::walk(nodes, &mut |node| has |= rows::module(&node.name) == module);
    has
}

/// All lines that are cited here.
#[cfg(test)]
pub const CITES: [&str; 1] = [OF_SKIPPED];

#[cfg(test)]
mod tests {
    use super::rule_of_skipped;
    use crate::site::{Case, Content, File, Node, Site};

    #[test]
    fn skipped_directives_may_lift_the_access_control_of_outer_sections() {
        let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
        let is_allowed = |overrides: &str, name: &str, statuses: [&str; 2]| {
            let content = Content::Htaccess(vec![Node::directive(name, "x")]);
            let file = File { path: "htdocs/.htaccess".to_owned(), content, options: Vec::new() };
            let mut config = vec![Node::directive("AllowOverride", overrides)];
            if name == "RewriteRule" {
                config.push(Node::directive(name, "^a - [F]"));
            }
            let site = Site { config, files: vec![file], ..Site::default() };
            let case = Case { site, ..Case::default() };
            let [apache, tamarack] = statuses.map(lines);
            rule_of_skipped(&case, &apache, &tamarack).is_some()
        };
        let statuses = ["200 OK", "403 Forbidden"];
        assert!(is_allowed("Nonfatal=All", "Order", statuses));
        assert!(is_allowed("Nonfatal=All", "RewriteRule", statuses));
        assert!(!is_allowed("Nonfatal=All", "RewriteBase", statuses));
        assert!(!is_allowed("All", "Order", statuses));
        assert!(!is_allowed("Nonfatal=All", "Require", statuses));
        assert!(!is_allowed("Nonfatal=All", "Order", ["200 OK", "200 OK"]));
    }
}
