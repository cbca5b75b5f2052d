//! mod_precompressed: serves `style.css.br` for `style.css` to clients that accept Brotli. Apache
//! has no such module; its manual builds the same from mod_rewrite, mod_headers and mod_mime.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_deflate.html#precompressed>, whose recipe it
//! replaces.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::etag::CodedTag;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::merge::Setting;
use server::module::Module;
use server::request::{FileKind, Request};
use server::subrequest;
use server::variant_key::VariantKey;
use wire::accept;
use wire::method::Method;

use super::mod_deflate::coding::{content_encoding, is_coded};

/// `mod_precompressed.c`
pub struct Precompressed;

impl Module for Precompressed {
    const NAME: &'static str = "precompressed_module";
    const FILE: &'static str = "mod_precompressed.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Precompressed>] = &[Row::<Precompressed>::new(
        "PrecompressedFiles",
        Takes::Some { least: 1, most: CODINGS.len(), set: files },
        "On|Off|coding [coding] ...",
        "Serves files that were compressed beforehand, such as style.css.br for style.css.",
    )
    .standing(Places::ALL, Override::FILE_INFO)
    .default("Off")];

    fn hooks(hooks: &mut Hooks<'_, Precompressed>) {
        let wants = |own: Bound<'_, Precompressed>| !own.dir.codings.or(NONE).is_empty();
        hooks.on(Phase::InsertFilter, Rank::REALLY_LAST, wants, choose).pure();
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `PrecompressedFiles`: indices of [`CODINGS`], the most preferred first.
        pub codings: Setting<&'static [u8]>,
    }
}

/// A coding.
struct Coding {
    /// In fields.
    name: &'static str,
    /// What the names of files end with.
    suffix: &'static str,
    /// The variable that turns it off for a request, as for the filter of the same coding.
    variable: &'static str,
}

const CODINGS: [Coding; 3] = [
    Coding { name: "br", suffix: ".br", variable: "no-brotli" },
    Coding { name: "zstd", suffix: ".zst", variable: "no-zstd" },
    Coding { name: "gzip", suffix: ".gz", variable: "no-gzip" },
];

const NONE: &[u8] = &[];

/// All orders of some of the codings.
const ORDERS: [&[u8]; 15] = [
    &[0, 1, 2],
    &[0, 2, 1],
    &[1, 0, 2],
    &[1, 2, 0],
    &[2, 0, 1],
    &[2, 1, 0],
    &[0, 1],
    &[0, 2],
    &[1, 0],
    &[1, 2],
    &[2, 0],
    &[2, 1],
    &[0],
    &[1],
    &[2],
];

/// Filters that do not change content, or compress it: the others need it as it is.
const HARMLESS: [&str; 5] = ["BROTLI_COMPRESS", "BUFFER", "DEFLATE", "RATE_LIMIT", "ZSTD"];

fn files(cx: &mut Cx<'_, '_, Precompressed>, args: &[Arg]) -> Set {
    let mut order = Vec::new();
    for arg in args {
        if let ([_], Some(known)) = (args, switch(&arg.text)) {
            cx.dir().codings.set(known);
            return Ok(());
        }
        let is_it = |coding: &Coding| arg.text.eq_ignore_ascii_case(coding.name.as_bytes());
        let Some(index) = (0u8..).zip(&CODINGS).find(|(_, coding)| is_it(coding)) else {
            let wrong = format!("unknown coding '{}': expected br, zstd or gzip", arg.text);
            return Err(Fault::new(wrong).at(arg));
        };
        order.push(index.0);
    }
    match ORDERS.iter().find(|known| **known == order.as_slice()) {
        Some(known) => cx.dir().codings.set(known),
        None => return Err(Fault::new("PrecompressedFiles names a coding twice")),
    }
    Ok(())
}

/// `On` and `Off`
fn switch(text: &[u8]) -> Option<&'static [u8]> {
    match text.to_ascii_lowercase().as_slice() {
        b"on" => ORDERS.first().copied(),
        b"off" => Some(NONE),
        _ => None,
    }
}

/// Serves another file in place of the one that was asked for.
fn choose<'r>(own: Bound<'r, Precompressed>, request: &'r mut Request) -> Step<'r> {
    if !is_candidate(request) {
        return Step::OK;
    }
    let order = own.dir.codings.or(NONE);
    let found = siblings(request, order);
    if !found.contains(&true) {
        return Step::OK;
    }
    // Caches must know that the response depends on the field, whatever the outcome.
    request.response.headers_out.merge(b"Vary", b"Accept-Encoding");
    let qualities = qualities_of(request.depends_on(&ACCEPTED));
    let mut wanted: Vec<usize> = order.iter().map(|index| usize::from(*index)).collect();
    wanted.retain(|index| {
        let is_found = found.get(*index).is_some_and(|found| *found);
        is_found && qualities.of(*index) > 0 && qualities.of(*index) >= qualities.identity
    });
    // The sort is stable: among equals, the order of the directive decides.
    wanted.sort_by_key(|index| std::cmp::Reverse(qualities.of(*index)));
    if wanted.is_empty() {
        return Step::OK;
    }
    Step::Pending(Box::pin(async move {
        for index in wanted {
            if serve(request, index).await {
                break;
            }
        }
        Verdict::Ok
    }))
}

