//! The places of directives: from positions to file names and lines, and back to directives.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use conf::{Node, Sources, Span};
use server::explain::HtaccessFile;

use crate::load::Loaded;

/// Text numbers reserved for each file: macros expand to further texts.
const TEXTS_OF_FILE: u32 = 4096;

/// A file and a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file; relative to ServerRoot if it is below it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A directive and what contains it.
#[derive(Clone)]
pub struct Directive {
    /// The name as written.
    pub name: String,
    /// The arguments.
    pub args: String,
    /// The position.
    pub span: Span,
    /// The directives in it, if it is a section.
    pub inside: Option<Rc<[Directive]>>,
}

/// The directives of a configuration and of the `.htaccess` files that were read.
pub struct Places {
    sources: Sources,
    files: Vec<Rc<HtaccessFile>>,
    root: PathBuf,
    /// The directives of the configuration files.
    pub top: Rc<[Directive]>,
    /// Files that were read on their own, by [`Places::add`].
    others: Vec<Sources>,
    /// By section of an `.htaccess`.
    of_files: HashMap<u64, Rc<[Directive]>>,
    directives: HashMap<Span, Directive>,
}

impl Places {
    /// Returns the places of a configuration.
    pub fn new(loaded: &Loaded) -> Places {
        let mut places = Places {
            sources: loaded.sources.clone(),
            files: Vec::new(),
            root: loaded.tree.server_root.clone(),
            top: directives(&loaded.tree.nodes),
            others: Vec::new(),
            of_files: HashMap::new(),
            directives: HashMap::new(),
        };
        let top = places.top.clone();
        places.index(&top);
        places
    }

    /// Adds the `.htaccess` files that were read since.
    pub fn learn(&mut self, files: &[Rc<HtaccessFile>]) {
        for file in files.iter().skip(self.files.len()) {
            let inside = directives(&file.tree.nodes);
            self.index(&inside);
            self.of_files.insert(file.section, inside);
            self.files.push(file.clone());
        }
    }

    /// The number of the next text for [`Places::add`].
    pub fn next_text(&self) -> u32 {
        let own = u32::try_from(self.sources.iter().count()).unwrap_or(u32::MAX);
        let files = u32::try_from(self.others.len()).unwrap_or(u32::MAX);
        own.saturating_add(1).saturating_add(files.saturating_mul(TEXTS_OF_FILE))
    }

    /// Adds a file, and returns its directives.
    pub fn add(&mut self, tree: conf::Tree) -> Rc<[Directive]> {
        let all = directives(&tree.nodes);
        self.index(&all);
        self.others.push(tree.sources);
        all
    }

    fn index(&mut self, all: &Rc<[Directive]>) {
        for one in all.iter() {
            self.directives.insert(one.span, one.clone());
            if let Some(inside) = &one.inside {
                self.index(inside);
            }
        }
    }

    /// The file and line of a position; `None` if it is in none of these texts.
    pub fn of(&self, span: Span) -> Option<Place> {
        let own = self.files.iter().map(|file| &file.tree.sources);
        let sources = std::iter::once(&self.sources).chain(own).chain(&self.others);
        let (name, line) =
            sources.filter(|all| all.get(span.file).is_some()).map(|all| all.place(span)).next()?;
        Some(Place { file: self.short(&name), line })
    }

    /// A file's name as shown.
    pub fn short(&self, name: &str) -> String {
        let below = name.strip_prefix(&*self.root.to_string_lossy());
        let below = below.and_then(|rest| rest.strip_prefix('/'));
        below.unwrap_or(name).to_owned()
    }

    /// All directives and sections with their places, in order.
    pub fn all(&self) -> Vec<(&Directive, Place)> {
        let all = self.directives.values();
        let mut all: Vec<_> = all.filter_map(|one| Some((one, self.of(one.span)?))).collect();
        all.sort_by_key(|(one, _)| one.span);
        all
    }

    /// The directive or section at a position.
    pub fn directive(&self, span: Span) -> Option<&Directive> {
        self.directives.get(&span)
    }

    /// The directives of an `.htaccess`.
    pub fn of_file(&self, section: u64) -> Option<&Rc<[Directive]>> {
        self.of_files.get(&section)
    }
}

fn directives(nodes: &[Node]) -> Rc<[Directive]> {
    let directive = |node: &Node| Directive {
        name: node.name.to_string(),
        args: node.args.bytes().to_string(),
        span: node.span,
        inside: node.children.as_deref().map(directives),
    };
    nodes.iter().map(directive).collect()
}
