//! mod_socache_memcache: small objects on servers of memcached.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_memcache.html>

use std::time::Duration;

use conf::Arg;
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use wire::memcache::{self, MemcacheReply};

use super::remote;
use super::remote_cache::{Protocol, RemoteCache, Reply, Times};
use super::socache::{IDLE, SOCACHE, SocacheProvider, VALUE_BYTES_MAX, time};

/// `mod_socache_memcache.c`
pub struct SocacheMemcache;

/// The longest wait for a server. Apache waits for a second for a connection, and forever for a
/// reply.
const TIMEOUT: Duration = Duration::from_secs(1);

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
        let create = RemoteCache::<SocacheMemcache>::create;
        hooks.provider(SOCACHE, SocacheMemcache::PROVIDER, SocacheProvider { create });
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

impl Protocol for SocacheMemcache {
    const PROVIDER: &'static str = "memcache";
    const LOG: &'static str = "scache_mc";
    const PORT: u16 = 11211;
    /// Too long for Apache (`MC_KEY_LEN`) is more than for memcached.
    const KEY_BYTES: usize = memcache::KEY_BYTES + 1;
    /// The longest time that is not a date (memcached's `REALTIME_MAXDELTA`).
    const LIFETIME_S_MAX: u64 = 60 * 60 * 24 * 30;
    const NUMBERS: (u32, u32) = (791, 790);

    fn write_get(out: &mut Vec<u8>, name: &[u8]) {
        memcache::write_get(out, name);
    }

    fn write_set(out: &mut Vec<u8>, name: &[u8], value: &[u8], seconds: u32) {
        memcache::write_set(out, name, value, seconds);
    }

    fn read_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
        let read = memcache::read_reply(bytes, VALUE_BYTES_MAX).map_err(|why| why.to_string())?;
        let of = |reply| match reply {
            MemcacheReply::Value(value) => Reply::Value(value),
            MemcacheReply::Missing => Reply::Missing,
            MemcacheReply::Stored => Reply::Stored,
            MemcacheReply::Refused(text) => Reply::Refused(text),
        };
        Ok(read.map(|(reply, length)| (of(reply), length)))
    }

    fn times(config: Option<&Config>) -> Times {
        Times { timeout: TIMEOUT, idle: config.map_or(IDLE, |config| config.idle.or(IDLE)) }
    }
}
