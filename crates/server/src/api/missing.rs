//! Modules of Apache that are not implemented yet: known by name, with their directives.
//!
//! `LoadModule` activates one, so that `<IfModule>` has the same outcome as in Apache. Each of its
//! directives is an error that names the module, except those whose absence does not matter. Its
//! filters withhold the responses that they would have changed.

use std::any::TypeId;
use std::sync::Arc;

use conf::Node;
use messages::Message;

use crate::api::directive::{ErasedRow, Fault, Set, Target};
use crate::api::filter::{FilterDef, OutputFilter, Stage};
use crate::api::hooks::HookTable;
use crate::api::module::{AnyConfig, ErasedModule};
use crate::log::Level;
use crate::request::Request;
use crate::request::body::Body;

/// A module of Apache that is not implemented yet.
#[derive(Clone, Copy)]
pub struct Missing {
    name: &'static str,
    file: &'static str,
    /// Directives, separated by blanks; a section begins with `<`.
    directives: &'static str,
    /// Directives that only configure storage, or a missing feature.
    inert: &'static str,
    /// Pairs of a directive and the word that requests what is done anyway.
    satisfied: &'static [(&'static str, &'static str)],
    /// The names of its handlers in `SetHandler`.
    handlers: &'static str,
    /// The names of its providers in `Require` and `AuthBasicProvider`.
    providers: &'static str,
    filters: &'static [FilterDef],
    /// Whether its function is available without it.
    is_needless: bool,
}

/// A missing module by its base name: `missing!("session", "Session SessionEnv")`.
#[macro_export]
macro_rules! missing {
    ($stem:literal, $directives:expr) => {
        $crate::api::missing::Missing::new(
            concat!($stem, "_module"),
            concat!("mod_", $stem, ".c"),
            $directives,
        )
    };
}
pub use crate::missing;

impl Missing {
    /// Returns a module by its name in `LoadModule`, its file and its directives.
    pub const fn new(name: &'static str, file: &'static str, directives: &'static str) -> Missing {
        Missing {
            name,
            file,
            directives,
            inert: "",
            satisfied: &[],
            handlers: "",
            providers: "",
            filters: &[],
            is_needless: false,
        }
    }

    /// Sets a file that does not follow from the name.
    #[must_use]
    pub const fn in_file(mut self, file: &'static str) -> Missing {
        self.file = file;
        self
    }

    /// Adds directives that are read with a warning and without effect: they name storage or
    /// configure a missing feature, so nothing is weaker without them.
    #[must_use]
    pub const fn inert(mut self, directives: &'static str) -> Missing {
        self.inert = directives;
        self
    }

    /// Adds directives that are accepted silently if their first word is this one, which requests
    /// what is done anyway.
    #[must_use]
    pub const fn satisfied(mut self, pairs: &'static [(&'static str, &'static str)]) -> Missing {
        self.satisfied = pairs;
        self
    }

    /// Adds the names of its handlers.
    #[must_use]
    pub const fn handlers(mut self, names: &'static str) -> Missing {
        self.handlers = names;
        self
    }

    /// Adds the names of its providers of authentication and authorisation.
    #[must_use]
    pub const fn providers(mut self, names: &'static str) -> Missing {
        self.providers = names;
        self
    }

    /// Adds filters.
    #[must_use]
    pub const fn filters(mut self, filters: &'static [FilterDef]) -> Missing {
        self.filters = filters;
        self
    }

    /// Marks the module as needless: its function is available without it, and loading it causes no
    /// warning.
    #[must_use]
    pub const fn needless(mut self) -> Missing {
        self.is_needless = true;
        self
    }

    /// Whether loading it causes no warning.
    pub const fn is_needless(&self) -> bool {
        self.is_needless
    }

    /// Its name in Apache's manual.
    pub fn of_manual(&self) -> String {
        of_manual(self.name)
    }

