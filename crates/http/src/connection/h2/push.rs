//! Responses that are pushed: to requests that a response's `Link` fields suggest, before the
//! client sends them. Source: `h2_push.c`.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::rc::Rc;

use server::host::Host;
use server::http2::{PushPlace, Pushing};
use server::request::Request;
use wire::h2::Promise;
use wire::link::{Link, links};
use wire::priority::Priority;
use wire::{HeadFlags, Method};

use super::stream::Stream;
use crate::head_text;

/// The fields of a request that one caused by it has, too.
const INHERITED: [&[u8]; 5] =
    [b"User-Agent", b"Accept", b"Accept-Encoding", b"Accept-Language", b"Cache-Control"];

/// The largest urgency of RFC 9218, which is the least urgent.
const LEAST_URGENT: u8 = 7;

/// What a client wants to be pushed (`Accept-Push-Policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Default,
    Head,
    FastLoad,
}

impl Policy {
    /// The policy of a request; `None` if nothing is pushed (`h2_push_policy_determine`).
    fn of(request: &Request) -> Option<Policy> {
        if !request.head.flags.has(HeadFlags::ACCEPT_PUSH_POLICY) {
            return Some(Policy::Default);
        }
        let has = |token| request.head.headers_in.contains_token(b"Accept-Push-Policy", token);
        if has(b"fast-load") {
            Some(Policy::FastLoad)
        } else if has(b"head") {
            Some(Policy::Head)
        } else if has(b"none") && !has(b"default") {
            None
        } else {
            Some(Policy::Default)
        }
    }

    fn name(self) -> &'static [u8] {
        match self {
            Policy::Default => b"default",
            Policy::Head => b"head",
            Policy::FastLoad => b"fast-load",
        }
    }
}

/// What the requests that a response suggests take over from the request that it is for.
pub(super) struct Origin {
    policy: Policy,
    scheme: &'static [u8],
    authority: Vec<u8>,
    fields: Vec<(&'static [u8], Vec<u8>)>,
}

/// Why the server has opened a stream.
#[derive(Clone, Copy)]
pub(super) struct Pushed {
    /// The stream whose response suggested it.
    pub by: u32,
    /// The priority of that one.
    parent: Priority,
    is_critical: bool,
}

impl Pushed {
    /// The priority of its response, whose media type is known then.
    fn priority(self, place: PushPlace) -> Priority {
        let of_parent = self.parent.urgency;
        let place = if self.is_critical { PushPlace::Before } else { place };
        let urgency = match place {
            PushPlace::Before => of_parent.saturating_sub(1),
            PushPlace::Beside => of_parent,
            PushPlace::After => (of_parent + 1).min(LEAST_URGENT),
        };
        Priority { urgency, is_incremental: true }
    }
}

/// The responses that a connection has been pushed, by hashes of their URLs, the latest last.
#[derive(Default)]
pub(super) struct Diary {
    hashes: VecDeque<u64>,
    keys: Option<Box<RandomState>>,
}

impl Diary {
    fn hash(&mut self, url: [&[u8]; 3]) -> u64 {
        self.keys.get_or_insert_default().hash_one(url)
    }

    /// Whether a response is in it; it is then its latest.
    fn refresh(&mut self, hash: u64) -> bool {
        let Some(at) = self.hashes.iter().rposition(|known| *known == hash) else { return false };
        self.hashes.remove(at);
        self.hashes.push_back(hash);
        true
    }

