//! Builds a server from a tree of directives: each directive has a row, each row writes to its
//! module's configuration, virtual hosts inherit from the main server, and `post_config` hooks
//! check the result.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Arg, Defines, Diagnostic, Node, Severity, Sources, Span};
use wire::MethodRegistry;

use crate::api::directive::{ErasedRow, Fault, State, Target};
use crate::api::hooks::DefinedProviders;
use crate::api::missing;
use crate::api::module::{AnyConfig, Config, Module};
use crate::config::budget::Budget;
use crate::config::context::{Override, Places};
use crate::config::hint::{self, Hint};
use crate::config::host::{HostDraft, Server};
use crate::config::registry::{Registry, Slots};
use crate::config::variable_mentions;
use crate::log::sinks::Sinks;

/// The default of `DocumentRoot`, which is Debian's, like that of ServerRoot.
pub const DEFAULT_DOCUMENT_ROOT: &str = "/var/www/html";

/// A configuration that is being built.
pub struct Build {
    /// The active modules.
    pub registry: Arc<Registry>,
    /// The texts that spans refer to.
    pub sources: Sources,
    /// The names set by `Define`.
    pub defines: Defines,
    /// The macros defined at the end.
    pub macros: conf::Macros,
    /// The base of relative file names.
    pub server_root: PathBuf,
    /// The findings so far.
    pub diagnostics: Vec<Diagnostic>,
    /// The main server.
    pub main: HostDraft,
    /// The virtual hosts in order; [`Build::finish`] merges them with the main server before it
    /// runs `post_config`.
    pub hosts: Vec<HostDraft>,
    /// The log targets, which directives register here.
    pub sinks: Arc<Sinks>,
    /// Whether side effects are allowed, such as creating a certificate or asking for a passphrase:
    /// false for `-t`.
    pub for_real: bool,
    /// Whether to check that `DocumentRoot` exists: false for `-T`.
    pub check_document_root: bool,
    /// Whether a server is already running with an earlier configuration.
    pub is_restart: bool,
    /// `RegexDefaultOptions`
    pub regex_flags: pcre::Flags,
    /// Providers that the configuration defines.
    pub defined: DefinedProviders,
    /// `RegisterHttpMethod`
    pub methods: MethodRegistry,
    /// Handlers that no active module provides, with their lines.
    pub(crate) unprovided: Vec<(Span, Vec<u8>)>,
    /// Handlers, and media types that serve as such, which a directive passes to a program
    /// (`Action`), in lower case.
    pub passed_on: BTreeSet<Vec<u8>>,
    /// Whether some section has a handler that shows counters by virtual host.
    pub counts_hosts: bool,
    /// The limit on memory; once it is exceeded, no further directives are applied.
    pub budget: Option<Budget>,
    /// The names of the enclosing sections, the outermost first.
    pub around: Vec<&'static str>,
}

impl Build {
    /// Returns an empty build.
    pub fn new(registry: Arc<Registry>, tree: &conf::Tree, for_real: bool) -> Build {
        let main = HostDraft::new(&registry);
        Build {
            registry,
            sources: tree.sources.clone(),
            defines: tree.defines.clone(),
            macros: tree.macros.clone(),
            server_root: tree.server_root.clone(),
            diagnostics: Vec::new(),
            main,
            hosts: Vec::new(),
            sinks: Arc::new(Sinks::default()),
            for_real,
            check_document_root: true,
            is_restart: false,
            regex_flags: pcre::Flags::default(),
            defined: DefinedProviders::default(),
            methods: MethodRegistry::new(),
            unprovided: Vec::new(),
            passed_on: BTreeSet::new(),
            counts_hosts: false,
            budget: None,
            around: Vec::new(),
        }
    }

    /// Compiles a regular expression of the configuration under `RegexDefaultOptions`.
    ///
    /// # Errors
    /// Apache's message, which omits the reason; the help line has it.
    pub fn regex(&self, pattern: &[u8], ignoring_case: bool) -> Result<pcre::Regex, Fault> {
        let mut flags = self.regex_flags;
        flags.caseless |= ignoring_case;
        compiled(pattern, flags)
    }

    /// Compiles a pattern with `RegexDefaultOptions`, but so that a dot never matches a newline.
    ///
    /// # Errors
    /// As for [`Build::regex`].
    pub fn line_regex(&self, pattern: &[u8], ignoring_case: bool) -> Result<pcre::Regex, Fault> {
        let mut flags = self.regex_flags;
        flags.caseless |= ignoring_case;
        flags.dotall = false;
        compiled(pattern, flags)
    }