    /// Its directives that are read without effect.
    pub fn inert_directives(&self) -> impl Iterator<Item = &'static str> {
        self.inert.split_whitespace()
    }

    /// Its directives that a word satisfies.
    pub fn satisfied_directives(&self) -> impl Iterator<Item = &'static str> {
        self.satisfied.iter().map(|(name, _)| *name)
    }

    /// Whether its directive of this name is read without effect.
    pub fn is_inert(&self, directive: &str) -> bool {
        has_word(self.inert, directive)
    }

    /// Its directives; a section begins with `<`.
    pub fn directives(&self) -> impl Iterator<Item = &'static str> {
        self.directives.split_whitespace()
    }

    /// Whether it has a handler of this name.
    pub fn has_handler(&self, name: &str) -> bool {
        has_word(self.handlers, name)
    }

    /// Whether it has a provider of this name.
    pub fn has_provider(&self, name: &str) -> bool {
        has_word(self.providers, name)
    }

    fn set(&self, target: &mut Target<'_>, node: &Node, directive: &'static str) -> Set {
        let words = node.words()?;
        let asks_for = |(known, word): &(&str, &str)| {
            *known == directive && words.first().is_some_and(|first| first.is(word))
        };
        if self.satisfied.iter().any(asks_for) {
            return Ok(());
        }
        let owner = self.of_manual();
        if self.is_inert(directive) {
            let why = format!("{directive} has no effect: Tamarack does not have {owner} yet");
            target.build.remark(node.span, INERT, why);
            return Ok(());
        }
        let shown = if node.is_section() { format!("<{directive}>") } else { directive.to_owned() };
        Err(Fault::new(belongs(&shown, &owner)).help(HELP))
    }
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known.eq_ignore_ascii_case(word))
}

/// Apache's manual name: `session_module` is mod_session.
pub fn of_manual(name: &str) -> String {
    match name.strip_suffix("_module") {
        Some(stem) if !stem.starts_with("mpm_") => format!("mod_{stem}"),
        Some(stem) => stem.to_owned(),
        None => name.to_owned(),
    }
}

/// The error for a directive of a missing module.
pub(crate) fn belongs(directive: &str, owner: &str) -> String {
    format!("{directive} belongs to {owner}, which Tamarack does not have yet")
}

/// The help line of that error.
pub(crate) const HELP: &str = "docs/compat.md lists what is available";

/// A missing module is loaded.
pub const LOADED: &str = "AH20120";
/// A directive of a missing module has no effect.
pub const INERT: &str = "AH20121";

/// The named handler belongs to no active module.
pub const UNPROVIDED: &str = "AH20122";

impl ErasedModule for Missing {
    fn name(&self) -> &'static str {
        self.name
    }
    fn file(&self) -> &'static str {
        self.file
    }
    fn missing(&self) -> Option<&Missing> {
        Some(self)
    }
    fn type_id(&self) -> TypeId {
        TypeId::of::<Missing>()
    }
    fn is_configured(&self) -> bool {
        false
    }
    fn rows(&self, slot: usize) -> Vec<ErasedRow> {
        let row = |word: &'static str| {
            let name = word.strip_prefix('<').unwrap_or(word);
            let module = *self;
            ErasedRow::missing(self.file, slot, name, word != name, move |target, node| {
                module.set(target, node, name)
            })
        };
        self.directives().map(row).collect()
    }
    fn register(&self, _: usize, table: &mut HookTable) {
        for filter in self.filters {
            table.add_filter(FilterDef { ..*filter });
        }
    }
    fn defaults(&self) -> (Arc<AnyConfig>, Arc<AnyConfig>) {
        (Arc::new(()), Arc::new(()))
    }
    fn merge_server(&self, outer: &AnyConfig, _: &AnyConfig) -> Option<Arc<AnyConfig>> {
        outer.downcast_ref::<()>().map(|()| Arc::new(()) as Arc<AnyConfig>)
    }
    fn merge_dir(&self, outer: &AnyConfig, inner: &AnyConfig) -> Option<Arc<AnyConfig>> {
        self.merge_server(outer, inner)
    }
}

/// A filter that would have changed the content: the response is withheld.
pub const fn withholding(name: &'static str) -> FilterDef {
    FilterDef { name, stage: Stage::RESOURCE, make: |_| Some(Box::new(Withheld)) }
}

/// A filter that only encodes the content: without it the content is the same.
pub const fn transparent(name: &'static str) -> FilterDef {
    FilterDef { name, stage: Stage::CONTENT_SET, make: |_| None }
}

/// Replaces a response that a missing filter was meant to change.
struct Withheld;

impl OutputFilter for Withheld {
    fn apply(self: Box<Self>, request: &mut Request, _: Body) -> Body {
        const WHY: &str = "a missing filter was meant to change the content of";
        let file = request.resource.filename.clone();
        request.log_core(Level::Error, Message::ResponseWithheld.number(), WHY, Some(&file));
        request.response.status = 500;
        request.response.content_type = None;
        for name in [&b"Content-Length"[..], b"Last-Modified", b"ETag", b"Accept-Ranges"] {
            request.response.headers_out.unset(name);
        }
        Body::Empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_messages() {
        let codes = [
            (LOADED, Message::ModuleMissing),
            (INERT, Message::DirectiveInert),
            (UNPROVIDED, Message::HandlerUnprovided),
        ];
        for (code, message) in codes {
            assert_eq!(code, format!("AH{}", message.number()));
        }
    }
}
