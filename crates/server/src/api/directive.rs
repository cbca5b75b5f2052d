//! A directive is one row, from which the parser, error texts, `-L`, the manual page, compat.md and
//! "did you mean" derive.

mod arity;
mod erased;
mod groups;

use std::marker::PhantomData;

use conf::expr::Flags;
use conf::{Arg, Node, Span};

use crate::api::module::Module;
use crate::config::build::Build;
use crate::config::context::{Override, Places};
use crate::config::registry::Slots;
use wire::method::MethodSet;

pub use erased::ErasedRow;
pub use groups::{count_rows, join_rows};

/// The result of a setter: the error describes what is wrong with the arguments.
pub type Set = Result<(), Fault>;

/// An error of a directive, in Apache's words if Apache has one.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The message.
    pub message: String,
    /// The argument at fault; `None` for the whole directive.
    pub span: Option<Span>,
    /// A remedy.
    pub help: Option<String>,
}

impl Fault {
    /// Returns an error of the whole directive.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), span: None, help: None }
    }

    /// Puts the caret under `arg`.
    #[must_use]
    pub fn at(mut self, arg: &Arg) -> Fault {
        self.span = Some(arg.span);
        self
    }

    /// Adds a line with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Fault {
        Fault::new(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Fault {
        Fault::new(message)
    }
}

/// The arity of a directive with its setter (Apache's `AP_INIT_*` kinds).
pub enum Takes<M: Module> {
    /// No argument (`AP_INIT_NO_ARGS`).
    Nothing(fn(&mut Cx<'_, '_, M>) -> Set),
    /// `On` or `Off` (`AP_INIT_FLAG`).
    Flag(fn(&mut Cx<'_, '_, M>, bool) -> Set),
    /// One argument (`TAKE1`).
    One(fn(&mut Cx<'_, '_, M>, &Arg) -> Set),
    /// Two arguments (`TAKE2`).
    Two(fn(&mut Cx<'_, '_, M>, &Arg, &Arg) -> Set),
    /// `least` to `most` arguments, as a slice (`TAKE12`, `TAKE23`, `TAKE_ARGV`, …).
    Some {
        /// The fewest arguments.
        least: usize,
        /// The most arguments; `usize::MAX` for no bound.
        most: usize,
        /// The setter.
        set: fn(&mut Cx<'_, '_, M>, &[Arg]) -> Set,
    },
    /// Called once per argument; at least one (`ITERATE`).
    Each(fn(&mut Cx<'_, '_, M>, &Arg) -> Set),
    /// Called with the first argument and each further one (`ITERATE2`).
    EachOf(fn(&mut Cx<'_, '_, M>, &Arg, &Arg) -> Set),
    /// The raw text (`RAW_ARGS`).
    Raw(fn(&mut Cx<'_, '_, M>, &Arg) -> Set),
    /// A container: its raw argument text and its contents.
    Section(fn(&mut Cx<'_, '_, M>, &Arg, &[Node]) -> Set),
}

impl<M: Module> Clone for Takes<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Module> Copy for Takes<M> {}

