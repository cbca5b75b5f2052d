//! LoadModule lines: determine which of the compiled-in modules are active.
//!
//! No `.so` file is opened. A module of Apache that is not implemented yet is active as well, with
//! a warning; its directives are checked line by line ([`server::missing`]).

use std::path::Path;

use conf::{Arg, BStr, Diagnostic, Span, suggest};
use server::missing::{self, Missing};
use server::module::ErasedModule;

use crate::startup;

/// Modules that are active even if there are LoadModule lines: Debian's static set, by file.
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

/// A module in `-M`'s list.
pub struct ActiveModule {
    /// The module.
    pub module: &'static dyn ErasedModule,
    /// Whether a LoadModule line names it.
    pub shared: bool,
}

/// Every module that LoadModule may name: those implemented, then those that are not yet.
pub fn known() -> Vec<&'static dyn ErasedModule> {
    modules::all().into_iter().chain(modules::missing::erased()).collect()
}

/// The modules that LoadModule lines activated.
pub struct Loader<'m> {
    all: &'m [&'static dyn ErasedModule],
    loaded: Vec<&'static str>,
    is_static: bool,
    /// Findings about LoadModule lines.
    pub notes: Vec<Diagnostic>,
}

impl<'m> Loader<'m> {
    /// Returns a loader without modules; `all` is [`known`].
    pub fn new(all: &'m [&'static dyn ErasedModule]) -> Loader<'m> {
        Loader { all, loaded: Vec::new(), is_static: false, notes: Vec::new() }
    }

    /// Whether there was no LoadModule line.
    pub fn is_unused(&self) -> bool {
        self.loaded.is_empty()
    }

    /// Activates every implemented module, except those that act without a directive.
    pub fn take_all(&mut self) {
        self.is_static = true;
    }

    fn note(&mut self, span: Span, code: &'static str, message: String) {
        self.notes.push(Diagnostic::warning(span, code, message));
    }

    fn is_active(&self, module: &dyn ErasedModule) -> bool {
        if MPMS.contains(&module.name()) {
            let named = self.loaded.iter().find(|name| MPMS.contains(name));
            return named.map_or(module.name() == MPMS[0], |name| *name == module.name());
        }
        let is_fixed = self.is_static && module.missing().is_none() && !module.acts_unasked();
        is_fixed || ALWAYS.contains(&module.file()) || self.loaded.contains(&module.name())
    }

    /// The active modules in Apache's order: the static ones, then the others in the order of
    /// loading.
    pub fn active(&self) -> Vec<ActiveModule> {
        let is_named = |name: &str| self.loaded.contains(&name);
        let fixed = self.all.iter().filter(|m| self.is_active(**m) && !is_named(m.name()));
        let fixed = fixed.map(|module| ActiveModule { module: *module, shared: false });
        let named = self.loaded.iter().filter_map(|name| {
            let module = self.all.iter().find(|module| module.name() == *name)?;
            Some(ActiveModule { module: *module, shared: true })
        });
        fixed.chain(named).collect()
    }

    /// Reports in Apache's words that the file has no such module, or that there is no such file.
    fn unknown(&self, name: &Arg, file: &Path) -> Diagnostic {
        let (shown, called) = (file.display(), &name.text);
        let stem = file.file_stem().unwrap_or_default();
        let is_of = |module: &&'static dyn ErasedModule| {
            Path::new(module.file()).file_stem().is_some_and(|known| known == stem)
        };
        let found = match self.all.iter().any(is_of) {
            true => name.error(format!(
                "Can't locate API module structure `{called}' in file {shown}: {shown}: undefined \
                 symbol: {called}"
            )),
            false => name
                .error(format!("Cannot load {shown} into server: Tamarack has no module {called}")),
        };
        let stem = |name: &'_ str| name.strip_suffix("_module").unwrap_or(name).to_owned();
        let stems: Vec<String> = self.all.iter().map(|module| stem(module.name())).collect();
        let near = suggest(&stem(&called.to_string()), stems.iter().map(String::as_str));
        let help = match near {
            // A short name is similar to too many.
            Some(near) if near.len() > SHORT => format!("did you mean {near}_module?"),
            _ if called.starts_with(b"php") => php(file),
            _ => FOREIGN.to_owned(),
        };
        found.with_help(help)
    }
}

