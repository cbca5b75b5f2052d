//! Requests: SSLRequireSSL, SSLRequire, FakeBasicAuth, the environment (`ssl_engine_kernel.c`).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::connection_info::TlsFacts;
use server::directive::{Fault, Target};
use server::errorlog::Verbatim;
use server::expr;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict, always};
use server::log::Level;
use server::matching::{self, Stop};
use server::request::Request;
use tls::vars::{Style, name};
use tls::verify::Mode;

use super::Ssl;
use super::options::Options;
use super::{policy, variables};
use crate::aaa::mod_auth_basic;
use crate::aaa::provider::{AUTHZ, Authz, AuthzProvider, Requirement};

/// The note for a refused request, for `StrictRequire`.
const FORBIDDEN: &[u8] = b"ssl-access-forbidden";

/// The password of all faked logins, which clients must not be able to use themselves.
const PASSWORD: &[u8] = b"password";

/// Registers the hooks and the providers of `Require`.
pub fn register(hooks: &mut Hooks<'_, Ssl>) {
    hooks.on(Phase::AccessChecker, Rank::MIDDLE, restricts, check_access);
    hooks.on(Phase::AccessChecker, Rank::FIRST, verifies, check_handshake).pure();
    hooks.on(Phase::CheckUserId, Rank::FIRST, always, check_user);
    hooks.on(Phase::AuthChecker, Rank::MIDDLE, is_strict, check_strictly);
    hooks.on(Phase::Fixups, Rank::MIDDLE, always, tell_tls).pure();
    hooks.on(Phase::Fixups, Rank::MIDDLE, has_variables, tell_more);
    hooks.provider(AUTHZ, "ssl", provider(|request| request.connection.tls.is_some()));
    hooks.provider(AUTHZ, "ssl-verify-client", provider(variables::is_verified));
}

fn restricts(own: Bound<'_, Ssl>) -> bool {
    let dir = own.dir;
    dir.require_ssl.or(false)
        || !dir.requirements.is_empty()
        || dir.verify.is_set()
        || dir.verify_depth.is_set()
        || dir.cipher_suites.is_set()
        || dir.user_name.is_set()
}

fn verifies(own: Bound<'_, Ssl>) -> bool {
    own.server.verifies_clients()
}

/// Refuses documents of a host that verifies clients after the handshake with another host. The
/// policy refuses requests by their `Host`; an invalid head has none, and its error document is one
/// of the address's first host.
fn check_handshake<'r>(_own: Bound<'r, Ssl>, request: &'r mut Request) -> Step<'r> {
    let is_other = |tls: &&TlsFacts| tls.host != request.host.id;
    let tls = request.connection.tls.as_deref().filter(is_other);
    if !tls.is_some_and(|tls| policy::is_unverified(tls, request)) {
        return Step::DECLINED;
    }
    request.depends.pure = false;
    forbid(request, 10158, policy::UNVERIFIED)
}

fn is_strict(own: Bound<'_, Ssl>) -> bool {
    own.dir.options.has(Options::STRICT_REQUIRE)
}

fn has_variables(own: Bound<'_, Ssl>) -> bool {
    let options = own.dir.options;
    options.has(Options::STD_ENV_VARS) || options.has(Options::EXPORT_CERT_DATA)
}

/// `ssl_hook_Access`
fn check_access<'r>(own: Bound<'r, Ssl>, request: &'r mut Request) -> Step<'r> {
    if request.connection.tls.is_none() {
        if own.dir.require_ssl.or(false) {
            return forbid(request, 2219, "SSL connection required");
        }
        // A certificate is required, and there is none.
        if own.dir.verify.get() == Some(&Mode::Require) {
            return forbid(request, 2219, "a client certificate is required");
        }
        return Step::DECLINED;
    }
    if let Err((number, why)) = meets_section(own, request) {
        return forbid(request, number, &why);
    }
    if let Some(variable) = own.dir.user_name.get()
        && !own.dir.options.has(Options::FAKE_BASIC_AUTH)
    {
        set_user(request, variable);
    }
    matching::settle(request, move |request| meets_requirements(own, request))
}

