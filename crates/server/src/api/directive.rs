//! A directive is one row: parser, error text, `-L`, manual page, compat.md and "did you mean" all
//! come from it.

mod arity;

use std::marker::PhantomData;

use conf::expr::Flags;
use conf::{Arg, Node, Span};

use crate::api::module::Module;
use crate::config::build::{Build, raw};
use crate::config::context::{Override, Places};
use crate::config::registry::Slots;
use wire::method::MethodSet;

use arity::{arity, counted, flag, how_many};

/// What a setter answers: nothing, or what is wrong with the arguments.
pub type Set = Result<(), Fault>;

/// What is wrong with a directive, in Apache's words where it has them.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The sentence.
    pub message: String,
    /// The argument at fault; the directive as a whole otherwise.
    pub span: Option<Span>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Fault {
    /// A fault of the whole directive.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), span: None, help: None }
    }

    /// The same fault, with the caret under `arg`.
    #[must_use]
    pub fn at(mut self, arg: &Arg) -> Fault {
        self.span = Some(arg.span);
        self
    }

    /// The same fault, with a line that says what to do.
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

/// How many arguments a directive takes, and the function that takes them
/// (Apache's `AP_INIT_*` kinds).
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
    /// The text as it stands (`RAW_ARGS`).
    Raw(fn(&mut Cx<'_, '_, M>, &Arg) -> Set),
    /// A container: its argument text as it stands, and what is inside.
    Section(fn(&mut Cx<'_, '_, M>, &Arg, &[Node]) -> Set),
}

impl<M: Module> Clone for Takes<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Module> Copy for Takes<M> {}

/// How far a directive is built: what docs/compat.md says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does what Apache's does.
    Done,
    /// It is read, and does part of what Apache's does; the note says which part is missing.
    Partial(&'static str),
    /// It is refused, with the reason.
    Refused(&'static str),
    /// It is read and has no effect, because what it tunes is not here; the note says why.
    Accepted(&'static str),
    /// It is read and does nothing yet: a warning says so.
    NotYet,
}

/// A directive.
pub struct Row<M: Module> {
    /// Its name; a container's without the angle brackets, as `Directory`.
    pub name: &'static str,
    /// Where it may stand.
    pub places: Places,
    /// The `AllowOverride` class that lets it stand in `.htaccess`.
    pub allow: Override,
    /// Arity and setter.
    pub takes: Takes<M>,
    /// The arguments as the manual writes them, without the name: `[URL-path] file-path`.
    pub syntax: &'static str,
    /// The built-in default, without the name; empty where there is none.
    pub default: &'static str,
    /// What it does: one or two sentences, our own.
    pub doc: &'static str,
    /// How far it is built.
    pub state: State,
}

impl<M: Module> Clone for Row<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Module> Copy for Row<M> {}

impl<M: Module> Row<M> {
    /// A row that is built, without a default, for "server config, virtual host".
    pub const fn new(
        name: &'static str,
        takes: Takes<M>,
        syntax: &'static str,
        doc: &'static str,
    ) -> Row<M> {
        let (places, allow) = (Places::HOST, Override::NONE);
        Row { name, places, allow, takes, syntax, default: "", doc, state: State::Done }
    }

    /// The same row, standing elsewhere.
    #[must_use]
    pub const fn standing(mut self, places: Places, allow: Override) -> Row<M> {
        self.places = places;
        self.allow = allow;
        self
    }

    /// The same row, with a built-in default.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Row<M> {
        self.default = default;
        self
    }

    /// The same row, built so far.
    #[must_use]
    pub const fn state(mut self, state: State) -> Row<M> {
        self.state = state;
        self
    }
}

/// The context of a setter: where the directive stands, and the configuration it writes to.
pub struct Cx<'a, 't, M: Module> {
    /// Where the directive stands.
    pub target: &'a mut Target<'t>,
    slot: usize,
    module: PhantomData<fn() -> M>,
}

/// Where directives are being applied to.
pub struct Target<'t> {
    /// The configuration of the whole, and what is found wrong with it.
    pub build: &'t mut Build,
    /// Server configurations of the (virtual) host we stand in.
    pub server: &'t mut Slots,
    /// Directory configurations of the section we stand in; the host's own outside of sections.
    pub dir: &'t mut Slots,
    /// Which kind of place this is: exactly one of the four.
    pub place: Places,
    /// The innermost container's name, as `<Directory>` in messages; `None` outside.
    pub container: Option<&'static str>,
    /// The section's path or pattern (`cmd->path`); in `.htaccess` its directory with a slash at
    /// the end.
    pub path: Option<Vec<u8>>,
    /// The methods of the `<Limit>` we stand in.
    pub limited: Option<MethodSet>,
    /// What `.htaccess` may override here.
    pub allowed: Override,
    /// The option words that `.htaccess` may set (`AllowOverride Options=…`); `None` for all.
    pub allowed_options: Option<crate::core::OptionFlags>,
    /// The names of `AllowOverrideList`, lower case.
    pub allowed_names: Option<std::sync::Arc<Vec<String>>>,
    /// Whether a directive that is not allowed is skipped with a log line (`Nonfatal=`).
    pub nonfatal: Override,
    /// Whether an unknown directive is skipped with a log line (`Nonfatal=Unknown`).
    pub nonfatal_unknown: bool,
    /// The directive being applied.
    pub span: Span,
    /// The name of the directive being applied, as the row spells it.
    pub directive: &'static str,
}

