//! Modules that have recordings before Tamarack has them: tests/NOT_SERVED names them.

use std::path::Path;

use crate::program::Program;
use crate::testfile::TestFile;

/// The list's name in the tests folder.
const LIST: &str = "NOT_SERVED";

/// Removes the files that load a module of the list, and prints how many, and which modules the
/// program has by now.
pub fn leave_out(files: &mut Vec<TestFile>, program: &Program, tests: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(tests.join(LIST)).unwrap_or_default();
    for module in names(&text) {
        if !program.lacks(module)? {
            println!("Tamarack has mod_{module}: run its files, remove it from tests/{LIST}");
        }
        let before = files.len();
        files.retain(|file| !file.modules.iter().any(|loaded| loaded == module));
        let count = before - files.len();
        println!("left out: {count} files, until Tamarack has mod_{module} (tests/{LIST})");
    }
    Ok(())
}

/// One module a line, without `mod_`; `#` begins a comment.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn comments_are_no_modules() {
        let found: Vec<&str> = names("# Why.\n\nproxy\nproxy_http \n").collect();
        assert_eq!(found, ["proxy", "proxy_http"]);
    }
}
