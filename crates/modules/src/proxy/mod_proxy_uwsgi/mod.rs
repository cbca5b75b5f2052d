//! mod_proxy_uwsgi: forwards requests to uwsgi servers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_uwsgi.html>

mod canonical;
mod forward;
mod response;
mod variables;

use server::hooks::Hooks;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_uwsgi.c`
pub struct ProxyUwsgi;

impl Module for ProxyUwsgi {
    const NAME: &'static str = "proxy_uwsgi_module";
    const FILE: &'static str = "mod_proxy_uwsgi.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let provider: SchemeProvider = &Uwsgi;
        hooks.provider(GROUP, "uwsgi", provider);
    }
}

/// The scheme.
struct Uwsgi;

impl Scheme for Uwsgi {
    fn default_port(&self) -> u16 {
        3031
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}
