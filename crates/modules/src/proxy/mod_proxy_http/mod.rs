//! mod_proxy_http: forwards requests to HTTP servers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_http.html>

mod answer;
mod asks;
mod body;
mod canonical;
mod failed;
mod forward;
pub(in crate::proxy) mod interim;
pub(in crate::proxy) mod request_head;
pub(in crate::proxy) mod upgrade;
mod warnings;

use server::errorlog::Verbatim;
use server::hooks::{Hooks, Verdict};
use server::log::Level;
use server::module::Module;
use server::request::Request;

pub(in crate::proxy) use answer::status_line;
pub(in crate::proxy) use forward::forward;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};
use super::mod_proxy::tls::is_tls;
use crate::ssl::mod_ssl::Ssl;

/// `mod_proxy_http.c`
pub struct ProxyHttp;

impl Module for ProxyHttp {
    const NAME: &'static str = "proxy_http_module";
    const FILE: &'static str = "mod_proxy_http.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider::<SchemeProvider>(GROUP, "http", &Http { port: 80 });
        hooks.provider::<SchemeProvider>(GROUP, "https", &Http { port: 443 });
        hooks.provider::<SchemeProvider>(GROUP, "ws", &Http { port: 80 });
        hooks.provider::<SchemeProvider>(GROUP, "wss", &Http { port: 443 });
    }
}

/// `http:` and `https:`, `ws:` and `wss:`
struct Http {
    port: u16,
}

impl Scheme for Http {
    fn default_port(&self) -> u16 {
        self.port
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        if is_tls(exchange.url) && exchange.request.dir_of::<Ssl>().is_none() {
            let url = Verbatim::new(exchange.url);
            let text = format_args!("HTTPS: declining URL {url} (mod_ssl not configured?)");
            exchange.request.log::<ProxyHttp>(Level::Trace1, 1112, text);
            return Box::pin(async { Ok(Verdict::Declined) });
        }
        Box::pin(async move { forward(&mut exchange).await })
    }
}
