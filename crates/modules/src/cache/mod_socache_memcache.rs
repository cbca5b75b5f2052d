//! mod_socache_memcache: small objects on servers of memcached.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_memcache.html>

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bstr::BStr;
use conf::Arg;
use server::config::build::Build;
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;
use wire::memcache::{self, MemcacheReply};

use super::remote::{self, Remote};
use super::socache::{
    Entry, Failed, IDLE, SOCACHE, Socache, SocacheProvider, VALUE_BYTES_MAX, time,
};
use crate::aaa::provider::Pending;

/// `mod_socache_memcache.c`
pub struct SocacheMemcache;

/// memcached's port.
const PORT: u16 = 11211;
/// The longest wait for a server. Apache waits for a second for a connection, and forever for a
/// reply.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The length of a key that is too long for Apache (`MC_KEY_LEN`) is above that of memcached.
const KEY_BYTES: usize = memcache::KEY_BYTES + 1;

impl Module for SocacheMemcache {
    const NAME: &'static str = "socache_memcache_module";
    const FILE: &'static str = "mod_socache_memcache.c";
    type Server = Config;
    type Dir = ();
    const DIRECTIVES: &'static [Row<SocacheMemcache>] = &[Row::<SocacheMemcache>::new(
        "MemcacheConnTTL",
        Takes::One(time_to_live),
        "num[units]",
        "Sets how long an idle connection to a server is kept.",
    )
    .default("15s")];

    fn hooks(hooks: &mut Hooks<'_, SocacheMemcache>) {
        hooks.provider(SOCACHE, "memcache", SocacheProvider { create });
        hooks.every_second(|engine| remote::close_idle(engine.handle.clock().now_ms()));
    }
}

server::config! {
    /// Configuration of the server.
    pub struct Config {
        /// `MemcacheConnTTL`
        idle: Setting<Duration>,
    }
}

fn time_to_live(cx: &mut Cx<'_, '_, SocacheMemcache>, arg: &Arg) -> Set {
    let idle = time("MemcacheConnTTL", arg)?;
    cx.server().idle.set(idle);
    Ok(())
}

struct Memcached {
    id: &'static str,
    servers: String,
    /// Unset until the directives are known.
    remote: OnceLock<Remote>,
}

fn create(
    _: &Build,
    id: &'static str,
    argument: Option<&[u8]>,
) -> Result<Arc<dyn Socache>, String> {
    let servers = argument.unwrap_or_default();
    if servers.is_empty() {
        return Err("List of server names required to create memcache socache.".to_owned());
    }
    let servers = String::from_utf8_lossy(servers).into_owned();
    Remote::parse(&servers, PORT)
        .map_err(|server| format!("Failed to Parse memcache Server: '{server}'"))?;
    Ok(Arc::new(Memcached { id, servers, remote: OnceLock::new() }))
}

impl Memcached {
    async fn read(&self, request: &Request, key: &[u8]) -> Result<Option<Vec<u8>>, Failed> {
        let fail = |why: &dyn std::fmt::Display| {
            let text = format_args!("scache_mc: 'retrieve' FAIL: {why}");
            request.log::<SocacheMemcache>(Level::Error, 791, text);
            Failed
        };
        let Some((remote, name)) = self.remote.get().zip(remote::name(self.id, key, KEY_BYTES))
        else {
            return Err(fail(&"the key is too long"));
        };
        let mut question = Vec::new();
        memcache::write_get(&mut question, &name);
        match remote.ask(&name, &question, read_reply).await {
            Ok(MemcacheReply::Value(value)) => Ok(Some(value)),
            Ok(MemcacheReply::Missing) => Ok(None),
            Ok(MemcacheReply::Refused(text)) => Err(fail(&BStr::new(&text))),
            Ok(MemcacheReply::Stored) => Err(fail(&"the reply is another one's")),
            Err(why) => Err(fail(&why)),
        }
    }

    async fn write(&self, request: &Request, entry: Entry<'_>) -> Result<(), Failed> {
        let name = remote::name(self.id, entry.key, KEY_BYTES);
        let seconds = u32::try_from(entry.lifetime.as_secs()).unwrap_or(u32::MAX);
        let seconds = seconds.min(LIFETIME_S_MAX);
        // 0 would mean forever.
        let (Some((remote, name)), 1..) = (self.remote.get().zip(name), seconds) else {
            return Err(Failed);
        };
        let mut question = Vec::new();
        memcache::write_set(&mut question, &name, entry.value, seconds);
        let outcome = remote.ask(&name, &question, read_reply).await;
        let why = match outcome {
            Ok(MemcacheReply::Stored) => return Ok(()),
            Ok(MemcacheReply::Refused(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(_) => "the reply is another one's".to_owned(),
            Err(why) => why.to_string(),
        };
        let (name, length) = (BStr::new(&name), entry.value.len());
        let text = format_args!(
            "scache_mc: error setting key '{name}' with {length} bytes of data: {why}"
        );
        request.log::<SocacheMemcache>(Level::Crit, 790, text);
        Err(Failed)
    }
}

/// The longest time that is not a date (memcached's `REALTIME_MAXDELTA`), seconds.
const LIFETIME_S_MAX: u32 = 60 * 60 * 24 * 30;

fn read_reply(bytes: &[u8]) -> Result<Option<(MemcacheReply, usize)>, String> {
    memcache::read_reply(bytes, VALUE_BYTES_MAX).map_err(|why| why.to_string())
}

impl Socache for Memcached {
    fn share(&self, server: &Server, _: &mpm::Shared) -> Result<(), String> {
        let slot = server.registry.slot_of::<SocacheMemcache>();
        let own = slot.and_then(|slot| server.main().server.get::<Config>(slot));
        let mut remote = Remote::parse(&self.servers, PORT)?;
        remote.idle = own.map_or(IDLE, |own| own.idle.or(IDLE));
        remote.timeout = TIMEOUT;
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
