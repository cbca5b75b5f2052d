//! Shared memory for other modules (`modules/slotmem`). Here it belongs to the supervisor
//! (`mpm::Shared`); these modules tell whether Apache would have it.

pub mod mod_slotmem_plain;
pub mod mod_slotmem_shm;

/// The group of the providers.
pub const GROUP: &str = "slotmem";

/// A provider of [`GROUP`].
pub struct Provider;