/// Makes the variable's value the user (`SSLUserName`), which `Require` checks. A login that is
/// made from a certificate comes later.
fn set_user(request: &mut Request, variable: &str) {
    match variables::lookup(request, variable).filter(|user| !user.is_empty()) {
        Some(user) => {
            request.user = Some(user);
            request.auth_type = Some("ClientCert".into());
        }
        None => request.log::<Ssl>(
            Level::Warn,
            2227,
            format_args!("Failed to set r->user to '{variable}'"),
        ),
    }
}

/// Checks a section's requirements of the connection. Apache would renegotiate, and refuses the
/// request if that fails.
fn meets_section(own: Bound<'_, Ssl>, request: &Request) -> Result<(), (u32, String)> {
    let Some(tls) = request.connection.tls.as_deref() else { return Ok(()) };
    let suites = own.dir.cipher_suites.get();
    // Those of TLS 1.3 can't be chosen per section.
    let is_12 = tls.protocol == "TLSv1.2";
    if is_12 && suites.is_some_and(|suites| !suites.contains(&tls.cipher_suite)) {
        return Err((2261, "the connection's cipher suite is not allowed here".to_owned()));
    }
    let mode = own.dir.verify.get().copied().unwrap_or_default();
    match (&tls.peer, &tls.ignored) {
        _ if mode == Mode::None && !own.dir.verify_depth.is_set() => Ok(()),
        (None, Some(why)) if mode != Mode::None => {
            Err((2262, format!("the client's certificate is not trusted: {why}")))
        }
        (None, _) if mode == Mode::Require => {
            Err((2264, "the client has not sent a certificate".to_owned()))
        }
        (None, _) => Ok(()),
        (Some(_), _) if !policy::is_judged_for(tls, request) => Err((
            2262,
            "the client's certificate was verified by the rules of another host".to_owned(),
        )),
        (Some(peer), _) => match &peer.failure {
            // Only a host that accepts any certificate gets here, and optional requires no more.
            Some(_) if mode != Mode::Require => Ok(()),
            Some(why) => Err((2262, format!("the client's certificate is not trusted: {why}"))),
            None if peer.depth > variables::depth(request) => {
                Err((2262, "the client's certificate chain is too long".to_owned()))
            }
            None => Ok(()),
        },
    }
}

/// `SSLRequire`
fn meets_requirements(own: Bound<'_, Ssl>, request: &mut Request) -> Result<Verdict, Stop> {
    for condition in own.dir.requirements.iter() {
        let mut groups = conf::expr::Backrefs::new();
        match expr::condition(&condition.expr, request, &mut groups)? {
            Ok(true) => {}
            Ok(false) => {
                log_failure(request, &condition.text);
                return Ok(forbidden(request, 2229, "SSL requirement expression not fulfilled"));
            }
            Err(error) => {
                let why = format!("Failed to execute SSL requirement expression: {error}");
                return Ok(forbidden(request, 2265, &why));
            }
        }
    }
    Ok(Verdict::Declined)
}

fn log_failure(request: &Request, expression: &str) {
    let file = Verbatim::new(&request.resource.filename);
    let client = request.useragent_addr.ip().to_canonical();
    let why =
        format_args!("Access to {file} denied for {client} (requirement expression not fulfilled)");
    request.log::<Ssl>(Level::Info, 2266, why);
    request.log::<Ssl>(Level::Info, 2228, format_args!("Failed expression: {expression}"));
}

fn forbid(request: &mut Request, number: u32, why: &str) -> Step<'static> {
    Step::Ready(forbidden(request, number, why))
}

fn forbidden(request: &mut Request, number: u32, why: &str) -> Verdict {
    let file = Verbatim::new(&request.resource.filename);
    let why = format_args!("access to {file} failed, reason: {why}");
    request.log::<Ssl>(Level::Error, number, why);
    request.notes.set(FORBIDDEN, b"1");
    Verdict::Status(403)
}

