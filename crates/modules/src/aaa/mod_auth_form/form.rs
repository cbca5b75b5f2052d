//! The form that a client sends.
//!
//! Source: `get_form_auth`.

use server::discard::discard_body;
use server::errorlog::Verbatim;
use server::hooks::Phase;
use server::log::Level;
use server::process;
use server::request::Request;
use server::subrequest;

use super::fields::{Fields, TooLong, text};
use super::{AuthForm, Dir, FORM_BYTES};
use crate::aaa::provider::Login;

/// The fields of a form that count.
#[derive(Default)]
pub(super) struct Form {
    pub user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    /// Where the client goes afterwards.
    pub location: Option<Vec<u8>>,
    /// The method of the request that continues after the login.
    pub method: Option<Vec<u8>>,
    /// The media type of its body.
    pub media_type: Option<Vec<u8>>,
    /// Its body.
    pub body: Option<Vec<u8>>,
}

impl Form {
    /// The login, if it is complete; what is missing is logged.
    pub fn login(&self, dir: &Dir, request: &Request) -> Option<Login> {
        let missing = match (&self.user, &self.password) {
            (None, _) => (2982, "username", name(&dir.user_field, b"httpd_username")),
            (_, None) => (2983, "password", name(&dir.password_field, b"httpd_password")),
            (Some(user), Some(password)) => {
                return Some(Login { user: user.clone(), password: password.clone() });
            }
        };
        let (number, what, field) = missing;
        let field = Verbatim::new(field);
        let message = format_args!(
            "form parsed, but {what} field '{field}' was missing or empty, unauthorized"
        );
        request.log::<AuthForm>(Level::Debug, number, message);
        None
    }

    /// Takes a field. The first one of each name counts.
    fn take(&mut self, dir: &Dir, field: &[u8], value: &[u8]) {
        let place = if field == name(&dir.user_field, b"httpd_username") {
            &mut self.user
        } else if field == name(&dir.password_field, b"httpd_password") {
            &mut self.password
        } else if field == name(&dir.location_field, b"httpd_location") {
            &mut self.location
        } else if field == name(&dir.method_field, b"httpd_method") {
            &mut self.method
        } else if field == name(&dir.media_type_field, b"httpd_mimetype") {
            &mut self.media_type
        } else if field == name(&dir.body_field, b"httpd_body") {
            self.body.get_or_insert_with(|| value.to_vec());
            return;
        } else {
            return;
        };
        place.get_or_insert_with(|| text(value).to_vec());
    }
}

fn name<'d>(setting: &'d server::merge::Setting<Vec<u8>>, default: &'d [u8]) -> &'d [u8] {
    setting.get().map_or(default, Vec::as_slice)
}

/// Why a form could not be read.
pub(super) enum Unread {
    /// It is longer than `AuthFormSize`.
    TooLong,
    /// The body could not be read: the status of the response.
    Body(u16),
}

impl Unread {
    pub fn status(&self) -> u16 {
        match self {
            Unread::TooLong => 413,
            Unread::Body(status) => *status,
        }
    }
}

/// Reads the form in whose place the client has asked for something else; a body of another type
/// stays unread. As in Apache, a subrequest for the same path precedes that: its hooks may log, and
/// its KeptBodySize limits the form.
pub(super) async fn read_first(dir: &Dir, request: &mut Request) -> Result<Form, Unread> {
    let uri = request.resource.uri.clone();
    let mut sub = subrequest::lookup_response(request, &uri).await;
    process::run_all(&mut sub, Phase::InsertFilter).await;
    if !is_form(request) {
        return Ok(Form::default());
    }
    request.body_in.limit_as_kept(&sub.body_in);
    read(dir, request).await
}

/// Whether the body is a form, by its media type.
fn is_form(request: &Request) -> bool {
    request.head.headers_in.get(b"Content-Type").is_some_and(|media| {
        let name = b"application/x-www-form-urlencoded";
        media.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    })
}

/// Reads the form for a handler, which has a body of another type discarded
/// (`ap_parse_form_data`).
pub(super) async fn read_or_discard(dir: &Dir, request: &mut Request) -> Result<Form, Unread> {
    if !is_form(request) {
        return discard_body(request).await.map(|()| Form::default()).map_err(Unread::Body);
    }
    read(dir, request).await
}

/// Reads the form that is the body of a request.
async fn read(dir: &Dir, request: &mut Request) -> Result<Form, Unread> {
    let mut fields = Fields::new(dir.form_bytes.or(FORM_BYTES));
    let mut form = Form::default();
    while let Some(piece) = request.body_in.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return Err(Unread::Body(error.status(request))),
        };
        let mut take = |name: &[u8], value: &[u8]| form.take(dir, name, value);
        fields.read(&piece, &mut take).map_err(|TooLong| Unread::TooLong)?;
    }
    fields.end(&mut |name, value| form.take(dir, name, value));
    Ok(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_of_a_name_counts() {
        let text =
            b"httpd_username=al%69ce+b%00c&httpd_password=x&httpd_username=x&httpd_location=&\
            httpd_body=a%00b&httpd_body=c";
        let (mut form, mut fields) = (Form::default(), Fields::new(100));
        let dir = Dir::default();
        let mut take = |name: &[u8], value: &[u8]| form.take(&dir, name, value);
        fields.read(text, &mut take).unwrap();
        fields.end(&mut take);
        assert_eq!(form.user.as_deref(), Some(&b"alice b"[..]));
        assert_eq!(form.password.as_deref(), Some(&b"x"[..]));
        assert_eq!(form.location.as_deref(), Some(&b""[..]));
        assert_eq!(form.body.as_deref(), Some(&b"a\0b"[..]));
    }
}