impl Target<'_> {
    /// How expressions are parsed here: whoever may write an `.htaccess` must not read by it what
    /// only the server can read (`AP_EXPR_FLAG_RESTRICTED`).
    pub fn expr_flags(&self) -> Flags {
        let restricted = self.place == Places::HTACCESS;
        Flags { restricted, pattern: self.build.regex_flags, ..Flags::default() }
    }
}

impl<'a, 't, M: Module> Cx<'a, 't, M> {
    /// A context for the module in `slot`.
    pub(crate) fn new(target: &'a mut Target<'t>, slot: usize) -> Cx<'a, 't, M> {
        Cx { target, slot, module: PhantomData }
    }

    /// The module's server configuration being written.
    pub fn server(&mut self) -> &mut M::Server {
        let Some(value) = self.target.server.edit::<M::Server>(self.slot) else {
            unreachable!("slot {} is {}'s", self.slot, M::NAME)
        };
        value
    }

    /// The module's directory configuration being written.
    pub fn dir(&mut self) -> &mut M::Dir {
        let Some(value) = self.target.dir.edit::<M::Dir>(self.slot) else {
            unreachable!("slot {} is {}'s", self.slot, M::NAME)
        };
        value
    }

    /// The whole configuration being built: globals, registry, diagnostics.
    pub fn build(&mut self) -> &mut Build {
        self.target.build
    }

    /// Whether the directive stands outside of every section: in the server or a virtual host.
    pub fn outside_sections(&self) -> bool {
        Places::HOST.contains(self.target.place)
    }

    /// Whether the directive stands in `.htaccess`.
    pub fn in_htaccess(&self) -> bool {
        self.target.place == Places::HTACCESS
    }

    /// [`Target::expr_flags`]
    pub fn expr_flags(&self) -> Flags {
        self.target.expr_flags()
    }

    /// The section's path (`cmd->path`); `None` outside of sections.
    pub fn path(&self) -> Option<&[u8]> {
        self.target.path.as_deref()
    }

    /// Where the directive stands.
    pub fn span(&self) -> Span {
        self.target.span
    }

    /// Says something that is not an error, with the place.
    pub fn warn(&mut self, message: impl Into<String>) {
        let span = self.target.span;
        self.target.build.warn(span, message.into());
    }

    /// Applies nested directives to the same configurations.
    pub fn apply(&mut self, nodes: &[Node]) {
        self.target.apply(nodes);
    }
}