/// The state of a directive, for docs/compat.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Works as in Apache.
    Done,
    /// Works as in Apache, except for what is refused with a message of its own; the note names it.
    DoneExcept(&'static str),
    /// Works in part; the note says what is missing.
    Partial(&'static str),
    /// Is refused, for this reason.
    Refused(&'static str),
    /// Is read without effect, because the feature that it configures does not exist here; the note
    /// says why.
    Accepted(&'static str),
    /// Is read with a warning and does nothing yet.
    NotYet,
}

/// A directive.
pub struct Row<M: Module> {
    /// The name; a container's without angle brackets, such as `Directory`.
    pub name: &'static str,
    /// The contexts in which it is allowed.
    pub places: Places,
    /// The `AllowOverride` class that allows it in `.htaccess`.
    pub allow: Override,
    /// Arity and setter.
    pub takes: Takes<M>,
    /// The arguments as in the manual, without the name: `[URL-path] file-path`.
    pub syntax: &'static str,
    /// The built-in default, without the name; empty if there is none.
    pub default: &'static str,
    /// The description: one or two sentences of our own.
    pub doc: &'static str,
    /// The state.
    pub state: State,
}

impl<M: Module> Clone for Row<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Module> Copy for Row<M> {}

impl<M: Module> Row<M> {
    /// Returns a row that is done, has no default, and is for "server config, virtual host".
    pub const fn new(
        name: &'static str,
        takes: Takes<M>,
        syntax: &'static str,
        doc: &'static str,
    ) -> Row<M> {
        let (places, allow) = (Places::HOST, Override::NONE);
        Row { name, places, allow, takes, syntax, default: "", doc, state: State::Done }
    }

    /// Sets the contexts.
    #[must_use]
    pub const fn standing(mut self, places: Places, allow: Override) -> Row<M> {
        self.places = places;
        self.allow = allow;
        self
    }

    /// Sets the built-in default.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Row<M> {
        self.default = default;
        self
    }

    /// Sets the state.
    #[must_use]
    pub const fn state(mut self, state: State) -> Row<M> {
        self.state = state;
        self
    }
}

/// The context of a setter: the directive's location, and the configuration it writes to.
pub struct Cx<'a, 't, M: Module> {
    /// The directive's location.
    pub target: &'a mut Target<'t>,
    slot: usize,
    module: PhantomData<fn() -> M>,
}

/// The place that directives are applied to.
pub struct Target<'t> {
    /// The whole configuration and its findings.
    pub build: &'t mut Build,
    /// Server configurations of the current (virtual) host.
    pub server: &'t mut Slots,
    /// Directory configurations of the current section; outside of sections those of the host.
    pub dir: &'t mut Slots,
    /// The kind of place: exactly one of the four.
    pub place: Places,
    /// The innermost container's name as in messages, such as `<Directory>`; `None` outside.
    pub container: Option<&'static str>,
    /// The section's path or pattern (`cmd->path`); in `.htaccess` its directory with a trailing
    /// slash.
    pub path: Option<Vec<u8>>,
    /// The methods of the enclosing `<Limit>`.
    pub limited: Option<MethodSet>,
    /// The classes that `.htaccess` may override here.
    pub allowed: Override,
    /// The options that `.htaccess` may set (`AllowOverride Options=…`); `None` for all.
    pub allowed_options: Option<crate::config::core::OptionFlags>,
    /// The names of `AllowOverrideList` in lower case.
    pub allowed_names: Option<std::sync::Arc<Vec<String>>>,
    /// Classes of directives that are skipped with a log line if they are not allowed
    /// (`Nonfatal=`).
    pub nonfatal: Override,
    /// Whether unknown directives are skipped with a log line (`Nonfatal=Unknown`).
    pub nonfatal_unknown: bool,
    /// The position of the current directive.
    pub span: Span,
    /// The name of the current directive, as in the row.
    pub directive: &'static str,
}

impl Target<'_> {
    /// The flags for expressions: the author of an `.htaccess` must not be able to read files that
    /// only the server can read (`AP_EXPR_FLAG_RESTRICTED`).
    pub fn expr_flags(&self) -> Flags {
        let restricted = self.place == Places::HTACCESS;
        Flags { restricted, pattern: self.build.regex_flags, ..Flags::default() }
    }

    /// The target for the contents of a section, whose configurations are `dir`. What
    /// `AllowOverride` permits here, it permits there.
    pub fn inside<'i>(
        &'i mut self,
        container: &'static str,
        path: Option<Vec<u8>>,
        dir: &'i mut Slots,
    ) -> Target<'i> {
        let place = match self.place {
            Places::HTACCESS => Places::HTACCESS,
            _ => Places::DIRECTORY,
        };
        Target {
            build: &mut *self.build,
            server: &mut *self.server,
            dir,
            place,
            container: Some(container),
            path,
            limited: self.limited,
            allowed: self.allowed,
            allowed_options: self.allowed_options,
            allowed_names: self.allowed_names.clone(),
            nonfatal: self.nonfatal,
            nonfatal_unknown: self.nonfatal_unknown,
            span: self.span,
            directive: self.directive,
        }
    }
}

impl<'a, 't, M: Module> Cx<'a, 't, M> {
    /// Returns a context for the module in `slot`.
    pub(crate) fn new(target: &'a mut Target<'t>, slot: usize) -> Cx<'a, 't, M> {
        Cx { target, slot, module: PhantomData }
    }

    /// The module's server configuration, for writing.
    pub fn server(&mut self) -> &mut M::Server {
        let Some(value) = self.target.server.edit::<M::Server>(self.slot) else {
            unreachable!("slot {} is {}'s", self.slot, M::NAME)
        };
        value
    }

    /// The module's directory configuration, for writing.
    pub fn dir(&mut self) -> &mut M::Dir {
        let Some(value) = self.target.dir.edit::<M::Dir>(self.slot) else {
            unreachable!("slot {} is {}'s", self.slot, M::NAME)
        };
        value
    }

    /// The whole configuration: globals, registry, diagnostics.
    pub fn build(&mut self) -> &mut Build {
        self.target.build
    }

    /// Whether the directive is outside of all sections: in the server or a virtual host.
    pub fn outside_sections(&self) -> bool {
        Places::HOST.contains(self.target.place)
    }

    /// Whether the directive is in `.htaccess`.
    pub fn in_htaccess(&self) -> bool {
        self.target.place == Places::HTACCESS
    }

    /// [`Target::expr_flags`]
    pub fn expr_flags(&self) -> Flags {
        self.target.expr_flags()
    }

    /// The innermost section's path (`cmd->path`), `*If` in `<If>`; `None` outside of sections.
    pub fn path(&self) -> Option<&[u8]> {
        self.target.path.as_deref()
    }

    /// The position of the directive.
    pub fn span(&self) -> Span {
        self.target.span
    }

    /// Reports a warning with its location.
    pub fn warn(&mut self, message: impl Into<String>) {
        let span = self.target.span;
        self.target.build.warn(span, message.into());
    }

    /// Applies nested directives to the same configurations.
    pub fn apply(&mut self, nodes: &[Node]) {
        self.target.apply(nodes);
    }
}
