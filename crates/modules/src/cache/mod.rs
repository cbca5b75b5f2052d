//! Apache's `modules/cache`.

pub mod mod_socache_shmcb;
