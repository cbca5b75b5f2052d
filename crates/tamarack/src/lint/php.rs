//! Directives of mod_php. Without it they are errors, or, inside `<IfModule>`, nothing: PHP-FPM
//! reads its settings elsewhere.

use conf::word::first_word;
use conf::{Sources, Span};

use super::Finding;

/// Finds the directives in these texts, whether or not their sections are used.
pub fn check(sources: &Sources, found: &mut Vec<Finding>) {
    for (file, source) in sources.iter() {
        for line in (1..).map_while(|line| Some((line, source.line(line)?))) {
            let (line, text) = line;
            let Some(setting) = Setting::parse(text) else { continue };
            let span = Span { file, line, column: 1, length: 0 };
            found.push(Finding::hint(span, setting.message(), setting.remedy()));
        }
    }
}

/// A line that sets something in PHP.
struct Setting {
    directive: String,
    name: String,
    value: String,
}

impl Setting {
    fn parse(line: &[u8]) -> Option<Setting> {
        let (directive, rest) = word(line)?;
        let known = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"];
        known.iter().find(|known| directive.eq_ignore_ascii_case(known))?;
        let (name, rest) = word(rest)?;
        let (value, _) = word(rest)?;
        Some(Setting { directive, name, value })
    }

    fn message(&self) -> String {
        let Setting { directive, name, value } = self;
        format!("{directive} {name} {value} belongs to mod_php: PHP-FPM does not see it")
    }

    /// What only the administrator may set is ignored in `.user.ini`.
    fn remedy(&self) -> String {
        let Setting { directive, name, value } = self;
        match directive.to_ascii_lowercase().starts_with("php_admin") {
            true => {
                format!("write '{directive}[{name}] = {value}' into the pool's file of PHP-FPM")
            }
            false => format!("write '{name} = {value}' into the file .user.ini of the folder"),
        }
    }
}

fn word(text: &[u8]) -> Option<(String, &[u8])> {
    let text = text.trim_ascii_start();
    let (word, length) = first_word(text)?;
    Some((word.to_string(), text.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_wherever_they_are() {
        let mut sources = Sources::new();
        sources.add(
            "a.conf",
            b"# php_value a b\n<IfModule mod_php7.c>\n  PHP_Value upload_max_filesize 64M\n\
              php_admin_flag \"engine\" off\n</IfModule>\nphp_value\n"
                .to_vec(),
        );
        let mut found = Vec::new();
        check(&sources, &mut found);
        let lines: Vec<u32> = found.iter().filter_map(|one| Some(one.span?.line)).collect();
        assert_eq!(lines, [3, 4]);
        assert!(found[0].remedy.contains("'upload_max_filesize = 64M'"));
        assert!(found[1].remedy.contains("'php_admin_flag[engine] = off'"));
    }
}
