//! mod_xml2enc: finds out the character set of text and converts it to UTF-8, for filters whose
//! parser reads only that.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_xml2enc.html>

pub(crate) mod charset;
mod filter;
mod rows;
mod sniff;

use std::sync::Arc;

use server::directive::Row;
use server::filter::{FilterDef, Stage};
use server::hooks::Hooks;
use server::merge::{Outermost, Setting};
use server::module::Module;
use server::request::Request;

use charset::Charset;

pub(crate) use filter::{Sniff, of_output};

/// `mod_xml2enc.c`
pub struct Xml2enc;

impl Module for Xml2enc {
    const NAME: &'static str = "xml2enc_module";
    const FILE: &'static str = "mod_xml2enc.c";
    type Server = ServerConfig;
    type Dir = DirConfig;
    const DIRECTIVES: &'static [Row<Xml2enc>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Xml2enc>) {
        hooks.output_filter(FilterDef {
            name: FILTER,
            stage: Stage::RESOURCE,
            make: |_| Some(Box::new(Sniff { may_skip: true })),
        });
    }
}

/// The filter's name.
pub(crate) const FILTER: &str = "xml2enc";

server::config! {
    /// Per-host configuration.
    pub struct ServerConfig {
        /// `xml2EncAlias`, of the whole server.
        pub aliases: Outermost<Aliases>,
    }
}

/// Aliases in upper case, and the names they stand for.
#[derive(Clone, Debug, Default)]
pub struct Aliases(pub Vec<(Vec<u8>, Vec<u8>)>);

impl Aliases {
    /// The name that `alias` stands for, or itself.
    fn resolve<'n>(&'n self, alias: &'n [u8]) -> &'n [u8] {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(alias));
        found.map_or(alias, |(_, name)| name)
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct DirConfig {
        /// `xml2EncDefault`: the name and what it means.
        pub default: Setting<(Vec<u8>, Charset)>,
        /// `xml2StartParse`
        pub starts: Setting<Arc<Vec<Vec<u8>>>>,
    }
}

/// What was found out about a response, for the filter behind.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The character set that the content has behind the filter.
    pub charset: Charset,
    /// The name of the character set that the content had.
    pub name: Vec<u8>,
    /// Where in the content an element was cut out, if it is not converted.
    pub cut: Option<usize>,
}

/// The name that an alias of the configuration stands for.
fn resolved<'n>(request: &'n Request, name: &'n [u8]) -> &'n [u8] {
    match request.server_of::<Xml2enc>() {
        Some(config) => config.aliases.0.resolve(name),
        None => name,
    }
}
