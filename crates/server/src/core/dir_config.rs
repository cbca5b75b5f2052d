//! What the core knows of a directory.

use std::sync::Arc;

use crate::merge::{Append, Merge, Setting};
use crate::scope::Override;
use crate::section::Section;

/// One word of `Options`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OptionFlags(pub u16);

impl OptionFlags {
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
}

impl Merge for Options {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.absolute.is_some() {
            return *inner;
        }
        Options {
            absolute: outer.absolute,
            add: OptionFlags((outer.add.0 & !inner.remove.0) | inner.add.0),
            remove: OptionFlags((outer.remove.0 & !inner.add.0) | inner.remove.0),
        }
    }
}

/// `AllowOverride`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AllowOverride {
    /// The classes that `.htaccess` may use.
    pub classes: Override,
    /// The option words that `.htaccess` may set with `Options`; `None` for all.
    pub options: Option<OptionFlags>,
    /// `Nonfatal=`: classes whose misuse is logged and skipped.
    pub nonfatal: Override,
    /// `Nonfatal=Unknown` or `All`: unknown directives are logged and skipped.
    pub nonfatal_unknown: bool,
}

crate::config! {
    /// The core's per-directory configuration.
    pub struct CoreDir {
        /// `Options`
        pub options: Options,
        /// `AllowOverride`
        pub allow_override: Setting<AllowOverride>,
        /// `AllowOverrideList`, lower case.
        pub allow_override_list: Setting<Arc<Vec<String>>>,
        /// `<Files>` and `<FilesMatch>`, in order of appearance.
        pub files: Append<Arc<Section>>,
        /// `<If>`, `<ElseIf>`, `<Else>`, in order of appearance.
        pub ifs: Append<Arc<Section>>,
        /// `LimitRequestBody`, bytes; 0 for no limit.
        pub limit_request_body: Setting<u64>,
    }
}

impl CoreDir {
    /// `LimitRequestBody`, by default 1 GiB; `None` for no limit.
    pub fn limit_request_body(&self) -> Option<u64> {
        Some(self.limit_request_body.or(1 << 30)).filter(|limit| *limit > 0)
    }
}