    /// Applies the directives, merges the hosts, runs `post_config`; returns `None` if there was an
    /// error. The diagnostics include errors and warnings.
    pub fn finish(mut self, nodes: &[Node]) -> (Option<Server>, Vec<Diagnostic>, Sources) {
        self.apply_main(nodes);
        self.warn_of_unprovided();
        self.default_error_log();
        self.default_document_root();
        let servers = self.hosts.iter_mut().map(|host| &mut host.server);
        self.registry.merge_hosts(&self.main.server, servers);
        for host in &mut self.hosts {
            host.dir = self.registry.merge_dir(&self.main.dir, &host.dir);
        }
        if !self.has_errors() {
            let registry = self.registry.clone();
            for hook in registry.hooks.directives_read() {
                hook(&mut self, nodes);
            }
            for hook in registry.hooks.post_config() {
                hook(&mut self);
            }
        }
        let failed = self.has_errors();
        let server = (!failed).then(|| Server::assemble(&mut self));
        (server, self.diagnostics, self.sources)
    }

    fn apply_main(&mut self, nodes: &[Node]) {
        let mut main = self.main.clone();
        let mut target = Target {
            server: &mut main.server,
            dir: &mut main.dir,
            place: Places::SERVER,
            container: None,
            path: None,
            limited: None,
            allowed: Override::ALL,
            allowed_options: None,
            allowed_names: None,
            nonfatal: Override::NONE,
            nonfatal_unknown: false,
            span: Span::default(),
            directive: "",
            build: self,
        };
        target.apply(nodes);
        self.main = main;
    }

    /// The server configuration of a module, for `post_config`.
    pub fn server_config<'s, M: Module>(&self, slots: &'s Slots) -> Option<&'s M::Server> {
        slots.get::<M::Server>(self.registry.slot_of::<M>()?)
    }

    /// Edits a module's configuration in the main server and in each host. `edit` depends on that
    /// configuration alone, so hosts that share one share the result.
    pub fn edit_servers<T: Config>(&mut self, slot: usize, mut edit: impl FnMut(&mut T)) {
        // The old values live until the end, so that no two have the same address.
        let mut edited: HashMap<*const (), [Arc<AnyConfig>; 2]> = HashMap::new();
        let hosts = self.hosts.iter_mut().map(|host| &mut host.server);
        for server in std::iter::once(&mut self.main.server).chain(hosts) {
            let old = server.any(slot).clone();
            let Some(value) = old.downcast_ref::<T>() else { continue };
            let [_, new] = edited.entry(Arc::as_ptr(&old).cast()).or_insert_with(|| {
                let mut value = value.clone();
                edit(&mut value);
                [old.clone(), Arc::new(value)]
            });
            if let Some(place) = server.any_mut(slot) {
                *place = new.clone();
            }
        }
    }

    /// The provider of this group and name: the configuration's, or a module's.
    pub fn provider<T: Any + Send + Sync>(&self, group: &str, name: &str) -> Option<Arc<T>> {
        let defined = self.defined.find(group, name);
        defined.or_else(|| self.registry.hooks.provider(group, name))
    }

    /// Whether an error was found.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|found| found.severity == Severity::Error)
    }

    /// Adds an error.
    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(span, message));
    }

    /// Adds an error without a location.
    pub fn error_without_place(&mut self, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic { code: "", ..Diagnostic::without_place(message) });
    }

    /// Adds a warning.
    pub fn warn(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(span, "", message));
    }

    /// Adds a warning with a number, Apache's or our own, which is shown with its line.
    pub fn remark(&mut self, span: Span, code: &'static str, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(span, code, message));
    }
}

