//! The request that a form continues after its login: its media type, its body, its method.
//!
//! Source: `get_form_auth`, `authenticate_form_authn`, `authenticate_form_redirect_handler`.

use std::borrow::Cow;

use bytes::Bytes;
use messages::Message;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::other_method;
use server::request::Request;
use server::request_body::BodyIn;
use server::subrequest;

use super::AuthForm;
use super::form::Form;

/// The handler of a request that continues with another method (`FORM_REDIRECT_HANDLER`).
pub(super) const HANDLER: &str = "form-redirect-handler";

/// What the form says about the request, for that handler.
#[derive(Clone)]
struct Instead {
    method: Option<Vec<u8>>,
    media_type: Option<Vec<u8>>,
}

/// Gives the request the media type of the form, if the form has a body as well. The type counts
/// even if the login is wrong: error documents see it.
///
/// # Errors
/// 400, if the type has a control character: programs and other servers would get it in a field, in
/// which a line end begins another one.
pub(super) fn retype(form: &Form, request: &mut Request) -> Result<(), u16> {
    let (Some(media_type), Some(_)) = (&form.media_type, &form.body) else { return Ok(()) };
    if media_type.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        let number = Message::MediaTypeInForm.number();
        let shown = Verbatim::new(media_type);
        let message = format_args!("the form has a control character in a media type: {shown}");
        request.log::<AuthForm>(Level::Error, number, message);
        return Err(400);
    }
    request.head.headers_in.set(b"Content-Type", media_type);
    Ok(())
}

/// Continues with what the form says: its body if it has a type for it, otherwise without a body.
pub(super) fn continue_with(form: Form, request: &mut Request) {
    let body = form.body.filter(|_| form.media_type.is_some()).unwrap_or_default();
    let length = itoa::Buffer::new().format(body.len()).to_owned();
    request.head.headers_in.set(b"Content-Length", length.as_bytes());
    request.head.headers_in.unset(b"Transfer-Encoding");
    request.body_in = BodyIn::of_bytes(Bytes::from(body));
    if form.method.as_ref().is_some_and(|method| method != b"POST") {
        request.handler = Some(Cow::Borrowed(HANDLER.as_bytes()));
        request.keep(Instead { method: form.method, media_type: form.media_type });
    }
}

/// Responds with the same path by another method.
pub(super) fn handle<'r>(_: Bound<'r, AuthForm>, request: &'r mut Request) -> Step<'r> {
    Step::Pending(Box::pin(respond(request)))
}

async fn respond(request: &mut Request) -> Verdict {
    let instead = request.kept::<Instead>().cloned();
    let uri = request.resource.uri.clone();
    let uri = Verbatim::new(&uri);
    let Some(Instead { method: Some(method), media_type: Some(media_type) }) = instead else {
        let message = format_args!(
            "internal redirect requested but one or all of method, mimetype or body are NULL: {uri}"
        );
        request.log::<AuthForm>(Level::Error, 1813, message);
        return Verdict::Status(500);
    };
    let (name, kind) = (Verbatim::new(&method), Verbatim::new(&media_type));
    let message = format_args!(
        "internal redirect to method '{name}' and body mimetype '{kind}' for the uri: {uri}"
    );
    request.log::<AuthForm>(Level::Debug, 1812, message);
    if method == b"TRACE" {
        return Verdict::Status(405);
    }
    let mut sub = other_method::other_method(request, &method);
    subrequest::look_up_response(request, &mut sub).await;
    if sub.response.status != 200 {
        return Verdict::Status(sub.response.status);
    }
    match subrequest::run_within(request, &mut sub).await {
        Verdict::Status(status) => Verdict::Status(status),
        Verdict::Ok | Verdict::Done | Verdict::Declined => {
            request.response.body = std::mem::take(&mut sub.response.body);
            request.response.chunked = true;
            request.refuse_ranges();
            Verdict::Ok
        }
    }
}
