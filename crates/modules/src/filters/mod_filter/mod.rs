//! mod_filter: chooses output filters once the response is known.
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
use server::filter::{KnownFilter, Stage};
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
        // The hook depends on configuration and media type only, and a response with a filter is
        // never cached.
        hooks.on(Phase::InsertFilter, Rank::MIDDLE, has_chain, harness::insert).pure();
        hooks.provider("filter-protocols", "mod_filter", Protocols::default());
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct DirConfig {
        /// Declared filters by name: an inner declaration replaces the outer one.
        pub filters: Overlay<Vec<u8>, SmartFilter>,
        /// The filters that responses pass through.
        pub chain: Chain,
    }
}

/// A filter that chooses among providers.
#[derive(Clone)]
pub struct SmartFilter {
    /// The filter's position in the chain.
    pub stage: Stage,
    /// `FilterProvider`, in order.
    pub providers: Vec<Provider>,
    /// `FilterProtocol` without a provider, as bits of [`protocol`].
    pub protocol: u8,
    /// `FilterTrace`
    pub trace: i64,
}

/// A provider with its condition.
#[derive(Clone)]
pub struct Provider {
    /// The filter that runs.
    pub filter: KnownFilter,
    /// When the provider is chosen.
    pub when: Condition,
    /// `FilterProtocol` of the filter, shared by all sections: bits of [`protocol`].
    pub protocol: Arc<AtomicU8>,
}

/// When a provider is chosen.
#[derive(Clone)]
pub enum Condition {
    /// An expression is true.
    Expr(Arc<Expr>),
    /// The media type is one of these (`AddOutputFilterByType`).
    Types(Arc<Vec<Vec<u8>>>),
}

fn has_chain(filter: Bound<'_, Filter>) -> bool {
    !filter.dir.chain.is_empty()
}
