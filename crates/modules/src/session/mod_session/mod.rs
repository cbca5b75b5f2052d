//! mod_session: values that belong to a client, from one request to the next.
//!
//! A session is loaded from its store at the request's first use, and saved before the head of the
//! response is sent.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_session.html>

mod coding;
mod load;
mod rows;
mod save;

use std::cell::RefCell;
use std::rc::Rc;

use server::directive::Row;
use server::errors::{FILTERS_OF_FAILED, FilterOfFailed};
use server::filter::Stage;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::merge::{Append, Setting};
use server::module::Module;
use server::request::Request;
use wire::Table;

use crate::aaa::provider::Pending;

pub(crate) use load::load;

/// `mod_session.c`
pub struct Session;

impl Module for Session {
    const NAME: &'static str = "session_module";
    const FILE: &'static str = "mod_session.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Session>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Session>) {
        hooks.on(Phase::Fixups, Rank::MIDDLE, is_on, fixups);
        hooks.on(Phase::InsertFilter, Rank::MIDDLE, is_on, insert);
        hooks.on(Phase::InsertErrorFilter, Rank::MIDDLE, is_on, insert);
        hooks.provider(FILTERS_OF_FAILED, "session", FilterOfFailed(add_filter));
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `Session`
        pub enabled: Setting<bool>,
        /// `SessionEnv`
        pub env: Setting<bool>,
        /// `SessionMaxAge`, seconds; 0 for no end.
        pub max_age: Setting<i64>,
        /// `SessionExpiryUpdateInterval`, seconds; 0 for always.
        pub update_interval: Setting<i64>,
        /// `SessionHeader`
        pub header: Setting<Vec<u8>>,
        /// `SessionInclude`
        pub includes: Append<Vec<u8>>,
        /// `SessionExclude`
        pub excludes: Append<Vec<u8>>,
    }
}

/// The values of a session (`session_rec`).
#[derive(Default)]
pub(crate) struct Values {
    entries: Table,
    /// When it ends, in microseconds since the epoch; 0 for never.
    expiry_us: i64,
    /// How long it lasts from the next response, seconds; 0 for no end.
    max_age: i64,
    /// Whether a value was changed.
    is_dirty: bool,
    /// Whether it was saved.
    is_written: bool,
    /// What its store knows it by.
    key: Option<Vec<u8>>,
}

/// A session that a request and those it is redirected to share.
pub(crate) type Shared = Rc<RefCell<Values>>;

impl Values {
    /// A value.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.entries.get(key).map(<[u8]>::to_vec)
    }

    /// Sets a value, or removes it.
    pub fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) => self.entries.set(key, value),
            None => {
                self.entries.unset(key);
            }
        }
        self.is_dirty = true;
    }
}

/// The group of [`Store`]s among the providers.
pub(crate) const STORE: &str = "session store";
/// The group of [`Codec`]s among the providers.
pub(crate) const CODEC: &str = "session codec";

/// A session as a store has it.
pub(crate) struct Stored {
    /// The encoded values.
    pub text: Vec<u8>,
    /// What the store knows it by.
    pub key: Option<Vec<u8>>,
}

/// A session to write.
#[derive(Clone)]
pub(crate) struct Draft {
    /// The encoded values; empty if there are none any more.
    pub text: Vec<u8>,
    /// How long it lasts, seconds; 0 for no end.
    pub max_age: i64,
    /// When it ends, microseconds since the epoch; 0 for never.
    pub expiry_us: i64,
    /// Whether a value was changed.
    pub is_dirty: bool,
    /// What the store knew it by.
    pub key: Option<Vec<u8>>,
}

/// The store can't be asked, as has been logged.
pub(crate) struct Failed;

/// Reads the session of a name; `None` if there is none.
type ReadSession =
    for<'r> fn(&'r mut Request, &'r [u8]) -> Pending<'r, Result<Option<Stored>, Failed>>;

/// Writes a session; returns what the store knows it by from now on.
type WriteSession = fn(&mut Request, Draft) -> Pending<'_, Result<Option<Vec<u8>>, Failed>>;

/// Where sessions are between requests (the hooks `session_load` and `session_save`).
#[derive(Clone, Copy)]
pub(crate) struct Store {
    /// The name of the session for a request, and whether what was read once is forgotten; `None`
    /// if it is not configured.
    pub name: fn(&Request) -> Option<(Vec<u8>, bool)>,
    /// Whether a request and those that it is redirected to have one session.
    pub is_of_redirects: bool,
    /// See [`ReadSession`].
    pub read: ReadSession,
    /// See [`WriteSession`].
    pub write: WriteSession,
}

/// The stores, in the order in which they are asked.
const STORES: [&str; 2] = ["cookie", "dbd"];

/// What changes an encoded session on its way to the store and back (the hooks `session_encode` and
/// `session_decode`). What went wrong has been logged.
#[derive(Clone, Copy)]
pub(crate) struct Codec {
    /// To the store.
    pub encode: fn(&Request, Vec<u8>) -> Result<Vec<u8>, ()>,
    /// From the store; `None` for what stays as it is.
    pub decode: fn(&Request, &[u8]) -> Result<Option<Vec<u8>>, ()>,
}

/// The store that is configured for a request, and the name of the session there.
fn store(request: &Request) -> Option<(Store, (Vec<u8>, bool))> {
    let hooks = &request.engine.server.registry.hooks;
    let stores = STORES.into_iter().filter_map(|name| hooks.provider::<Store>(STORE, name));
    stores.map(|store| *store).find_map(|store| Some((store, (store.name)(request)?)))
}

fn codec(request: &Request) -> Option<Codec> {
    let hooks = &request.engine.server.registry.hooks;
    hooks.provider::<Codec>(CODEC, "crypto").map(|codec| *codec)
}

fn is_on(session: Bound<'_, Session>) -> bool {
    session.dir.enabled.or(false)
}

/// Source: `session_fixups`.
fn fixups<'r>(session: Bound<'r, Session>, request: &'r mut Request) -> Step<'r> {
    let is_shown = session.dir.env.or(false);
    if is_shown {
        // Programs would find the client's field in the place of the session.
        request.head.headers_in.unset(b"Session");
    }
    Step::Pending(Box::pin(async move {
        if let Some(values) = load(request).await
            && is_shown
        {
            let text = coding::encode(&mut values.borrow_mut());
            request.env.set(b"HTTP_SESSION", &text);
        }
        Verdict::Ok
    }))
}

/// The name of the filter that saves sessions.
const FILTER: &str = "MOD_SESSION_OUT";

fn insert<'r>(_: Bound<'r, Session>, request: &'r mut Request) -> Step<'r> {
    add_filter(request);
    Step::OK
}

/// Adds the filter once. Where sessions are off, they may be on for an error document that failed.
fn add_filter(request: &mut Request) {
    if !request.response.filters.iter().any(|attached| attached.name == FILTER) {
        request.add_filter(FILTER, Stage::CONTENT_SET, Box::new(save::Filter));
    }
}