    /// Adds a response. Beyond `most` the oldest one is forgotten.
    fn add(&mut self, hash: u64, most: usize) {
        while self.hashes.len() >= most {
            if self.hashes.pop_front().is_none() {
                return;
            }
        }
        self.hashes.push_back(hash);
    }
}

/// Notes whether the client of a request accepts pushes.
pub(super) fn begin(stream: &Stream, request: &Request) {
    let shared = &stream.shared;
    let is_on = shared.host.http2.as_ref().is_some_and(|http2| http2.pushes);
    let is_accepted = is_on && shared.protocol.borrow().accepts_pushes();
    if is_accepted || stream.pushed.is_some() {
        let is_accepted = is_accepted && Policy::of(request).is_some();
        let by = stream.pushed.and_then(|pushed| NonZeroU32::new(pushed.by));
        request.connection.pushing.set(Pushing { is_accepted, by, is_declined: false });
    }
}

/// Notes that the client of a request would accept pushes, if its connection's host has them.
pub(in crate::connection) fn accept_pushes(host: &Host, request: &Request) {
    let is_on = host.http2.as_ref().is_some_and(|http2| http2.pushes);
    let is_accepted = is_on && Policy::of(request).is_some();
    request.connection.pushing.set(Pushing { is_accepted, ..Pushing::default() });
}

/// Keeps what the requests need that the response to this one may suggest.
pub(super) fn keep_origin(stream: &Stream, request: &Request) {
    // Nothing is pushed for what was pushed.
    if stream.pushed.is_none()
        && let Some(origin) = Origin::of(request)
    {
        let _ = stream.origin.set(Box::new(origin));
    }
}

/// The targets that a client that accepts pushes is promised with a response, whose interim
/// responses and head are in the text of HTTP/1.
pub(in crate::connection) fn pushes(
    request: &Request,
    interim: &[u8],
    head: &[u8],
) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let Some(origin) = Origin::of(request) else { return found };
    if request.connection.pushing.get().is_declined {
        return found;
    }
    for text in head_text::split(interim).chain([head]) {
        let Some((status, fields)) = head_text::parse(text) else { continue };
        for (path, _) in suggested(&origin, status, fields) {
            if !found.iter().any(|other| other == path) {
                found.push(path.to_vec());
            }
        }
    }
    found
}

impl Origin {
    /// What further requests have in common with this one; `None` if there are none.
    fn of(request: &Request) -> Option<Origin> {
        let is_get = request.head.method == Method::GET && !request.head.header_only;
        if !request.connection.pushing.get().is_accepted || !is_get {
            return None;
        }
        let given = &request.head.headers_in;
        let inherit = |name: &&'static [u8]| Some((*name, given.get(name)?.to_vec()));
        Some(Origin {
            policy: Policy::of(request)?,
            scheme: if request.connection.tls.is_some() { b"https" } else { b"http" },
            authority: given.get(b"Host").unwrap_or_default().to_vec(),
            fields: INHERITED.iter().filter_map(inherit).collect(),
        })
    }
}

/// What a response suggests to request, and whether that is critical.
fn suggested<'f>(
    origin: &Origin,
    status: u16,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) -> impl Iterator<Item = (&'f [u8], bool)> {
    let is_good = status < 400 && status != 304;
    let of_links = fields.filter(move |(name, _)| is_good && name.eq_ignore_ascii_case(b"Link"));
    of_links.flat_map(|(_, value)| links(value)).filter_map(|link| {
        let path = path_of(&link, origin).filter(|_| link.is_preload && !link.is_nopush)?;
        Some((path, link.is_critical))
    })
}

/// Promises the client what the fields of a response suggest, before these are sent. Returns the
/// value of `push-policy` in the response, if it is to have one (`h2_push_collect_update`).
pub(super) fn promise<'f>(
    stream: &Stream,
    status: u16,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) -> Option<&'static [u8]> {
    let origin = stream.origin.get()?;
    // A promise after the end would be waited for without ever being served.
    let is_over = stream.is_reset.get() || stream.shared.is_broken.get();
    if is_over {
        return None;
    }
    let mut policy = None;
    for (path, is_critical) in suggested(origin, status, fields) {
        policy = Some(origin.policy.name());
        push(stream, origin, path, is_critical);
    }
    policy
}

