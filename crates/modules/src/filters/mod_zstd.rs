//! mod_zstd: compresses responses with Zstandard (RFC 8878). Apache has no such module; this one is
//! like mod_brotli.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_brotli.html>, whose module it follows.

use std::io;

use conf::Arg;
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::filter::{FilterDef, Stage};
use server::hooks::{Hooks, Phase, Rank};
use server::merge::Setting;
use server::module::Module;
use server::variant_key::VariantKey;
use zstd::stream::write::Encoder;
use zstd::zstd_safe::CParameter;

use super::compressed::{Coder, Effort, Encode, Filter, Packer};
use super::mod_deflate::coding::accepts;
use super::mod_deflate::recode::Pack;
use super::settings::{self, Compressor, Settings};
use crate::atoi::atol;

/// `mod_zstd.c`
pub struct Zstd;

impl Module for Zstd {
    const NAME: &'static str = "zstd_module";
    const FILE: &'static str = "mod_zstd.c";
    type Server = ServerConfig;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Zstd>] = &[
        Row::<Zstd>::new(
            "ZstdAlterETag",
            Takes::One(settings::alter_etag),
            "AddSuffix|NoChange|Remove",
            "Sets how the ETag of a compressed response changes.",
        )
        .default("AddSuffix"),
        Row::<Zstd>::new(
            "ZstdCompressionLevel",
            Takes::One(level),
            "value",
            "Sets the level of compression, from 1 (fastest) to 19 (smallest).",
        )
        .default("3"),
        Row::<Zstd>::new(
            "ZstdFilterNote",
            Takes::Some { least: 1, most: 2, set: settings::filter_note },
            "[type] notename",
            "Sets a note for the log with the size of input or output, or their ratio.",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, Zstd>) {
        hooks.output_filter(FilterDef {
            name: "ZSTD",
            stage: Stage::CONTENT_SET,
            make: |_| Some(Filter::<Zstd>::create()),
        });
        let (wants, note) = (settings::notes_wanted, settings::note_totals);
        hooks.on(Phase::LogTransaction, Rank::REALLY_FIRST, wants, note);
    }
}

impl Compressor for Zstd {
    type Own = Level;
    const WRONG_ETAG: &'static str =
        "ZstdAlterETag accepts only 'AddSuffix', 'NoChange' and 'Remove'";

    fn of(host: &ServerConfig) -> &Setting<Settings<Level>> {
        &host.own
    }

    fn of_mut(host: &mut ServerConfig) -> &mut Setting<Settings<Level>> {
        &mut host.own
    }

    fn wrong_note(kind: &Arg) -> Fault {
        Fault::new(format!("Unknown ZstdFilterNote type '{}'", kind.text)).at(kind)
    }
}

impl Coder for Zstd {
    const CODING: &'static [u8] = b"zstd";
    const VARIABLE: &'static [u8] = b"no-zstd";
    const KEY: &'static VariantKey = &TAKES_ZSTD;
}

server::config! {
    /// Per-host configuration. As with mod_brotli nothing is merged: one directive in a virtual
    /// host, and nothing is inherited.
    pub struct ServerConfig {
        /// All directives.
        pub own: Setting<Settings<Level>>,
    }
}

/// `ZstdCompressionLevel`
#[derive(Clone, Copy, Debug)]
pub struct Level(i32);

impl Default for Level {
    fn default() -> Level {
        Level(3)
    }
}

/// From this level on, the encoder takes too long for a loop.
const SLOW_LEVEL: i32 = 6;

/// The logarithm of the largest window, which browsers are required to support (RFC 9659).
const WINDOW_BITS_MAX: u32 = 23;

fn level(cx: &mut Cx<'_, '_, Zstd>, arg: &Arg) -> Set {
    let level = i32::try_from(atol(&arg.text)).ok().filter(|level| (1..=19).contains(level));
    let wrong = || Fault::new("ZstdCompressionLevel must be between 1 and 19").at(arg);
    let level = level.ok_or_else(wrong)?;
    settings::change(cx, |own| own.0 = level)
}

impl Effort for Level {
    fn is_slow(self) -> bool {
        self.0 >= SLOW_LEVEL
    }

    fn number(self) -> u64 {
        const ZSTD: u64 = 1 << 63;
        ZSTD | u64::from(self.0.unsigned_abs())
    }

    fn pack(self) -> io::Result<Box<dyn Pack>> {
        Ok(Box::new(packer(self.0)?))
    }
}

/// Whether the client accepts Zstandard.
static TAKES_ZSTD: VariantKey = VariantKey {
    name: "Accept-Encoding: zstd",
    of: |request| {
        let field = request.head.headers_in.get(b"Accept-Encoding");
        u16::from(field.is_some_and(|field| accepts(field, b"zstd")))
    },
};

/// Compresses to Zstandard.
fn packer(level: i32) -> io::Result<Packer<Encoder<'static, Vec<u8>>>> {
    let mut encoder = Encoder::new(Vec::new(), level)?;
    if level > 17 {
        // Higher levels would exceed it.
        encoder.set_parameter(CParameter::WindowLog(WINDOW_BITS_MAX))?;
    }
    Ok(Packer::new(encoder, level >= SLOW_LEVEL))
}

impl Encode for Encoder<'_, Vec<u8>> {
    fn out(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn end(self) -> io::Result<Vec<u8>> {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::compressed::assert_unpacks;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_was_packed_unpacks_however_it_was_cut(
            text in proptest::collection::vec(any::<u8>(), 0..300), times in 1usize..20,
            size in 1usize..700, level in 1i32..20, flushes: bool,
        ) {
            let unpack = |packed: &[u8]| zstd::decode_all(packed).unwrap();
            let packer = packer(level).unwrap();
            assert_unpacks(packer, &text.repeat(times), (size, flushes), unpack);
        }
    }
}
