//! Reading a configuration: files → tree → registry of the active modules → server.

use std::path::Path;
use std::sync::Arc;

use conf::{BStr, BString, Diagnostic, Options, Severity, Sources, Tree};
use server::build::Build;
use server::host::Server;
use server::module::ErasedModule;
use server::slots::Registry;

use crate::cli::Arguments;

/// Active with any LoadModule line, too: Debian's static set, by file.
const ALWAYS: [&str; 8] = [
    "core.c",
    "mod_so.c",
    "http_core.c",
    "mod_watchdog.c",
    "mod_log_config.c",
    "mod_logio.c",
    "mod_version.c",
    "mod_unixd.c",
];

/// The MPMs; without a LoadModule line for one, event is active.
const MPMS: [&str; 4] =
    ["mpm_event_module", "mpm_worker_module", "mpm_prefork_module", "mpm_loop_module"];

/// A configuration that was read, and what was found on the way.
pub struct Loaded {
    /// The server; `None` if there were errors.
    pub server: Option<Arc<Server>>,
    /// The directives as read.
    pub tree: Tree,
    /// Every text that was read.
    pub sources: Sources,
    /// What was found wrong, in order.
    pub diagnostics: Vec<Diagnostic>,
    /// The active modules; those named by LoadModule are `shared`.
    pub modules: Vec<ActiveModule>,
}

/// A module in `-M`'s list.
pub struct ActiveModule {
    /// The module.
    pub module: &'static dyn ErasedModule,
    /// Named by a LoadModule line.
    pub shared: bool,
}

/// Reads the configuration that the command line names. Nothing outside is changed unless
/// `for_real`.
pub fn load(arguments: &Arguments, for_real: bool) -> Loaded {
    let options = Options {
        before: strings(&arguments.before),
        after: strings(&arguments.after),
        defines: strings(&arguments.defines),
        server_root: arguments.server_root(),
        ..Options::default()
    };
    read(&arguments.config_file(), &options, for_real)
}

/// Reads the configuration at `file`.
pub fn read(file: &Path, options: &Options, for_real: bool) -> Loaded {
    let all = modules::all();
    // Whether there is a LoadModule line at all decides what is active, and IfModule asks before
    // the first one is reached: so the files are read twice if there is none.
    let mut host = Loader { all: &all, loaded: Vec::new(), is_static: false };
    let (mut tree, mut diagnostics) = conf::read_config(file, options, &mut host);
    if host.loaded.is_empty() {
        host.is_static = true;
        (tree, diagnostics) = conf::read_config(file, options, &mut host);
    }
    let modules = host.active();
    let registry = Arc::new(Registry::new(modules.iter().map(|active| active.module).collect()));
    let build = Build::new(registry, &tree, for_real);
    let (server, found, sources) = build.finish(&tree.nodes);
    diagnostics.extend(found);
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Loaded { server: server.filter(|_| !failed).map(Arc::new), tree, sources, diagnostics, modules }
}

/// What is read from files that are not there: a text in memory (`tamarack serve`).
pub fn strings(words: &[Vec<u8>]) -> Vec<BString> {
    words.iter().map(|word| BString::from(word.as_slice())).collect()
}

struct Loader<'m> {
    all: &'m [&'static dyn ErasedModule],
    loaded: Vec<&'static str>,
    is_static: bool,
}

impl Loader<'_> {
    fn is_active(&self, module: &dyn ErasedModule) -> bool {
        if MPMS.contains(&module.name()) {
            let named = self.loaded.iter().find(|name| MPMS.contains(name));
            return named.map_or(module.name() == MPMS[0], |name| *name == module.name());
        }
        self.is_static || ALWAYS.contains(&module.file()) || self.loaded.contains(&module.name())
    }

    /// The active modules in Apache's order: the static ones, then those loaded, as loaded.
    fn active(&self) -> Vec<ActiveModule> {
        let is_named = |name: &str| self.loaded.contains(&name);
        let fixed = self.all.iter().filter(|m| self.is_active(**m) && !is_named(m.name()));
        let fixed = fixed.map(|module| ActiveModule { module: *module, shared: false });
        let named = self.loaded.iter().filter_map(|name| {
            let module = self.all.iter().find(|module| module.name() == *name)?;
            let shared = !ALWAYS.contains(&module.file());
            Some(ActiveModule { module: *module, shared })
        });
        fixed.chain(named).collect()
    }
}

impl conf::Host for Loader<'_> {
    fn module_active(&self, name: &BStr) -> bool {
        let is = |module: &&&'static dyn ErasedModule| {
            module.name().as_bytes() == &**name || module.file().as_bytes() == &**name
        };
        self.all.iter().filter(is).any(|module| self.is_active(*module))
    }

    fn directive_known(&self, name: &BStr) -> bool {
        let active = self.all.iter().filter(|module| self.is_active(**module));
        let wanted = name.strip_prefix(b"<").unwrap_or(name);
        active
            .flat_map(|module| module.rows(0))
            .any(|row| row.name.as_bytes().eq_ignore_ascii_case(wanted))
    }

    fn load_module(&mut self, name: &BStr, file: &Path) -> Result<(), String> {
        let known = self.all.iter().find(|module| module.name().as_bytes() == &**name);
        match known {
            Some(module) if self.loaded.contains(&module.name()) => Ok(()),
            Some(module) => {
                self.loaded.push(module.name());
                Ok(())
            }
            None => Err(format!(
                "Cannot load {} into server: Tamarack has no module {name}",
                file.display()
            )),
        }
    }
}
