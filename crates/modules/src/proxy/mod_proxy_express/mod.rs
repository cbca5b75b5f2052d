//! mod_proxy_express: a dbm file tells the backend of each host.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_express.html>

mod rows;

use std::sync::Arc;

use server::directive::Row;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::merge::{Own, Setting};
use server::module::Module;
use server::request::{Proxied, Request};

use super::mod_proxy::storage::PREFIX;
use crate::mappers::mod_rewrite::map::MapFile;

/// `mod_proxy_express.c`
pub struct ProxyExpress;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `ProxyExpressEnable On`
        pub is_enabled: Setting<bool>,
        /// `ProxyExpressDBMFile`
        pub file: Setting<Arc<MapFile>>,
        /// `ProxyExpressDBMType`, if it does not exist: then no host has a backend.
        pub unknown_type: Own<Option<Vec<u8>>>,
    }
}

impl Module for ProxyExpress {
    const NAME: &'static str = "proxy_express_module";
    const FILE: &'static str = "mod_proxy_express.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<ProxyExpress>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::TranslateName, Rank::FIRST, is_enabled, translate);
    }
}

fn is_enabled(express: Bound<'_, ProxyExpress>) -> bool {
    let settings = express.server;
    settings.is_enabled.or(false) && settings.file.is_set() && settings.unknown_type.0.is_none()
}

/// The hook of `translate_name`. Source: `xlate_name`.
fn translate<'r>(express: Bound<'r, ProxyExpress>, request: &'r mut Request) -> Step<'r> {
    debug(request, 1001, format_args!("Enabled"));
    let Some(file) = express.server.file.get() else { return Step::DECLINED };
    if request.resource.filename.starts_with(PREFIX) {
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(async move {
        match look_up(file, request).await {
            Some(backend) => map(request, &backend),
            None => Verdict::Declined,
        }
    }))
}

/// The backend of the request's host. A file that can't be read has none.
async fn look_up(file: &Arc<MapFile>, request: &mut Request) -> Option<Vec<u8>> {
    let name = request.server_name().to_vec();
    debug(request, 1003, format_args!("looking for {}", Verbatim::new(&name)));
    let backend = file.find(request, &name, false).await.ok()?.value?;
    let (name, shown) = (Verbatim::new(&name), Verbatim::new(&backend));
    debug(request, 1004, format_args!("found {name} -> {shown}"));
    Some(backend)
}

/// Makes the request one for the backend. As in Apache, redirects of the backend are not mapped,
/// whatever the manual says: that needs a ProxyPassReverse.
fn map(request: &mut Request, backend: &[u8]) -> Verdict {
    let url = [backend, &request.resource.uri].concat();
    request.proxy(Proxied::Reverse, &url);
    let shown = Verbatim::new(&request.resource.filename);
    debug(request, 1005, format_args!("rewritten as: {shown}"));
    Verdict::Ok
}

fn debug(request: &Request, number: u32, text: std::fmt::Arguments<'_>) {
    request.log::<ProxyExpress>(Level::Debug, number, format_args!("proxy_express: {text}"));
}
