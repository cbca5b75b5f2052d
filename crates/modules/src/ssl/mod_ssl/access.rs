//! The request's side: SSLRequireSSL, SSLRequire, faked Basic authentication, the environment
//! (`ssl_engine_kernel.c`).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::directive::{Fault, Target};
use server::expr;
use server::hooks::{Answer, Bound, Hooks, Phase, Rank, always};
use server::log::Level;
use server::request::Request;
use tls::vars::{Style, name};
use tls::verify::Mode;

use super::Ssl;
use super::config::Options;
use super::variables;
use crate::aaa::provider::{AUTHZ, Authz, AuthzProvider, Requirement};

/// Left behind where access was refused, for `StrictRequire`.
const FORBIDDEN: &[u8] = b"ssl-access-forbidden";

/// What every faked login has as its password; so nobody may come with it himself.
const PASSWORD: &[u8] = b"password";

/// Registers the hooks and the providers of `Require`.
pub fn register(hooks: &mut Hooks<'_, Ssl>) {
    hooks.on(Phase::AccessChecker, Rank::MIDDLE, restricts, check_access);
    hooks.on(Phase::CheckUserId, Rank::FIRST, always, check_user);
    hooks.on(Phase::AuthChecker, Rank::MIDDLE, is_strict, check_strictly);
    hooks.on(Phase::Fixups, Rank::MIDDLE, always, tell_tls).pure();
    hooks.on(Phase::Fixups, Rank::MIDDLE, has_variables, tell_more);
    hooks.provider(AUTHZ, "ssl", provider(|request| request.client.tls.is_some()));
    hooks.provider(AUTHZ, "ssl-verify-client", provider(variables::is_verified));
}

fn restricts(own: Bound<'_, Ssl>) -> bool {
    let dir = own.dir;
    dir.require_ssl.or(false) || !dir.requirements.is_empty() || dir.verify.is_set()
}

fn is_strict(own: Bound<'_, Ssl>) -> bool {
    own.dir.options.has(Options::STRICT_REQUIRE)
}

fn has_variables(own: Bound<'_, Ssl>) -> bool {
    let options = own.dir.options;
    options.has(Options::STD_ENV_VARS)
        || options.has(Options::EXPORT_CERT_DATA)
        || own.dir.user_name.is_set()
}

/// `ssl_hook_Access`
fn check_access<'r>(own: Bound<'r, Ssl>, request: &'r mut Request) -> Answer<'r> {
    if request.client.tls.is_none() {
        if own.dir.require_ssl.or(false) {
            return forbid(request, 2219, "SSL connection required");
        }
        // A certificate is asked for, and there is none.
        if own.dir.verify.get() == Some(&Mode::Require) {
            return forbid(request, 2219, "a client certificate is required");
        }
        return Answer::DECLINED;
    }
    if own.dir.verify.get() == Some(&Mode::Require) && !variables::is_verified(request) {
        return forbid(request, 2260, "the client has not shown a certificate that is trusted");
    }
    for condition in own.dir.requirements.iter() {
        let mut groups = conf::expr::Backrefs::new();
        match expr::condition(&condition.expr, request, &mut groups) {
            Ok(true) => {}
            Ok(false) => {
                let text = &condition.text;
                let why = format_args!("Failed expression: {text}");
                request.log::<Ssl>(Level::Info, 2229, why);
                return forbid(request, 2228, "SSL requirement expression not fulfilled");
            }
            Err(error) => {
                let why = format!("Failed to execute SSL requirement expression: {error}");
                return forbid(request, 2230, &why);
            }
        }
    }
    Answer::DECLINED
}

fn forbid(request: &mut Request, number: u32, why: &str) -> Answer<'static> {
    let file = bstr::BStr::new(&request.filename);
    let why = format_args!("access to {file} failed, reason: {why}");
    request.log::<Ssl>(Level::Error, number, why);
    request.notes.set(FORBIDDEN, b"1");
    Answer::status(403)
}

