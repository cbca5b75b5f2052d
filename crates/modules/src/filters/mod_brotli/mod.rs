//! mod_brotli: compresses responses with Brotli (RFC 7932).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_brotli.html>

mod encoder;
mod rows;

use std::io;

use conf::Arg;
use server::body::Body;
use server::directive::{Fault, Row};
use server::filter::{Beginning, FilterDef, OutputFilter, Stage};
use server::hooks::{Hooks, Phase, Rank};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use server::variant_key::VariantKey;

use super::compressed::{self, Compression};
use super::mod_deflate::coding::accepts;
use super::mod_deflate::recode::Pack;
use super::settings::{self, Compressor, InForce, Settings};

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
            make: |_| Some(Box::new(Filter::default())),
        });
        let (wants, note) = (settings::notes_wanted, settings::note_totals);
        hooks.on(Phase::LogTransaction, Rank::REALLY_FIRST, wants, note);
    }
}

impl Compressor for Brotli {
    type Own = Effort;
    const WRONG_ETAG: &'static str =
        "BrotliAlterETag accepts only 'AddSuffix', 'NoChange' and 'Remove'";

    fn of(host: &ServerConfig) -> &Setting<Settings<Effort>> {
        &host.own
    }

    fn of_mut(host: &mut ServerConfig) -> &mut Setting<Settings<Effort>> {
        &mut host.own
    }

    fn wrong_note(kind: &Arg) -> Fault {
        Fault::new(format!("Unknown BrotliFilterNote type '{}'", kind.text)).at(kind)
    }
}

server::config! {
    /// Per-host configuration. As in Apache's module nothing is merged: one directive in a virtual
    /// host, and nothing is inherited.
    pub struct ServerConfig {
        /// All directives.
        pub own: Setting<Settings<Effort>>,
    }
}

/// From this quality on, the encoder looks for repetitions for some ten milliseconds in 64 KiB.
const SLOW_QUALITY: u8 = 5;

/// How much the encoder tries.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// `BrotliCompressionQuality`
    quality: u8,
    /// `BrotliCompressionWindow`: the logarithm of the window's bytes.
    window: u8,
    /// `BrotliCompressionMaxInputBlock`: the logarithm of the block's bytes; 0 for Brotli's choice.
    block: u8,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { quality: 5, window: 18, block: 0 }
    }
}

impl Effort {
    /// Whether it takes too long for a loop.
    fn is_slow(&self) -> bool {
        self.quality >= SLOW_QUALITY
    }

    /// A number for everything that the compressed body depends on besides the content.
    fn number(&self) -> u64 {
        const BROTLI: u64 = 1 << 62;
        BROTLI | u64::from(self.quality) << 16 | u64::from(self.window) << 8 | u64::from(self.block)
    }
}

/// `BROTLI_COMPRESS`
#[derive(Default)]
struct Filter {
    is_done: bool,
}

impl OutputFilter for Filter {
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        let InForce { own: effort, .. } = settings::in_force::<Brotli>(request);
        if !effort.is_slow() || !compressed::is_for_later(request) {
            return None;
        }
        self.is_done = true;
        Some(Box::pin(async move {
            let in_force = settings::in_force::<Brotli>(request);
            let pack = move || Ok(Box::new(encoder::packer(effort)) as Box<dyn Pack>);
            compressed::apply_later(request, &compression(&in_force, &pack)).await;
            true
        }))
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if self.is_done {
            return body;
        }
        let in_force = settings::in_force::<Brotli>(request);
        let pack = || Ok(Box::new(encoder::packer(in_force.own)) as Box<dyn Pack>);
        compressed::apply(request, body, &compression(&in_force, &pack))
    }

    fn is_pure(&self) -> bool {
        true
    }
}

fn compression<'c>(
    InForce { own: effort, etag, has_notes }: &InForce<Effort>,
    pack: &'c dyn Fn() -> io::Result<Box<dyn Pack>>,
) -> Compression<'c> {
    Compression {
        coding: b"br",
        variable: b"no-brotli",
        key: &TAKES_BROTLI,
        etag: *etag,
        number: effort.number(),
        pack,
        // Without a search for repetitions, output comes with each piece of input.
        buffer_bytes: if effort.quality < 2 { 0 } else { compressed::BUFFER_BYTES },
        has_notes: *has_notes,
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
