//! The handlers for login and logout.

use server::errorlog::Verbatim;
use server::errors::FailedBody;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::Request;
use wire::method::Method;

use super::check::{by_form, redirect, succeeded};
use super::form::Unread;
use super::{AuthForm, Dir, form, session};

/// `form-login-handler`. Source: `authenticate_form_login_handler`.
pub(super) fn login<'r>(cx: Bound<'r, AuthForm>, request: &'r mut Request) -> Step<'r> {
    if request.head.method != Method::POST {
        let uri = request.resource.uri.clone();
        let uri = Verbatim::new(&uri);
        let message =
            format_args!("the form-login-handler only supports the POST method for {uri}");
        request.log::<AuthForm>(Level::Error, 1811, message);
        return Step::status(405);
    }
    Step::Pending(Box::pin(log_in(cx.dir, request)))
}

async fn log_in(dir: &Dir, request: &mut Request) -> Verdict {
    let form = match form::read_or_discard(dir, request).await {
        Ok(form) => form,
        Err(why) => {
            if matches!(why, Unread::Body(_)) {
                request.keep(FailedBody);
            }
            return Verdict::Status(why.status());
        }
    };
    match by_form(dir, request, &form).await {
        Verdict::Ok => {}
        Verdict::Status(401) => match dir.login_required.get() {
            Some(target) => return redirect(request, target, "login required", 2342),
            None => return Verdict::Status(401),
        },
        other => return other,
    }
    if let Some(location) = &form.location {
        request.response.headers_out.set(b"Location", location);
        return Verdict::Status(302);
    }
    succeeded(dir, request, 2341).unwrap_or(Verdict::Status(200))
}

/// `form-logout-handler`. Source: `authenticate_form_logout_handler`.
pub(super) fn logout<'r>(cx: Bound<'r, AuthForm>, request: &'r mut Request) -> Step<'r> {
    Step::Pending(Box::pin(log_out(cx.dir, request)))
}

async fn log_out(dir: &Dir, request: &mut Request) -> Verdict {
    session::write(dir, request, None).await;
    request.response.headers_out.add(b"Cache-Control", b"no-store");
    request.response.err_headers_out.add(b"Cache-Control", b"no-store");
    let Some(target) = dir.logout.get() else { return Verdict::Status(200) };
    match redirect(request, target, "logout", 2343) {
        Verdict::Status(302) => Verdict::Status(307),
        other => other,
    }
}
