//! mod_proxy_wstunnel: tunnels to WebSocket servers. It leaves them to mod_proxy_http, if that is
//! loaded and the configuration does not object.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_wstunnel.html>

mod canonical;
mod forward;

use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::Proxy;
use super::mod_proxy::scheme::{Exchange, Scheme, SchemeProvider, Served, UPGRADES};

/// `mod_proxy_wstunnel.c`
pub struct ProxyWstunnel;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ProxyWebsocketFallbackToProxyHttp`
        pub falls_back: Setting<bool>,
    }
}

impl Module for ProxyWstunnel {
    const NAME: &'static str = "proxy_wstunnel_module";
    const FILE: &'static str = "mod_proxy_wstunnel.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<ProxyWstunnel>] = &[Row::<ProxyWstunnel>::new(
        "ProxyWebsocketFallbackToProxyHttp",
        Takes::Flag(fall_back),
        "On|Off",
        "Lets mod_proxy_http, if it is loaded, serve `ws:` and `wss:`: a response other than 101 \
         is then one of HTTP, and a request without `Upgrade` goes to the backend as it is.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("On")];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider::<SchemeProvider>(UPGRADES, "ws", &WebSocket { port: 80 });
        hooks.provider::<SchemeProvider>(UPGRADES, "wss", &WebSocket { port: 443 });
    }
}

fn fall_back(cx: &mut Cx<'_, '_, ProxyWstunnel>, on: bool) -> Set {
    cx.dir().falls_back.set(on);
    Ok(())
}

/// `ws:` and `wss:`
struct WebSocket {
    port: u16,
}

impl Scheme for WebSocket {
    fn default_port(&self) -> u16 {
        self.port
    }

    fn accepts(&self, request: &Request, url: &[u8]) -> bool {
        let is = |scheme: &[u8]| {
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        let is_own = is(b"ws:") || is(b"wss:");
        !is_own || request.head.headers_in.contains(b"Upgrade") || successor(request).is_some()
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        match successor(request) {
            Some(http) => http.canonical(request, url),
            None => canonical::canonical(request, url, self.port),
        }
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        match successor(exchange.request) {
            Some(http) => http.serve(exchange),
            None if exchange.request.connection.stream.is_some() => {
                Box::pin(async move { forward::switch(&mut exchange).await })
            }
            None => Box::pin(async move { forward::connect(&mut exchange).await }),
        }
    }
}

/// mod_proxy_http, if it serves the request.
fn successor(request: &Request) -> Option<SchemeProvider> {
    let falls_back = request.dir_of::<ProxyWstunnel>().is_none_or(|dir| dir.falls_back.or(true));
    let workers = &request.server_of::<Proxy>().filter(|_| falls_back)?.workers.0;
    workers.scheme(b"http")
}