/// Whether the default handler will send the file as it is, or compressed.
fn is_candidate(request: &Request) -> bool {
    let is_harmless = |name: &str| {
        let name = name.strip_prefix("BYTYPE:").unwrap_or(name);
        HARMLESS.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    request.main.is_none()
        && request.head.method == Method::GET
        && request.resource.file.kind == FileKind::Regular
        && request.resource.path_info.is_empty()
        && request.handler.as_deref().is_none_or(<[u8]>::is_empty)
        && !request.has_handler_of_type()
        && !is_coded(&content_encoding(request))
        && request.response.filters.iter().all(|attached| is_harmless(&attached.name))
}

/// The codings of [`CODINGS`] whose files are there, and no older than the file itself.
fn siblings(request: &mut Request, order: &[u8]) -> [bool; CODINGS.len()] {
    let mut found = [false; CODINGS.len()];
    for index in order.iter().map(|index| usize::from(*index)) {
        let (Some(coding), Some(found)) = (CODINGS.get(index), found.get_mut(index)) else {
            continue;
        };
        if request.env.contains(coding.variable.as_bytes()) {
            continue;
        }
        let path = [&request.resource.filename, coding.suffix.as_bytes()].concat();
        request.trace_path(&path);
        *found = request.engine.stat(&path).is_ok_and(|info| {
            info.kind == FileKind::Regular && info.mtime_us >= request.resource.file.mtime_us
        });
    }
    found
}

/// Puts a sibling in the place of the file; returns false if its name is not to be served.
async fn serve(request: &mut Request, index: usize) -> bool {
    let Some(coding) = CODINGS.get(index) else { return false };
    let path = [&request.resource.filename, coding.suffix.as_bytes()].concat();
    let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else { return false };
    let name = path.get(slash + 1..).unwrap_or_default();
    // Access to the sibling's name, and links that lead to it, are judged as for a request of it.
    let sub = subrequest::lookup_file(request, name).await;
    request.depends_as(&sub);
    let is_served = sub.response.status == 200 && sub.resource.file.kind == FileKind::Regular;
    if is_served {
        request.resource.filename = sub.resource.filename;
        request.resource.canonical_filename = sub.resource.canonical_filename;
        request.resource.file = sub.resource.file;
        request.response.content_encoding = Some(coding.name.as_bytes().to_vec());
        request.keep(CodedTag(coding.name));
    }
    request.take_trace(sub.depends.trace);
    is_served
}

/// How much the client wants each coding.
static ACCEPTED: VariantKey =
    VariantKey { name: "Accept-Encoding: br, zstd, gzip", of: |request| accepted(request) };

/// The ranks of identity and of each coding, the highest quality first; 0 is not acceptable.
fn accepted(request: &Request) -> u16 {
    let Some(field) = request.head.headers_in.get(b"Accept-Encoding") else { return 0 };
    let entries = accept::parse(field);
    let quality = |names: &[&str]| {
        let is_named =
            |entry: &&accept::Entry| names.iter().any(|name| entry.name == name.as_bytes());
        entries.iter().find(is_named).map(|entry| entry.quality_milli)
    };
    let any = quality(&["*"]);
    // Without a word of its own, identity is the last choice.
    let identity = quality(&["identity"]).unwrap_or(0);
    let of = |names: &[&str]| quality(names).or(any).unwrap_or(0);
    let all = [identity, of(&["br"]), of(&["zstd"]), of(&["gzip", "x-gzip"])];
    let mut steps = all.to_vec();
    steps.retain(|quality| *quality > 0);
    steps.sort_unstable();
    steps.dedup();
    let rank = |quality: u16| steps.partition_point(|step| *step < quality) as u16 + 1;
    let ranks = all.map(|quality| if quality > 0 { rank(quality) } else { 0 });
    ranks.iter().fold(0, |packed, rank| packed << 3 | rank)
}

/// The ranks of [`accepted`].
struct Qualities {
    identity: u16,
    codings: u16,
}

fn qualities_of(packed: u16) -> Qualities {
    Qualities { identity: packed >> 9 & 7, codings: packed & 0o777 }
}

impl Qualities {
    fn of(&self, index: usize) -> u16 {
        let shift = [6, 3, 0].get(index).copied().unwrap_or(15);
        self.codings >> shift & 7
    }
}
