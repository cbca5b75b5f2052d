//! The directives of mod_proxy_scgi.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};

use super::{FieldName, ProxyScgi};

type Here<'a, 't> = Cx<'a, 't, ProxyScgi>;

/// The field that `ProxySCGISendfile On` names.
const SENDFILE: &[u8] = b"X-Sendfile";
/// The field that `ProxySCGIInternalRedirect On` names.
pub(super) const INTERNAL_REDIRECT: &[u8] = b"Location";

pub(super) const ROWS: &[Row<ProxyScgi>] = &[
    Row::<ProxyScgi>::new(
        "ProxySCGIInternalRedirect",
        Takes::One(internal_redirect),
        "On|Off|Headername",
        "Enable or disable internal redirect responses from the backend",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("On"),
    Row::<ProxyScgi>::new(
        "ProxySCGISendfile",
        Takes::One(sendfile),
        "On|Off|Headername",
        "Enable evaluation of X-Sendfile pseudo response header",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)
    .default("Off"),
];

/// Source: `scgi_set_internal_redirect`.
fn internal_redirect(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().internal_redirect.set(field(arg, INTERNAL_REDIRECT));
    Ok(())
}

/// Source: `scgi_set_send_file`.
fn sendfile(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().sendfile.set(field(arg, SENDFILE));
    Ok(())
}

/// The field that an argument names; `default` is that of `On`.
fn field(arg: &Arg, default: &[u8]) -> FieldName {
    let name = &arg.text[..];
    if name.eq_ignore_ascii_case(b"off") {
        return None;
    }
    Some(if name.eq_ignore_ascii_case(b"on") { default.into() } else { name.into() })
}
