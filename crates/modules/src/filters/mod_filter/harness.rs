//! Runs a smart filter: once the response is known, it chooses its provider and steps aside.
//!
//! Source: `filter_insert`, `filter_lookup`, `filter_harness`.

use conf::expr::{Backrefs, EvalError};
use pcre::Later;
use server::body::Body;
use server::errorlog::Verbatim;
use server::expr;
use server::filter::{Beginning, OutputFilter};
use server::hooks::{Bound, Step};
use server::log::Level;
use server::request::{FileKind, Request};

use super::protocol::{self, CHANGE, CHANGE_LENGTH, NO_BYTERANGE, NO_CACHE};
use super::{Condition, Filter, Provider, SmartFilter};

/// Adds the chain's filters to a request.
pub(super) fn insert<'r>(filter: Bound<'r, Filter>, request: &'r mut Request) -> Step<'r> {
    for name in filter.dir.chain.names() {
        let Some(smart) = filter.dir.filters.get(name) else {
            let shown = Verbatim::new(name);
            request.log::<Filter>(
                Level::Warn,
                1380,
                format_args!("Unknown filter {shown} not added"),
            );
            continue;
        };
        // At a trace level, the log tells why.
        if !request.logs::<Filter>(Level::Trace2) && never_matches(smart, request) {
            continue;
        }
        if smart.protocol & (NO_BYTERANGE | CHANGE_LENGTH) != 0 {
            request.interferes_with_range();
            if let Some(range) = request.head.headers_in.get(b"Range").map(<[u8]>::to_vec) {
                request.head.headers_in.unset(b"Range");
                request.keep(KeptRange(range));
            }
        }
        let shown = String::from_utf8_lossy(name).into_owned();
        let harness =
            Harness { name: name.clone(), smart: smart.clone(), chosen: None, filter: None };
        request.add_filter(shown, smart.stage, Box::new(harness));
    }
    Step::OK
}

/// A `Range` field that is hidden from the handler.
struct KeptRange(Vec<u8>);

/// Whether no provider can match, determined before the handler runs: a file's media type does not
/// change unless a filter before this one changes it, so a response that no filter touches can be
/// cached.
fn never_matches(smart: &SmartFilter, request: &Request) -> bool {
    let is_file = request.response.filters.is_empty()
        && request.handler.is_none()
        && request.resource.file.kind == FileKind::Regular
        && !request.has_handler_of_type();
    is_file
        && smart.trace == 0
        && smart.protocol == 0
        && smart.providers.iter().all(|provider| match &provider.when {
            Condition::Types(types) => !has_type(request, types),
            Condition::Expr(_) => false,
        })
}

/// Whether the media type without parameters is in the list; comparison is case-sensitive.
fn has_type(request: &Request, types: &[Vec<u8>]) -> bool {
    let Some(media_type) = request.response.content_type.as_deref() else { return false };
    let end = media_type.iter().position(|byte| matches!(byte, b';' | b' ' | b'\t'));
    let bare = media_type.get(..end.unwrap_or(media_type.len())).unwrap_or_default();
    types.iter().any(|known| known == bare)
}

struct Harness {
    name: Vec<u8>,
    smart: SmartFilter,
    /// The provider that was chosen, if any.
    chosen: Option<usize>,
    /// The provider's filter, if it has anything to do.
    filter: Option<Box<dyn OutputFilter>>,
}

impl OutputFilter for Harness {
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        // Responses to errors are left alone (bug 31759), as is every other status than 200.
        if request.response.status != 200 && !request.env.contains(b"filter-errordocs") {
            return Ok(());
        }
        if let Some(filter) = &mut self.filter {
            return filter.prepare(request);
        }
        for (index, provider) in self.smart.providers.iter().enumerate() {
            match chosen(provider, request)? {
                Ok(true) => self.chosen = Some(index),
                Ok(false) => continue,
                Err(()) => {}
            }
            break;
        }
        let Some(provider) = self.provider() else { return Ok(()) };
        self.filter = provider.filter.make(request);
        self.filter.as_mut().map_or(Ok(()), |filter| filter.prepare(request))
    }

    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        self.filter.as_mut()?.begin(request)
    }

    fn looks_at(&self, request: &Request) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.looks_at(request))
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if self.smart.trace > 0 {
            trace(&self.name, request, &body);
        }
        if let Some(provider) = self.provider() {
            note_change(provider, request);
        }
        match self.filter {
            Some(filter) => {
                request.depends.pure &= filter.is_pure();
                filter.apply(request, body)
            }
            None => body,
        }
    }

    /// It is asked before a provider is chosen.
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        let fits = |provider: &&Provider| match &provider.when {
            Condition::Types(types) => has_type(request, types),
            Condition::Expr(expr) => {
                let holds = expr::condition(expr, request, &mut Backrefs::new());
                matches!(holds, Ok(Ok(true)))
            }
        };
        let provider = self.smart.providers.iter().find(fits);
        let filter = provider.and_then(|provider| provider.filter.make(request));
        filter.map_or(comes, |filter| filter.parts_refusal(request, comes))
    }

    /// What the provider does is its own module's doing.
    fn type_name(&self) -> &'static str {
        self.filter.as_ref().map_or(std::any::type_name::<Self>(), |filter| filter.type_name())
    }

    fn is_pure(&self) -> bool {
        // The trace must be logged for each response. The provider is consulted when it is chosen.
        self.smart.trace == 0
    }
}

