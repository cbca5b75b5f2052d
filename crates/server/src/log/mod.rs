//! What a log line is made of, and where it goes: levels, formats, targets.

pub mod format;
mod held;
pub mod sinks;
pub mod target;

use crate::merge::Merge;

pub use held::HeldLines;

/// The words of `LogLevel`, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// The system is unusable.
    Emerg,
    /// Action must be taken immediately.
    Alert,
    /// Critical.
    Crit,
    /// An error.
    Error,
    /// A warning.
    Warn,
    /// Normal but significant.
    Notice,
    /// Informational.
    Info,
    /// For debugging.
    Debug,
    /// `trace1`
    Trace1,
    /// `trace2`
    Trace2,
    /// `trace3`
    Trace3,
    /// `trace4`
    Trace4,
    /// `trace5`
    Trace5,
    /// `trace6`
    Trace6,
    /// `trace7`
    Trace7,
    /// `trace8`
    Trace8,
}

/// All levels, most urgent first.
const LEVELS: [(Level, &str); 16] = [
    (Level::Emerg, "emerg"),
    (Level::Alert, "alert"),
    (Level::Crit, "crit"),
    (Level::Error, "error"),
    (Level::Warn, "warn"),
    (Level::Notice, "notice"),
    (Level::Info, "info"),
    (Level::Debug, "debug"),
    (Level::Trace1, "trace1"),
    (Level::Trace2, "trace2"),
    (Level::Trace3, "trace3"),
    (Level::Trace4, "trace4"),
    (Level::Trace5, "trace5"),
    (Level::Trace6, "trace6"),
    (Level::Trace7, "trace7"),
    (Level::Trace8, "trace8"),
];

impl Level {
    /// The word in the log and in `LogLevel`.
    pub const fn name(self) -> &'static str {
        LEVELS[self as usize].1
    }

    /// The level of a word, ignoring case; `err` and `warning` are accepted too.
    pub fn parse(word: &[u8]) -> Option<Level> {
        let found = LEVELS.iter().find(|(_, name)| word.eq_ignore_ascii_case(name.as_bytes()));
        match found {
            Some((level, _)) => Some(*level),
            None if word.eq_ignore_ascii_case(b"err") => Some(Level::Error),
            None if word.eq_ignore_ascii_case(b"warning") => Some(Level::Warn),
            None => None,
        }
    }
}

/// The level of one module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleLevel {
    /// The module's `FILE`.
    pub module: &'static str,
    /// The least urgent level to log.
    pub level: Level,
}

/// `LogLevel` and its inheritance: an inner level for all modules overrides outer levels of single
/// modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLevels {
    all: Option<Level>,
    modules: Vec<ModuleLevel>,
}

impl LogLevels {
    /// The default of `LogLevel`.
    pub const DEFAULT: Level = Level::Warn;

    /// Sets the level of all modules.
    pub fn set_all(&mut self, level: Level) {
        self.all = Some(level);
        self.modules.clear();
    }

    /// Sets the level of one module.
    pub fn set_module(&mut self, of: ModuleLevel) {
        self.modules.retain(|known| known.module != of.module);
        self.modules.push(of);
    }

    /// The least urgent level to log for a module, by its `FILE`.
    pub fn of(&self, module: &str) -> Level {
        let own = self.modules.iter().find(|known| known.module == module);
        own.map(|known| known.level).or(self.all).unwrap_or(LogLevels::DEFAULT)
    }
}

impl Merge for LogLevels {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.all.is_some() {
            return inner.clone();
        }
        let mut merged = outer.clone();
        for of in &inner.modules {
            merged.set_module(*of);
        }
        merged
    }
}

/// `LogLevel`'s name of where a loop runs and what is sent to it: the same in every MPM.
pub const MPM: &str = "mpm";

/// An identifier for log lines: 12 letters, digits, `-` and `_`, unique enough to find related
/// lines (`ap_make_log_id` also contains time and a counter).
pub fn fresh_log_id() -> [u8; 12] {
    use std::hash::{BuildHasher, Hasher};
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let random = |seed: u64| {
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_u64(seed);
        hasher.finish()
    };
    let bits = u128::from(random(1)) << 64 | u128::from(random(2));
    std::array::from_fn(|at| {
        let index = usize::try_from(bits >> (6 * at) & 63).unwrap_or(0);
        LETTERS.get(index).copied().unwrap_or(b'A')
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod level_tests {
    use super::*;

    #[test]
    fn levels_have_words() {
        assert_eq!(Level::parse(b"TRACE8"), Some(Level::Trace8));
        assert_eq!(Level::parse(b"err"), Some(Level::Error));
        assert_eq!(Level::parse(b"loud"), None);
        assert!(LEVELS.iter().all(|(level, name)| level.name() == *name));
    }

    #[test]
    fn a_level_for_all_takes_module_levels_back() {
        let mut outer = LogLevels::default();
        outer.set_module(ModuleLevel { module: "mod_ssl.c", level: Level::Debug });
        let mut inner = LogLevels::default();
        assert_eq!(LogLevels::merge(&outer, &inner).of("mod_ssl.c"), Level::Debug);
        inner.set_all(Level::Error);
        assert_eq!(LogLevels::merge(&outer, &inner).of("mod_ssl.c"), Level::Error);
        assert_eq!(LogLevels::default().of("core.c"), Level::Warn);
    }
}
