//! `x-gzip` or `gzip`: responds with the client's token.

use server::hooks::{Bound, Step};
use server::request::Request;
use wire::accept;

use super::Negotiation;
use super::quality::without_x;

/// Sets the content's encoding to the client's name for it (`fix_encoding`).
pub(super) fn fix<'r>(_: Bound<'r, Negotiation>, request: &'r mut Request) -> Step<'r> {
    let Some(own) = request.response.content_encoding.as_deref().filter(|own| !own.is_empty())
    else {
        return Step::DECLINED;
    };
    let plain = without_x(own);
    request.depends.pure = false;
    let Some(field) = request.head.headers_in.get(b"Accept-Encoding") else {
        return Step::DECLINED;
    };
    let names = accept::parse(field).into_iter().map(|entry| entry.name);
    let mut with_x = None;
    for name in names {
        if name == plain {
            request.response.content_encoding = Some(name);
            return Step::OK;
        }
        if name.strip_prefix(b"x-") == Some(plain) {
            with_x = Some(name);
        }
    }
    match with_x {
        Some(name) => {
            request.response.content_encoding = Some(name);
            Step::OK
        }
        None => Step::DECLINED,
    }
}
