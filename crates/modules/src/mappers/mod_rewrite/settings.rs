//! Server and per-directory configuration, and the inheritance of rules.
//!
//! Source: `config_server_merge`, `config_perdir_merge`.

use std::collections::BTreeMap;
use std::sync::Arc;

use server::merge::Merge;

use super::condition::Condition;
use super::map::Map;
use super::rule_set::RuleSet;

/// The words of `RewriteOptions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options(u16);

impl Options {
    /// `Inherit`
    pub const INHERIT: Options = Options(1);
    /// `InheritBefore`
    pub const INHERIT_BEFORE: Options = Options(2);
    /// `AllowNoSlash`
    pub const ALLOW_NO_SLASH: Options = Options(4);
    /// `AllowAnyURI`
    pub const ALLOW_ANY_URI: Options = Options(8);
    /// `MergeBase`
    pub const MERGE_BASE: Options = Options(16);
    /// `InheritDown`
    pub const INHERIT_DOWN: Options = Options(32);
    /// `InheritDownBefore`
    pub const INHERIT_DOWN_BEFORE: Options = Options(64);
    /// `IgnoreInherit`
    pub const IGNORE_INHERIT: Options = Options(128);
    /// `IgnoreContextInfo`
    pub const IGNORE_CONTEXT_INFO: Options = Options(256);
    /// `LegacyPrefixDocRoot`
    pub const LEGACY_PREFIX: Options = Options(512);
    /// `UnsafePrefixStat`
    pub const UNSAFE_PREFIX_STAT: Options = Options(1024);

    /// The option of a word, ignoring case.
    pub fn of_word(word: &[u8]) -> Option<Options> {
        const WORDS: [(&str, Options); 11] = [
            ("Inherit", Options::INHERIT),
            ("InheritBefore", Options::INHERIT_BEFORE),
            ("InheritDown", Options::INHERIT_DOWN),
            ("InheritDownBefore", Options::INHERIT_DOWN_BEFORE),
            ("IgnoreInherit", Options::IGNORE_INHERIT),
            ("AllowNoSlash", Options::ALLOW_NO_SLASH),
            ("AllowAnyURI", Options::ALLOW_ANY_URI),
            ("MergeBase", Options::MERGE_BASE),
            ("IgnoreContextInfo", Options::IGNORE_CONTEXT_INFO),
            ("LegacyPrefixDocRoot", Options::LEGACY_PREFIX),
            ("UnsafePrefixStat", Options::UNSAFE_PREFIX_STAT),
        ];
        let found = WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, option)| *option)
    }

    /// Whether an option is set.
    pub const fn has(self, option: Options) -> bool {
        self.0 & option.0 != 0
    }

    /// The union of both.
    pub const fn with(self, option: Options) -> Options {
        Options(self.0 | option.0)
    }
}

/// How rules of an outer section are combined with inner ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inheritance {
    None,
    /// The inner rules come first.
    After,
    /// The outer rules come first.
    Before,
}

fn inheritance(outer: Options, merged: Options) -> Inheritance {
    let is_handed_down = |option| outer.has(option) && !merged.has(Options::IGNORE_INHERIT);
    if merged.has(Options::INHERIT) || is_handed_down(Options::INHERIT_DOWN) {
        Inheritance::After
    } else if merged.has(Options::INHERIT_BEFORE) || is_handed_down(Options::INHERIT_DOWN_BEFORE) {
        Inheritance::Before
    } else {
        Inheritance::None
    }
}

/// The settings that servers and directories share.
#[derive(Clone, Default)]
pub(super) struct Common {
    /// `RewriteEngine`
    pub engine: Option<bool>,
    /// `RewriteOptions`
    pub options: Option<Options>,
    /// `RewriteRule`
    pub rules: RuleSet,
    /// `RewriteCond` lines that wait for their rule.
    pub pending: Vec<Condition>,
}

impl Common {
    /// `RewriteEngine`, which is off by default.
    pub fn is_on(&self) -> bool {
        self.engine == Some(true)
    }

    /// The options that are set.
    pub fn options(&self) -> Options {
        self.options.unwrap_or_default()
    }

    /// Adds an option.
    pub fn add_option(&mut self, option: Options) {
        self.options = Some(self.options().with(option));
    }

