//! The origin of a request: the client, an internal redirect, or another request.

use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use super::{FileKind, Proxied, Request};
use crate::engine::plan::Plan;
use crate::log::{HeldLines, Level};
use crate::phases::walk::IfWalks;

/// The properties of the main request that a subrequest needs.
#[derive(Clone)]
pub struct MainRequest {
    /// The main request's plan: authorisation is not repeated under the same one.
    pub plan: Rc<Plan>,
    /// [`Request::copy`] of the main request.
    pub copy: u64,
    /// [`Request::if_walks`] of the main request.
    pub if_walks: IfWalks,
    /// The main request's path.
    pub uri: Vec<u8>,
    /// The main request's file.
    pub filename: Vec<u8>,
    /// What that is.
    pub kind: FileKind,
    /// The name of the file that the main request's walks were for, if names matter to them: a
    /// listing adds a slash to [`MainRequest::filename`].
    pub walked: Vec<u8>,
    /// The user of the main request.
    pub user: Option<Vec<u8>>,
    /// The authentication type of the main request's user.
    pub auth_type: Option<Cow<'static, str>>,
    /// The session that the main request lends.
    pub lent: Option<LentSession>,
    /// [`Request::login`] of the main request.
    pub login: Option<Rc<dyn Any>>,
    /// Whether access is checked for the subrequest although the main request passed the same
    /// checks: it has another method, which the client chose.
    pub has_other_method: bool,
}

/// The session of a request, which its subrequests share.
#[derive(Clone)]
pub struct LentSession {
    /// A type of mod_session.
    pub session: Rc<dyn Any>,
    /// Whether the requests that it is redirected to share it, too, and all subrequests within
    /// subrequests; otherwise only those that the request makes itself.
    pub is_of_redirects: bool,
}

/// A session of the request that made this one, which read it.
pub struct ParentSession(pub LentSession);

/// A session that a look-up of this request has read for others of its look-ups. The request itself
/// was redirected to, and looks for sessions where the first one has them.
pub struct LookupSession(pub LentSession);

/// A login that counts for subrequests and internal redirects as well.
pub struct SharedLogin(pub Rc<dyn Any>);

/// The fields with credentials as the client has sent them, once a module changes them: for all
/// requests that come of its request.
#[derive(Clone)]
pub(crate) struct SentCredentials {
    authorization: Option<Rc<[u8]>>,
    proxy_authorization: Option<Rc<[u8]>>,
}

impl Request {
    /// Keeps the credentials that the client has sent: a module is about to change a field.
    pub fn keep_credentials(&mut self) {
        if self.kept::<SentCredentials>().is_none() {
            let field = |name: &[u8]| self.head.headers_in.get(name).map(Rc::from);
            let (authorization, proxy_authorization) =
                (field(b"Authorization"), field(b"Proxy-Authorization"));
            self.keep(SentCredentials { authorization, proxy_authorization });
        }
    }

    /// Sets `Authorization` to the credentials of another user.
    pub fn set_authorization(&mut self, field: &[u8]) {
        self.keep_credentials();
        self.head.headers_in.set(b"Authorization", field);
    }

    /// Removes `Authorization`.
    pub fn unset_authorization(&mut self) {
        self.keep_credentials();
        self.head.headers_in.unset(b"Authorization");
    }

    /// `Authorization`, or to a forward proxy `Proxy-Authorization`, as the client has sent it.
    pub fn sent_credentials(&self) -> Option<&[u8]> {
        let is_forward = self.resource.proxied == Proxied::Forward;
        match self.kept::<SentCredentials>() {
            Some(sent) if is_forward => sent.proxy_authorization.as_deref(),
            Some(sent) => sent.authorization.as_deref(),
            None if is_forward => self.head.headers_in.get(b"Proxy-Authorization"),
            None => self.head.headers_in.get(b"Authorization"),
        }
    }
}

/// The depth of internal redirects and subrequests (`LimitInternalRecursion`).
#[derive(Clone, Debug, Default)]
pub struct Depth {
    /// Internal redirects.
    pub redirects: u16,
    /// Subrequests.
    pub subrequests: u16,
    /// Look-ups that this request has made.
    pub made: u32,
    /// Whether an expression waits for the subrequest, and can't block for long.
    pub in_expression: bool,
    /// Where the lines of such a subrequest for the error log are held.
    pub held_lines: Option<Rc<HeldLines>>,
    /// Look-ups that share a limit with this request's, once one has been made.
    pub lookups: Option<Rc<Lookups>>,
}