/// `ssl_hook_UserCheck`
fn check_user<'r>(own: Bound<'r, Ssl>, request: &'r mut Request) -> Answer<'r> {
    if is_strict(own) && request.notes.contains(FORBIDDEN) {
        return Answer::status(403);
    }
    if !request.is_initial() {
        return Answer::DECLINED;
    }
    if let Some(user) = request.headers_in.get(b"Authorization").and_then(faked_user) {
        let user = bstr::BString::from(user);
        let why = format_args!("Encountered FakeBasicAuth spoof: {user}");
        request.log::<Ssl>(Level::Error, 2035, why);
        return Answer::status(403);
    }
    if own.dir.options.has(Options::FAKE_BASIC_AUTH) && request.user.is_none() {
        fake(own, request);
    }
    Answer::DECLINED
}

/// The user of a login that only this module may make: a subject's name with the fixed password.
fn faked_user(field: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = field.split_at_checked(6)?;
    if scheme != b"Basic " {
        return None;
    }
    let login = STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = login.iter().position(|byte| *byte == b':')?;
    let (user, password) = login.split_at_checked(colon)?;
    let is_faked = user.first() == Some(&b'/') && password.get(1..) == Some(PASSWORD);
    is_faked.then(|| user.to_vec())
}

fn fake(own: Bound<'_, Ssl>, request: &mut Request) {
    let peer = request.client.tls.as_deref().and_then(|tls| tls.peer.as_deref());
    let Some(leaf) = peer.and_then(|peer| peer.certificates.first()) else { return };
    let user = match own.dir.user_name.get() {
        Some(variable) => variables::lookup(request, variable),
        None => {
            let parsed = tls::certs::parse(leaf).ok();
            parsed.map(|parsed| name::text(parsed.subject(), Style::Legacy))
        }
    };
    let Some(user) = user else { return };
    let login = [&user[..], b":", PASSWORD].concat();
    let field = format!("Basic {}", STANDARD.encode(login));
    request.headers_in.set(b"Authorization", field.as_bytes());
}

/// `ssl_hook_Auth`
fn check_strictly<'r>(_: Bound<'r, Ssl>, request: &'r mut Request) -> Answer<'r> {
    if request.notes.contains(FORBIDDEN) { Answer::status(403) } else { Answer::DECLINED }
}

/// `HTTPS` and the name asked for are in the environment of every request over TLS. A reader of the
/// environment is not pure, and the log is told apart: so this does not hinder reuse of answers.
fn tell_tls<'r>(_: Bound<'r, Ssl>, request: &'r mut Request) -> Answer<'r> {
    request.tell_tls();
    Answer::DECLINED
}

/// `ssl_hook_Fixup`
fn tell_more<'r>(own: Bound<'r, Ssl>, request: &'r mut Request) -> Answer<'r> {
    let Some(connection) = variables::connection(request) else { return Answer::DECLINED };
    let (style, now) = (variables::style(request), variables::now());
    let mut all = Vec::new();
    if own.dir.options.has(Options::STD_ENV_VARS) {
        all.extend(connection.standard(style, now));
    }
    if own.dir.options.has(Options::EXPORT_CERT_DATA) {
        all.extend(connection.exported());
    }
    let user = own.dir.user_name.get().map(|name| (name, connection.lookup(name, style, now)));
    match user {
        Some((_, Some(user))) if !user.is_empty() => request.user = Some(user),
        Some((name, _)) => {
            let why = format_args!("Failed to set r->user to '{name}'");
            request.log::<Ssl>(Level::Warn, 2227, why);
        }
        None => {}
    }
    for (name, value) in all {
        request.env.set(name.as_bytes(), &value);
    }
    Answer::DECLINED
}

/// `Require ssl`, `Require ssl-verify-client`: what follows the word is not looked at.
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
        assert_eq!(faked_user(b"Bearer x"), None);
        assert_eq!(faked_user(b"Basic !"), None);
    }
}
