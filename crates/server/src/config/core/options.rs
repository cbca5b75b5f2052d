//! `Options` and its inheritance.

use crate::merge::Merge;

/// The words of `Options`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct OptionFlags(pub u16);

impl OptionFlags {
    /// `None`
    pub const NONE: OptionFlags = OptionFlags(0);
    /// `Indexes`
    pub const INDEXES: OptionFlags = OptionFlags(1);
    /// Server-side includes without programs, as with `IncludesNOEXEC`.
    pub const INCLUDES: OptionFlags = OptionFlags(2);
    /// `FollowSymLinks`
    pub const FOLLOW_SYMLINKS: OptionFlags = OptionFlags(4);
    /// `ExecCGI`
    pub const EXEC_CGI: OptionFlags = OptionFlags(8);
    /// The part of `Includes` beyond [`OptionFlags::INCLUDES`]: programs.
    pub const INCLUDES_EXEC: OptionFlags = OptionFlags(16);
    /// `SymLinksIfOwnerMatch`
    pub const SYMLINKS_IF_OWNER_MATCH: OptionFlags = OptionFlags(32);
    /// `MultiViews`
    pub const MULTIVIEWS: OptionFlags = OptionFlags(64);
    /// `All`: everything except MultiViews.
    pub const ALL: OptionFlags = OptionFlags(1 | 2 | 4 | 8 | 16);
    /// `Includes`
    const INCLUDES_WITH_EXEC: OptionFlags = OptionFlags(2 | 16);

    /// Whether every flag of `other` is set.
    pub const fn has(self, other: OptionFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    pub const fn with(self, other: OptionFlags) -> OptionFlags {
        OptionFlags(self.0 | other.0)
    }

    /// The flags without those of `other`.
    pub const fn without(self, other: OptionFlags) -> OptionFlags {
        OptionFlags(self.0 & !other.0)
    }

    /// How symbolic links are followed: owners are compared if
    /// [`OptionFlags::SYMLINKS_IF_OWNER_MATCH`] is set.
    pub const fn links(self) -> Links {
        if self.has(OptionFlags::SYMLINKS_IF_OWNER_MATCH) {
            Links::OfOneOwner
        } else if self.has(OptionFlags::FOLLOW_SYMLINKS) {
            Links::Followed
        } else {
            Links::Refused
        }
    }

    /// The flags of a word, except `None` and `All`, ignoring case.
    pub fn of_word(word: &[u8]) -> Option<OptionFlags> {
        const WORDS: [(&str, OptionFlags); 8] = [
            ("Indexes", OptionFlags::INDEXES),
            ("Includes", OptionFlags::INCLUDES_WITH_EXEC),
            ("IncludesNOEXEC", OptionFlags::INCLUDES),
            ("FollowSymLinks", OptionFlags::FOLLOW_SYMLINKS),
            ("SymLinksIfOwnerMatch", OptionFlags::SYMLINKS_IF_OWNER_MATCH),
            ("ExecCGI", OptionFlags::EXEC_CGI),
            ("MultiViews", OptionFlags::MULTIVIEWS),
            ("RunScripts", OptionFlags::MULTIVIEWS.with(OptionFlags::EXEC_CGI)),
        ];
        let found = WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, flags)| *flags)
    }
}

/// The treatment of a symbolic link on a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// `FollowSymLinks` alone: follow it.
    Followed,
    /// `SymLinksIfOwnerMatch`: follow it if its target has the same owner.
    OfOneOwner,
    /// Neither: respond with 403.
    Refused,
}

/// `Options` and its inheritance: an unsigned list replaces, `+` and `-` change.
///
/// The fields are those of Apache's `core_dir_config` (`opts`, `opts_add`, `opts_remove`): signed
/// words remain in force for inner sections even after an unsigned list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    flags: OptionFlags,
    /// Whether an unsigned list replaces the inherited options.
    is_absolute: bool,
    add: OptionFlags,
    remove: OptionFlags,
}

impl Default for Options {
    /// The default, `FollowSymLinks`.
    fn default() -> Options {
        Options {
            flags: OptionFlags::FOLLOW_SYMLINKS,
            is_absolute: false,
            add: OptionFlags::NONE,
            remove: OptionFlags::NONE,
        }
    }
}

impl Options {
    /// The options in force.
    pub fn flags(&self) -> OptionFlags {
        self.flags
    }

    /// Applies a word of a line; `sign` is `None` for an unsigned word.
    pub fn word(&mut self, sign: Option<u8>, flags: OptionFlags) {
        match sign {
            Some(b'-') => {
                self.remove = self.remove.with(flags);
                self.add = self.add.without(flags);
                self.flags = self.flags.without(flags);
            }
            Some(_) => {
                self.add = self.add.with(flags);
                self.remove = self.remove.without(flags);
                self.flags = self.flags.with(flags);
            }
            None => self.flags = self.flags.with(flags),
        }
    }

    /// Begins an unsigned list.
    pub fn begin_absolute(&mut self) {
        self.flags = OptionFlags::NONE;
        self.is_absolute = true;
    }
}

impl Merge for Options {
    /// Source: `merge_core_dir_configs` (server/core.c).
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.is_absolute {
            return *inner;
        }
        let add = outer.add.without(inner.remove).with(inner.add);
        let remove = outer.remove.without(inner.add).with(inner.remove);
        let mut flags = outer.flags.without(remove).with(add);
        // Includes and IncludesNOEXEC are one choice: the inner one removes exec.
        let both = OptionFlags::INCLUDES_WITH_EXEC;
        if outer.flags.has(both) && inner.flags.0 & both.0 == OptionFlags::INCLUDES.0 {
            flags = flags.without(OptionFlags::INCLUDES_EXEC);
        }
        Options { flags, is_absolute: outer.is_absolute, add, remove }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(sign: u8, flags: OptionFlags) -> Options {
        let mut options = Options::default();
        options.word(Some(sign), flags);
        options
    }

    #[test]
    fn signs_change_what_is_inherited() {
        let mut outer = Options::default();
        outer.begin_absolute();
        outer.word(None, OptionFlags::ALL);
        let merged = Options::merge(&outer, &signed(b'-', OptionFlags::INDEXES)).flags();
        assert!(!merged.has(OptionFlags::INDEXES) && merged.has(OptionFlags::EXEC_CGI));
        let merged = Options::merge(&outer, &signed(b'+', OptionFlags::INCLUDES)).flags();
        assert!(merged.has(OptionFlags::INCLUDES) && !merged.has(OptionFlags::INCLUDES_EXEC));
        assert!(Options::default().flags().has(OptionFlags::FOLLOW_SYMLINKS));
    }

    #[test]
    fn a_sign_outlives_the_list_that_follows_it() {
        let mut outer = signed(b'+', OptionFlags::INDEXES);
        outer.begin_absolute();
        assert_eq!(outer.flags(), OptionFlags::NONE);
        let merged = Options::merge(&outer, &signed(b'+', OptionFlags::EXEC_CGI)).flags();
        assert_eq!(merged, OptionFlags::INDEXES.with(OptionFlags::EXEC_CGI));
    }

    #[test]
    fn owners_count_also_where_links_are_followed() {
        let both = OptionFlags::FOLLOW_SYMLINKS.with(OptionFlags::SYMLINKS_IF_OWNER_MATCH);
        assert_eq!(both.links(), Links::OfOneOwner);
        assert_eq!(OptionFlags::SYMLINKS_IF_OWNER_MATCH.links(), Links::OfOneOwner);
        assert_eq!(Options::default().flags().links(), Links::Followed);
        assert_eq!(OptionFlags::INDEXES.links(), Links::Refused);
    }
}
