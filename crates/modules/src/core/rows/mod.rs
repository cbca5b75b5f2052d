//! The core's directives by topic.

mod content;
mod cpus;
mod identity;
mod limits;
mod logging;
mod mutex;
mod overrides;
mod process;
mod protocol;
mod reading;
mod scripts;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Takes, count_rows, join_rows};

use crate::core::{Core, etag, options, sections};

/// The context of the core's setters.
pub(crate) type Here<'a, 't> = Cx<'a, 't, Core>;

const GROUPS: [&[Row<Core>]; 13] = [
    sections::ROWS,
    identity::ROWS,
    overrides::ROWS,
    options::ROWS,
    content::ROWS,
    etag::ROWS,
    protocol::ROWS,
    limits::ROWS,
    logging::ROWS,
    process::ROWS,
    cpus::ROWS,
    scripts::ROWS,
    reading::ROWS,
];

/// All rows of the core.
pub(super) const ALL: &[Row<Core>] = &join_rows::<Core, { count_rows(&GROUPS) }>(&GROUPS);

/// A row for the context "server config, virtual host".
const fn host(
    name: &'static str,
    takes: Takes<Core>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Core> {
    Row::<Core>::new(name, takes, syntax, doc)
        .standing(Places::HOST, Override::NONE)
        .default(default)
}

/// A row for the context "server config" alone.
const fn global(
    name: &'static str,
    takes: Takes<Core>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Core> {
    Row::<Core>::new(name, takes, syntax, doc)
        .standing(Places::SERVER, Override::NONE)
        .default(default)
}

/// A row for all contexts, under `FileInfo`.
const fn file_info(
    name: &'static str,
    takes: Takes<Core>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Core> {
    Row::<Core>::new(name, takes, syntax, doc)
        .standing(Places::ALL, Override::FILE_INFO)
        .default(default)
}

/// Parses one of some words, ignoring case; `fault` is Apache's message for any other.
fn one_of<T: Copy>(arg: &Arg, words: &[(&str, T)], fault: &str) -> Result<T, Fault> {
    let found = words.iter().find(|(word, _)| arg.is(word));
    found.map(|(_, value)| *value).ok_or_else(|| Fault::new(fault).at(arg))
}