/// The path of a link to the same host, with the query.
fn path_of<'l>(link: &Link<'l>, origin: &Origin) -> Option<&'l [u8]> {
    let end = link.target.iter().position(|byte| *byte == b'#');
    let target = link.target.get(..end.unwrap_or(link.target.len()))?;
    let with_host = match target.strip_prefix(origin.scheme) {
        Some(rest) if rest.starts_with(b"://") => rest.get(1..),
        _ => Some(target).filter(|target| target.starts_with(b"//")),
    };
    let path = match with_host {
        Some(rest) => rest.get(2..)?.strip_prefix(&origin.authority[..])?,
        None => target,
    };
    path.starts_with(b"/").then_some(path)
}

fn push(stream: &Stream, origin: &Origin, path: &[u8], is_critical: bool) {
    let shared = &stream.shared;
    let size = shared.host.http2.as_ref().map_or(0, |http2| http2.push_diary);
    let mut diary = shared.diary.borrow_mut();
    let hash = diary.hash([origin.scheme, &origin.authority, path]);
    if diary.refresh(hash) {
        return;
    }
    let method: &[u8] = if origin.policy == Policy::Head { b"HEAD" } else { b"GET" };
    let pseudo: [(&[u8], &[u8]); 4] = [
        (b":scheme", origin.scheme),
        (b":authority", &origin.authority),
        (b":path", path),
        (b":method", method),
    ];
    let fields: Vec<_> = origin.fields.iter().map(|(name, value)| (*name, &value[..])).collect();
    let options = crate::connection::head_options(&shared.service, &shared.info);
    let promise = shared.protocol.borrow_mut().promise(stream.id, &pseudo, &fields, &options);
    let Some(Promise { stream: id, head, refusal }) = promise else { return };
    diary.add(hash, size);
    let parent = stream.priority.get();
    let pushed = Pushed { by: stream.id, parent, is_critical };
    let stream = Rc::new(Stream::pushed(id, shared.clone(), pushed));
    stream.priority.set(pushed.priority(PushPlace::After));
    shared.add(stream.clone());
    shared.promised.borrow_mut().push((stream, head, refusal));
    shared.wake();
}

/// Gives a pushed response the place that its media type has.
pub(super) fn place<'f>(stream: &Stream, mut fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) {
    let Some(pushed) = stream.pushed.filter(|_| !stream.has_wish.get()) else { return };
    let Some(http2) = &stream.shared.host.http2 else { return };
    let media_type = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"Content-Type"));
    let (_, media_type) = media_type.unwrap_or_default();
    stream.priority.set(pushed.priority(http2.push_place(media_type)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_the_same_host_have_a_path() {
        let origin = Origin {
            policy: Policy::Default,
            scheme: b"https",
            authority: b"host:8443".to_vec(),
            fields: Vec::new(),
        };
        for (target, expected) in [
            ("/a?b", Some("/a?b")),
            ("/a#b", Some("/a")),
            ("https://host:8443/a", Some("/a")),
            ("//host:8443/a", Some("/a")),
            ("//host:8443", None),
            ("//host:84431/a", None),
            ("http://host:8443/a", None),
            ("https://other/a", None),
            ("https:/a", None),
            ("a.css", None),
            ("?q", None),
            ("", None),
            ("#f", None),
        ] {
            let link = Link { target: target.as_bytes(), ..Link::default() };
            let path = path_of(&link, &origin);
            assert_eq!(path, expected.map(str::as_bytes), "{target}");
        }
    }

    #[test]
    fn a_diary_forgets_the_oldest() {
        let mut diary = Diary::default();
        diary.add(1, 2);
        diary.add(2, 2);
        assert!(diary.refresh(1));
        diary.add(3, 2);
        assert!(!diary.refresh(2));
        assert!(diary.refresh(1) && diary.refresh(3));
        let mut none = Diary::default();
        none.add(1, 0);
        assert!(!none.refresh(1));
    }
}
