//! The client's name, from the name server.
//!
//! Source: `ap_get_useragent_host` (server/core.c).

use rt::names;

use crate::request::Request;

/// What is known of the client's name, kept for a connection.
#[derive(Clone, Debug, Default)]
pub struct ClientName {
    /// The address's name; `None` where it has none.
    pub name: Option<Vec<u8>>,
    /// The name was asked for the address, too.
    pub verified: bool,
}

/// The client's name, if the name has the client's address (`REMOTE_DOUBLE_REV`). Asked once for
/// a connection.
pub async fn verified(request: &mut Request) -> Option<Vec<u8>> {
    let address = request.useragent_addr.ip();
    let is_peer = address == request.client.peer.ip();
    if is_peer && let Some(known) = request.client.name.get().filter(|known| known.verified) {
        return known.name.clone();
    }
    let pool = request.engine.handle.blocking().clone();
    let found = pool.run(move || {
        let name = names::name_of(address.to_canonical()).ok()?;
        names::has_address(&name, address).then(|| name.to_ascii_lowercase())
    });
    let name = found.await.ok().flatten();
    if let Some(name) = &name {
        request.notes.set(b"remote-host", name);
    }
    if is_peer {
        let _ = request.client.name.set(ClientName { name: name.clone(), verified: true });
    }
    name
}
