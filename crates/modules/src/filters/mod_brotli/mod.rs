//! mod_brotli: compresses responses with Brotli (RFC 7932).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_brotli.html>

mod encoder;
mod rows;

use server::body::Body;
use server::directive::Row;
use server::filter::{FilterDef, OutputFilter, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use server::variant_key::VariantKey;

use super::compressed::{self, Compression};
use super::mod_deflate::AlterEtag;
use super::mod_deflate::coding::accepts;
use super::mod_deflate::recode::{Notes, Pack};

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
            make: |_| Some(Box::new(Filter)),
        });
        let wants = |brotli: Bound<'_, Brotli>| {
            brotli.server.own.get().is_some_and(|settings| settings.notes.is_any())
        };
        hooks.on(Phase::LogTransaction, Rank::REALLY_FIRST, wants, note_totals);
    }
}

server::config! {
    /// Per-host configuration. As in Apache's module nothing is merged: one directive in a virtual
    /// host, and nothing is inherited.
    pub struct ServerConfig {
        /// All directives.
        pub own: Setting<Settings>,
    }
}

/// The directives of a host.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `BrotliCompressionQuality`
    quality: u8,
    /// `BrotliCompressionWindow`: the logarithm of the window's bytes.
    window: u8,
    /// `BrotliCompressionMaxInputBlock`: the logarithm of the block's bytes; 0 for Brotli's choice.
    block: u8,
    /// `BrotliAlterETag`
    etag: AlterEtag,
    /// `BrotliFilterNote`
    notes: Notes,
}

impl Default for Settings {
    fn default() -> Settings {
        let (etag, notes) = (AlterEtag::AddSuffix, Notes::default());
        Settings { quality: 5, window: 18, block: 0, etag, notes }
    }
}

impl Settings {
    /// A number for everything that the compressed body depends on besides the content.
    fn number(&self) -> u64 {
        const BROTLI: u64 = 1 << 62;
        BROTLI | u64::from(self.quality) << 16 | u64::from(self.window) << 8 | u64::from(self.block)
    }
}

/// `BROTLI_COMPRESS`
struct Filter;

impl OutputFilter for Filter {
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        let settings = request.server_of::<Brotli>().and_then(|config| config.own.get());
        let settings = settings.cloned().unwrap_or_default();
        let how = Compression {
            coding: b"br",
            variable: b"no-brotli",
            key: &TAKES_BROTLI,
            etag: settings.etag,
            number: settings.number(),
            pack: &|| Ok(Box::new(encoder::packer(&settings)) as Box<dyn Pack>),
            // Without a search for repetitions, output comes with each piece of input.
            buffer_bytes: if settings.quality < 2 { 0 } else { compressed::BUFFER_BYTES },
            has_notes: settings.notes.is_any(),
        };
        compressed::apply(request, body, &how)
    }

    fn is_pure(&self) -> bool {
        true
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

/// Sets the notes for the log.
fn note_totals<'r>(brotli: Bound<'r, Brotli>, request: &'r mut Request) -> Step<'r> {
    match brotli.server.own.get() {
        Some(settings) => settings.notes.set(request),
        None => Step::DECLINED,
    }
}
