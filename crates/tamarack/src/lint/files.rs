//! The `.htaccess` files below the document roots.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use server::host::Server;
use server::registry::Registry;

use super::rewriting::{self, Scope};
use super::{Finding, engine, order, patterns, php, redirects, sections};
use crate::explain::places::{Directive, Places};

/// The maximum number of folders that are searched.
const FOLDERS_LIMIT: usize = 20_000;

/// The maximum size of a file that is read, in bytes.
const BYTES_LIMIT: u64 = 1024 * 1024;

/// Checks them, and adds their texts to `places`.
pub fn check(server: &Server, places: &mut Places, found: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    let (mut with_rules, mut with_engine): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
    let top = places.top.clone();
    let hosts = redirects::hosts(&top);
    let is_on_in_folders = engine::any_in_folders(&top);
    for file in all(server) {
        if !seen.insert(file.clone()) {
            continue;
        }
        let Ok(text) = regular::read(&file, BYTES_LIMIT) else { continue };
        let mut host = Questions { registry: &server.registry, first: places.next_text() };
        let (defines, macros) = (&server.defines, &server.macros);
        let (tree, _) =
            conf::read_htaccess(&text, &file, &mut host, defines, macros, &server.server_root);
        php::check(&tree.sources, found);
        let directives = places.add(tree);
        of_folder(&directives, found);
        let folder = file.parent().unwrap_or(&file);
        let is_on = is_on_in_folders || with_engine.iter().any(|outer| folder.starts_with(outer));
        engine::of_file(&directives, is_on, found);
        if engine::has_switch(&directives) {
            with_engine.push(folder.to_path_buf());
        }
        redirects::folder(folder, &directives, &hosts, found);
        dropped(&file, &directives, &mut with_rules, found);
    }
}

/// Checks the directives of an `.htaccess` on their own.
pub fn of_folder(directives: &[Directive], found: &mut Vec<Finding>) {
    sections::check(directives, found);
    patterns::check(directives, found);
    order::check(directives, found);
    rewriting::check(directives, Scope::Folder, found);
}

/// Finds rules of a parent folder that this file's rules replace.
fn dropped(
    file: &Path,
    directives: &[Directive],
    with_rules: &mut Vec<PathBuf>,
    found: &mut Vec<Finding>,
) {
    let is = |one: &&Directive, name: &str| one.name.eq_ignore_ascii_case(name);
    let folder = file.parent().unwrap_or(file).to_path_buf();
    let above = with_rules.iter().find(|other| folder.starts_with(other) && **other != folder);
    let inherits = |one: &Directive| one.args.to_ascii_lowercase().contains("inherit");
    let inherits = directives.iter().filter(|one| is(one, "RewriteOptions")).any(inherits);
    let engine = directives.iter().find(|one| is(one, "RewriteEngine"));
    if let (Some(above), Some(engine), false) = (above, engine, inherits) {
        found.push(Finding::hint(
            engine.span,
            format!("the rules of {}/.htaccess do not apply here", above.display()),
            "add RewriteOptions Inherit if they should",
        ));
    }
    if directives.iter().any(|one| is(&one, "RewriteRule")) {
        with_rules.push(folder);
    }
}

/// The files, those of outer folders first.
pub fn all(server: &Server) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut budget = FOLDERS_LIMIT;
    let mut roots = HashSet::new();
    for host in &server.hosts {
        let Some(root) = host.core.document_root.get() else { continue };
        let root = PathBuf::from(root.to_os_str_lossy().into_owned());
        if roots.insert(root.clone()) {
            let names = host.core.access_file_names();
            let names: Vec<String> = names.map(|name| name.to_str_lossy().into_owned()).collect();
            collect(&root, &names, &mut budget, &mut files);
        }
    }
    files
}

fn collect(root: &Path, names: &[String], budget: &mut usize, files: &mut Vec<PathBuf>) {
    let mut waiting = std::collections::VecDeque::from([root.to_path_buf()]);
    while let Some(folder) = waiting.pop_front() {
        if *budget == 0 {
            return;
        }
        *budget -= 1;
        let file = names.iter().map(|name| folder.join(name)).find(|file| file.is_file());
        files.extend(file);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let mut inside: Vec<PathBuf> =
            entries.flatten().filter(is_folder).map(|entry| entry.path()).collect();
        inside.sort();
        waiting.extend(inside);
    }
}

/// Answers the reader's questions about an `.htaccess`.
struct Questions<'r> {
    registry: &'r Registry,
    first: u32,
}

impl conf::Host for Questions<'_> {
    fn module_active(&self, name: &conf::BStr) -> bool {
        self.registry.is_active(&name.to_str_lossy())
    }

    fn directive_known(&self, name: &conf::BStr) -> bool {
        let name = name.strip_prefix(b"<").unwrap_or(name);
        self.registry.row(&name.to_str_lossy()).is_some()
    }

    fn load_module(&mut self, name: &conf::Arg, _: &Path) -> Result<(), Box<conf::Diagnostic>> {
        Err(Box::new(name.error("LoadModule not allowed here")))
    }

    fn first_file(&self) -> u32 {
        self.first
    }
}
