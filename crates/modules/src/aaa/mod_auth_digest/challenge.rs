//! The header field of a 401. Source: `note_digest_auth_failure`.

use server::request::{Proxied, Request};

use super::clients::{self, Client};
use super::field::{Sent, read};
use super::{Own, nonce, own};
use crate::aaa::mod_auth_basic::is_forward;
use crate::aaa::mod_authn_core::realm;

/// The opaque value that a client has sent.
pub(super) enum Opaque {
    /// None.
    New,
    /// That of a client which is not known, or no longer.
    Lost,
    /// That of a client.
    Of(Client, Vec<u8>),
}

impl Opaque {
    /// Looks the client up.
    pub fn of(sent: Option<&[u8]>) -> Opaque {
        let Some(text) = sent else { return Opaque::New };
        let digits = std::str::from_utf8(text).unwrap_or_default();
        match u64::from_str_radix(digits, 16).ok().and_then(Client::find) {
            Some(client) => Opaque::Of(client, text.to_vec()),
            None => Opaque::Lost,
        }
    }
}

/// Asks for a login, for other modules.
pub(super) fn ask_again(request: &mut Request) {
    let own = own(request);
    let opaque = match request.sent_credentials().map(read) {
        Some(Sent::Whole(sent)) => Opaque::of(sent.opaque.as_deref()),
        Some(Sent::Incomplete { has_opaque: true }) => Opaque::Lost,
        _ => Opaque::New,
    };
    ask(request, &own, opaque, false);
}

/// Asks for a login. `is_stale` tells the client that its password was right.
pub(super) fn ask(request: &mut Request, own: &Own, opaque: Opaque, is_stale: bool) {
    let quoted = realm(request).unwrap_or_default();
    let (text, is_stale) = match opaque {
        Opaque::New if !own.knows_clients() => (Vec::new(), is_stale),
        Opaque::New => (name_of_new(), is_stale),
        Opaque::Lost => (name_of_new(), true),
        Opaque::Of(_, text) => (text, is_stale),
    };
    let Some(nonce) = fresh(request, own, &text) else { return };
    let part = |name: &str, value: &[u8]| match value.is_empty() {
        true => Vec::new(),
        false => [b", ", name.as_bytes(), b"=\"", value, b"\""].concat(),
    };
    let domain = if request.resource.proxied == Proxied::No { own.domain.as_slice() } else { b"" };
    let field = [
        &b"Digest realm=\""[..],
        &quoted,
        b"\", nonce=\"",
        &nonce,
        b"\", algorithm=MD5",
        &part("opaque", &text),
        &part("domain", domain),
        if is_stale { b", stale=true" } else { b"" },
        b", qop=\"auth\"",
    ]
    .concat();
    let name: &[u8] = if is_forward(request) { b"Proxy-Authenticate" } else { b"WWW-Authenticate" };
    request.response.err_headers_out.merge(name, &field);
}

/// The opaque value of a new client.
fn name_of_new() -> Vec<u8> {
    Client::new().map(|client| format!("{:x}", client.number).into_bytes()).unwrap_or_default()
}

/// A new nonce.
pub(super) fn fresh(request: &mut Request, own: &Own, opaque: &[u8]) -> Option<Vec<u8>> {
    let realm = realm(request).unwrap_or_default();
    let number = if own.lifetime_s == 0 { clients::next_once()? } else { request.time_us };
    nonce::make(number, &realm, opaque)
}