    /// Whether a rule sets a type or handler.
    pub fn forces_type(&self) -> bool {
        self.rules.iter().any(|rule| rule.forces_type())
    }

    fn merge(outer: &Self, inner: &Self) -> (Self, Inheritance) {
        let options = inner.options.or(outer.options);
        let how = inheritance(outer.options(), options.unwrap_or_default());
        let join = |first: &Self, second: &Self| {
            let rules = first.rules.and(&second.rules);
            let pending = first.pending.iter().chain(&second.pending).cloned().collect();
            (rules, pending)
        };
        let (rules, pending) = match how {
            Inheritance::None => (inner.rules.clone(), inner.pending.clone()),
            Inheritance::After => join(inner, outer),
            Inheritance::Before => join(outer, inner),
        };
        let engine = inner.engine.or(outer.engine);
        (Common { engine, options, rules, pending }, how)
    }
}

/// Server configuration.
#[derive(Clone, Default)]
pub struct Settings {
    pub(super) common: Common,
    /// `RewriteMap`
    pub(super) maps: BTreeMap<Vec<u8>, Arc<Map>>,
    /// Whether the server or one of its sections has a directive of this module.
    pub(super) is_mentioned: bool,
    /// Whether it belongs to a virtual host without directives of this module: no rules of a server
    /// run.
    pub(super) is_foreign: bool,
}

impl Merge for Settings {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if !inner.is_mentioned {
            return Settings { is_foreign: true, ..outer.clone() };
        }
        let (common, how) = Common::merge(&outer.common, &inner.common);
        let mut maps = inner.maps.clone();
        for (name, map) in &outer.maps {
            match how {
                Inheritance::None => {}
                Inheritance::After => {
                    maps.entry(name.clone()).or_insert_with(|| map.clone());
                }
                Inheritance::Before => {
                    maps.insert(name.clone(), map.clone());
                }
            }
        }
        Settings { common, maps, is_mentioned: true, is_foreign: false }
    }
}

/// Per-directory configuration, or that of another section.
#[derive(Clone, Default)]
pub struct Directory {
    pub(super) common: Common,
    /// The path of the section, with a trailing slash; `None` outside of sections.
    pub(super) path: Option<Arc<[u8]>>,
    /// `RewriteBase`
    pub(super) base: Option<Arc<[u8]>>,
    /// Whether an `.htaccess` only has directives of this module that it may not have, which
    /// `AllowOverride Nonfatal=` leaves out.
    pub(super) is_skipped: bool,
}

impl Merge for Directory {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.is_skipped && outer.path.is_some() {
            // In Apache the rules of outer sections end here, and with them what they forbid.
            return outer.clone();
        }
        let (common, _) = Common::merge(&outer.common, &inner.common);
        let base = match common.options().has(Options::MERGE_BASE) {
            true => inner.base.clone().or_else(|| outer.base.clone()),
            false => inner.base.clone(),
        };
        Directory { common, path: inner.path.clone(), base, is_skipped: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str, options: Option<Options>) -> Directory {
        let path = Some(Arc::from(path.as_bytes()));
        let common = Common { options, ..Common::default() };
        Directory { common, path, base: Some(Arc::from(&b"/base"[..])), is_skipped: false }
    }

    #[test]
    fn a_base_is_inherited_only_where_asked() {
        let outer = directory("/a/", None);
        let inner = Directory { base: None, ..directory("/a/b/", None) };
        assert!(Directory::merge(&outer, &inner).base.is_none());
        let inner = Directory { base: None, ..directory("/a/b/", Some(Options::MERGE_BASE)) };
        let merged = Directory::merge(&outer, &inner);
        assert!(merged.base.is_some());
        assert_eq!(merged.path.as_deref(), Some(&b"/a/b/"[..]));
    }

    #[test]
    fn a_host_of_which_nothing_is_said_is_foreign() {
        let outer = Settings { is_mentioned: true, ..Settings::default() };
        assert!(Settings::merge(&outer, &Settings::default()).is_foreign);
        assert!(!Settings::merge(&outer, &outer).is_foreign);
    }

    #[test]
    fn options_are_words() {
        assert_eq!(Options::of_word(b"inheritdown"), Some(Options::INHERIT_DOWN));
        assert_eq!(Options::of_word(b"LongURLOptimization"), None);
    }
}
