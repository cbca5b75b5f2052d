//! mod_authn_socache: keeps users' hashes in a cache, so that a provider that is slow or remote is
//! not asked for each request.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_socache.html>

mod rows;

use std::sync::Arc;
use std::time::Duration;

use server::config::build::Build;
use server::directive::Row;
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::host::Server;
use server::log::Level;
use server::merge::{Outermost, Own, Replace, Setting};
use server::module::Module;
use server::request::Request;

use super::password::{self, verified};
use super::provider::{AUTHN, Authenticate, Authn, AuthnProvider, Login, Pending, RealmHash};
use crate::cache::socache::{DEFAULT, Entry, Failed, SOCACHE, Socache, SocacheProvider};

/// `mod_authn_socache.c`
pub struct AuthnSocache;

/// The name of the cache among those of all modules.
const ID: &str = "authn-socache";

/// The default of `AuthnCacheTimeout`, seconds.
const TIMEOUT_S: i32 = 300;

/// The longest hash in the cache, bytes (`MAX_VAL_LEN`).
const VALUE_BYTES_MAX: usize = 255;

impl Module for AuthnSocache {
    const NAME: &'static str = "authn_socache_module";
    const FILE: &'static str = "mod_authn_socache.c";
    type Server = ServerConfig;
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnSocache>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, AuthnSocache>) {
        hooks.provider::<AuthnProvider>(AUTHN, "socache", Arc::new(Cached));
        hooks.post_config(post_config);
        hooks.share(share);
        hooks.every_second(|engine| verified::forget_old(engine.handle.clock().now_ms()));
    }
}

server::config! {
    /// Configuration of the server.
    pub struct ServerConfig {
        /// `AuthnCacheSOCache`; what hosts see once the configuration is read.
        cache: Outermost<Option<Cache>>,
        /// Whether a directive of this host switches the cache on.
        is_wanted: Own<bool>,
        /// Whether one of any host does.
        is_on: Own<bool>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `AuthnCacheProvideFor`
        providers: Replace<Vec<u8>>,
        /// `AuthnCacheTimeout`, seconds; unset for the default, which Apache takes for none.
        timeout_s: Setting<i32>,
        /// `AuthnCacheContext`
        context: Setting<Context>,
    }
}

type Cache = Arc<dyn Socache>;

/// `AuthnCacheContext`: for which requests a hash that is found for one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Context {
    /// Those for the same directory of the URL.
    Directory,
    /// Those of the same host.
    Server,
    /// Those with the same text.
    Text(Vec<u8>),
}

impl Context {
    /// What a user's key in the cache begins with. Source: `construct_key`.
    fn prefix(&self, request: &Request) -> Vec<u8> {
        let host = &request.host.identity.name;
        match self {
            Context::Directory => {
                let uri: &[u8] = &request.resource.uri;
                let end = uri.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                [host, uri.get(..end).unwrap_or_default()].concat()
            }
            Context::Server => host.clone(),
            Context::Text(text) => text.clone(),
        }
    }

    /// The name in messages.
    fn name(&self) -> &[u8] {
        match self {
            Context::Directory => b"directory",
            Context::Server => b"server",
            Context::Text(text) => text,
        }
    }
}

/// Makes the default cache if none is named, and tells all hosts of it. Source:
/// `authn_cache_post_config`.
fn post_config(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<AuthnSocache>() else { return };
    let wants =
        |server| build.server_config::<AuthnSocache>(server).is_some_and(|own| own.is_wanted.0);
    if !wants(&build.main.server) && !build.hosts.iter().any(|host| wants(&host.server)) {
        return;
    }
    let main = build.server_config::<AuthnSocache>(&build.main.server);
    let named = main.and_then(|main| main.cache.0.clone());
    let Some(cache) = named.or_else(|| default_cache(build)) else {
        // As in Apache, `-t` does not look.
        if !build.for_real {
            return;
        }
        return build.error_without_place(
            "AH01674: Please select a socache provider with AuthnCacheSOCache (no default found on \
             this platform). Maybe you need to load mod_socache_shmcb or another socache module \
             first",
        );
    };
    build.edit_servers::<ServerConfig>(slot, |own| {
        own.cache.0 = Some(cache.clone());
        own.is_on.0 = true;
    });
}

fn default_cache(build: &Build) -> Option<Cache> {
    let provider = build.provider::<SocacheProvider>(SOCACHE, DEFAULT)?;
    (provider.create)(build, ID, None).ok()
}

fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let Some(slot) = server.registry.slot_of::<AuthnSocache>() else { return Ok(()) };
    let own = server.main().server.get::<ServerConfig>(slot);
    match own.filter(|own| own.is_on.0).and_then(|own| own.cache.0.as_ref()) {
        Some(cache) => cache.share(server, shared),
        None => Ok(()),
    }
}

/// The cache for a request, and the configuration of its section; `None` if hashes of no provider
/// are kept there.
fn in_force(request: &Request) -> Option<(Cache, &Dir)> {
    let dir = request.dir_of::<AuthnSocache>().filter(|dir| !dir.providers.is_empty())?;
    let own = request.server_of::<AuthnSocache>().filter(|own| own.is_on.0)?;
    Some((own.cache.0.clone()?, dir))
}

