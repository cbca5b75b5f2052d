//! mod_deflate: compresses responses with gzip, and decompresses responses and request bodies.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_deflate.html>

pub(in crate::filters) mod coding;
pub(crate) mod gzip;
mod input;
mod output;
pub(in crate::filters) mod ratio;
pub(in crate::filters) mod recode;
mod rows;
pub(in crate::filters) mod totals;

use conf::Arg;
use server::directive::{Fault, Row};
use server::filter::{FilterDef, InputFilterDef, Stage};
use server::hooks::{Hooks, Phase, Rank};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::settings::{self, Compressor, Settings};

/// `mod_deflate.c`
pub struct Deflate;

impl Module for Deflate {
    const NAME: &'static str = "deflate_module";
    const FILE: &'static str = "mod_deflate.c";
    type Server = ServerConfig;
    type Dir = DirConfig;
    const DIRECTIVES: &'static [Row<Deflate>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Deflate>) {
        hooks.output_filter(FilterDef {
            name: "DEFLATE",
            stage: Stage::CONTENT_SET,
            make: |_| Some(Box::new(output::Pack)),
        });
        // Before filters that change the resource, so that those see plain content.
        hooks.output_filter(FilterDef {
            name: "INFLATE",
            stage: Stage(Stage::RESOURCE.0 - 1),
            make: |_| Some(Box::new(output::Unpack)),
        });
        hooks.input_filter(InputFilterDef { name: "DEFLATE", make: input::make });
        let note = settings::note_totals;
        hooks.on(Phase::LogTransaction, Rank::REALLY_FIRST, settings::notes_wanted, note);
    }
}

impl Compressor for Deflate {
    type Own = Packing;
    const WRONG_ETAG: &'static str =
        "DeflateAlterETAG accepts only 'NoChange', 'AddSuffix', and 'Remove'";

    fn of(host: &ServerConfig) -> &Setting<Settings<Packing>> {
        &host.own
    }

    fn of_mut(host: &mut ServerConfig) -> &mut Setting<Settings<Packing>> {
        &mut host.own
    }

    fn wrong_note(kind: &Arg) -> Fault {
        Fault::new(format!("Unknown note type {}", kind.text))
    }
}

server::config! {
    /// Per-host configuration. As in Apache's module nothing is merged: one directive in a virtual
    /// host, and nothing is inherited.
    pub struct ServerConfig {
        /// All directives.
        pub own: Setting<Settings<Packing>>,
    }
}

/// How a host compresses.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// `DeflateCompressionLevel`; `None` for zlib's default.
    pub level: Option<u32>,
    /// `DeflateWindowSize`: the logarithm of the window's bytes.
    pub window_bits: u8,
    /// `DeflateBufferSize`: bytes that are compressed before any are sent.
    pub buffer_bytes: usize,
}

impl Default for Packing {
    fn default() -> Packing {
        Packing { level: None, window_bits: 15, buffer_bytes: 8096 }
    }
}

impl Packing {
    /// A number for everything that the compressed body depends on besides the content.
    fn number(&self) -> u64 {
        let level = self.level.map_or(0, |level| u64::from(level) + 1);
        u64::from(self.window_bits) | level << 8 | (self.buffer_bytes as u64) << 16
    }
}

impl AlterEtag {
    /// The choice that an argument names.
    pub(in crate::filters) fn of(arg: &conf::Arg) -> Option<AlterEtag> {
        let words = [
            ("NoChange", AlterEtag::NoChange),
            ("AddSuffix", AlterEtag::AddSuffix),
            ("Remove", AlterEtag::Remove),
        ];
        words.iter().find(|(word, _)| arg.is(word)).map(|(_, choice)| *choice)
    }
}

/// How the ETag of recoded content changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlterEtag {
    /// Append `-gzip` or `-gunzip` before the last quote.
    #[default]
    AddSuffix,
    /// Keep it.
    NoChange,
    /// Remove it.
    Remove,
}

server::config! {
    /// Per-directory configuration of decompression. As for hosts, nothing is merged.
    pub struct DirConfig {
        /// All directives.
        pub own: Setting<Unpacking>,
    }
}

/// The directives of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpacking {
    /// `DeflateInflateLimitRequestBody`, bytes; `None` for `LimitRequestBody`.
    pub limit: Option<u64>,
    /// `DeflateInflateRatioLimit`
    pub ratio_limit: u64,
    /// `DeflateInflateRatioBurst`
    pub ratio_burst: u32,
}

impl Default for Unpacking {
    fn default() -> Unpacking {
        Unpacking { limit: None, ratio_limit: 200, ratio_burst: 3 }
    }
}

/// The settings for decompression in force for a request.
fn unpacking(request: &Request) -> Unpacking {
    let config = request.dir_of::<Deflate>();
    config.and_then(|config| config.own.get()).copied().unwrap_or_default()
}
