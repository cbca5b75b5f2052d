//! `AuthnzFcgiCheckAuthnProvider`: an authorizer instead of mod_auth_basic.
//!
//! Source: `fcgi_check_authn`

use std::sync::Arc;

use server::errorlog::Verbatim;
use server::errors::OwnText;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::Request;

use super::ask::{BODY_BYTES, ask};
use super::rows::OWN;
use super::{AuthnzFcgi, CheckAuthn, Provider, log_provider, note_success};
use crate::aaa::mod_auth_basic::{ask as challenge, is_forward, sent};
use crate::aaa::mod_authn_core::{auth_type, realm};
use crate::aaa::provider::Login;

pub(super) fn check<'r>(bound: Bound<'r, AuthnzFcgi>, request: &'r mut Request) -> Step<'r> {
    match bound.dir.check.get() {
        Some(check) => Step::Pending(Box::pin(decide(check, request))),
        None => Step::DECLINED,
    }
}

async fn decide(check: &CheckAuthn, request: &mut Request) -> Verdict {
    let kind = auth_type(request).unwrap_or_default();
    let yes_no = |is_so| if is_so { "yes" } else { "no" };
    let text = format_args!(
        "fcgi_check_authn, prov {}, authoritative {}, require-basic {}, user expr? {} type {}",
        check.name,
        yes_no(check.authoritative),
        yes_no(check.requires_basic),
        yes_no(check.user.is_some()),
        Verbatim::new(&kind)
    );
    request.log::<AuthnzFcgi>(Level::Debug, 2516, text);
    let mut password = None;
    if kind.eq_ignore_ascii_case(b"Basic") {
        match login(request) {
            Ok(login) => {
                request.user = Some(login.user);
                request.auth_type = Some("Basic".into());
                password = Some(login.password);
            }
            Err(status) => {
                let text = format_args!("fcgi_check_authn: couldn't retrieve basic auth password");
                request.log::<AuthnzFcgi>(Level::Debug, 2517, text);
                if check.requires_basic {
                    return Verdict::Status(status);
                }
            }
        }
    }
    let found = request.engine.server.defined.find::<Arc<Provider>>(OWN, &check.name);
    let Some(provider) = found.filter(|provider| provider.name == check.name) else {
        let text = format_args!("fcgi_check_authn: can't find config for provider {}", check.name);
        request.log::<AuthnzFcgi>(Level::Crit, 2518, text);
        return Verdict::Status(500);
    };
    log_provider(request, &provider);
    let body = ask(request, &provider, password.as_deref(), Some("AUTHENTICATOR")).await;
    if request.response.status == 200 {
        set_user(check, request);
        note_success(request, &provider);
    } else {
        give_body(check, request, body);
    }
    match request.response.status {
        200 => Verdict::Ok,
        status if check.authoritative => Verdict::Status(status),
        _ => Verdict::Declined,
    }
}

/// The user name and password that the client sent.
///
/// # Errors
/// The status of the response, which asks for them.
///
/// Source: `ap_get_basic_auth_pw`
fn login(request: &mut Request) -> Result<Login, u16> {
    if realm(request).is_none() {
        let uri = request.resource.uri.clone();
        request.log_core(Level::Error, 27, "need AuthName", Some(&uri));
        return Err(500);
    }
    let name: &[u8] = match is_forward(request) {
        true => b"Proxy-Authorization",
        false => b"Authorization",
    };
    let field = request.head.headers_in.get(name);
    let is_there = field.is_some();
    field.and_then(sent).ok_or_else(|| {
        if is_there {
            let uri = request.resource.uri.clone();
            let why = "client used wrong authentication scheme";
            request.log_core(Level::Error, 573, why, Some(&uri));
        }
        challenge(request);
        401
    })
}

/// Makes the user what the authorizer's variables say.
fn set_user(check: &CheckAuthn, request: &mut Request) {
    let Some(expression) = &check.user else { return };
    match expression.value(request).map(|value| value.into_owned()) {
        Ok(user) if !user.is_empty() => {
            let text = format_args!("fcgi_check_authn: Setting user to '{}'", Verbatim::new(&user));
            request.log::<AuthnzFcgi>(Level::Debug, 2519, text);
            request.user = Some(user);
        }
        Ok(_) if check.default_user.is_some() => request.user = check.default_user.clone(),
        Ok(_) => {
            let text = format_args!(
                "fcgi_check_authn: Failure extracting user after calling authorizer: user \
                 expression yielded empty string (variable not set?)"
            );
            request.log::<AuthnzFcgi>(Level::Error, 2520, text);
            request.response.status = 500;
        }
        Err(why) => {
            let text = format_args!(
                "fcgi_check_authn: Failure extracting user after calling authorizer: {why}"
            );
            request.log::<AuthnzFcgi>(Level::Error, 2521, text);
            request.response.status = 500;
        }
    }
}

/// Makes the authorizer's text that of the response which denies access.
fn give_body(check: &CheckAuthn, request: &mut Request, body: Vec<u8>) {
    if body.is_empty() {
        return;
    }
    if !check.authoritative {
        let text = format_args!(
            "fcgi_check_authn: Ignoring response body from non-authoritative authorizer"
        );
        request.log::<AuthnzFcgi>(Level::Warn, 2522, text);
        return;
    }
    if body.len() == BODY_BYTES {
        let text = format_args!("fcgi_check_authn: possible overflow handling response body");
        request.log::<AuthnzFcgi>(Level::Warn, 2523, text);
    }
    let status = request.response.status;
    request.keep(OwnText { status, text: body });
}
