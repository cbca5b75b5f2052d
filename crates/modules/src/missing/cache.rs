//! Caches and their storage.

use server::missing::{Missing, missing};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[
    missing!(
        "cache",
        "CacheDefaultExpire CacheDetailHeader CacheDisable CacheEnable CacheHeader \
         CacheIgnoreCacheControl CacheIgnoreHeaders CacheIgnoreNoLastMod \
         CacheIgnoreQueryString CacheIgnoreURLSessionIdentifiers CacheKeyBaseURL \
         CacheLastModifiedFactor CacheLock CacheLockMaxAge CacheLockPath CacheMaxExpire \
         CacheMinExpire CacheQuickHandler CacheStaleOnError CacheStoreExpired \
         CacheStoreNoStore CacheStorePrivate"
    ),
    missing!(
        "cache_disk",
        "CacheDirLength CacheDirLevels CacheMaxFileSize CacheMinFileSize CacheReadSize \
         CacheReadTime CacheRoot"
    )
    .inert("CacheDirLength CacheDirLevels CacheMaxFileSize CacheMinFileSize CacheRoot"),
    missing!(
        "cache_socache",
        "CacheSocache CacheSocacheMaxSize CacheSocacheMaxTime CacheSocacheMinTime \
         CacheSocacheReadSize CacheSocacheReadTime"
    ),
    missing!("file_cache", "CacheFile MMapFile"),
    missing!("socache_dc", ""),
];
