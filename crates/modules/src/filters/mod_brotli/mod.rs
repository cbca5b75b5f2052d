//! mod_brotli: compresses responses with Brotli (RFC 7932).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_brotli.html>

mod encoder;
mod rows;

use std::io;

use conf::Arg;
use server::directive::{Fault, Row};
use server::filter::{FilterDef, Stage};
use server::hooks::{Hooks, Phase, Rank};
use server::merge::Setting;
use server::module::Module;
use server::variant_key::VariantKey;

use super::compressed::{BUFFER_BYTES, Coder, Effort, Filter};
use super::mod_deflate::coding::accepts;
use super::mod_deflate::recode::Pack;
use super::settings::{self, Compressor, Settings};

/// `mod_brotli.c`
pub struct Brotli;

impl Module for Brotli {
    const NAME: &'static str = "brotli_module";
    const FILE: &'static str = "mod_brotli.c";
    type Server = ServerConfig;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Brotli>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Brotli>) {
        hooks.output_filter(FilterDef {
            name: "BROTLI_COMPRESS",
            stage: Stage::CONTENT_SET,
            make: |_| Some(Filter::<Brotli>::create()),
        });
        let (wants, note) = (settings::notes_wanted, settings::note_totals);
        hooks.on(Phase::LogTransaction, Rank::REALLY_FIRST, wants, note);
    }
}

impl Compressor for Brotli {
    type Own = Quality;
    const WRONG_ETAG: &'static str =
        "BrotliAlterETag accepts only 'AddSuffix', 'NoChange' and 'Remove'";

    fn of(host: &ServerConfig) -> &Setting<Settings<Quality>> {
        &host.own
    }

    fn of_mut(host: &mut ServerConfig) -> &mut Setting<Settings<Quality>> {
        &mut host.own
    }

    fn wrong_note(kind: &Arg) -> Fault {
        Fault::new(format!("Unknown BrotliFilterNote type '{}'", kind.text)).at(kind)
    }
}

impl Coder for Brotli {
    const CODING: &'static [u8] = b"br";
    const VARIABLE: &'static [u8] = b"no-brotli";
    const KEY: &'static VariantKey = &TAKES_BROTLI;
}

server::config! {
    /// Per-host configuration. As in Apache's module nothing is merged: one directive in a virtual
    /// host, and nothing is inherited.
    pub struct ServerConfig {
        /// All directives.
        pub own: Setting<Settings<Quality>>,
    }
}

/// From this quality on, the encoder looks for repetitions for some ten milliseconds in 64 KiB.
const SLOW_QUALITY: u8 = 5;

/// How much the encoder tries.
#[derive(Clone, Copy, Debug)]
pub struct Quality {
    /// `BrotliCompressionQuality`
    quality: u8,
    /// `BrotliCompressionWindow`: the logarithm of the window's bytes.
    window: u8,
    /// `BrotliCompressionMaxInputBlock`: the logarithm of the block's bytes; 0 for Brotli's choice.
    block: u8,
}

impl Default for Quality {
    fn default() -> Quality {
        Quality { quality: 5, window: 18, block: 0 }
    }
}

impl Effort for Quality {
    fn is_slow(self) -> bool {
        self.quality >= SLOW_QUALITY
    }

    fn number(self) -> u64 {
        const BROTLI: u64 = 1 << 62;
        BROTLI | u64::from(self.quality) << 16 | u64::from(self.window) << 8 | u64::from(self.block)
    }

    /// Without a search for repetitions, output comes with each piece of input.
    fn buffer_bytes(self) -> usize {
        if self.quality < 2 { 0 } else { BUFFER_BYTES }
    }

    fn pack(self) -> io::Result<Box<dyn Pack>> {
        Ok(Box::new(encoder::packer(self)))
    }
}

/// Whether the client accepts Brotli.
static TAKES_BROTLI: VariantKey = VariantKey {
    name: "Accept-Encoding: br",
    of: |request| {
        let field = request.head.headers_in.get(b"Accept-Encoding");
        u16::from(field.is_some_and(|field| accepts(field, b"br")))
    },
};
