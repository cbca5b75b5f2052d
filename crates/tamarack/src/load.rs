//! Reading a configuration: files → tree → registry of the active modules → server.

use std::path::Path;
use std::sync::Arc;

use conf::{BStr, BString, Diagnostic, Options, Severity, Sources, Span, Tree};
use server::build::Build;
use server::host::{Host, Server};
use server::module::ErasedModule;
use server::sink::Target;
use server::slots::Registry;

use crate::cli::Arguments;
use crate::startup;

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

/// What reading a configuration may do beside reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Whether a server is running that this is a new configuration of: Apache says less then.
    pub is_restart: bool,
    /// Whether anything may be done that has effects: make a certificate, ask a passphrase.
    pub for_real: bool,
    /// Whether document roots that are not there are noticed.
    pub check_document_root: bool,
}

/// Reads the configuration that the command line names; `name` is the program's, for messages.
/// Nothing outside is changed.
pub fn load(name: &str, arguments: &Arguments) -> Loaded {
    load_as(name, arguments, How::default())
}

/// The same, to serve it.
pub fn load_to_serve(name: &str, arguments: &Arguments, is_restart: bool) -> Loaded {
    load_as(name, arguments, How { for_real: true, is_restart, ..How::default() })
}

fn load_as(name: &str, arguments: &Arguments, how: How) -> Loaded {
    let options = Options {
        before: strings(&arguments.before),
        after: strings(&arguments.after),
        defines: strings(&arguments.defines),
        server_root: arguments.server_root(),
        ..Options::default()
    };
    let how = How { check_document_root: !arguments.skip_document_root, ..how };
    read(name, &arguments.config_file(), &options, how)
}

/// Reads the configuration at `file`.
pub fn read(name: &str, file: &Path, options: &Options, how: How) -> Loaded {
    let all = modules::all();
    // Whether there is a LoadModule line at all decides what is active, and IfModule asks before
    // the first one is reached: so the files are read twice if there is none.
    let mut host = Loader::new(&all);
    let (mut tree, mut diagnostics) = conf::read_config(file, options, &mut host);
    if host.loaded.is_empty() {
        host.is_static = true;
        (tree, diagnostics) = conf::read_config(file, options, &mut host);
    }
    diagnostics.splice(0..0, unreadable(file));
    let modules = host.active();
    let registry = Arc::new(Registry::new(modules.iter().map(|active| active.module).collect()));
    let mut build = Build::new(registry, &tree, how.for_real);
    build.check_document_root = how.check_document_root;
    build.is_restart = how.is_restart;
    let (server, found, sources) = build.finish(&tree.nodes);
    diagnostics.splice(0..0, host.notes);
    diagnostics.extend(found);
    if let Some(server) = &server {
        diagnostics.extend(without_name(name, server));
        diagnostics.extend(unreachable_logs(server));
    }
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Loaded { server: server.filter(|_| !failed).map(Arc::new), tree, sources, diagnostics, modules }
}

fn strings(words: &[Vec<u8>]) -> Vec<BString> {
    words.iter().map(|word| BString::from(word.as_slice())).collect()
}

/// A configuration file that is a folder or a device other than /dev/null (`ap_pcfg_openfile`);
/// one that is not there is found when it is read.
fn unreadable(file: &Path) -> Vec<Diagnostic> {
    let is_fine = |found: &std::fs::Metadata| found.is_file() || file == Path::new("/dev/null");
    if !std::fs::metadata(file).is_ok_and(|found| !is_fine(&found)) {
        return Vec::new();
    }
    let shown = file.display();
    let denied = format!("Access to file {shown} denied by server: not a regular file");
    let failed = format!("Could not open configuration file {shown}: Bad file descriptor");
    vec![
        Diagnostic::warning(Span::default(), "AH00554", denied),
        Diagnostic { code: "", ..Diagnostic::without_place(failed) },
    ]
}

/// A main server that nobody named, on a machine that has no full name either
/// (`ap_get_local_host`).
fn without_name(program: &str, server: &Server) -> Option<Diagnostic> {
    let is_named = server.main().core.server_name.0.is_some();
    let has_full_name = rustix::system::uname().nodename().to_bytes().contains(&b'.');
    if is_named || has_full_name {
        return None;
    }
    let name = String::from_utf8_lossy(server.main().name()).into_owned();
    Some(Diagnostic::warning(
        Span::default(),
        "AH00558",
        format!(
            "{program}: Could not reliably determine the server's fully qualified domain name, \
             using {name}. Set the 'ServerName' directive globally to suppress this message"
        ),
    ))
}