impl Target<'_> {
    /// Applies directives one by one; findings go to the build's diagnostics.
    pub fn apply(&mut self, nodes: &[Node]) {
        for node in nodes {
            if self.build.is_spent(node.span) {
                return;
            }
            let before = (self.span, self.directive);
            if let Err(found) = self.apply_one(node) {
                self.build.diagnostics.push(*found);
            }
            (self.span, self.directive) = before;
        }
    }

    fn apply_one(&mut self, node: &Node) -> Result<(), Box<Diagnostic>> {
        let registry = self.build.registry.clone();
        let name = node.name.to_string();
        let Some(row) = registry.row(&name).filter(|row| row.is_section == node.is_section())
        else {
            if self.nonfatal_unknown {
                let shown = if node.is_section() { "<" } else { "" };
                let why = format!(
                    "Unknown directive {shown}{name} perhaps misspelled or defined by a module \
                     not included in the server configuration"
                );
                self.build.remark(node.span, "AH02296", why);
                return Ok(());
            }
            return Err(Box::new(self.unknown(node, &name)));
        };
        self.span = node.span;
        self.directive = row.name;
        let in_htaccess = self.place == Places::HTACCESS;
        if !self.may_stand(row) || in_htaccess && !self.may_override(row) {
            if in_htaccess && self.nonfatal != Override::NONE {
                let why = format!("{} in .htaccess forbidden by AllowOverride", shown(row));
                self.build.remark(node.span, "AH02295", why);
                row.skip(self);
                return Ok(());
            }
            return Err(Box::new(self.wrong_place(node, row)));
        }
        match row.state {
            // The setter has no objection: the requested behaviour is the actual one.
            State::Refused(reason) => {
                return row.set(self, node).map_err(|_| {
                    let refused = node.error(format!("{} is refused: {reason}", row.name));
                    Box::new(refused.with_help("see docs/refused.md"))
                });
            }
            State::NotYet => {
                let message = format!("{} has no effect yet", row.name);
                self.build.remark(node.span, missing::INERT, message);
            }
            _ => {}
        }
        if row.is_section {
            self.build.around.push(row.name);
        }
        if variable_mentions::is_in(node.args.bytes()) {
            registry.names_variables.set();
        }
        let set = row.set(self, node);
        if row.is_section {
            self.build.around.pop();
        }
        set.map_err(|fault| Box::new(fault.diagnostic(node, row)))
    }

    /// Whether the directive is allowed in this context. Apache does not distinguish the main
    /// server from virtual hosts, and in both also accepts directives that `.htaccess` allows under
    /// FileInfo, Indexes or Options, whatever the manual says (`process_command_config`).
    fn may_stand(&self, row: &ErasedRow) -> bool {
        let of_hosts = self.place == Places::SERVER && row.places.contains(Places::VHOST);
        let in_proxy = matches!(self.container, Some("Proxy" | "ProxyMatch"));
        let of_proxy = in_proxy && row.places.contains(Places::PROXY);
        if of_hosts || of_proxy || row.places.contains(self.place) {
            return true;
        }
        let classes = Override::FILE_INFO.or(Override::INDEXES).or(Override::OPTIONS);
        let for_all = row.allow.intersects(classes) || row.places.contains(Places::SERVER);
        let outside = Places::HOST.contains(self.place);
        outside && row.places.contains(Places::HTACCESS) && for_all
    }

    fn unknown(&self, node: &Node, name: &str) -> Diagnostic {
        let shown = if node.is_section() { format!("<{name}") } else { name.to_owned() };
        let found = node.error(format!(
            "Invalid command '{shown}', perhaps misspelled or defined by a module not included in \
             the server configuration"
        ));
        // Looking up a name among all known ones takes time.
        if self.build.diagnostics.len() >= hint::HINTS_MAX {
            return found;
        }
        let Some(hint) = Hint::new(&self.build.registry, name) else { return found };
        if let (true, Some(owner)) = (hint.is_it, &hint.missing) {
            let end = if node.is_section() { ">" } else { "" };
            let belongs = missing::belongs(&format!("{shown}{end}"), owner);
            return node.error(belongs).with_help(missing::HELP);
        }
        found.with_help(hint.text)
    }

    fn wrong_place(&self, node: &Node, row: &ErasedRow) -> Diagnostic {
        let shown = shown(row);
        let message = match self.container {
            // Such a directive is the whole server's.
            Some(container @ "VirtualHost") if row.places.contains(Places::SERVER) => {
                let end = if row.is_section { ">" } else { "" };
                format!("{shown}{end} cannot occur within <{container}> section")
            }
            Some(container) if self.place != Places::HTACCESS => {
                format!("{shown} not allowed in <{container}> context")
            }
            _ => format!("{shown} not allowed here"),
        };
        let found = node.error(message);
        // The context is right, so AllowOverride refuses the directive.
        if self.may_stand(row) {
            return found;
        }
        found.with_help(format!("it is allowed in: {}", row.places))
    }

    /// Whether AllowOverride and AllowOverrideList allow the directive in `.htaccess`.
    fn may_override(&self, row: &ErasedRow) -> bool {
        let is_listed = |names: &Arc<Vec<String>>| {
            let shown = shown(row);
            names.iter().any(|name| name.eq_ignore_ascii_case(&shown))
        };
        self.allowed_names.as_ref().is_some_and(is_listed)
            || self.allowed.intersects(row.allow)
            || row.allow.is_none()
    }
}

fn compiled(pattern: &[u8], flags: pcre::Flags) -> Result<pcre::Regex, Fault> {
    pcre::Regex::new(pattern, flags)
        .map_err(|why| Fault::new("Regex could not be compiled").help(why.to_string()))
}

/// A directive's name in AllowOverrideList and messages.
fn shown(row: &ErasedRow) -> String {
    if row.is_section { format!("<{}", row.name) } else { row.name.to_owned() }
}

impl Fault {
    fn diagnostic(self, node: &Node, row: &ErasedRow) -> Diagnostic {
        let mut found = node.error(self.message);
        found.span = self.span.or(found.span);
        let help = self.help.or_else(|| {
            (!row.syntax.is_empty()).then(|| format!("usage: {} {}", row.name, row.syntax))
        });
        match help {
            Some(help) => found.with_help(help),
            None => found,
        }
    }
}

impl From<Diagnostic> for Fault {
    fn from(found: Diagnostic) -> Fault {
        Fault { message: found.message, span: found.span, help: found.help }
    }
}

/// A directive's arguments as one text.
pub(crate) fn raw(node: &Node) -> Arg {
    Arg { text: node.args.bytes().to_owned(), span: node.args.whole_span() }
}
