//! A script: the commands of sed with their addresses.

use std::sync::Arc;

use super::pattern::Pattern;

/// The commands of all `OutputSed` or `InputSed` of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// In order.
    pub steps: Vec<Step>,
    /// Names of the files of `r`.
    pub sources: Vec<Vec<u8>>,
    /// Names of the files of `w`.
    pub targets: Vec<Vec<u8>>,
    /// Whether only commands print lines (`#n`).
    pub is_silent: bool,
    /// Why it can't be executed: a label or the end of a block is missing.
    pub unfinished: Option<String>,
}

impl Script {
    /// Whether a line may get more texts than there is room for, which is logged.
    pub fn may_log(&self) -> bool {
        let adds = |step: &Step| matches!(step.command, Command::Append(_) | Command::Read(_));
        self.steps.iter().any(adds)
    }
}

/// A command, and the lines for which it is executed.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The first or only address; without one, the command is executed for each line.
    pub first: Option<Arc<Address>>,
    /// The last line of a range.
    pub second: Option<Arc<Address>>,
    /// Whether it is executed for other lines instead (`!`).
    pub is_negated: bool,
    /// What is executed.
    pub command: Command,
}

/// An address of lines.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// `$`
    Last,
    /// A number, from 1.
    Line(i64),
    /// The lines that it matches.
    Pattern(Pattern),
}

/// Where a branch leads: the index of a step, or `None` for the end of the script.
pub(crate) type Target = Option<usize>;

/// A command.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// `a`: a text after the line.
    Append(Vec<u8>),
    /// `b` and, with the opposite of its addresses, `{`.
    Branch(Target),
    /// `c`: a text in place of the line.
    Change(Vec<u8>),
    /// `D`
    DeleteFirst,
    /// `d`
    Delete,
    /// `g`
    Fetch,
    /// `G`
    FetchAppended,
    /// `h`
    Hold,
    /// `H`
    HoldAppended,
    /// `i`: a text before the line.
    Insert(Vec<u8>),
    /// `=`
    LineNumber,
    /// `l`
    List,
    /// `n`
    Next,
    /// `N`
    NextAppended,
    /// `p`
    Print,
    /// `P`
    PrintFirst,
    /// `q`
    Quit,
    /// `r`: a file after the line.
    Read(usize),
    /// `s`
    Substitute(Box<Substitution>),
    /// `t`
    Test(Target),
    /// `w`: the line, appended to a file.
    Write(usize),
    /// `x`
    Exchange,
    /// `y`
    Transliterate(Box<[u8; 256]>),
}

/// `s`
#[derive(Clone, Debug)]
pub(crate) struct Substitution {
    /// What is replaced: usually a pattern. With the empty pattern it is the last address, even if
    /// that is no pattern.
    pub pattern: Arc<Address>,
    /// What replaces it.
    pub replacement: Vec<Part>,
    /// Which matches are replaced.
    pub which: Which,
    /// What is printed after a replacement, if nothing else prints lines.
    pub prints: Prints,
    /// The file that the line is appended to after a replacement.
    pub target: Option<usize>,
}

/// A part of what replaces a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text.
    Text(Vec<u8>),
    /// `&`
    Match,
    /// `\1` to `\9`, from 0.
    Group(usize),
}

/// The matches that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The first one.
    First,
    /// All of them (`g`).
    All,
    /// The one of this number.
    Number(u32),
}

/// What is printed after a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prints {
    /// Nothing.
    Nothing,
    /// The line (`p`).
    Line,
    /// What is before its first newline (`P`).
    First,
}
