//! A row without its module's type, as the registry of all directives has it.

use conf::Node;

use super::arity::{arity, counted, flag, how_many};
use super::{Cx, Row, Set, State, Takes, Target};
use crate::api::module::Module;
use crate::config::build::raw;
use crate::config::context::{Override, Places};

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
    skip: fn(&mut Target<'_>, slot: usize),
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
            skip: |target, slot| M::skipped(&mut Cx::new(target, slot)),
        }
    }

    /// Returns a row of a missing module; its setter reports that.
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
            state: State::Partial("its module is not implemented yet"),
            is_section,
            set: Box::new(set),
            skip: |_, _| {},
        }
    }

    /// Runs the setter on a directive's arguments.
    pub fn set(&self, target: &mut Target<'_>, node: &Node) -> Set {
        (self.set)(target, node)
    }

    /// Leaves the directive out, as `AllowOverride Nonfatal=` asks.
    pub fn skip(&self, target: &mut Target<'_>) {
        (self.skip)(target, self.slot);
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
        // As in Apache (`invoke_cmd`), further arguments are ignored.
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
        // Apache tests for text after the first word, and then finds no argument in an empty one.
        (Takes::EachOf(_), [_]) if args.len() > 1 => Ok(()),
        (Takes::EachOf(_), _) => Err(arity(row, "requires at least two arguments")),
        (Takes::Raw(_) | Takes::Section(_), _) => Ok(()),
    }
}
