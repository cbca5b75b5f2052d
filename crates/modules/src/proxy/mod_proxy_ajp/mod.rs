//! mod_proxy_ajp: forwards requests to servlet containers, such as Tomcat.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_ajp.html>

mod body;
mod canonical;
mod conversation;
mod failed;
mod forward;
mod head;
pub(super) mod ping;
mod request_packet;
mod rest;

use server::hooks::Hooks;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_ajp.c`
pub struct ProxyAjp;

impl Module for ProxyAjp {
    const NAME: &'static str = "proxy_ajp_module";
    const FILE: &'static str = "mod_proxy_ajp.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let provider: SchemeProvider = &Ajp;
        hooks.provider(GROUP, "ajp", provider);
    }
}

/// The scheme.
struct Ajp;

impl Scheme for Ajp {
    fn default_port(&self) -> u16 {
        8009
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}
