//! mod_proxy_scgi: forwards requests to SCGI servers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_scgi.html>

mod canonical;
mod forward;
mod instead;
mod rows;

use server::directive::Row;
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_scgi.c`
pub struct ProxyScgi;

/// The name of a field of the response; `None` is `Off`.
type FieldName = Option<Box<[u8]>>;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ProxySCGISendfile`
        pub sendfile: Setting<FieldName>,
        /// `ProxySCGIInternalRedirect`
        pub internal_redirect: Setting<FieldName>,
    }
}

impl Module for ProxyScgi {
    const NAME: &'static str = "proxy_scgi_module";
    const FILE: &'static str = "mod_proxy_scgi.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<ProxyScgi>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let provider: SchemeProvider = &Scgi;
        hooks.provider(GROUP, "scgi", provider);
    }
}

/// The scheme.
struct Scgi;

impl Scheme for Scgi {
    fn default_port(&self) -> u16 {
        4000
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}
