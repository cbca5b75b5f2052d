//! `<Directory>` sections in the order of the walk.
//!
//! Source: `ap_core_reorder_directories` (server/core.c).

use std::sync::Arc;

use crate::config::section::{Matches, Section};

/// `<Directory>` sections for the walk: by number of segments, regular expressions apart.
#[derive(Default)]
pub struct DirectorySections {
    by_depth: Vec<Vec<Arc<Section>>>,
    regexes: Vec<Arc<Section>>,
}

impl DirectorySections {
    /// Sorts `sections` (`ap_core_reorder_directories`), keeping the order of appearance per depth;
    /// that of a regular expression is the number of slashes in it.
    pub fn sort(sections: &[Arc<Section>]) -> DirectorySections {
        let mut sorted = DirectorySections::default();
        for section in sections {
            let path = match &section.matches {
                Matches::Path(path) | Matches::Wildcard(path) => path,
                _ => {
                    sorted.regexes.push(section.clone());
                    continue;
                }
            };
            let depth = path.iter().filter(|byte| **byte == b'/').count();
            if sorted.by_depth.len() <= depth {
                sorted.by_depth.resize_with(depth + 1, Vec::new);
            }
            if let Some(of_depth) = sorted.by_depth.get_mut(depth) {
                of_depth.push(section.clone());
            }
        }
        sorted.regexes.sort_by_key(|section| match &section.matches {
            Matches::Regex(regex) => regex.pattern().iter().filter(|byte| **byte == b'/').count(),
            _ => 0,
        });
        sorted
    }

    /// Those of a path with this many slashes.
    pub fn at(&self, depth: usize) -> &[Arc<Section>] {
        self.by_depth.get(depth).map_or(&[], Vec::as_slice)
    }

    /// All of them, in the order of the walk.
    pub fn all(&self) -> Vec<Arc<Section>> {
        self.by_depth.iter().flatten().chain(&self.regexes).cloned().collect()
    }

    /// `<DirectoryMatch>` and `<Directory ~>`.
    pub fn regexes(&self) -> &[Arc<Section>] {
        &self.regexes
    }
}
