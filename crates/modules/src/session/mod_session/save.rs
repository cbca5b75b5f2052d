//! The output filter that saves a session before the head of the response is sent.
//!
//! Source: `session_output_filter`, `ap_session_save`.

use server::body::Body;
use server::errorlog::Verbatim;
use server::errors::FailedBody;
use server::filter::{Beginning, OutputFilter};
use server::log::Level;
use server::request::Request;

use super::load::end_us;
use super::{Dir, Draft, Failed, Session, Shared, codec, coding, load, store};

/// `MOD_SESSION_OUT`
pub(super) struct Filter;

impl OutputFilter for Filter {
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        // Apache saves the session of the main request.
        if request.main.is_some() || is_lost(request) {
            return None;
        }
        Some(Box::pin(async move {
            if has_failed(request) {
                // The response that was lost has hidden the cookie.
                let fields = request.response.headers_out.clone();
                let _ = load(request).await;
                request.response.headers_out = fields;
            }
            load_and_save(request).await;
            if request.enter_failed() {
                if !has_failed(request) {
                    load_and_save(request).await;
                }
                request.leave_failed();
            }
            true
        }))
    }

    fn apply(self: Box<Self>, _: &mut Request, body: Body) -> Body {
        body
    }
}

/// Whether the session was saved when the body could not be read, and the fields for the client
/// were lost with the response. A store that forgets has another session for the page.
fn is_lost(request: &Request) -> bool {
    let mut others = std::iter::successors(request.prev.as_deref(), |prev| prev.prev.as_deref())
        .chain(request.failed.as_deref());
    let (fails, others_fail) = (has_failed(request), others.any(has_failed));
    (fails || others_fail)
        && store(request)
            .is_none_or(|(store, (_, forgets))| !forgets && (fails || store.is_of_redirects))
}

fn has_failed(request: &Request) -> bool {
    request.kept::<FailedBody>().is_some()
}

async fn load_and_save(request: &mut Request) {
    let Some(dir) = request.dir_of::<Session>().cloned() else { return };
    let Some(values) = load(request).await.filter(|values| !values.borrow().is_written) else {
        return;
    };
    if let Some(name) = dir.header.get() {
        take_field(request, name, &values);
    }
    save(request, &dir, &values).await;
}

/// Takes the values of the field of `SessionHeader`.
fn take_field(request: &mut Request, name: &[u8], values: &Shared) {
    let out = &mut request.response;
    let field = out.err_headers_out.get(name).or_else(|| out.headers_out.get(name));
    let Some(field) = field.map(<[u8]>::to_vec) else { return };
    out.err_headers_out.unset(name);
    out.headers_out.unset(name);
    let mut values = values.borrow_mut();
    values.is_dirty = true;
    coding::decode(&field, &mut values);
}

async fn save(request: &mut Request, dir: &Dir, values: &Shared) {
    let uri = request.resource.uri.clone();
    let uri = Verbatim::new(&uri);
    let now_us = i64::try_from(request.engine.handle.clock().wall_us()).unwrap_or(i64::MAX);
    let mut draft = {
        let mut values = values.borrow_mut();
        if values.expiry_us != 0 && values.expiry_us < now_us {
            let message = format_args!(
                "attempt made to save a session when the session had already expired, session not \
                 saved: {uri}"
            );
            return request.log::<Session>(Level::Warn, 1819, message);
        }
        let before_us = values.expiry_us;
        let own_age = dir.max_age.or(0);
        if own_age != 0 {
            values.max_age = own_age;
        }
        // A session of the request before this one may have an age without a directive here.
        if values.max_age != 0 && (own_age != 0 || values.is_dirty) {
            values.expiry_us = end_us(now_us, values.max_age);
        }
        let interval_us = dir.update_interval.or(0).saturating_mul(1_000_000);
        let is_early = values.expiry_us.saturating_sub(before_us) < interval_us;
        if !values.is_dirty && (values.max_age == 0 || (interval_us > 0 && is_early)) {
            return;
        }
        Draft {
            text: coding::encode(&mut values),
            max_age: values.max_age,
            expiry_us: values.expiry_us,
            is_dirty: values.is_dirty,
            key: values.key.clone(),
        }
    };
    if let Some(codec) = codec(request) {
        let text = std::mem::take(&mut draft.text);
        let Ok(encoded) = (codec.encode)(request, text) else {
            let message =
                format_args!("error while encoding the session, session not saved: {uri}");
            return request.log::<Session>(Level::Error, 1820, message);
        };
        draft.text = encoded;
    }
    let Some((store, _)) = store(request) else { return };
    let outcome = (store.write)(request, draft).get().await;
    match outcome {
        Ok(key) => {
            let mut values = values.borrow_mut();
            (values.key, values.is_written) = (key, true);
        }
        Err(Failed) => {
            let message = format_args!("error while saving the session, session not saved: {uri}");
            request.log::<Session>(Level::Error, 1822, message);
        }
    }
}