/// Whether what the provider `module` finds is kept for a request.
pub(super) fn is_kept(request: &Request, module: &str) -> bool {
    in_force(request)
        .is_some_and(|(_, dir)| dir.providers.iter().any(|name| name == module.as_bytes()))
}

/// Keeps what the provider `module` has found of a user, whose password is not known yet to be
/// right, or of a user in a realm. Source: `ap_authn_cache_store`.
pub(super) async fn keep(
    request: &Request,
    module: &str,
    user: &[u8],
    realm: Option<&[u8]>,
    hash: &[u8],
) {
    if !is_kept(request, module) {
        return;
    }
    let Some((cache, dir)) = in_force(request) else { return };
    let context = dir.context.or_ref(&Context::Directory);
    let lifetime_s = u64::try_from(dir.timeout_s.or(TIMEOUT_S)).unwrap_or(0);
    let key = key(request, context, user, realm);
    let entry = Entry { key: &key, value: hash, lifetime: Duration::from_secs(lifetime_s) };
    let stored = cache.store(request, entry).get().await;
    let name = Verbatim::new(context.name());
    if stored.is_ok() {
        let user = Verbatim::new(user);
        let message = format_args!("Cached authn credentials for {user} in {name}");
        request.log::<AuthnSocache>(Level::Debug, 1681, message);
    } else {
        let message = format_args!("Failed to cache authn credentials for {module} in {name}");
        request.log::<AuthnSocache>(Level::Error, 1682, message);
    }
}

fn key(request: &Request, context: &Context, user: &[u8], realm: Option<&[u8]>) -> Vec<u8> {
    let prefix = context.prefix(request);
    match realm {
        None => [&prefix, &b":"[..], user].concat(),
        Some(realm) => [&prefix, &b":"[..], user, b":", realm].concat(),
    }
}

/// The provider `socache`.
struct Cached;

/// The numbers of the messages: not found, found, failed.
const OF_PASSWORD: [u32; 3] = [1684, 1685, 1686];
const OF_REALM: [u32; 3] = [1687, 1688, 1689];

/// What was found, which is logged.
fn found(
    request: &Request,
    user: &[u8],
    found: Result<Option<Vec<u8>>, Failed>,
    numbers: [u32; 3],
) -> Option<Vec<u8>> {
    let user = Verbatim::new(user);
    let [missing, known, failed] = numbers;
    match found {
        Ok(None) => {
            let message = format_args!("Authn cache: no credentials found for {user}");
            request.log::<AuthnSocache>(Level::Debug, missing, message);
            None
        }
        Ok(Some(value)) if value.len() <= VALUE_BYTES_MAX => {
            let message = format_args!("Authn cache: found credentials for {user}");
            request.log::<AuthnSocache>(Level::Debug, known, message);
            Some(value)
        }
        Ok(Some(_)) | Err(Failed) => {
            let message = format_args!("Error accessing authentication cache");
            request.log::<AuthnSocache>(Level::Error, failed, message);
            None
        }
    }
}

impl Authenticate for Cached {
    /// Source: `check_password`.
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        let Some((cache, dir)) = in_force(request) else {
            return Pending::Now(Authn::UserNotFound);
        };
        let context = dir.context.or_ref(&Context::Directory);
        let key = key(request, context, &login.user, None);
        let at_once = match cache.retrieve(request, &key) {
            Pending::Now(value) => Some(value),
            Pending::Wait(_) => None,
        };
        if let Some(value) = at_once {
            let Some(kept) = found(request, &login.user, value, OF_PASSWORD) else {
                return Pending::Now(Authn::UserNotFound);
            };
            let now_ms = request.engine.handle.clock().now_ms();
            if verified::is_known(&login.password, &kept, now_ms) {
                return Pending::Now(Authn::Granted);
            }
            return Pending::Wait(Box::pin(password::compare::<AuthnSocache>(
                request,
                &login.password,
                kept,
            )));
        }
        Pending::Wait(Box::pin(async move {
            let value = cache.retrieve(request, &key).get().await;
            match found(request, &login.user, value, OF_PASSWORD) {
                Some(kept) => {
                    password::compare::<AuthnSocache>(request, &login.password, kept).await
                }
                None => Authn::UserNotFound,
            }
        }))
    }

    fn has_digests(&self) -> bool {
        true
    }

    /// Source: `get_realm_hash`.
    fn realm_hash<'r>(
        &'r self,
        request: &'r mut Request,
        user: &'r [u8],
        realm: &'r [u8],
    ) -> Option<Pending<'r, RealmHash>> {
        let Some((cache, dir)) = in_force(request) else {
            return Some(Pending::Now(RealmHash::UserNotFound));
        };
        let context = dir.context.or_ref(&Context::Directory);
        let key = key(request, context, user, Some(realm));
        Some(Pending::Wait(Box::pin(async move {
            let value = cache.retrieve(request, &key).get().await;
            let hash = found(request, user, value, OF_REALM);
            hash.map_or(RealmHash::UserNotFound, RealmHash::Found)
        })))
    }
}
