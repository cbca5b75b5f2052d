//! The configuration language: lines, words, conditions, macros and sections of arbitrary text.
#![no_main]

use std::path::Path;

use conf::{Arg, BStr, Defines, Diagnostic, Host, Macros, Node, Tree, read_htaccess};
use libfuzzer_sys::fuzz_target;

/// A host that knows all names that do not start with `n`, so that conditions have both outcomes.
struct Server;

impl Host for Server {
    fn module_active(&self, name: &BStr) -> bool {
        !name.starts_with(b"n")
    }

    fn directive_known(&self, name: &BStr) -> bool {
        !name.starts_with(b"n")
    }

    fn load_module(&mut self, _: &Arg, _: &Path) -> Result<(), Box<Diagnostic>> {
        Ok(())
    }
}

fuzz_target!(|text: &[u8]| {
    let mut defines = Defines::new();
    defines.set(b"V", Some(b"two words"));
    let (name, macros) = (Path::new("/.htaccess"), Macros::default());
    let (tree, found) = read_htaccess(text, name, &mut Server, &defines, &macros, name);
    check(&tree, &tree.nodes);
    for diagnostic in found.iter().take(20) {
        diagnostic.render_plain(&tree.sources);
        diagnostic.render(&tree.sources, false);
        if let Some(span) = diagnostic.span {
            assert!(tree.sources.line(span).is_some(), "{diagnostic:?}");
        }
    }
});

/// Checks that every span starts on a line of its text, and no word is longer than its arguments.
fn check(tree: &Tree, nodes: &[Node]) {
    for node in nodes {
        assert!(tree.sources.line(node.span).is_some(), "{node:?}");
        for word in node.words().unwrap_or_default() {
            assert!(word.text.len() <= node.args.len());
            assert!(tree.sources.line(word.span).is_some(), "{word:?}");
        }
        check(tree, node.children.as_deref().unwrap_or(&[]));
    }
}
