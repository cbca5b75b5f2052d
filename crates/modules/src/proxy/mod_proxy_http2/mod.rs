//! mod_proxy_http2: forwards requests to servers of HTTP/2.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_http2.html>

mod body;
mod canonical;
mod conversation;
mod failed;
mod forward;
mod head;
mod link;
mod request_head;
mod rest;

use server::hooks::Hooks;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_http2.c`
pub struct ProxyHttp2;

impl Module for ProxyHttp2 {
    const NAME: &'static str = "proxy_http2_module";
    const FILE: &'static str = "mod_proxy_http2.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider::<SchemeProvider>(GROUP, "h2", &Http2 { port: 443 });
        hooks.provider::<SchemeProvider>(GROUP, "h2c", &Http2 { port: 80 });
    }
}

/// `h2:`, over TLS, and `h2c:`
struct Http2 {
    port: u16,
}

impl Scheme for Http2 {
    fn default_port(&self) -> u16 {
        self.port
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url, self.port)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}
