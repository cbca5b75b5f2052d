//! Sections: `<Directory>`, `<Files>`, `<Location>`, `<If>` and their `Match` forms.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conf::Span;
use conf::expr::Expr;
use pcre::Regex;

use crate::config::registry::Slots;

/// A section: its condition and configuration.
pub struct Section {
    /// Its id in the plan cache; never reused.
    pub id: u64,
    /// Its condition.
    pub matches: Matches,
    /// Directory configurations set inside.
    pub dir: Slots,
    /// Its position.
    pub span: Span,
    /// Its lifetime.
    pub lifetime: Lifetime,
}

/// The lifetime of a section, or of a configuration merged from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// As long as the configuration.
    Configuration,
    /// As long as a loop caches the parsed `.htaccess`.
    Kept,
    /// For the request that read the `.htaccess`.
    Request,
}

impl Section {
    /// Returns a section with a new id.
    pub fn new(matches: Matches, dir: Slots, span: Span) -> Arc<Section> {
        Arc::new(Section { id: fresh_id(), matches, dir, span, lifetime: Lifetime::Configuration })
    }

    /// Returns the section for an `.htaccess`.
    pub fn of_htaccess(dir: Slots, lifetime: Lifetime) -> Arc<Section> {
        let (matches, span) = (Matches::Always, Span::default());
        Arc::new(Section { id: fresh_id(), matches, dir, span, lifetime })
    }
}

/// The condition of a section.
pub enum Matches {
    /// A literal path, with a trailing slash for directories.
    Path(Vec<u8>),
    /// A shell pattern (`fnmatch`).
    Wildcard(Vec<u8>),
    /// A regular expression; named groups become `MATCH_NAME` variables.
    Regex(Regex),
    /// `<If>`, `<ElseIf>`, `<Else>`.
    If(Condition),
    /// Always, for `.htaccess` and similar: applied by its holder.
    Always,
}

/// The condition of `<If>`, `<ElseIf>` and `<Else>`.
pub struct Condition {
    /// Whether it only applies if no section of the chain before it does: not `<If>`.
    pub is_else: bool,
    /// This must hold; `None` for `<Else>`.
    pub holds: Option<Arc<Expr>>,
    /// Where it stands, as `FILE:LINE`.
    pub place: Box<str>,
}

/// An id for a section or an `.htaccess`, unique in this process: ids are assigned before the fork
/// or in one child only.
pub fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
