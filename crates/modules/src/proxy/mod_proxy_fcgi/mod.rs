//! mod_proxy_fcgi: forwards requests to FastCGI servers, such as PHP-FPM.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_fcgi.html>

mod canonical;
mod conversation;
mod forward;
mod rest;
mod rows;
mod upload;
mod variables;

use std::rc::Rc;
use std::sync::Arc;

use conf::expr::Expr;
use server::directive::Row;
use server::hooks::Hooks;
use server::merge::{Append, Setting};
use server::module::Module;
use server::plan::Plan;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_fcgi.c`
pub struct ProxyFcgi;

/// `ProxyFCGIBackendType`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendType {
    /// PHP-FPM, which knows Apache's form of `SCRIPT_FILENAME`.
    #[default]
    Fpm,
    /// Any other.
    Generic,
}

/// `ProxyFCGISetEnvIf`
#[derive(Clone)]
pub struct SetEnvIf {
    condition: Arc<Expr>,
    name: Vec<u8>,
    /// `None`: the variable is unset.
    value: Option<Arc<Expr>>,
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ProxyFCGIBackendType`
        pub backend_type: Setting<BackendType>,
        /// `ProxyFCGISetEnvIf`
        pub variables: Append<SetEnvIf>,
    }
}

impl Module for ProxyFcgi {
    const NAME: &'static str = "proxy_fcgi_module";
    const FILE: &'static str = "mod_proxy_fcgi.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<ProxyFcgi>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let provider: SchemeProvider = &Fcgi;
        hooks.provider(GROUP, "fcgi", provider);
    }
}

/// The scheme.
struct Fcgi;

impl Scheme for Fcgi {
    fn default_port(&self) -> u16 {
        8000
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}

/// The plan of a request, which has its configuration.
struct Configured(Rc<Plan>);

impl Configured {
    fn of(request: &Request) -> Configured {
        Configured(request.plan.clone())
    }

    fn directory(&self, request: &Request) -> Option<&Directory> {
        let slot = request.engine.server.registry.slot_of::<ProxyFcgi>()?;
        self.0.dir.get::<Directory>(slot)
    }
}

fn backend_type(request: &Request) -> BackendType {
    request
        .dir_of::<ProxyFcgi>()
        .map_or(BackendType::Fpm, |own| own.backend_type.or(BackendType::Fpm))
}