impl Harness {
    /// The provider that was chosen.
    fn provider(&self) -> Option<&Provider> {
        self.chosen.and_then(|index| self.smart.providers.get(index))
    }
}

/// Whether a provider matches. An error in its expression removes the filter.
fn chosen(provider: &Provider, request: &mut Request) -> Result<Result<bool, ()>, Later> {
    let expr = match &provider.when {
        Condition::Types(types) => {
            let matches = has_type(request, types);
            if request.logs::<Filter>(Level::Trace2) {
                tell_types(request, types, provider, matches);
            }
            return Ok(Ok(matches));
        }
        Condition::Expr(expr) => expr,
    };
    Ok(match expr::condition(expr, request, &mut Backrefs::new())? {
        Ok(holds) => {
            if request.logs::<Filter>(Level::Trace2) {
                let name = provider.filter.name().to_ascii_lowercase();
                let text = format_args!("Expression condition for '{name}' {}", found(holds));
                request.log::<Filter>(Level::Trace2, 0, text);
            }
            Ok(holds)
        }
        Err(EvalError::Undecided) => Ok(false),
        Err(why) => {
            request.log::<Filter>(
                Level::Warn,
                1377,
                format_args!("Error evaluating filter dispatch condition: {why}"),
            );
            Err(())
        }
    })
}

const fn found(matches: bool) -> &'static str {
    if matches { "matched" } else { "did not match" }
}

/// Logs how the media type compares with those of a provider (`filter_lookup`).
#[cold]
fn tell_types(request: &Request, types: &[Vec<u8>], provider: &Provider, matches: bool) {
    let name = provider.filter.name().to_ascii_lowercase();
    let before = format!("Content-Type condition for '{name}'");
    let Some(media_type) = request.response.content_type.as_deref() else {
        let text = format_args!("{before} did not match: no Content-Type");
        return request.log::<Filter>(Level::Trace2, 0, text);
    };
    let media_type = Verbatim::new(media_type);
    request.log::<Filter>(Level::Trace4, 0, format_args!("Content-Type '{media_type}' ..."));
    for known in types {
        let is_it = has_type(request, std::slice::from_ref(known));
        let (known, found) = (Verbatim::new(known), found(is_it));
        request.log::<Filter>(Level::Trace4, 0, format_args!("... {found} '{known}'"));
        if is_it {
            break;
        }
    }
    let found = found(matches);
    request.log::<Filter>(Level::Trace2, 0, format_args!("{before} {found}"));
}

/// Applies `FilterProtocol` to the fields, before the provider runs.
fn note_change(provider: &Provider, request: &mut Request) {
    let flags = protocol::get(&provider.protocol);
    if flags & CHANGE != 0 {
        request.response.headers_out.unset(b"Content-MD5");
        request.response.headers_out.unset(b"ETag");
        if flags & CHANGE_LENGTH != 0 {
            request.response.unset_length();
        }
    }
    if flags & NO_CACHE != 0 {
        request.response.headers_out.unset(b"Last-Modified");
        request.response.headers_out.add(b"Cache-Control", b"no-cache");
    }
    if flags & NO_BYTERANGE != 0 {
        request.response.headers_out.set(b"Accept-Ranges", b"none");
    } else if let Some(KeptRange(range)) = request.kept::<KeptRange>() {
        let range = range.clone();
        request.head.headers_in.set(b"Range", &range);
    }
}

/// `FilterTrace`: logs the input of a filter.
fn trace(name: &[u8], request: &Request, body: &Body) {
    let name = Verbatim::new(name);
    request.log::<Filter>(Level::Info, 1375, format_args!("{name}"));
    let kind = match body {
        Body::Empty => "EOS",
        Body::Bytes(_) => "HEAP",
        Body::File(_) => "FILE",
        Body::Parts(_) => "PARTS",
        Body::Stream(_) => "STREAM",
    };
    let length = body.length().map_or(-1, |length| i64::try_from(length).unwrap_or(i64::MAX));
    request.log::<Filter>(
        Level::Info,
        1376,
        format_args!("{name}: type: {kind}, length: {length}"),
    );
}
