//! mod_proxy_fdpass: passes the client's connection to another process over a UNIX socket.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_fdpass.html>

mod forward;

use server::directive::Row;
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::module::Module;
use server::path;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_fdpass.c`
pub struct ProxyFdpass;

impl Module for ProxyFdpass {
    const NAME: &'static str = "proxy_fdpass_module";
    const FILE: &'static str = "mod_proxy_fdpass.c";
    type Server = ();
    type Dir = ();
    const DIRECTIVES: &'static [Row<ProxyFdpass>] = &[];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let provider: SchemeProvider = &Fd;
        hooks.provider(GROUP, "fd", provider);
    }
}

/// How URLs of the scheme begin, in any case.
const PREFIX: &[u8] = b"fd://";

/// The scheme: the rest of a URL is the socket's path.
struct Fd;

impl Scheme for Fd {
    fn default_port(&self) -> u16 {
        0
    }

    /// The path is relative to ServerRoot, and as the client has sent it: `proxy_fdpass_canon`.
    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        let root = &request.engine.server.server_root;
        let path = path::below_root(root.as_os_str().as_encoded_bytes(), socket_path(url));
        let canonical = [PREFIX, &path.unwrap_or_default()].concat();
        let shown = Verbatim::new(&canonical);
        let text = format_args!("set r->filename to proxy:{shown}");
        request.log::<ProxyFdpass>(Level::Debug, 1151, text);
        Ok(canonical)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}

/// The socket's path in a URL of the scheme.
fn socket_path(url: &[u8]) -> &[u8] {
    url.get(PREFIX.len()..).unwrap_or_default()
}
