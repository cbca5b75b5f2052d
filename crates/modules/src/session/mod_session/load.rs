//! Finds the session of a request.
//!
//! Source: `ap_session_load`, `session_cookie_load`.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::{LentSession, LookupSession, ParentSession, Request};

use super::{Dir, Session, Shared, Store, Stored, Values, codec, coding, store};

/// The session that a request has loaded.
struct Loaded {
    name: Vec<u8>,
    values: Shared,
    /// The text of the store as long as it could not be decoded.
    undecoded: RefCell<Option<Vec<u8>>>,
}

/// The session of a request; `None` if it has none. A new or broken one is empty.
pub(crate) async fn load(request: &mut Request) -> Option<Shared> {
    let dir = request.dir_of::<Session>().cloned()?;
    if !dir.enabled.or(false) {
        return None;
    }
    if !is_included(&dir, &request.resource.uri) {
        let uri = Verbatim::new(&request.resource.uri);
        let message = format_args!("excluded by configuration for: {uri}");
        request.log::<Session>(Level::Debug, 1814, message);
        return None;
    }
    let Some((store, (name, forgets))) = store(request) else {
        let uri = Verbatim::new(&request.resource.uri);
        let message = format_args!(
            "session is enabled but no session modules have been configured, session not loaded: \
             {uri}"
        );
        request.log::<Session>(Level::Warn, 1815, message);
        return None;
    };
    let now_us = i64::try_from(request.engine.handle.clock().wall_us()).unwrap_or(i64::MAX);
    let known = find(request, &name).filter(|_| !forgets);
    let loaded = match known {
        Some(loaded) => loaded,
        None => read(request, store, name).await?,
    };
    let is_decoded = decode(request, &loaded).is_ok();
    let is_over = {
        let values = loaded.values.borrow();
        values.expiry_us != 0 && values.expiry_us < now_us
    };
    let is_good = is_decoded && !is_over;
    let values = match is_good {
        true => loaded.values.clone(),
        // As in Apache, the empty session in the place of one that is broken or over is kept for no
        // other load: what is set in it is lost.
        false => Shared::default(),
    };
    let max_age = dir.max_age.or(0);
    if max_age != 0 {
        let mut values = values.borrow_mut();
        if values.expiry_us == 0 {
            values.expiry_us = end_us(now_us, max_age);
        }
        values.max_age = max_age;
    }
    Some(values)
}

/// When a session ends that lasts `max_age` seconds from now.
pub(super) fn end_us(now_us: i64, max_age: i64) -> i64 {
    now_us.saturating_add(max_age.saturating_mul(1_000_000))
}

/// Source: `session_included`.
fn is_included(dir: &Dir, uri: &[u8]) -> bool {
    let begins = |prefix: &Vec<u8>| uri.starts_with(prefix);
    let is_included = dir.includes.is_empty() || dir.includes.iter().any(begins);
    is_included && !dir.excludes.iter().any(begins)
}

/// The session that was loaded by this request, the main request, or, if the store is one whose
/// sessions are those of all redirects, by one that it was redirected from. A directory's index is
/// a subrequest, and would find no cookie that is hidden by then.
fn find(request: &Request, name: &[u8]) -> Option<Rc<Loaded>> {
    let is_it =
        |lent: &dyn Any| lent.downcast_ref::<Loaded>().is_some_and(|loaded| loaded.name == name);
    request.lent(is_it)?.downcast::<Loaded>().ok()
}

/// Reads a session from its store; `None` if that fails.
async fn read(request: &mut Request, store: Store, name: Vec<u8>) -> Option<Rc<Loaded>> {
    let mut values = Values::default();
    let Ok(stored) = (store.read)(request, &name).get().await else {
        let uri = Verbatim::new(&request.resource.uri);
        let message = format_args!("error while loading the session, session not loaded: {uri}");
        request.log::<Session>(Level::Error, 1816, message);
        return None;
    };
    let mut undecoded = None;
    if let Some(Stored { text, key }) = stored {
        values.key = key;
        undecoded = Some(text);
    }
    let values = Rc::new(values.into());
    let loaded = Rc::new(Loaded { name, values, undecoded: undecoded.into() });
    keep(request, loaded.clone(), store.is_of_redirects);
    Some(loaded)
}

/// Decodes the text of the store, unless that was done.
fn decode(request: &Request, loaded: &Loaded) -> Result<(), ()> {
    let Some(text) = loaded.undecoded.take() else { return Ok(()) };
    let decoded = match codec(request) {
        Some(codec) => (codec.decode)(request, &text),
        None => Ok(None),
    };
    let Ok(decoded) = decoded else {
        let uri = Verbatim::new(&request.resource.uri);
        let message = format_args!("error while decoding the session, session not loaded: {uri}");
        request.log::<Session>(Level::Error, 1817, message);
        // A request that this one is redirected to may have another passphrase.
        loaded.undecoded.replace(Some(text));
        return Err(());
    };
    coding::decode(&decoded.unwrap_or(text), &mut loaded.values.borrow_mut());
    Ok(())
}

fn keep(request: &mut Request, session: Rc<dyn Any>, is_of_redirects: bool) {
    let lent = LentSession { session, is_of_redirects };
    if request.main.is_none() {
        return request.keep(lent);
    }
    let own = lent.clone();
    let keep = Box::new(move |request: &mut Request| {
        if is_of_redirects && request.prev.is_some() {
            if request.kept::<LookupSession>().is_none() {
                request.keep(LookupSession(lent));
            }
        } else if request.kept::<LentSession>().is_none() {
            request.keep(lent);
        }
    });
    // Apache keeps such sessions with the main request, others with the one that made this.
    if is_of_redirects {
        request.keep(own);
        request.change_main(keep);
    } else {
        request.keep(ParentSession(own));
        request.change_parent(keep);
    }
}
