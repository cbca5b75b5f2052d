//! mod_expires: sets `Expires` and the `max-age` of `Cache-Control` by media type.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_expires.html>

pub(super) mod code;

use conf::{Arg, Span};
use server::body::Body;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::filter::{OutputFilter, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::{Overlay, Own, Setting};
use server::module::Module;
use server::request::{ExpiryTime, FileKind, Request};

use code::{Base, Code};

/// `mod_expires.c`
pub struct Expires;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `ExpiresActive`
        active: Setting<bool>,
        /// `ExpiresDefault`
        default: Setting<(Code, Span)>,
        /// `ExpiresByType`, by the type in lower case.
        by_type: Overlay<Vec<u8>, (Code, Span)>,
        /// Whether some type ends with `/*`. Like Apache, an inner section without one makes those
        /// of outer sections ineffective.
        has_wildcards: Own<bool>,
    }
}

impl Module for Expires {
    const NAME: &'static str = "expires_module";
    const FILE: &'static str = "mod_expires.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Expires>] = &[
        row("ExpiresActive", Takes::Flag(active), "On|Off", "Turns Expires and max-age on or off.")
            .default("Off"),
        row(
            "ExpiresByType",
            Takes::Two(by_type),
            "media-type \"base [plus] num unit [num unit] ...\"",
            "Sets when responses of a media type, or of a group of them (`image/*`), expire.",
        ),
        row(
            "ExpiresDefault",
            Takes::One(default),
            "\"base [plus] num unit [num unit] ...\"",
            "Sets when responses of other media types expire.",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        for phase in [Phase::InsertFilter, Phase::InsertErrorFilter] {
            hooks.on(phase, Rank::MIDDLE, is_active, insert_filter).pure();
        }
    }
}

const fn row(
    name: &'static str,
    takes: Takes<Expires>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Expires> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::INDEXES)
}

type Here<'a, 't> = Cx<'a, 't, Expires>;

fn active(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.dir().active.set(on);
    Ok(())
}

fn by_type(cx: &mut Here<'_, '_>, media_type: &Arg, code: &Arg) -> Set {
    let Some(slash) = media_type.text.iter().rposition(|byte| *byte == b'/') else {
        return Err(Fault::new("Invalid mimetype: should contain a slash").at(media_type));
    };
    let parsed = Code::parse(&code.text).map_err(|why| {
        let (media_type, text) = (&media_type.text, &code.text);
        Fault::new(format!("'ExpiresByType {media_type} {text}': {why}")).at(code)
    })?;
    let span = cx.span();
    let dir = cx.dir();
    dir.has_wildcards.0 |= media_type.text.get(slash..) == Some(b"/*");
    dir.by_type.insert(media_type.text.to_ascii_lowercase(), (parsed, span));
    Ok(())
}

fn default(cx: &mut Here<'_, '_>, code: &Arg) -> Set {
    let parsed = Code::parse(&code.text)
        .map_err(|why| Fault::new(format!("'ExpiresDefault {}': {why}", code.text)).at(code))?;
    let span = cx.span();
    cx.dir().default.set((parsed, span));
    Ok(())
}

fn is_active(expires: Bound<'_, Expires>) -> bool {
    let dir = expires.dir;
    dir.active.or(false) && (dir.default.is_set() || !dir.by_type.is_empty())
}

/// Source: `expires_insert_filter`
fn insert_filter<'r>(_: Bound<'r, Expires>, request: &'r mut Request) -> Step<'r> {
    if !wire::status::is_error(request.response.status) && request.main.is_none() {
        request.add_filter("MOD_EXPIRES", STAGE, Box::new(Filter));
    }
    Step::OK
}

/// Before mod_headers.
const STAGE: Stage = Stage(Stage::CONTENT_SET.0 - 2);

/// Sets the fields once the media type is known.
struct Filter;

impl OutputFilter for Filter {
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        let has_own = request.response.err_headers_out.contains(b"Expires")
            || request.response.headers_out.contains(b"Expires");
        if !wire::status::is_error(request.response.status)
            && !has_own
            && let Some(dir) = request.dir_of::<Expires>()
            && let Some((code, span)) = dir.code(request.response.content_type.as_deref())
            && let Some(time) = time(code, request)
        {
            if let Some(recorder) = request.engine.recording() {
                recorder.directive(b"Expires, Cache-Control", span);
            }
            request.expire(time);
        }
        body
    }

    fn is_pure(&self) -> bool {
        true
    }
}

impl Directory {
    /// The code for a media type, and its line.
    fn code(&self, media_type: Option<&[u8]>) -> Option<(Code, Span)> {
        let found = media_type.and_then(|media_type| self.code_of_type(media_type));
        found.or_else(|| self.default.get().copied())
    }

    fn code_of_type(&self, media_type: &[u8]) -> Option<(Code, Span)> {
        if self.by_type.is_empty() {
            return None;
        }
        let lower = media_type.to_ascii_lowercase();
        let bare = lower.split(|byte| *byte == b';').next().unwrap_or_default();
        if let Some(code) = self.by_type.get(bare.trim_ascii_end()) {
            return Some(*code);
        }
        let slash = lower.iter().position(|byte| *byte == b'/').filter(|_| self.has_wildcards.0)?;
        let wildcard = [lower.get(..=slash)?, b"*"].concat();
        self.by_type.get(&wildcard).copied()
    }
}

/// Source: `set_expiration_fields`
fn time(code: Code, request: &Request) -> Option<ExpiryTime> {
    match code.base {
        Base::Access => Some(ExpiryTime::AfterRequest(code.seconds)),
        Base::Modification if request.resource.file.kind == FileKind::None => None,
        Base::Modification => {
            let modified = i64::try_from(request.resource.file.mtime_us).unwrap_or(i64::MAX);
            let more = i64::from(code.seconds) * 1_000_000;
            Some(ExpiryTime::At(modified.saturating_add(more)))
        }
    }
}
