//! What modules that keep small objects offer each other (`ap_socache_provider_t`).
//!
//! A provider is looked up by name when the configuration is read, and makes a cache from the
//! arguments of a directive. The supervisor then makes what its processes share.

use std::sync::Arc;
use std::time::Duration;

use conf::Arg;
use conf::values::{Unit, timeout};
use server::config::build::Build;
use server::directive::Fault;
use server::host::Server;
use server::request::Request;

use crate::aaa::provider::Pending;

/// The group of [`SocacheProvider`]s.
pub(crate) const SOCACHE: &str = "socache";

/// The name of the provider that is used where none is named (`AP_SOCACHE_DEFAULT_PROVIDER`).
pub(crate) const DEFAULT: &str = "default";

/// The most bytes of an object that another server returns.
pub(super) const VALUE_BYTES_MAX: usize = 1 << 20;

/// The default of the time for which an idle connection to another server is kept.
pub(super) const IDLE: Duration = Duration::from_secs(15);
/// The most of a time in the directives.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// Parses the time of a directive, which is in seconds if it has no unit.
pub(super) fn time(directive: &str, arg: &Arg) -> Result<Duration, Fault> {
    let time = timeout(&arg.text, Unit::Seconds);
    let time = time.ok_or_else(|| Fault::new(format!("{directive} has wrong format")).at(arg))?;
    if time > TIME_MAX {
        let why = format!("{directive} can only be 0 or up to one hour.");
        return Err(Fault::new(why).at(arg));
    }
    Ok(time)
}

/// The type registered under [`SOCACHE`].
#[derive(Clone, Copy)]
pub(crate) struct SocacheProvider {
    /// Makes a cache called `id` from the text behind the provider's name, if there is one.
    /// Error: what is wrong with it.
    pub create: fn(&Build, id: &'static str, Option<&[u8]>) -> Result<Arc<dyn Socache>, String>,
}

/// The access failed, as has been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// An object to store.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'r> {
    /// The key.
    pub key: &'r [u8],
    /// The object.
    pub value: &'r [u8],
    /// How long it may be retrieved. With zero it never is.
    pub lifetime: Duration,
}

/// A cache of small objects, which all loops and processes share.
pub(crate) trait Socache: Send + Sync {
    /// Makes what processes share, before the fork. Error: the reason, which ends the start.
    fn share(&self, server: &Server, shared: &mpm::Shared) -> Result<(), String>;

    /// Finds an object that is not over yet.
    fn retrieve<'r>(
        &'r self,
        request: &'r Request,
        key: &'r [u8],
    ) -> Pending<'r, Result<Option<Vec<u8>>, Failed>>;

    /// Stores an object; an earlier one of the key is replaced.
    fn store<'r>(
        &'r self,
        request: &'r Request,
        entry: Entry<'r>,
    ) -> Pending<'r, Result<(), Failed>>;
}
