//! mod_proxy_hcheck: asks members of balancers whether they are well, apart from requests.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_hcheck.html>

mod check;
mod parameters;
mod response;
mod rounds;
mod rows;
mod verdict;

use std::sync::Arc;

use conf::expr::Expr;
use server::directive::Row;
use server::expr::Extension;
use server::hooks::Hooks;
use server::merge::Own;
use server::module::Module;

use super::mod_proxy::checks::Checks;
pub use parameters::set;

/// `mod_proxy_hcheck.c`
pub struct ProxyHcheck;

/// `ProxyHCTemplate`
#[derive(Clone)]
pub struct Template {
    /// Its name.
    pub name: Vec<u8>,
    /// What it sets.
    pub checks: Checks,
}

/// `ProxyHCExpr`
#[derive(Clone)]
pub struct Condition {
    /// Its name.
    pub name: Vec<u8>,
    /// The expression as written.
    pub text: Vec<u8>,
    /// What a response has to fulfil.
    pub expression: Arc<Expr>,
}

server::config! {
    /// Server configuration. Hosts do not inherit it.
    pub struct Settings {
        /// `ProxyHCTemplate`
        pub templates: Own<Vec<Template>>,
        /// `ProxyHCExpr`
        pub conditions: Own<Vec<Condition>>,
    }
}

impl Module for ProxyHcheck {
    const NAME: &'static str = "proxy_hcheck_module";
    const FILE: &'static str = "mod_proxy_hcheck.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<ProxyHcheck>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider::<Extension>(server::expr::GROUP, "hcheck", EXTENSION);
        hooks.every_second(rounds::every_second);
    }
}

/// `hc()` and `%{HC_…}`, which are empty in requests of clients.
const EXTENSION: Extension = Extension {
    variable: |name| {
        let start = name.get(..3).unwrap_or_default();
        start.eq_ignore_ascii_case("HC_").then_some(OF_VARIABLE)
    },
    function: |name| name.eq_ignore_ascii_case("hc").then_some(OF_FUNCTION),
    ..Extension::NOTHING
};

/// The number of `%{HC_…}`.
const OF_VARIABLE: u16 = 1;
/// The number of `hc(…)`.
const OF_FUNCTION: u16 = 0;
