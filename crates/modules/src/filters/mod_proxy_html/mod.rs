//! mod_proxy_html: rewrites the links of HTML pages, so that they lead through the proxy.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_proxy_html.html>

mod config;
mod filter;
mod html;
mod meta;
mod rows;
mod rules;
mod writer;

use std::sync::Arc;

use server::directive::Row;
use server::filter::{FilterDef, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::host::Server;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use crate::filters::mod_xml2enc::{self, Sniff};

pub use config::DirConfig;

/// `mod_proxy_html.c`
pub struct ProxyHtml;

impl Module for ProxyHtml {
    const NAME: &'static str = "proxy_html_module";
    const FILE: &'static str = "mod_proxy_html.c";
    type Server = ();
    type Dir = DirConfig;
    const DIRECTIVES: &'static [Row<ProxyHtml>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, ProxyHtml>) {
        hooks.output_filter(FilterDef {
            name: FILTER,
            stage: Stage::RESOURCE,
            make: |_| Some(Box::new(filter::Filter::default())),
        });
        hooks.on(Phase::InsertFilter, Rank::MIDDLE, is_enabled, insert);
        hooks.logs_opened(remark);
    }
}

/// The filter's name.
const FILTER: &str = "proxy-html";

fn is_enabled(module: Bound<'_, ProxyHtml>) -> bool {
    module.dir.html.is_enabled
}

/// Adds the filter, and the one that finds out the character set.
fn insert<'r>(_: Bound<'r, ProxyHtml>, request: &'r mut Request) -> Step<'r> {
    if has_xml2enc(request) {
        let sniff = Sniff { may_skip: false };
        request.add_filter(mod_xml2enc::FILTER, Stage::RESOURCE, Box::new(sniff));
    }
    request.add_filter(FILTER, Stage::RESOURCE, Box::new(filter::Filter::default()));
    Step::OK
}

/// Source: `mod_proxy_html` (the hook).
fn remark(server: &Arc<Server>) {
    if server.registry.hooks.filter(mod_xml2enc::FILTER.as_bytes()).is_none() {
        let what = format_args!(
            "I18n support in mod_proxy_html requires mod_xml2enc. Without it, non-ASCII characters \
             in proxied pages are likely to display incorrectly."
        );
        server.log(ProxyHtml::FILE, Level::Notice, 1425, what);
    }
}

/// Whether mod_xml2enc is loaded.
fn has_xml2enc(request: &Request) -> bool {
    request.engine.server.registry.hooks.filter(mod_xml2enc::FILTER.as_bytes()).is_some()
}
