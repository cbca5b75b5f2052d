//! mod_socache_redis: small objects on servers of Redis.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_redis.html>

use std::time::Duration;

use conf::Arg;
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use wire::redis::{self, RedisReply};

use super::remote;
use super::remote_cache::{Protocol, RemoteCache, Reply, Times};
use super::socache::{IDLE, SOCACHE, SocacheProvider, VALUE_BYTES_MAX, time};

/// `mod_socache_redis.c`
pub struct SocacheRedis;

/// The default of `RedisTimeout`.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Module for SocacheRedis {
    const NAME: &'static str = "socache_redis_module";
    const FILE: &'static str = "mod_socache_redis.c";
    type Server = Config;
    type Dir = ();
    const DIRECTIVES: &'static [Row<SocacheRedis>] = &[
        Row::<SocacheRedis>::new(
            "RedisConnPoolTTL",
            Takes::One(time_to_live),
            "num[units]",
            "Sets how long an idle connection to a server is kept.",
        )
        .default("15s"),
        Row::<SocacheRedis>::new(
            "RedisTimeout",
            Takes::One(timeout),
            "num[units]",
            "Sets how long a connection to a server and its reply may take.",
        )
        .default("5s"),
    ];

    fn hooks(hooks: &mut Hooks<'_, SocacheRedis>) {
        let create = RemoteCache::<SocacheRedis>::create;
        hooks.provider(SOCACHE, SocacheRedis::PROVIDER, SocacheProvider { create });
        hooks.every_second(|engine| remote::close_idle(engine.handle.clock().now_ms()));
    }
}

server::config! {
    /// Configuration of the server.
    pub struct Config {
        /// `RedisConnPoolTTL`
        idle: Setting<Duration>,
        /// `RedisTimeout`
        timeout: Setting<Duration>,
    }
}

fn timeout(cx: &mut Cx<'_, '_, SocacheRedis>, arg: &Arg) -> Set {
    let timeout = time("RedisTimeout", arg)?;
    cx.server().timeout.set(timeout);
    Ok(())
}

fn time_to_live(cx: &mut Cx<'_, '_, SocacheRedis>, arg: &Arg) -> Set {
    let idle = time("RedisConnPoolTTL", arg)?;
    cx.server().idle.set(idle);
    Ok(())
}

impl Protocol for SocacheRedis {
    const PROVIDER: &'static str = "redis";
    const LOG: &'static str = "scache_rd";
    const PORT: u16 = 6379;
    /// `RD_KEY_LEN`
    const KEY_BYTES: usize = 254;
    /// A server refuses a time behind the end of its clock.
    const LIFETIME_S_MAX: u64 = 1 << 31;
    const NUMBERS: (u32, u32) = (3479, 3478);

    fn write_get(out: &mut Vec<u8>, name: &[u8]) {
        redis::write_command(out, &[b"GET", name]);
    }

    fn write_set(out: &mut Vec<u8>, name: &[u8], value: &[u8], seconds: u32) {
        let seconds = seconds.to_string();
        redis::write_command(out, &[b"SETEX", name, seconds.as_bytes(), value]);
    }

    fn read_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
        let read = redis::read_reply(bytes, VALUE_BYTES_MAX).map_err(|why| why.to_string())?;
        let of = |reply| match reply {
            RedisReply::Value(value) => Reply::Value(value),
            RedisReply::Missing => Reply::Missing,
            RedisReply::Done => Reply::Stored,
            RedisReply::Refused(text) => Reply::Refused(text),
        };
        Ok(read.map(|(reply, length)| (of(reply), length)))
    }

    fn times(config: Option<&Config>) -> Times {
        Times {
            timeout: config.map_or(TIMEOUT, |config| config.timeout.or(TIMEOUT)),
            idle: config.map_or(IDLE, |config| config.idle.or(IDLE)),
        }
    }
}
