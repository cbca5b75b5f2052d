//! Sections: `<Directory>`, `<Files>`, `<Location>`, `<If>` and their `Match` forms.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conf::Span;
use conf::expr::Expr;
use pcre::Regex;

use crate::config::registry::Slots;

/// A section: what it applies to, and the configuration in it.
pub struct Section {
    /// Its identity in the plan cache; never reused.
    pub id: u64,
    /// What it applies to.
    pub matches: Matches,
    /// Directory configurations set inside.
    pub dir: Slots,
    /// Where it stands.
    pub span: Span,
    /// How long it is there.
    pub lifetime: Lifetime,
}

/// How long a section, or what is merged from it, is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// As long as the configuration.
    Configuration,
    /// As long as a loop keeps what it has parsed of an `.htaccess`.
    Kept,
    /// For the request that has read the `.htaccess`.
    Request,
}

impl Section {
    /// A section with a fresh identity.
    pub fn new(matches: Matches, dir: Slots, span: Span) -> Arc<Section> {
        Arc::new(Section { id: fresh_id(), matches, dir, span, lifetime: Lifetime::Configuration })
    }

    /// The section that an `.htaccess` makes.
    pub fn of_htaccess(dir: Slots, lifetime: Lifetime) -> Arc<Section> {
        let (matches, span) = (Matches::Always, Span::default());
        Arc::new(Section { id: fresh_id(), matches, dir, span, lifetime })
    }
}

/// What a section applies to.
pub enum Matches {
    /// A literal path, with a slash at the end for directories.
    Path(Vec<u8>),
    /// A shell pattern (`fnmatch`).
    Wildcard(Vec<u8>),
    /// A regular expression; named groups become `MATCH_NAME` variables.
    Regex(Regex),
    /// An expression: `<If>`, `<ElseIf>`, `<Else>` hold all conditions of their chain.
    If(Condition),
    /// `<Proxy>`-like or `.htaccess`: applied by who holds it.
    Always,
}

/// The condition of `<If>`, `<ElseIf>` and `<Else>`.
pub struct Condition {
    /// None of these may hold: the conditions of the chain before.
    pub none_of: Vec<Arc<Expr>>,
    /// This must hold; `None` for `<Else>`.
    pub holds: Option<Arc<Expr>>,
}

/// An identity for a section or an `.htaccess`, unique in this process and, because it is drawn
/// before the fork or in one child alone, never mixed up between them.
pub fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