/// Look-ups that share one limit ([`crate::phases::subrequest::LOOKUP_LIMIT`]).
#[derive(Debug, Default)]
pub struct Lookups {
    /// The number of look-ups made.
    pub made: Cell<u32>,
    /// Whether it has been logged that they were too many.
    pub have_logged: Cell<bool>,
    /// Whether it has been logged that they were nested too deeply.
    pub have_logged_depth: Cell<bool>,
}

impl Lookups {
    /// What has been logged.
    pub(crate) fn logged(&self) -> (bool, bool) {
        (self.have_logged.get(), self.have_logged_depth.get())
    }

    /// Takes back what has been logged since, if its lines are.
    pub(crate) fn set_logged(&self, (limit, depth): (bool, bool)) {
        self.have_logged.set(limit);
        self.have_logged_depth.set(depth);
    }
}

impl Request {
    /// Logs that a limit of `LimitInternalRecursion` is reached.
    pub(crate) fn log_limit(&self, number: u32, limit: u16, of: &str) {
        let why = format!(
            "Request exceeded the limit of {limit} {of} due to probable configuration error. Use \
             'LimitInternalRecursion' to increase the limit if necessary. Use 'LogLevel debug' to \
             get a backtrace."
        );
        self.log_core(Level::Error, number, &why, None);
    }

    /// The target as the client sent it, before internal redirects.
    pub fn original_target(&self) -> &[u8] {
        &self.original().head.unparsed_uri
    }

    /// Method and target in the client's own request line, of whatever request this is a part.
    pub fn clients_line(&self) -> (&[u8], &[u8]) {
        let line = self.head.request_line.trim_ascii();
        let end = |word: &[u8]| word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        let (method, rest) = line.split_at(end(line));
        let target = rest.trim_ascii_start();
        (method, target.get(..end(target)).unwrap_or_default())
    }

    /// The first session that fits: of this request, one that it was redirected from, or the main
    /// request.
    pub fn lent(&self, is_it: impl Fn(&dyn Any) -> bool) -> Option<Rc<dyn Any>> {
        self.all_lent().find(|lent| is_it(&*lent.session)).map(|lent| lent.session.clone())
    }

    fn all_lent(&self) -> impl Iterator<Item = &LentSession> {
        let chain = std::iter::successors(Some(self), |request| request.prev.as_deref());
        chain.flat_map(|request| {
            let is_own = std::ptr::eq(request, self) && request.main.is_none();
            let lent = request.kept::<LentSession>();
            let lent = lent.filter(|lent| is_own || lent.is_of_redirects);
            let of_parent = request.kept::<ParentSession>().map(|ParentSession(lent)| lent);
            let of_main = request.main.as_ref().and_then(|main| main.lent.as_ref());
            lent.into_iter().chain(of_parent).chain(of_main)
        })
    }

    /// The session that a subrequest of this one shares.
    pub(crate) fn lends(&self) -> Option<LentSession> {
        let own = self.kept::<LentSession>();
        if self.prev.is_some() && self.main.is_none() {
            let own = own.filter(|lent| !lent.is_of_redirects);
            return own.or(self.kept::<LookupSession>().map(|lent| &lent.0)).cloned();
        }
        own.or_else(|| self.all_lent().find(|lent| lent.is_of_redirects)).cloned()
    }

    /// The [`SharedLogin`] of this request, one that it was redirected from, or the main request.
    pub fn login(&self) -> Option<&Rc<dyn Any>> {
        let mut chain = std::iter::successors(Some(self), |request| request.prev.as_deref());
        chain.find_map(|request| {
            let own = request.kept::<SharedLogin>().map(|login| &login.0);
            own.or_else(|| request.main.as_ref()?.login.as_ref())
        })
    }

    /// The request as received, before internal redirects.
    pub fn original(&self) -> &Request {
        let mut first = self;
        while let Some(prev) = &first.prev {
            first = prev;
        }
        first
    }

    /// The request with this number of internal redirects before it; 0 is [`Request::original`].
    pub fn redirected_at(&mut self, depth: u16) -> Option<&mut Request> {
        let mut found = self;
        while found.depth.redirects != depth {
            found = found.prev.as_mut()?;
        }
        Some(found)
    }

    /// The last request that internal redirects led to. It did not make the response if it was one
    /// for an error document and failed.
    pub fn last(&self) -> &Request {
        self.failed.as_deref().unwrap_or(self)
    }

    /// Whether this is a subrequest for a file name.
    pub fn is_file_lookup(&self) -> bool {
        self.file_lookup
    }

    /// Whether the client sent this request (`ap_is_initial_req`).
    pub fn is_initial(&self) -> bool {
        self.main.is_none() && self.prev.is_none()
    }
}
