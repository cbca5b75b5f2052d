//! The form that a client sends.
//!
//! Source: `get_form_auth`, `ap_parse_form_data`.

use server::log::Level;
use server::request::Request;

use super::fields::fields;
use super::{AuthForm, Dir, FORM_BYTES};
use crate::aaa::provider::Login;

/// The fields of a form that count.
#[derive(Default)]
pub(super) struct Form {
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    /// Where the client goes afterwards.
    pub location: Option<Vec<u8>>,
}

impl Form {
    /// The login, if it is complete; what is missing is logged.
    pub fn login(&self, dir: &Dir, request: &Request) -> Option<Login> {
        let given = |value: &Option<Vec<u8>>| value.clone().filter(|value| !value.is_empty());
        let (user, password) = (given(&self.user), given(&self.password));
        let missing = match (&user, &password) {
            (None, _) => (2982, "username", name(&dir.user_field, b"httpd_username")),
            (_, None) => (2983, "password", name(&dir.password_field, b"httpd_password")),
            _ => return Some(Login { user: user?, password: password? }),
        };
        let (number, what, field) = missing;
        let field = bstr::BStr::new(field);
        let message = format_args!(
            "form parsed, but {what} field '{field}' was missing or empty, unauthorized"
        );
        request.log::<AuthForm>(Level::Debug, number, message);
        None
    }
}

fn name<'d>(setting: &'d server::merge::Setting<Vec<u8>>, default: &'d [u8]) -> &'d [u8] {
    setting.get().map_or(default, Vec::as_slice)
}

/// Reads the form that is the body of a request; a body of another type stays unread.
///
/// # Errors
/// The status of the response.
pub(super) async fn read(dir: &Dir, request: &mut Request) -> Result<Form, u16> {
    let is_form = request.head.headers_in.get(b"Content-Type").is_some_and(|media| {
        let name = b"application/x-www-form-urlencoded";
        media.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    if !is_form {
        return Ok(Form::default());
    }
    let most = dir.form_bytes.or(FORM_BYTES);
    let mut text = Vec::new();
    while let Some(piece) = request.body_in.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return Err(error.status(request)),
        };
        text.extend_from_slice(&piece);
        if most > 0 && text.len() > most {
            return Err(413);
        }
    }
    Ok(parse(dir, &text))
}

/// The first field of each name counts.
fn parse(dir: &Dir, text: &[u8]) -> Form {
    let mut form = Form::default();
    for (field, value) in fields(text) {
        let place = if field == name(&dir.user_field, b"httpd_username") {
            &mut form.user
        } else if field == name(&dir.password_field, b"httpd_password") {
            &mut form.password
        } else if field == name(&dir.location_field, b"httpd_location") {
            &mut form.location
        } else {
            continue;
        };
        if place.is_none() {
            *place = Some(value);
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_of_a_name_counts() {
        let text =
            b"httpd_username=al%69ce+b&httpd_password=%zz%4&httpd_username=x&httpd_location=";
        let form = parse(&Dir::default(), text);
        assert_eq!(form.user.as_deref(), Some(&b"alice b"[..]));
        assert_eq!(form.password.as_deref(), Some(&b"%zz%4"[..]));
        assert_eq!(form.location.as_deref(), Some(&b""[..]));
    }

    proptest::proptest! {
        #[test]
        fn no_form_panics(text: Vec<u8>) {
            let _ = parse(&Dir::default(), &text);
        }
    }
}
