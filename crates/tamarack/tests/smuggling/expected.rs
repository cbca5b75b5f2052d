//! Apache's statuses, in a file for each class: a line for each payload, its name and the statuses.
//! `but` precedes Tamarack's where they are deliberately others, and `because` the reason.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The statuses by name.
pub struct Expected {
    folder: PathBuf,
    lines: BTreeMap<String, Line>,
}

struct Line {
    apache: String,
    but: Option<String>,
}

impl Expected {
    /// The files of a folder, whose names are the classes.
    pub fn load(folder: &str) -> Expected {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smuggling").join(folder);
        let files = std::fs::read_dir(&folder).into_iter().flatten();
        let text: String =
            files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        let lines = text.lines().map(|line| {
            let (name, rest) = line.split_once(' ').unwrap();
            let (apache, but) = match rest.split_once(" but ") {
                Some((apache, but)) => (apache, Some(but.to_owned())),
                None => (rest, None),
            };
            (name.to_owned(), Line { apache: apache.to_owned(), but })
        });
        Expected { lines: lines.collect(), folder }
    }

    /// Writes what Apache has answered. What differs from it stays.
    pub fn record(mut self, statuses: &[(String, String)]) {
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        for (name, apache) in statuses {
            let but = self.lines.remove(name).and_then(|line| line.but);
            let but = but.map(|but| format!(" but {but}")).unwrap_or_default();
            let file = files.entry(name.split('.').next().unwrap()).or_default();
            writeln!(file, "{name} {apache}{but}").unwrap();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir(&self.folder).unwrap();
        for (class, text) in files {
            std::fs::write(self.folder.join(class).with_extension("txt"), text).unwrap();
        }
    }

    /// What differs from the files.
    pub fn compare(&self, statuses: &[(String, String)], faults: &mut Vec<String>) {
        for (name, found) in statuses {
            let Some(line) = self.lines.get(name) else {
                faults.push(format!("{name}: not recorded"));
                continue;
            };
            let but = line.but.as_deref().and_then(|but| but.split_once(" because "));
            let expected = but.map_or(line.apache.as_str(), |(statuses, _)| statuses);
            if found != expected {
                faults.push(format!("{name}: {found}, expected {expected}"));
            }
        }
        if self.lines.len() != statuses.len() {
            faults.push(format!("{} recorded, {} asked", self.lines.len(), statuses.len()));
        }
    }
}
