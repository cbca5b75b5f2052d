//! mod_include: server-side includes.
//!
//! A page is parsed to pieces ([`parse`]) once for its file ([`compiled`]), and its elements are
//! executed in order ([`page`]) before the response is sent, up to a program that takes its time:
//! what follows is executed after its output has been sent ([`rest`]). The response of a page that
//! depends on files alone is cached ([`dependencies`]).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_include.html>

mod arguments;
mod captured;
mod clock;
mod coding;
mod compiled;
mod config;
mod dependencies;
mod echo;
mod entity;
mod exec;
mod file_info;
mod filter;
mod flow;
mod include;
mod legacy;
mod output;
mod page;
mod parse;
mod rest;
mod rows;
mod substitute;
mod variables;

use std::borrow::Cow;

use server::directive::Row;
use server::filter::{FilterDef, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step, always};
use server::module::Module;
use server::request::Request;

use config::{Directory, ServerConfig, XBitHack};

/// `mod_include.c`
pub struct Include;

/// The name of the filter.
const FILTER: &[u8] = b"INCLUDES";

impl Module for Include {
    const NAME: &'static str = "include_module";
    const FILE: &'static str = "mod_include.c";
    type Server = ServerConfig;
    type Dir = Directory;
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<Include>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Include>) {
        hooks.on(Phase::Fixups, Rank::LAST, always, fixup).pure();
        hooks.output_filter(FilterDef {
            name: "INCLUDES",
            stage: Stage::RESOURCE,
            make: filter::make,
        });
    }
}

/// Adds the filter for the handler `server-parsed`, and for what `XBitHack` selects.
///
/// Source: `include_fixup`
fn fixup<'r>(bound: Bound<'r, Include>, request: &'r mut Request) -> Step<'r> {
    if request.handler.as_deref() == Some(b"server-parsed") {
        if request.response.content_type.as_deref().unwrap_or_default().is_empty() {
            request.response.content_type = Some(b"text/html".to_vec());
        }
        request.handler = Some(Cow::Borrowed(b"default-handler"));
    } else if !has_execute_bit(bound.dir, request) {
        return Step::DECLINED;
    }
    request.add_filter_named(FILTER);
    Step::DECLINED
}

/// Whether `XBitHack` selects the file.
fn has_execute_bit(dir: &Directory, request: &Request) -> bool {
    const USER_EXECUTE: u32 = 0o100;
    const HTML: &[u8] = b"text/html";
    if dir.xbithack.or(XBitHack::Off) == XBitHack::Off {
        return false;
    }
    let media_type = request.response.content_type.as_deref().unwrap_or_default();
    request.resource.file.mode & USER_EXECUTE != 0 && media_type.starts_with(HTML)
}