/// Names of up to this many letters are not suggested.
const SHORT: usize = 4;

const FOREIGN: &str = "it is not one of Apache's own modules, and code from .so files is never \
    loaded: see docs/refused.md";
/// The lines that make PHP-FPM do what mod_php did. Debian names the socket by PHP's version, which
/// is in the name of its module; that of Fedora has none.
fn php(file: &Path) -> String {
    let folder = file.parent().unwrap_or(Path::new("modules")).display();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let version = stem.strip_prefix("libphp").filter(|version| version.contains('.'));
    let socket = match version {
        Some(version) => format!("/run/php/php{version}-fpm.sock"),
        None => "/run/php-fpm/www.sock".to_owned(),
    };
    format!(
        "code from .so files is never loaded: start PHP-FPM, and replace this line by\n    \
         LoadModule proxy_module {folder}/mod_proxy.so\n    \
         LoadModule proxy_fcgi_module {folder}/mod_proxy_fcgi.so\n    \
         <FilesMatch \"\\.ph(?:ar|p|tml)$\">\n        \
         SetHandler \"proxy:unix:{socket}|fcgi://localhost\"\n    \
         </FilesMatch>"
    )
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

    fn load_module(&mut self, name: &Arg, file: &Path) -> Result<(), Box<Diagnostic>> {
        let known = self.all.iter().find(|module| module.name().as_bytes() == *name.text);
        let Some(module) = known else { return Err(Box::new(self.unknown(name, file))) };
        let called = module.name();
        let is_second = |loaded: &&'static str| MPMS.contains(loaded) && *loaded != called;
        if MPMS.contains(&called) && self.loaded.iter().any(is_second) {
            let message = "Configuration error: More than one MPM loaded.";
            let code = "AH00534";
            self.notes.push(Diagnostic { code, ..Diagnostic::without_place(message) });
            return Ok(());
        }
        // The set of static modules depends on the build: a LoadModule line for one of them is
        // accepted, since some layouts load modules that are static elsewhere.
        if self.loaded.contains(&called) {
            let message = format!("module {called} is already loaded, skipping");
            self.note(name.span, "AH01574", message);
            return Ok(());
        }
        self.loaded.push(called);
        match module.missing() {
            Some(missing) if !missing.is_needless() => {
                self.note(name.span, missing::LOADED, not_here(missing));
            }
            _ => {
                let message = format!("loaded module {called} from {}", file.display());
                self.note(name.span, "AH01575", message);
            }
        }
        Ok(())
    }

    /// The file is never loaded, but as in Apache one that can't be loaded is an error.
    fn load_file(&mut self, file: &Path) -> Result<(), String> {
        match no_shared_object(file) {
            Some(why) => Err(format!("Cannot load {} into server: {why}", file.display())),
            None => Ok(()),
        }
    }
}

fn not_here(module: &Missing) -> String {
    let what = match module.directives().next() {
        Some(_) => "its directives are errors",
        None => "it has no effect",
    };
    format!("Tamarack does not have {} yet: {what}", module.of_manual())
}

/// The dynamic loader's message for a file that can't be a shared object; `None` if it could be.
fn no_shared_object(file: &Path) -> Option<String> {
    let shown = file.display();
    let opened = regular::open(file).and_then(|mut file| {
        let mut start = [0; 4];
        std::io::Read::read_exact(&mut file, &mut start)?;
        Ok(start)
    });
    match opened {
        Ok(start) if start == *b"\x7fELF" => None,
        Ok(_) => Some(format!("{shown}: invalid ELF header")),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Some(format!("{shown}: file too short"))
        }
        Err(error) => {
            let cause = startup::cause(&error);
            let words = cause.split_once(')').map_or(cause.as_str(), |(_, words)| words);
            Some(format!("{shown}: cannot open shared object file: {words}"))
        }
    }
}
