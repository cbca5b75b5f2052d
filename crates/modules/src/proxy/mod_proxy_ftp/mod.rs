//! mod_proxy_ftp: forwards GET requests to FTP servers, and shows folders as HTML.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_ftp.html>

mod asked;
mod canonical;
mod client;
mod control;
mod data;
mod folder;
mod forward;
mod login;
mod page;
mod rows;
mod transfer;
mod wanted;

use server::directive::Row;
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_proxy::scheme::{Exchange, GROUP, Scheme, SchemeProvider, Served};

/// `mod_proxy_ftp.c`
pub struct ProxyFtp;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ProxyFtpListOnWildcard`
        pub lists_wildcards: Setting<bool>,
        /// `ProxyFtpEscapeWildcards`
        pub escapes_wildcards: Setting<bool>,
        /// `ProxyFtpDirCharset`
        pub charset: Setting<Vec<u8>>,
    }
}

impl Module for ProxyFtp {
    const NAME: &'static str = "proxy_ftp_module";
    const FILE: &'static str = "mod_proxy_ftp.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<ProxyFtp>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let provider: SchemeProvider = &Ftp;
        hooks.provider(GROUP, "ftp", provider);
    }
}

/// The port of URLs without one.
const PORT: u16 = 21;

/// The scheme.
struct Ftp;

impl Scheme for Ftp {
    fn default_port(&self) -> u16 {
        PORT
    }

    fn canonical(&self, request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
        canonical::canonical(request, url)
    }

    fn serve<'r>(&'r self, mut exchange: Exchange<'r>) -> Served<'r> {
        Box::pin(async move { forward::forward(&mut exchange).await })
    }
}