/// A [`Row`] without its module's type.
pub struct ErasedRow {
    /// [`Row::name`]
    pub name: &'static str,
    /// The owning module's slot.
    pub slot: usize,
    /// The owning module's `FILE`.
    pub module: &'static str,
    /// [`Row::places`]
    pub places: Places,
    /// [`Row::allow`]
    pub allow: Override,
    /// [`Row::syntax`]
    pub syntax: &'static str,
    /// [`Row::default`]
    pub default: &'static str,
    /// [`Row::doc`]
    pub doc: &'static str,
    /// [`Row::state`]
    pub state: State,
    /// Whether it is a container.
    pub is_section: bool,
    set: Box<dyn Fn(&mut Target<'_>, &Node) -> Set + Send + Sync>,
}

impl ErasedRow {
    /// Erases `row` of the module in `slot`.
    pub fn of<M: Module>(row: &'static Row<M>, slot: usize) -> ErasedRow {
        ErasedRow {
            name: row.name,
            slot,
            module: M::FILE,
            places: row.places,
            allow: row.allow,
            syntax: row.syntax,
            default: row.default,
            doc: row.doc,
            state: row.state,
            is_section: matches!(row.takes, Takes::Section(_)),
            set: Box::new(move |target, node| set(row, slot, target, node)),
        }
    }

    /// A row of a module that is not here yet; the setter knows what to say of it.
    pub(crate) fn missing(
        module: &'static str,
        slot: usize,
        name: &'static str,
        is_section: bool,
        set: impl Fn(&mut Target<'_>, &Node) -> Set + Send + Sync + 'static,
    ) -> ErasedRow {
        ErasedRow {
            name,
            slot,
            module,
            places: Places::ALL,
            allow: Override::NONE,
            syntax: "",
            default: "",
            doc: "",
            state: State::Partial("its module is not here yet"),
            is_section,
            set: Box::new(set),
        }
    }

    /// Runs the setter on a directive's arguments.
    pub fn set(&self, target: &mut Target<'_>, node: &Node) -> Set {
        (self.set)(target, node)
    }
}

fn set<M: Module>(row: &Row<M>, slot: usize, target: &mut Target<'_>, node: &Node) -> Set {
    let mut cx = Cx::<M>::new(target, slot);
    match row.takes {
        Takes::Raw(set) => return set(&mut cx, &raw(node)),
        Takes::Section(set) => {
            return set(&mut cx, &raw(node), node.children.as_deref().unwrap_or_default());
        }
        _ => {}
    }
    let args = node.words()?;
    match (row.takes, counted(row.takes, &args)) {
        // As in Apache (`invoke_cmd`), what follows here is nobody's.
        (Takes::Nothing(set), _) => set(&mut cx),
        (Takes::Flag(set), [arg, ..]) => set(&mut cx, flag(row.name, arg)?),
        (Takes::Flag(_), []) => Err(format!("{} must be On or Off", row.name).into()),
        (Takes::One(set), [arg]) => set(&mut cx, arg),
        (Takes::One(_), _) => Err(arity(row, "takes one argument")),
        (Takes::Two(set), [a, b]) => set(&mut cx, a, b),
        (Takes::Two(_), _) => Err(arity(row, "takes two arguments")),
        (Takes::Some { least, most, set }, args) if (least..=most).contains(&args.len()) => {
            set(&mut cx, args)
        }
        (Takes::Some { least, most, .. }, _) => Err(arity(row, &how_many(least, most))),
        (Takes::Each(_), []) => Err(arity(row, "requires at least one argument")),
        (Takes::Each(set), args) => args.iter().try_for_each(|arg| set(&mut cx, arg)),
        (Takes::EachOf(set), [first, rest @ ..]) if !rest.is_empty() => {
            rest.iter().try_for_each(|arg| set(&mut cx, first, arg))
        }
        // Apache looks for what follows the first word, and then finds nothing in an empty one.
        (Takes::EachOf(_), [_]) if args.len() > 1 => Ok(()),
        (Takes::EachOf(_), _) => Err(arity(row, "requires at least two arguments")),
        (Takes::Raw(_) | Takes::Section(_), _) => Ok(()),
    }
}
