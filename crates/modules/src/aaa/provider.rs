//! What modules offer each other: ways to know a user (`authn`), to decide on access (`authz`), and
//! to ask for a login (`challenge`).
//!
//! A provider is registered with `hooks.provider(GROUP, name, value)` and looked up by name while
//! configuration is read. Source: `mod_auth.h`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use conf::{Node, Span};
use server::context::Places;
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

/// A result that is there, or has to be waited for.
pub enum Pending<'r, T> {
    /// It is there.
    Now(T),
    /// It has to be waited for.
    Wait(Pin<Box<dyn Future<Output = T> + 'r>>),
}

impl<T> Pending<'_, T> {
    /// Waits where that is needed.
    pub async fn get(self) -> T {
        match self {
            Pending::Now(value) => value,
            Pending::Wait(future) => future.await,
        }
    }
}

/// What a client said of itself.
pub struct Login {
    /// The name; not checked yet.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

/// What a provider found about a login (`authn_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authn {
    /// The password is right.
    Granted,
    /// The password is wrong.
    Denied,
    /// Nobody of that name is known here: the next provider is asked.
    UserNotFound,
    /// It can't be told; the reason is in the error log already.
    GeneralError,
}

/// What a provider found about a name in a realm (`get_realm_hash`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealmHash {
    /// The MD5 of `user:realm:password`, in hexadecimal digits.
    Found(Vec<u8>),
    /// Nobody of that name is known here.
    UserNotFound,
    /// It can't be told; the reason is in the error log already.
    GeneralError,
}

/// Knows users (`authn_provider`).
pub trait Authenticate: Send + Sync {
    /// Whether the password is the user's (`check_password`).
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn>;

    /// The digest kept for a user in a realm; `None` where the provider keeps none.
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

/// What is registered under [`AUTHN`].
pub type AuthnProvider = Arc<dyn Authenticate>;

/// What a requirement says of a request (`authz_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authz {
    /// It is met.
    Granted,
    /// It is not met.
    Denied,
    /// It is not met, but could be once the user is known.
    DeniedNoUser,
    /// It has no opinion.
    Neutral,
    /// It can't be told; the reason is in the error log already.
    GeneralError,
    /// Whether it is met hangs on a regular expression that could not be decided. It counts as a
    /// refusal, also where it is negated.
    Undecided,
    /// A match of a regular expression has to be made first ([`server::matching`]).
    Later,
}

impl Authz {
    /// As the log has it (`format_authz_result`).
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

/// The arguments of a `Require` line, ready to be asked.
pub trait Requirement: Send + Sync {
    /// Whether [`Requirement::wait`] has to be used.
    fn waits(&self) -> bool {
        false
    }

    /// Asks, at once.
    fn check(&self, request: &mut Request) -> Authz;

    /// Asks, and waits for a file or a name server.
    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move { self.check(request) })
    }

    /// The answer, if it is the same for all requests.
    fn constant(&self) -> Option<Authz> {
        None
    }
}

/// Makes a requirement of what follows the provider's name in a `Require` line.
pub type ParseRequirement =
    dyn Fn(&mut Target<'_>, &[u8]) -> Result<Arc<dyn Requirement>, Fault> + Send + Sync;

/// What is registered under [`AUTHZ`] (`authz_provider`).
#[derive(Clone)]
pub struct AuthzProvider {
    /// Reads a line (`parse_require_line`).
    pub parse: Arc<ParseRequirement>,
}

impl AuthzProvider {
    /// A provider whose lines `parse` reads.
    pub fn new(
        parse: impl Fn(&mut Target<'_>, &[u8]) -> Result<Arc<dyn Requirement>, Fault>
        + Send
        + Sync
        + 'static,
    ) -> AuthzProvider {
        AuthzProvider { parse: Arc::new(parse) }
    }
}

/// Asks for a login: adds the header field of a 401 (`note_auth_failure`).
pub struct Challenge(pub fn(&mut Request));

/// Directives of a provider's alias, in force while the provider is asked.
#[derive(Clone)]
pub struct Apart(Arc<Section>);

impl Apart {
    /// Applies what stands in the container `name` to configurations of its own.
    pub fn read(target: &mut Target<'_>, name: &'static str, nodes: &[Node]) -> Apart {
        let mut dir = target.build.registry.empty_dir();
        let mut inner = Target {
            build: &mut *target.build,
            server: &mut *target.server,
            dir: &mut dir,
            place: Places::DIRECTORY,
            container: Some(name),
            path: None,
            limited: None,
            allowed: target.allowed,
            allowed_options: target.allowed_options,
            allowed_names: target.allowed_names.clone(),
            nonfatal: target.nonfatal,
            nonfatal_unknown: target.nonfatal_unknown,
            span: target.span,
            directive: target.directive,
        };
        inner.apply(nodes);
        Apart(Section::new(Matches::Always, dir, Span::default()))
    }

    /// Puts the directives in force; gives back what was, for [`walk::enter`].
    pub fn enter(&self, request: &mut Request) -> std::rc::Rc<Layer> {
        let before = request.layer.clone();
        let engine = request.engine.clone();
        let inside = engine.plans.merge(&before, (&*self.0).into());
        walk::enter(request, inside);
        before
    }
}

/// The two words of a provider alias's argument text: base and alias, then what follows.
pub fn alias_words(text: &[u8]) -> Option<(String, String, Vec<u8>)> {
    let (base, rest) = super::line::first(text)?;
    let (alias, rest) = super::line::first(rest)?;
    if base.is_empty() || alias.is_empty() {
        return None;
    }
    let text = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
    Some((text(base), text(alias), rest.to_vec()))
}
