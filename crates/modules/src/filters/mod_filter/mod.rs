//! mod_filter: which output filters an answer goes through, decided when the answer is known.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_filter.html>

mod chain;
mod harness;
mod protocol;
mod rows;

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use conf::expr::Expr;
use server::directive::Row;
use server::filter::{FilterDef, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank};
use server::merge::Overlay;
use server::module::Module;

use chain::Chain;
use protocol::Protocols;

/// `mod_filter.c`
pub struct Filter;

impl Module for Filter {
    const NAME: &'static str = "filter_module";
    const FILE: &'static str = "mod_filter.c";
    type Server = ();
    type Dir = DirConfig;
    const DIRECTIVES: &'static [Row<Filter>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Filter>) {
        // What it adds depends on configuration and media type alone; an answer with a filter on it
        // is never reused.
        hooks.on(Phase::InsertFilter, Rank::MIDDLE, has_chain, harness::insert).pure();
        hooks.provider("filter-protocols", "mod_filter", Protocols::default());
    }
}

server::config! {
    /// What a directory says of filters.
    pub struct DirConfig {
        /// Filters by name, as declared: an inner declaration replaces the outer one.
        pub filters: Overlay<Vec<u8>, SmartFilter>,
        /// Which of them answers go through.
        pub chain: Chain,
    }
}

/// A filter that chooses among providers.
#[derive(Clone)]
pub struct SmartFilter {
    /// Where in the chain it stands.
    pub stage: Stage,
    /// `FilterProvider`, in order.
    pub providers: Vec<Provider>,
    /// `FilterProtocol` without a provider, bits of [`protocol`].
    pub protocol: u8,
    /// `FilterTrace`
    pub trace: i64,
}

/// One choice.
#[derive(Clone)]
pub struct Provider {
    /// The filter that works if this is chosen.
    pub filter: Arc<FilterDef>,
    /// When it is chosen.
    pub when: Condition,
    /// `FilterProtocol` of that filter, wherever it was said: bits of [`protocol`].
    pub protocol: Arc<AtomicU8>,
}

/// When a provider is chosen.
#[derive(Clone)]
pub enum Condition {
    /// An expression holds.
    Expr(Arc<Expr>),
    /// The media type is one of these (`AddOutputFilterByType`).
    Types(Arc<Vec<Vec<u8>>>),
}

fn has_chain(filter: Bound<'_, Filter>) -> bool {
    !filter.dir.chain.is_empty()
}
