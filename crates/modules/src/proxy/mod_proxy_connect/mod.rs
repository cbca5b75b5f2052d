//! mod_proxy_connect: connections of clients to other servers through this one (CONNECT).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_connect.html>

mod forward;
mod port_range;

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::hooks::Hooks;
use server::merge::Append;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, Scheme, SchemeProvider, Served, TUNNELS};
use port_range::PortRange;

/// `mod_proxy_connect.c`
pub struct ProxyConnect;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `AllowCONNECT`
        pub allowed: Append<PortRange>,
    }
}

impl Module for ProxyConnect {
    const NAME: &'static str = "proxy_connect_module";
    const FILE: &'static str = "mod_proxy_connect.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<ProxyConnect>] = &[Row::<ProxyConnect>::new(
        "AllowCONNECT",
        Takes::Each(allow),
        "port[-port] [port[-port]] ...",
        "Sets the ports to which CONNECT may lead: those of HTTPS and of NNTP over TLS by default.",
    )
    .default("443 563")];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider::<SchemeProvider>(TUNNELS, "CONNECT", &Connect);
    }
}

/// Source: `set_allowed_ports`.
fn allow(cx: &mut Cx<'_, '_, ProxyConnect>, arg: &Arg) -> Set {
    let range = PortRange::parse(&arg.text).map_err(|why| Fault::new(why).at(arg))?;
    cx.server().allowed.push(range);
    Ok(())
}

/// The method, whose target is a host and a port.
struct Connect;

impl Scheme for Connect {
    fn default_port(&self) -> u16 {
        0
    }

    fn canonical(&self, _: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        Ok(url.to_vec())
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::connect(&mut exchange).await })
    }
}
