//! `Options`: its words, and how they are inherited.

use crate::core::Core;
use crate::directive::{Cx, Fault, Row, Set, State, Takes};
use crate::merge::Merge;
use crate::scope::{Override, Places};
use conf::Arg;

/// Words of `Options`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OptionFlags(pub u16);

impl OptionFlags {
    /// `None`
    pub const NONE: OptionFlags = OptionFlags(0);
    /// `Indexes`
    pub const INDEXES: OptionFlags = OptionFlags(1);
    /// `Includes`, with exec
    pub const INCLUDES: OptionFlags = OptionFlags(2);
    /// `FollowSymLinks`
    pub const FOLLOW_SYMLINKS: OptionFlags = OptionFlags(4);
    /// `ExecCGI`
    pub const EXEC_CGI: OptionFlags = OptionFlags(8);
    /// `IncludesNOEXEC`
    pub const INCLUDES_NO_EXEC: OptionFlags = OptionFlags(16);
    /// `SymLinksIfOwnerMatch`
    pub const SYMLINKS_IF_OWNER_MATCH: OptionFlags = OptionFlags(32);
    /// `MultiViews`
    pub const MULTIVIEWS: OptionFlags = OptionFlags(64);
    /// `All`: everything but MultiViews.
    pub const ALL: OptionFlags = OptionFlags(1 | 2 | 4 | 8);

    /// Whether every flag of `other` is set.
    pub const fn has(self, other: OptionFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of one word, but `None` and `All`; case does not count.
    pub fn of_word(word: &[u8]) -> Option<OptionFlags> {
        const WORDS: [(&str, OptionFlags); 8] = [
            ("Indexes", OptionFlags::INDEXES),
            ("Includes", OptionFlags::INCLUDES),
            ("IncludesNOEXEC", OptionFlags::INCLUDES_NO_EXEC),
            ("FollowSymLinks", OptionFlags::FOLLOW_SYMLINKS),
            ("SymLinksIfOwnerMatch", OptionFlags::SYMLINKS_IF_OWNER_MATCH),
            ("ExecCGI", OptionFlags::EXEC_CGI),
            ("MultiViews", OptionFlags::MULTIVIEWS),
            ("RunScripts", OptionFlags::EXEC_CGI),
        ];
        let found = WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, flags)| *flags)
    }
}

/// `Options`, with its rule of inheritance: a plain list replaces, `+` and `-` change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// A plain list was given: what came from outside does not count.
    pub absolute: Option<OptionFlags>,
    /// `+` words.
    pub add: OptionFlags,
    /// `-` words.
    pub remove: OptionFlags,
}

impl Options {
    /// The options in force; the built-in default is `FollowSymLinks`.
    pub fn flags(&self) -> OptionFlags {
        let base = self.absolute.unwrap_or(OptionFlags::FOLLOW_SYMLINKS);
        OptionFlags((base.0 & !self.remove.0) | self.add.0)
    }

    fn plus(&mut self, flags: OptionFlags) {
        match &mut self.absolute {
            Some(absolute) => absolute.0 |= flags.0,
            None => {
                self.add.0 |= flags.0;
                self.remove.0 &= !flags.0;
            }
        }
    }

    fn minus(&mut self, flags: OptionFlags) {
        match &mut self.absolute {
            Some(absolute) => absolute.0 &= !flags.0,
            None => {
                self.remove.0 |= flags.0;
                self.add.0 &= !flags.0;
            }
        }
    }
}

impl Merge for Options {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.absolute.is_some() {
            return *inner;
        }
        // Includes and IncludesNOEXEC are one choice: the inner one replaces the outer one.
        let mut outer = *outer;
        if inner.add.0 & (OptionFlags::INCLUDES.0 | OptionFlags::INCLUDES_NO_EXEC.0) != 0 {
            outer.minus(OptionFlags(OptionFlags::INCLUDES.0 | OptionFlags::INCLUDES_NO_EXEC.0));
        }
        outer.minus(inner.remove);
        outer.plus(inner.add);
        outer
    }
}

/// The rows of this file.
pub(super) const ROWS: &[Row<Core>] = &[Row {
    name: "Options",
    places: Places::ALL,
    allow: Override::OPTIONS,
    takes: Takes::Some { least: 0, most: usize::MAX, set: set_options },
    syntax: "[+|-]option [[+|-]option] ...",
    default: "FollowSymlinks",
    doc: "Switches features of a directory on or off; words with a sign change what is inherited, \
          words without one replace it.",
    state: State::Done,
}];

/// Source: `set_options` (server/core.c).
fn set_options(cx: &mut Cx<'_, '_, Core>, words: &[Arg]) -> Set {
    let allowed = cx.target.allowed_options;
    let mut options = cx.dir().options;
    let mut signed: Option<bool> = None;
    for (index, word) in words.iter().enumerate() {
        let (sign, name) = match word.text.split_first() {
            Some((sign @ (b'+' | b'-'), name)) => (Some(*sign), name),
            _ => (None, word.text.as_slice()),
        };
        if *signed.get_or_insert(sign.is_some()) != sign.is_some() {
            let mixed = "Either all Options must start with + or -, or no Option may.";
            return Err(Fault::new(mixed).at(word));
        }
        let flags = flags_of(name, index, sign.is_some(), word)?;
        if allowed.is_some_and(|allowed| !allowed.has(flags)) {
            return Err(Fault::new(format!("Option {} not allowed here", word.text)).at(word));
        }
        match sign {
            None if index == 0 => options = Options { absolute: Some(flags), ..Options::default() },
            None => options.plus(flags),
            Some(b'-') => options.minus(flags),
            Some(_) => options.plus(flags),
        }
    }
    cx.dir().options = options;
    Ok(())
}

fn flags_of(name: &[u8], index: usize, signed: bool, word: &Arg) -> Result<OptionFlags, Fault> {
    if name.eq_ignore_ascii_case(b"None") {
        let late = index != 0 || signed;
        return if late {
            Err(Fault::new("'Options None' must be the first Option given.").at(word))
        } else {
            Ok(OptionFlags::NONE)
        };
    }
    if name.eq_ignore_ascii_case(b"All") {
        let late = index != 0 || signed;
        return if late {
            Err(Fault::new("'Options All' must be the first option given.").at(word))
        } else {
            Ok(OptionFlags::ALL)
        };
    }
    let shown = bstr::BStr::new(name);
    OptionFlags::of_word(name).ok_or_else(|| Fault::new(format!("Illegal option {shown}")).at(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_change_what_is_inherited() {
        let outer = Options { absolute: Some(OptionFlags::ALL), ..Options::default() };
        let inner = Options { remove: OptionFlags::INDEXES, ..Options::default() };
        let merged = Options::merge(&outer, &inner).flags();
        assert!(!merged.has(OptionFlags::INDEXES) && merged.has(OptionFlags::EXEC_CGI));
        let no_exec = Options { add: OptionFlags::INCLUDES_NO_EXEC, ..Options::default() };
        let merged = Options::merge(&outer, &no_exec).flags();
        assert!(!merged.has(OptionFlags::INCLUDES) && merged.has(OptionFlags::INCLUDES_NO_EXEC));
        assert!(Options::default().flags().has(OptionFlags::FOLLOW_SYMLINKS));
    }
}