/// Error logs in folders that are not there (`core_check_config`).
fn unreachable_logs(server: &Server) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = server
        .hosts
        .iter()
        .filter_map(|host| {
            let id = host.core.error_log.get()?;
            let Target::File(file) = server.sinks.target(*id)? else { return None };
            let folder = file.parent()?;
            let error = match std::fs::metadata(folder) {
                Ok(folder) if folder.is_dir() => return None,
                Ok(_) => {
                    std::io::Error::from_raw_os_error(rustix::io::Errno::NOTDIR.raw_os_error())
                }
                Err(error) => error,
            };
            Some(no_log_folder(host, folder, &error))
        })
        .collect();
    found.dedup();
    if !found.is_empty() {
        let code = "AH00014";
        found.push(Diagnostic { code, ..Diagnostic::without_place("Configuration check failed") });
    }
    found
}

fn no_log_folder(host: &Host, folder: &Path, error: &std::io::Error) -> Diagnostic {
    let (cause, folder) = (startup::cause(error), folder.display());
    let message = match &host.defined_at {
        None => format!("{cause}: AH02291: Cannot access directory '{folder}/' for main error log"),
        Some((file, line)) => format!(
            "{cause}: AH02292: Cannot access directory '{folder}/' for error log of vhost defined \
             at {file}:{line}"
        ),
    };
    Diagnostic { code: "", ..Diagnostic::without_place(message) }
}

struct Loader<'m> {
    all: &'m [&'static dyn ErasedModule],
    loaded: Vec<&'static str>,
    is_static: bool,
    /// What is said of LoadModule lines.
    notes: Vec<Diagnostic>,
}

impl<'m> Loader<'m> {
    fn new(all: &'m [&'static dyn ErasedModule]) -> Loader<'m> {
        Loader { all, loaded: Vec::new(), is_static: false, notes: Vec::new() }
    }

    fn note(&mut self, code: &'static str, message: String) {
        self.notes.push(Diagnostic::warning(Span::default(), code, message));
    }

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
        let is_second =
            |loaded: &&'static str| MPMS.contains(loaded) && loaded.as_bytes() != &**name;
        if MPMS.iter().any(|mpm| mpm.as_bytes() == &**name) && self.loaded.iter().any(is_second) {
            let message = "Configuration error: More than one MPM loaded.";
            let code = "AH00534";
            self.notes.push(Diagnostic { code, ..Diagnostic::without_place(message) });
            return Ok(());
        }
        let known = self.all.iter().find(|module| module.name().as_bytes() == &**name);
        match known {
            Some(module) if ALWAYS.contains(&module.file()) => {
                Err(format!("module {name} is built-in and can't be loaded"))
            }
            Some(module) if self.loaded.contains(&module.name()) => {
                self.note("AH01574", format!("module {name} is already loaded, skipping"));
                Ok(())
            }
            Some(module) => {
                self.loaded.push(module.name());
                self.note("AH01575", format!("loaded module {name} from {}", file.display()));
                Ok(())
            }
            None => Err(self.unknown(name, file)),
        }
    }

    /// The file is not loaded, but one that could not be is an error, as in Apache.
    fn load_file(&mut self, file: &Path) -> Result<(), String> {
        match no_shared_object(file) {
            Some(why) => Err(format!("Cannot load {} into server: {why}", file.display())),
            None => Ok(()),
        }
    }
}

/// The system loader's words for a file that can't be one of its objects; `None` if it could be.
fn no_shared_object(file: &Path) -> Option<String> {
    let shown = file.display();
    let opened = std::fs::File::open(file).and_then(|mut file| {
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

impl Loader<'_> {
    /// In Apache's words: either the file has no such module, or there is no such file for us.
    fn unknown(&self, name: &BStr, file: &Path) -> String {
        let (stem, shown) = (file.file_stem().unwrap_or_default(), file.display());
        let is_of = |module: &&'static dyn ErasedModule| {
            Path::new(module.file()).file_stem().is_some_and(|known| known == stem)
        };
        if self.all.iter().any(is_of) {
            return format!(
                "Can't locate API module structure `{name}' in file {shown}: {shown}: undefined \
                 symbol: {name}"
            );
        }
        format!("Cannot load {shown} into server: Tamarack has no module {name}")
    }
}
