//! Reads a configuration: files → tree → registry of active modules → server.

use std::path::Path;
use std::sync::Arc;

use conf::{BString, Diagnostic, Options, Severity, Sources, Span, Tree};
use server::build::Build;
use server::host::Server;
use server::registry::Registry;

use crate::cli::Arguments;
use crate::loader::{self, ActiveModule, Loader};
use crate::logs;

/// A configuration and the findings from reading it.
pub struct Loaded {
    /// The server; `None` if there were errors.
    pub server: Option<Arc<Server>>,
    /// The directives as read.
    pub tree: Tree,
    /// All texts that were read.
    pub sources: Sources,
    /// The findings in order.
    pub diagnostics: Vec<Diagnostic>,
    /// The active modules; those named by LoadModule are `shared`.
    pub modules: Vec<ActiveModule>,
}

/// Side effects that are allowed while reading a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Whether a server is already running with an earlier configuration: Apache prints less then.
    pub is_restart: bool,
    /// Whether to create certificates and ask for passphrases.
    pub for_real: bool,
    /// Whether to warn about missing document roots.
    pub check_document_root: bool,
}

/// Reads the configuration that the command line names, without side effects; `name` is the
/// program's, for messages.
pub fn load(name: &str, arguments: &Arguments) -> Loaded {
    load_as(name, arguments, How::default())
}

/// Reads the configuration to serve it.
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
    let all = loader::known();
    // The presence of any LoadModule line determines which modules are active, and IfModule may ask
    // before the first one: without any, the files are read again.
    let mut host = Loader::new(&all);
    let (mut tree, mut diagnostics) = conf::read_config(file, options, &mut host);
    if host.is_unused() {
        host.take_all();
        (tree, diagnostics) = conf::read_config(file, options, &mut host);
    }
    diagnostics.splice(0..0, unreadable(file));
    let modules = host.active();
    let active = modules.iter().map(|active| active.module).collect();
    let registry = Arc::new(Registry::new(active).knowing(all.clone()));
    let mut build = Build::new(registry, &tree, how.for_real);
    build.check_document_root = how.check_document_root;
    build.is_restart = how.is_restart;
    let (server, found, sources) = build.finish(&tree.nodes);
    diagnostics.splice(0..0, host.notes);
    diagnostics.extend(found);
    if let Some(server) = &server {
        diagnostics.extend(without_name(name, server));
        diagnostics.extend(logs::unreachable(server, &sources));
    }
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Loaded { server: server.filter(|_| !failed).map(Arc::new), tree, sources, diagnostics, modules }
}

fn strings(words: &[Vec<u8>]) -> Vec<BString> {
    words.iter().map(|word| BString::from(word.as_slice())).collect()
}

/// Finds a configuration file that is a folder or a device other than /dev/null
/// (`ap_pcfg_openfile`). A missing file is found when it is read.
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

/// Warns if the main server has no ServerName, and the machine no full name (`ap_get_local_host`).
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
