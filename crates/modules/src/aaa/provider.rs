//! What modules offer each other: authentication (`authn`), authorisation (`authz`), and login
//! challenges (`challenge`).
//!
//! A provider is registered with `hooks.provider(GROUP, name, value)` and looked up by name when
//! the configuration is read. Source: `mod_auth.h`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use conf::{Node, Span};
use server::directive::{Fault, Target};
use server::plan::Layer;
use server::request::Request;
use server::section::{Matches, Section};
use server::walk;

/// The group of [`AuthnProvider`]s.
pub const AUTHN: &str = "authn";
/// The group of [`AuthzProvider`]s.
pub const AUTHZ: &str = "authz";
/// The group of [`Challenge`]s, by `AuthType`.
pub const CHALLENGE: &str = "challenge";

/// A result, or a future of it.
pub enum Pending<'r, T> {
    /// The result.
    Now(T),
    /// A future of the result.
    Wait(Pin<Box<dyn Future<Output = T> + 'r>>),
}

impl<T> Pending<'_, T> {
    /// Awaits the result if necessary.
    pub async fn get(self) -> T {
        match self {
            Pending::Now(value) => value,
            Pending::Wait(future) => future.await,
        }
    }
}

/// A client's credentials.
pub struct Login {
    /// The user name, unverified.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

/// A provider's result for a login (`authn_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authn {
    /// The password is correct.
    Granted,
    /// The password is wrong.
    Denied,
    /// The user is unknown; the next provider is tried.
    UserNotFound,
    /// The check failed; the reason has been logged.
    GeneralError,
}

/// A provider's result for a user in a realm (`get_realm_hash`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealmHash {
    /// The MD5 of `user:realm:password`, in hexadecimal digits.
    Found(Vec<u8>),
    /// The user is unknown.
    UserNotFound,
    /// The look-up failed; the reason has been logged.
    GeneralError,
}

/// Authenticates users (`authn_provider`).
pub trait Authenticate: Send + Sync {
    /// Whether the password is the user's (`check_password`).
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn>;

    /// Whether the provider has digests. Default: no.
    fn has_digests(&self) -> bool {
        false
    }

    /// Looks up the digest of a user in a realm; `None` if the provider has no digests.
    fn realm_hash<'r>(
        &'r self,
        request: &'r mut Request,
        user: &'r [u8],
        realm: &'r [u8],
    ) -> Option<Pending<'r, RealmHash>> {
        let _ = (request, user, realm);
        None
    }
}

/// The type registered under [`AUTHN`].
pub type AuthnProvider = Arc<dyn Authenticate>;

/// The result of a requirement for a request (`authz_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authz {
    /// The requirement is met.
    Granted,
    /// The requirement is not met.
    Denied,
    /// The requirement is not met, but could be once the user is known.
    DeniedNoUser,
    /// The requirement does not apply.
    Neutral,
    /// The check failed; the reason has been logged.
    GeneralError,
    /// The result depends on a regular expression that could not be decided. It counts as a denial,
    /// even if negated.
    Undecided,
    /// A match of a regular expression has to be made first ([`server::matching`]).
    Later,
}

impl Authz {
    /// The result's name in the log (`format_authz_result`).
    pub const fn name(self) -> &'static str {
        match self {
            Authz::Granted => "granted",
            Authz::Denied => "denied",
            Authz::DeniedNoUser => "denied (no authenticated user yet)",
            Authz::Neutral => "neutral",
            Authz::GeneralError => "error",
            Authz::Undecided => "undecided",
            Authz::Later => "not known yet",
        }
    }
}

/// The parsed arguments of a `Require` line.
pub trait Requirement: Send + Sync {
    /// Whether [`Requirement::wait`] must be used.
    fn waits(&self) -> bool {
        false
    }

    /// Evaluates at once. One that waits is not asked, and has nothing to say here.
    fn check(&self, _: &mut Request) -> Authz {
        Authz::GeneralError
    }

    /// Evaluates, and may wait for a file or a name server.
    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move { self.check(request) })
    }

    /// The result, if it is the same for all requests.
    fn constant(&self) -> Option<Authz> {
        None
    }
}

/// Parses the text after the provider's name in a `Require` line.
pub type ParseRequirement =
    dyn Fn(&mut Target<'_>, &[u8]) -> Result<Arc<dyn Requirement>, Fault> + Send + Sync;

/// The type registered under [`AUTHZ`] (`authz_provider`).
#[derive(Clone)]
pub struct AuthzProvider {
    /// Parses a line (`parse_require_line`).
    pub parse: Arc<ParseRequirement>,
}

impl AuthzProvider {
    /// Returns a provider whose lines are parsed by `parse`.
    pub fn new(
        parse: impl Fn(&mut Target<'_>, &[u8]) -> Result<Arc<dyn Requirement>, Fault>
        + Send
        + Sync
        + 'static,
    ) -> AuthzProvider {
        AuthzProvider { parse: Arc::new(parse) }
    }
}

/// Adds the header field of a 401 (`note_auth_failure`).
pub struct Challenge(pub fn(&mut Request));

/// The directives of a provider's alias, in force during its evaluation.
#[derive(Clone)]
pub struct Apart(Arc<Section>);

impl Apart {
    /// Applies the contents of the container `name` to configurations of its own.
    pub fn read(target: &mut Target<'_>, name: &'static str, nodes: &[Node]) -> Apart {
        let mut dir = target.build.registry.empty_dir();
        let mut inner = target.inside(name, None, &mut dir);
        inner.limited = None;
        inner.apply(nodes);
        Apart(Section::new(Matches::Always, dir, Span::default()))
    }

    /// Puts the directives in force, and returns the previous layer for [`walk::enter`].
    pub fn enter(&self, request: &mut Request) -> std::rc::Rc<Layer> {
        let before = request.layer.clone();
        let engine = request.engine.clone();
        let inside = engine.plans.merge(&before, (&*self.0).into());
        walk::enter(request, inside);
        before
    }
}

/// The base and alias of a provider alias's arguments, and the rest.
pub fn alias_words(text: &[u8]) -> Option<(String, String, Vec<u8>)> {
    let (base, rest) = super::line::first(text)?;
    let (alias, rest) = super::line::first(rest)?;
    if base.is_empty() || alias.is_empty() {
        return None;
    }
    let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
    Some((text(base), text(alias), rest.to_vec()))
}
