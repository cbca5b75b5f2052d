//! Authentication by session or form.
//!
//! Source: `authenticate_form_authn`, `check_authn`.

use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::{Proxied, Request, SharedLogin};
use wire::method::Method;

use super::{AuthForm, Dir, form, instead, session};
use crate::aaa::expression::Expression;
use crate::aaa::mod_authn_core::{auth_type, realm};
use crate::aaa::provider::{AUTHN, Authn, AuthnProvider, Login};

pub(super) fn authenticate<'r>(cx: Bound<'r, AuthForm>, request: &'r mut Request) -> Step<'r> {
    let Some(kind) = auth_type(request).filter(|kind| kind.eq_ignore_ascii_case(b"form")) else {
        return Step::DECLINED;
    };
    let uri = request.resource.uri.clone();
    let uri = Verbatim::new(&uri);
    if request.resource.proxied == Proxied::Forward {
        let message = format_args!(
            "form auth cannot be used for proxy requests due to XSS risk, access denied: {uri}"
        );
        request.log::<AuthForm>(Level::Error, 1809, message);
        return Step::status(500);
    }
    if realm(request).is_none() {
        request.log::<AuthForm>(Level::Error, 1810, format_args!("need AuthName: {uri}"));
        return Step::status(500);
    }
    request.auth_type = Some(Cow::Owned(String::from_utf8_lossy(&kind).into_owned()));
    Step::Pending(Box::pin(decide(cx.dir, request)))
}

/// The login of a form that was sent to the main request, or to one that this one was redirected
/// from (`get_notes_auth`).
fn sent_before(request: &Request) -> Option<Rc<Login>> {
    request.login()?.clone().downcast().ok()
}

async fn decide(dir: &Dir, request: &mut Request) -> Verdict {
    let mut verdict = Verdict::Status(401);
    if let Some(login) = sent_before(request) {
        request.user = Some(login.user.clone());
        verdict = check(dir, request, &login).await;
    } else {
        let known = session::read(request).await;
        if known.user.is_some() {
            request.user.clone_from(&known.user);
        }
        let is_of_site = known.is_of_site(dir);
        if let (Some(user), Some(password)) = (known.user, known.password) {
            let login = Login { user, password };
            if is_of_site {
                fake(dir, request, &login);
                return Verdict::Ok;
            }
            verdict = check(dir, request, &login).await;
        }
    }
    let mut location = None;
    let is_form = request.head.method == Method::POST && request.is_initial();
    if verdict == Verdict::Status(401) && is_form {
        let form = match form::read_first(dir, request).await {
            Ok(form) => form,
            Err(why) => return Verdict::Status(why.status()),
        };
        if let Err(status) = instead::retype(&form, request) {
            return Verdict::Status(status);
        }
        verdict = by_form(dir, request, &form).await;
        if verdict == Verdict::Ok && form.location.is_none() {
            if let Some(decided) = succeeded(dir, request, 2339) {
                return decided;
            }
            instead::continue_with(form, request);
            return Verdict::Ok;
        }
        location = form.location;
    }
    if let (Verdict::Status(401), Some(target)) = (verdict, dir.login_required.get()) {
        return redirect(request, target, "login required", 2340);
    }
    if let Some(location) = location {
        request.response.headers_out.set(b"Location", &location);
        return Verdict::Status(302);
    }
    if verdict == Verdict::Status(401) && !dir.may_store.or(false) {
        request.response.headers_out.add(b"Cache-Control", b"no-store");
        request.response.err_headers_out.add(b"Cache-Control", b"no-store");
    }
    verdict
}

/// Checks the login of a form; a correct one is written into the session.
pub(super) async fn by_form(dir: &Dir, request: &mut Request, form: &form::Form) -> Verdict {
    // The name counts for the log even if the password is missing.
    if form.user.is_some() {
        request.user.clone_from(&form.user);
    }
    let Some(login) = form.login(dir, request) else { return Verdict::Status(401) };
    let verdict = check(dir, request, &login).await;
    if verdict == Verdict::Ok {
        session::write(dir, request, Some(&login)).await;
        request.keep(SharedLogin(Rc::new(login)));
    }
    verdict
}

/// Where a client goes after a login, if that is configured.
pub(super) fn succeeded(dir: &Dir, request: &mut Request, number: u32) -> Option<Verdict> {
    let target = dir.login_success.get()?;
    Some(redirect(request, target, "login success", number))
}

/// Sends the client to the value of an expression.
pub(super) fn redirect(
    request: &mut Request,
    target: &Expression,
    what: &str,
    number: u32,
) -> Verdict {
    match target.value(request).map(Cow::into_owned) {
        Ok(location) => {
            request.response.headers_out.set(b"Location", &location);
            Verdict::Status(302)
        }
        Err(why) => {
            let message = format_args!("Can't evaluate {what} expression: {why}");
            request.log::<AuthForm>(Level::Error, number, message);
            Verdict::Status(500)
        }
    }
}

/// Asks the providers.
async fn check(dir: &Dir, request: &mut Request, login: &Login) -> Verdict {
    let found = ask(dir, request, login).await;
    if found == Authn::Granted {
        fake(dir, request, login);
        return Verdict::Ok;
    }
    if !dir.authoritative.or(true) && found != Authn::Denied {
        return Verdict::Declined;
    }
    let (user, uri) = (Verbatim::new(&login.user), Verbatim::new(&request.resource.uri));
    match found {
        Authn::Denied => {
            let message = format_args!(
                "user '{user}': authentication failure for \"{uri}\": password Mismatch"
            );
            request.log::<AuthForm>(Level::Error, 1807, message);
        }
        Authn::UserNotFound => {
            let message = format_args!("user '{user}' not found: {uri}");
            request.log::<AuthForm>(Level::Error, 1808, message);
        }
        Authn::Granted | Authn::GeneralError => return Verdict::Status(500),
    }
    Verdict::Status(401)
}

async fn ask(dir: &Dir, request: &mut Request, login: &Login) -> Authn {
    if dir.providers.is_empty() {
        let hooks = &request.engine.server.registry.hooks;
        let Some(provider) = hooks.provider::<AuthnProvider>(AUTHN, "file") else {
            let message = format_args!("no authn provider configured");
            request.log::<AuthForm>(Level::Error, 1806, message);
            return Authn::GeneralError;
        };
        return ask_one(&provider, "file", request, login).await;
    }
    let mut found = Authn::UserNotFound;
    for of in dir.providers.iter() {
        found = ask_one(&of.provider, &of.name, request, login).await;
        if found != Authn::UserNotFound {
            break;
        }
    }
    found
}

async fn ask_one(
    provider: &AuthnProvider,
    name: &str,
    request: &mut Request,
    login: &Login,
) -> Authn {
    request.notes.set(b"authn_provider_name", name.as_bytes());
    let found = provider.check_password(request, login).get().await;
    request.notes.unset(b"authn_provider_name");
    found
}

/// Source: `fake_basic_authentication`.
fn fake(dir: &Dir, request: &mut Request, login: &Login) {
    if dir.fake.or(false) {
        let text = [login.user.as_slice(), b":", &login.password].concat();
        let field = format!("Basic {}", STANDARD.encode(text));
        request.set_authorization(field.as_bytes());
    }
}
