//! mod_socache_redis: small objects on servers of Redis.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_redis.html>

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
use wire::redis::{self, RedisReply};

use super::remote::{self, Remote};
use super::socache::{
    Entry, Failed, IDLE, SOCACHE, Socache, SocacheProvider, VALUE_BYTES_MAX, time,
};
use crate::aaa::provider::Pending;

/// `mod_socache_redis.c`
pub struct SocacheRedis;

/// Redis' port.
const PORT: u16 = 6379;
/// The default of `RedisTimeout`.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The length of a key that is too long (`RD_KEY_LEN`).
const KEY_BYTES: usize = 254;

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
        hooks.provider(SOCACHE, "redis", SocacheProvider { create });
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

struct Redis {
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
        return Err("List of server names required to create redis socache.".to_owned());
    }
    let servers = String::from_utf8_lossy(servers).into_owned();
    Remote::parse(&servers, PORT)
        .map_err(|server| format!("Failed to Parse redis Server: '{server}'"))?;
    Ok(Arc::new(Redis { id, servers, remote: OnceLock::new() }))
}

impl Redis {
    async fn read(&self, request: &Request, key: &[u8]) -> Result<Option<Vec<u8>>, Failed> {
        let fail = |why: &dyn std::fmt::Display| {
            let text = format_args!("scache_rd: 'retrieve' FAIL: {why}");
            request.log::<SocacheRedis>(Level::Error, 3479, text);
            Failed
        };
        let Some((remote, name)) = self.remote.get().zip(remote::name(self.id, key, KEY_BYTES))
        else {
            return Err(fail(&"the key is too long"));
        };
        let mut question = Vec::new();
        redis::write_command(&mut question, &[b"GET", &name]);
        match remote.ask(&name, &question, read_reply).await {
            Ok(RedisReply::Value(value)) => Ok(Some(value)),
            Ok(RedisReply::Missing) => Ok(None),
            Ok(RedisReply::Refused(text)) => Err(fail(&BStr::new(&text))),
            Ok(RedisReply::Done) => Err(fail(&"the reply is another one's")),
            Err(why) => Err(fail(&why)),
        }
    }

    async fn write(&self, request: &Request, entry: Entry<'_>) -> Result<(), Failed> {
        let name = remote::name(self.id, entry.key, KEY_BYTES);
        let seconds = entry.lifetime.as_secs().min(LIFETIME_S_MAX);
        // The server has no entries without time.
        let (Some((remote, name)), 1..) = (self.remote.get().zip(name), seconds) else {
            return Err(Failed);
        };
        let mut question = Vec::new();
        let seconds = seconds.to_string();
        let words: [&[u8]; 4] = [b"SETEX", &name, seconds.as_bytes(), entry.value];
        redis::write_command(&mut question, &words);
        let outcome = remote.ask(&name, &question, read_reply).await;
        let why = match outcome {
            Ok(RedisReply::Done) => return Ok(()),
            Ok(RedisReply::Refused(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(_) => "the reply is another one's".to_owned(),
            Err(why) => why.to_string(),
        };
        let (name, length) = (BStr::new(&name), entry.value.len());
        let text = format_args!(
            "scache_rd: error setting key '{name}' with {length} bytes of data: {why}"
        );
        request.log::<SocacheRedis>(Level::Crit, 3478, text);
        Err(Failed)
    }
}

/// The longest time of an entry, seconds: a server refuses a time behind the end of its clock.
const LIFETIME_S_MAX: u64 = 1 << 31;

fn read_reply(bytes: &[u8]) -> Result<Option<(RedisReply, usize)>, String> {
    redis::read_reply(bytes, VALUE_BYTES_MAX).map_err(|why| why.to_string())
}

impl Socache for Redis {
    fn share(&self, server: &Server, _: &mpm::Shared) -> Result<(), String> {
        let slot = server.registry.slot_of::<SocacheRedis>();
        let own = slot.and_then(|slot| server.main().server.get::<Config>(slot));
        let mut remote = Remote::parse(&self.servers, PORT)?;
        remote.idle = own.map_or(IDLE, |own| own.idle.or(IDLE));
        remote.timeout = own.map_or(TIMEOUT, |own| own.timeout.or(TIMEOUT));
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
