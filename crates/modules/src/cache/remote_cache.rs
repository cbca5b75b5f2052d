//! A cache of small objects on servers, whose protocol is that of memcached or of Redis.

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bstr::BStr;
use server::config::build::Build;
use server::host::Server;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use super::remote::{self, Remote};
use super::socache::{Entry, Failed, Socache};
use crate::aaa::provider::Pending;

/// A protocol, by the module that speaks it.
pub(super) trait Protocol: Module + Sync + 'static {
    /// The name in `…SOCache`, and in messages about the configuration.
    const PROVIDER: &'static str;
    /// How messages begin.
    const LOG: &'static str;
    /// The default port.
    const PORT: u16;
    /// The length of a key that is too long.
    const KEY_BYTES: usize;
    /// The longest lifetime of an entry, seconds.
    const LIFETIME_S_MAX: u64;
    /// The numbers of messages about entries that can't be read, and that can't be stored.
    const NUMBERS: (u32, u32);

    /// Appends the question for an entry.
    fn write_get(out: &mut Vec<u8>, name: &[u8]);

    /// Appends the request to store an entry for some seconds.
    fn write_set(out: &mut Vec<u8>, name: &[u8], value: &[u8], seconds: u32);

    /// Reads a reply and its length; `None` if more bytes are needed.
    fn read_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String>;

    /// How long a server may take, and how long idle connections are kept.
    fn times(config: Option<&Self::Server>) -> Times;
}

/// What a server replies.
pub(super) enum Reply {
    /// A value.
    Value(Vec<u8>),
    /// The key has no value.
    Missing,
    /// The value was stored.
    Stored,
    /// The server refuses, with this line.
    Refused(Vec<u8>),
}

/// Times of a server.
pub(super) struct Times {
    /// The longest wait for a connection, and for a reply.
    pub timeout: Duration,
    /// How long an idle connection is kept.
    pub idle: Duration,
}

/// A cache.
pub(super) struct RemoteCache<P> {
    id: &'static str,
    servers: String,
    /// Unset until the directives are known.
    remote: OnceLock<Remote>,
    protocol: PhantomData<P>,
}

/// The reply to another question.
const FOREIGN: &str = "the reply is another one's";

impl<P: Protocol> RemoteCache<P> {
    /// Creates a cache that `argument` describes: `host[:port],…`.
    ///
    /// # Errors
    /// There is no server, or one is none.
    pub fn create(
        _: &Build,
        id: &'static str,
        argument: Option<&[u8]>,
    ) -> Result<Arc<dyn Socache>, String> {
        let name = P::PROVIDER;
        let servers = argument.unwrap_or_default();
        if servers.is_empty() {
            return Err(format!("List of server names required to create {name} socache."));
        }
        let servers = String::from_utf8_lossy(servers).into_owned();
        Remote::parse(&servers, P::PORT)
            .map_err(|server| format!("Failed to Parse {name} Server: '{server}'"))?;
        let remote = OnceLock::new();
        Ok(Arc::new(RemoteCache::<P> { id, servers, remote, protocol: PhantomData }))
    }

    async fn read(&self, request: &Request, key: &[u8]) -> Result<Option<Vec<u8>>, Failed> {
        let fail = |why: &dyn Display| {
            let text = format_args!("{}: 'retrieve' FAIL: {why}", P::LOG);
            request.log::<P>(Level::Error, P::NUMBERS.0, text);
            Failed
        };
        let name = remote::name(self.id, key, P::KEY_BYTES);
        let Some((remote, name)) = self.remote.get().zip(name) else {
            return Err(fail(&"the key is too long"));
        };
        let mut question = Vec::new();
        P::write_get(&mut question, &name);
        match remote.ask(&name, &question, P::read_reply).await {
            Ok(Reply::Value(value)) => Ok(Some(value)),
            Ok(Reply::Missing) => Ok(None),
            Ok(Reply::Refused(text)) => Err(fail(&BStr::new(&text))),
            Ok(Reply::Stored) => Err(fail(&FOREIGN)),
            Err(why) => Err(fail(&why)),
        }
    }

    async fn write(&self, request: &Request, entry: Entry<'_>) -> Result<(), Failed> {
        let name = remote::name(self.id, entry.key, P::KEY_BYTES);
        let seconds = entry.lifetime.as_secs().min(P::LIFETIME_S_MAX);
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        // 0 would mean forever to memcached; Redis refuses it.
        let (Some((remote, name)), 1..) = (self.remote.get().zip(name), seconds) else {
            return Err(Failed);
        };
        let mut question = Vec::new();
        P::write_set(&mut question, &name, entry.value, seconds);
        let why = match remote.ask(&name, &question, P::read_reply).await {
            Ok(Reply::Stored) => return Ok(()),
            Ok(Reply::Refused(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(_) => FOREIGN.to_owned(),
            Err(why) => why.to_string(),
        };
        let (log, name, length) = (P::LOG, BStr::new(&name), entry.value.len());
        let text =
            format_args!("{log}: error setting key '{name}' with {length} bytes of data: {why}");
        request.log::<P>(Level::Crit, P::NUMBERS.1, text);
        Err(Failed)
    }
}

impl<P: Protocol> Socache for RemoteCache<P> {
    fn share(&self, server: &Server, _: &mpm::Shared) -> Result<(), String> {
        let slot = server.registry.slot_of::<P>();
        let config = slot.and_then(|slot| server.main().server.get::<P::Server>(slot));
        let Times { timeout, idle } = P::times(config);
        let mut remote = Remote::parse(&self.servers, P::PORT)?;
        (remote.timeout, remote.idle) = (timeout, idle);
        let _ = self.remote.set(remote);
        Ok(())
    }

    fn retrieve<'r>(
        &'r self,
        request: &'r Request,
        key: &'r [u8],
    ) -> Pending<'r, Result<Option<Vec<u8>>, Failed>> {
        Pending::Wait(Box::pin(self.read(request, key)))
    }

    fn store<'r>(
        &'r self,
        request: &'r Request,
        entry: Entry<'r>,
    ) -> Pending<'r, Result<(), Failed>> {
        Pending::Wait(Box::pin(self.write(request, entry)))
    }
}
