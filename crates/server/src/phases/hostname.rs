//! The names of the client and of the server's address, from the name server: `HostnameLookups` and
//! `UseCanonicalName DNS`.
//!
//! Names are looked up only when needed, and once per connection. A look-up delays only the request
//! that needs it.
//!
//! Source: `ap_get_useragent_host`, `ap_get_server_name` (server/core.c).

use std::cell::{Cell, OnceCell};
use std::net::IpAddr;
use std::rc::Rc;

use rt::names;

use crate::config::core::{CanonicalName, HostnameLookups};
use crate::engine::Engine;
use crate::request::Request;
use crate::request::connection_info::ConnectionInfo;

/// The looked-up names of a connection's two ends.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The client's name; `None` if its address has none.
    client: OnceCell<Option<Box<[u8]>>>,
    /// Whether that name has the client's address, once it has been looked up.
    verified: Cell<Option<bool>>,
    /// The name of the local address.
    own: OnceCell<Option<Box<[u8]>>>,
}

/// Looks up the name of the local address, unless that has happened.
pub async fn look_up_own(request: &Request) {
    let names = of_connection(&request.connection);
    if names.own.get().is_none() {
        let name = ask(&request.engine, names::name_of, request.connection.local.ip()).await;
        let _ = names.own.set(name.and_then(Result::ok).map(lower_case));
    }
}

/// Whether the configuration needs the name of the local address, which has not been looked up.
pub fn needs_own(request: &Request) -> bool {
    request.plan.core.use_canonical_name.get() == Some(&CanonicalName::Dns)
        && is_own_unknown(request)
}

/// Whether the name of the local address has not been looked up.
pub fn is_own_unknown(request: &Request) -> bool {
    request.connection.names.get().is_none_or(|of| of.own.get().is_none())
}

/// Whether `HostnameLookups` requires the client's name, and it has not been looked up yet.
pub fn is_unknown(request: &Request) -> bool {
    lookups(request) != HostnameLookups::Off
        && request.names().is_none_or(|of| of.client.get().is_none())
}

/// The same for the connection's peer, which is not the client if a proxy may name that.
pub fn is_peer_unknown(request: &Request) -> bool {
    let names = request.connection.names.get();
    lookups(request) != HostnameLookups::Off && names.is_none_or(|of| of.client.get().is_none())
}

fn lookups(request: &Request) -> HostnameLookups {
    request.plan.core.hostname_lookups.or(HostnameLookups::Off)
}

/// The same, and some expression uses it.
pub fn is_named(request: &Request) -> bool {
    request.engine.server.registry.names_client.get() && is_unknown(request)
}

/// The client's name according to `HostnameLookups` (`REMOTE_NAME`); `None` if it has none, or
/// neither the configuration nor an earlier look-up provides it.
pub async fn client_name(request: &mut Request) -> Option<&[u8]> {
    match lookups(request) {
        HostnameLookups::Off => {}
        HostnameLookups::On => look_up_client(request, false).await,
        HostnameLookups::Double => look_up_client(request, true).await,
    }
    request.known_client_name()
}

/// The client's name, if that name has the client's address (`REMOTE_DOUBLE_REV`).
pub async fn verified(request: &mut Request) -> Option<&[u8]> {
    look_up_client(request, lookups(request) == HostnameLookups::Double).await;
    let holds = verify(request).await;
    request.known_client_name().filter(|_| holds)
}

/// Like [`Request::names`], creating them if necessary.
fn of_client(request: &mut Request) -> Rc<Names> {
    if request.useragent_addr.ip() == request.connection.peer.ip() {
        return of_connection(&request.connection);
    }
    if let Some(names) = request.names() {
        return names.clone();
    }
    let names = Rc::<Names>::default();
    request.keep(names.clone());
    names
}

fn of_connection(client: &ConnectionInfo) -> Rc<Names> {
    client.names.get_or_init(Rc::default).clone()
}

/// Looks up the name of the connection's peer, if `HostnameLookups` requires it.
pub async fn look_up_peer(request: &mut Request) {
    if is_peer_unknown(request) {
        let (names, address) = (of_connection(&request.connection), request.connection.peer.ip());
        let forget_unverified = lookups(request) == HostnameLookups::Double;
        look_up_name(request, &names, address, forget_unverified).await;
    }
}

async fn look_up_client(request: &mut Request, forget_unverified: bool) {
    let names = of_client(request);
    if names.client.get().is_none() {
        look_up_name(request, &names, request.useragent_addr.ip(), forget_unverified).await;
    }
}

async fn look_up_name(request: &Request, names: &Names, address: IpAddr, forget_unverified: bool) {
    let asked = ask(&request.engine, names::name_of, address).await;
    let mut name = asked.and_then(Result::ok).map(lower_case);
    if let Some(found) = name.take_if(|_| forget_unverified) {
        let holds = has_address(request, found.to_vec(), address).await;
        names.verified.set(Some(holds));
        name = Some(found).filter(|_| holds);
    }
    let _ = names.client.set(name);
}

/// Whether the client's name has its address.
async fn verify(request: &mut Request) -> bool {
    let names = of_client(request);
    if let Some(known) = names.verified.get() {
        return known;
    }
    let Some(Some(name)) = names.client.get() else { return false };
    let holds = has_address(request, name.to_vec(), request.useragent_addr.ip()).await;
    names.verified.set(Some(holds));
    holds
}

/// Whether a name has an address. The result is not cached.
pub async fn has_address(request: &Request, name: Vec<u8>, address: IpAddr) -> bool {
    let holds = move |address| names::has_address(&name, address);
    ask(&request.engine, holds, address).await.unwrap_or(false)
}

/// The first address of a name. The result is not cached.
pub async fn address_of(request: &Request, name: Vec<u8>) -> Option<IpAddr> {
    let look_up = move |_| names::address_of(&name);
    ask(&request.engine, look_up, request.useragent_addr.ip()).await.flatten()
}

/// Like [`names::ask`]; meanwhile the scoreboard shows what the connection waits for.
async fn ask<T: Send + 'static>(
    engine: &Engine,
    look_up: impl FnOnce(IpAddr) -> T + Send + 'static,
    address: IpAddr,
) -> Option<T> {
    if let Some(recorder) = &engine.recorder {
        recorder.not_asked(&format!("the name server, about {address}"));
        return None;
    }
    let _resolving = engine.connections.resolving();
    names::ask(engine.handle.blocking(), look_up, address).await
}

fn lower_case(mut name: Vec<u8>) -> Box<[u8]> {
    name.make_ascii_lowercase();
    name.into_boxed_slice()
}

impl Request {
    /// The client's name, if it has been looked up (`REMOTE_NOLOOKUP`).
    pub fn known_client_name(&self) -> Option<&[u8]> {
        self.names()?.client.get()?.as_deref()
    }

    /// The name of the connection's peer, if it has been looked up.
    pub fn known_peer_name(&self) -> Option<&[u8]> {
        self.connection.names.get()?.client.get()?.as_deref()
    }

    /// The name of the local address, if it has been looked up.
    pub fn known_own_name(&self) -> Option<&[u8]> {
        self.connection.names.get()?.own.get()?.as_deref()
    }

    /// The cached names: the connection's, unless the client is not its peer.
    fn names(&self) -> Option<&Rc<Names>> {
        let of_peer = self.useragent_addr.ip() == self.connection.peer.ip();
        if of_peer { self.connection.names.get() } else { self.kept() }
    }
}
