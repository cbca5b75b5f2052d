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
use server::filter::Stage;
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::{Append, Setting};
use server::module::Module;
use server::request::Request;
use wire::Table;

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

/// Where sessions are between requests (the hooks `session_load` and `session_save`).
#[derive(Clone, Copy)]
pub(crate) struct Store {
    /// The name of the session for a request, and whether what was read once is forgotten; `None`
    /// if it is not configured.
    pub name: fn(&Request) -> Option<(Vec<u8>, bool)>,
    /// Reads the encoded session.
    pub read: fn(&mut Request, &[u8]) -> Option<Vec<u8>>,
    /// Writes the encoded session, which lasts as many seconds, 0 for no end.
    pub write: fn(&mut Request, &[u8], i64),
}

/// What changes an encoded session on its way to the store and back (the hooks `session_encode` and
/// `session_decode`). What went wrong has been logged.
#[derive(Clone, Copy)]
pub(crate) struct Codec {
    /// To the store.
    pub encode: fn(&Request, Vec<u8>) -> Result<Vec<u8>, ()>,
    /// From the store.
    pub decode: fn(&Request, Vec<u8>) -> Result<Vec<u8>, ()>,
}

fn store(request: &Request) -> Option<Store> {
    let hooks = &request.engine.server.registry.hooks;
    hooks.provider::<Store>(STORE, "cookie").map(|store| *store)
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
    let Some(values) = load(request) else { return Step::OK };
    if is_shown {
        let text = coding::encode(&mut values.borrow_mut());
        request.env.set(b"HTTP_SESSION", &text);
    }
    Step::OK
}

fn insert<'r>(_: Bound<'r, Session>, request: &'r mut Request) -> Step<'r> {
    request.add_filter("MOD_SESSION_OUT", Stage::CONTENT_SET, Box::new(save::Filter));
    Step::OK
}
