//! What rules look at in a request, so that responses to others like it can be cached.
//!
//! Most fields make a response uncacheable. Of some only the presence counts: without
//! `Authorization`, say, all requests are alike to a rule that hands it to a program.

use server::request::{Request, UNIQUE_ID};
use server::variant_key::{Inputs, VariantKey};

macro_rules! presence {
    ($($name:literal),* $(,)?) => {
        [$(VariantKey {
            name: $name,
            of: |request| u16::from(request.head.headers_in.contains($name.as_bytes())),
        }),*]
    };
}

/// Fields that rules name often, and that most requests do not have.
static PRESENCE: [VariantKey; 8] = presence![
    "Authorization",
    "Cookie",
    "Profile",
    "Referer",
    "X-Forwarded-Proto",
    "X-Forwarded-SSL",
    "X-Requested-With",
    "X-WAP-Profile",
];

/// Whether the `Host` field is spelled otherwise than the name and port that were taken from it.
static OTHER_HOST: VariantKey = VariantKey { name: "Host", of: |request| other_host(request) };

fn other_host(request: &Request) -> u16 {
    let first = request.original();
    let name = first.hostname.as_deref();
    let is_same = match (first.head.headers_in.get(b"Host"), first.named_port) {
        (None, _) => name.is_none(),
        (Some(field), None) => name == Some(field),
        (Some(field), Some(port)) => {
            let mut digits = itoa::Buffer::new();
            let rest = name.and_then(|name| field.strip_prefix(name));
            rest.and_then(|rest| rest.strip_prefix(b":")) == Some(digits.format(port).as_bytes())
        }
    };
    u16::from(!is_same)
}

/// The version in the request line; 2 if the line is none of method, target and version alone.
static REQUEST_LINE: VariantKey =
    VariantKey { name: "request line", of: |request| request_line(request) };

fn request_line(request: &Request) -> u16 {
    let head = &request.original().head;
    let line = head.request_line.strip_prefix(&*head.method_name);
    let line = line.and_then(|line| line.strip_prefix(b" "));
    match line.and_then(|line| line.strip_prefix(head.unparsed_uri.as_slice())) {
        Some(b" HTTP/1.1") => 1,
        Some(b" HTTP/1.0") => 0,
        _ => 2,
    }
}

/// Notes that a rule looks at a header field.
pub(super) fn looks_at_field(request: &mut Request, name: &[u8]) {
    if name.eq_ignore_ascii_case(b"Host") {
        request.looks_at(Inputs::AUTHORITY);
        request.depends.pure &= request.depends_on(&OTHER_HOST) == 0;
        return;
    }
    let known = PRESENCE.iter().find(|key| key.name.as_bytes().eq_ignore_ascii_case(name));
    let is_absent = known.is_some_and(|key| request.depends_on(key) == 0);
    request.depends.pure &= is_absent;
}

/// Notes that a rule looks at the request line. Its method is GET or HEAD, which are cached apart.
pub(super) fn looks_at_request_line(request: &mut Request) {
    request.looks_at(Inputs::QUERY);
    request.depends.pure &= request.depends_on(&REQUEST_LINE) < 2;
}

/// Notes that a rule looks at a variable. All are made by hooks that note what they depend on,
/// except those of the connection and of the request itself.
pub(super) fn looks_at_variable(request: &mut Request, name: &[u8]) {
    let mut bare = name;
    while let Some(rest) = bare.strip_prefix(b"REDIRECT_") {
        bare = rest;
    }
    if bare.eq_ignore_ascii_case(b"HTTPS") {
        request.looks_at(Inputs::AUTHORITY);
    }
    let is_own = [UNIQUE_ID, b"SSL_TLS_SNI"].iter().any(|own| bare.eq_ignore_ascii_case(own));
    request.depends.pure &= !is_own && !request.notes.contains(name);
}
