//! Apache's `modules/cache`.

pub mod mod_socache_dbm;
pub mod mod_socache_memcache;
pub mod mod_socache_redis;
pub mod mod_socache_shmcb;
mod remote;
mod remote_cache;
pub(crate) mod socache;

use server::module::{ErasedModule, module};

/// The modules of this family, in the order of [`crate::all`].
pub(super) fn modules() -> Vec<&'static dyn ErasedModule> {
    vec![
        module::<mod_socache_dbm::SocacheDbm>(),
        module::<mod_socache_memcache::SocacheMemcache>(),
        module::<mod_socache_redis::SocacheRedis>(),
        module::<mod_socache_shmcb::SocacheShmcb>(),
    ]
}
