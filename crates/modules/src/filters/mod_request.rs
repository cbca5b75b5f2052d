//! mod_request: keeps the bodies of requests for modules that read them a second time.
//!
//! No module does so yet, so only the limit has an effect: it applies to all request bodies.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_request.html>

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errors::RefusedInChunks;
use server::filter::{Attached, InputFilterDef};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use server::request_body::Length;

/// `mod_request.c`
pub struct KeptBody;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `KeptBodySize`, bytes; 0 for none.
        limit: Setting<u64>,
    }
}

impl Module for KeptBody {
    const NAME: &'static str = "request_module";
    const FILE: &'static str = "mod_request.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<KeptBody>] = &[Row::new(
        "KeptBodySize",
        Takes::One(kept_body_size),
        "maximum-bytes",
        "Sets the maximum size of request bodies that are kept; a longer one is a 413.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("0")];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        // It passes on what comes as long as no body is kept.
        hooks.input_filter(InputFilterDef { name: "KEPT_BODY", make: |_| None });
        let keeps = |bound: Bound<'_, Self>| bound.dir.limit.or(0) != 0;
        hooks.on(Phase::InsertFilter, Rank::LAST, keeps, limit).pure();
        // Behind those that insert filters.
        let behind = Rank(Rank::REALLY_LAST.0 + 1);
        hooks.on(Phase::InsertFilter, behind, keeps, ask_filters).pure();
    }
}

/// Source: `set_kept_body_size`
fn kept_body_size(cx: &mut Cx<'_, '_, KeptBody>, arg: &Arg) -> Set {
    let digits = arg.text.trim_ascii_start();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    let number = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
    let number = number.and_then(|digits| digits.parse().ok());
    let Some(limit) = number.filter(|number| i64::try_from(*number).is_ok()) else {
        let fault = "KeptBodySize must be a valid size in bytes, or zero.";
        return Err(Fault::new(fault).at(arg));
    };
    cx.dir().limit.set(limit);
    Ok(())
}

/// Source: `ap_request_insert_filter`
fn limit<'r>(bound: Bound<'r, KeptBody>, request: &'r mut Request) -> Step<'r> {
    request.body_in.keep(bound.dir.limit.or(0), log_excess);
    Step::OK
}

/// Notes whether a refusal of the body comes in pieces from the filters of the response, which are
/// all there now.
fn ask_filters<'r>(_: Bound<'r, KeptBody>, request: &'r mut Request) -> Step<'r> {
    if request.body_in.is_empty() {
        return Step::OK;
    }
    let filters = std::mem::take(&mut request.response.filters);
    let parts = |comes, attached: &Attached| attached.filter.parts_refusal(request, comes);
    let in_pieces = filters.iter().fold(false, parts);
    request.response.filters = filters;
    // If the client still waits for `100 Continue`, the connection ends, and nothing is in chunks.
    let waits = request.body_in.expects_continue() && request.body_in.is_over_limit();
    if in_pieces && !waits {
        request.keep(RefusedInChunks);
    }
    Step::OK
}

/// Source: `keep_body_filter`, which writes what is left of the limit, 0, for a body in chunks.
fn log_excess(request: &Request, length: Length, limit: u64) {
    let (number, length, limit) = match length {
        Length::Announced(length) => (1412, length, limit),
        Length::Read(_, piece) => (1413, piece, 0),
    };
    let what = format_args!("Requested content-length of {length} is larger than");
    let what = format_args!("{what} the configured limit of {limit}");
    request.log::<KeptBody>(Level::Error, number, what);
    // Apache responds within the filter, and counts that response as one more (`%k`).
    let count = &request.connection.keepalives;
    count.set(count.get() + u32::from(request.is_persistent()));
}