/// `ssl_hook_UserCheck`
fn check_user<'r>(own: Bound<'r, Ssl>, request: &'r mut Request) -> Step<'r> {
    if is_strict(own) && request.notes.contains(FORBIDDEN) {
        return Step::status(403);
    }
    if !request.is_initial() {
        return Step::DECLINED;
    }
    if let Some(user) = request.head.headers_in.get(b"Authorization").and_then(faked_user) {
        let user = bstr::BString::from(user);
        let why = format_args!("Encountered FakeBasicAuth spoof: {user}");
        request.log::<Ssl>(Level::Error, 2035, why);
        return Step::status(403);
    }
    if own.dir.options.has(Options::FAKE_BASIC_AUTH) && request.user.is_none() {
        fake(request);
    }
    Step::DECLINED
}

/// The user of a login that only this module may create: a subject's name with the fixed password.
/// It is decoded as in mod_auth_basic, so that the two agree on what is such a login.
fn faked_user(field: &[u8]) -> Option<Vec<u8>> {
    let login = mod_auth_basic::sent(field)?;
    let is_faked = login.user.first() == Some(&b'/') && login.password == PASSWORD;
    is_faked.then_some(login.user)
}

/// Logs in with the certificate's subject, whatever SSLUserName says, and whatever login was sent.
fn fake(request: &mut Request) {
    let peer = request.connection.tls.as_deref().and_then(|tls| tls.peer.as_deref());
    let Some(leaf) = peer.and_then(|peer| peer.certificates.first()) else { return };
    let Ok(parsed) = tls::certs::parse(leaf) else {
        return request.unset_authorization();
    };
    let user = name::text(parsed.subject(), Style::Legacy);
    let login = [&user[..], b":", PASSWORD].concat();
    let field = format!("Basic {}", STANDARD.encode(login));
    request.set_authorization(field.as_bytes());
}

/// `ssl_hook_Auth`
fn check_strictly<'r>(_: Bound<'r, Ssl>, request: &'r mut Request) -> Step<'r> {
    if request.notes.contains(FORBIDDEN) { Step::status(403) } else { Step::DECLINED }
}

/// Sets `HTTPS` and the requested name in the environment of every request over TLS. Readers of the
/// environment are impure, and the log has them separately, so this does not prevent caching.
fn tell_tls<'r>(_: Bound<'r, Ssl>, request: &'r mut Request) -> Step<'r> {
    request.tell_tls();
    Step::DECLINED
}

/// `ssl_hook_Fixup`
fn tell_more<'r>(own: Bound<'r, Ssl>, request: &'r mut Request) -> Step<'r> {
    let Some(connection) = variables::connection(request) else { return Step::DECLINED };
    let (style, now) = (variables::style(request), variables::now());
    let mut all = Vec::new();
    if own.dir.options.has(Options::STD_ENV_VARS) {
        all.extend(connection.standard(style, now));
    }
    if own.dir.options.has(Options::EXPORT_CERT_DATA) {
        all.extend(connection.exported());
    }
    for (name, value) in all {
        request.env.set(name.as_bytes(), &value);
    }
    Step::DECLINED
}

/// `Require ssl`, `Require ssl-verify-client`; arguments are ignored.
struct Ask(fn(&Request) -> bool);

impl Requirement for Ask {
    fn check(&self, request: &mut Request) -> Authz {
        if (self.0)(request) { Authz::Granted } else { Authz::Denied }
    }
}

fn provider(ask: fn(&Request) -> bool) -> AuthzProvider {
    AuthzProvider::new(move |_: &mut Target<'_>, _: &[u8]| -> Result<_, Fault> {
        Ok(Arc::new(Ask(ask)) as Arc<dyn Requirement>)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_that_only_we_may_make() {
        let field = |login: &str| format!("Basic {}", STANDARD.encode(login)).into_bytes();
        assert_eq!(faked_user(&field("/C=DE/CN=x:password")).unwrap(), b"/C=DE/CN=x");
        for login in ["/C=DE/CN=x:other", "joe:password", "/C=DE"] {
            assert_eq!(faked_user(&field(login)), None, "{login}");
        }
        let user = b"/C=DE/CN=x";
        for field in ["basic L0M9REUvQ049eDpwYXNzd29yZA", "Basic  L0M9REUvQ049eDpwYXNzd29yZAB4."] {
            assert_eq!(faked_user(field.as_bytes()).unwrap(), user, "{field}");
        }
        assert_eq!(faked_user(b"Bearer x"), None);
        assert_eq!(faked_user(b"Basic !"), None);
    }
}
