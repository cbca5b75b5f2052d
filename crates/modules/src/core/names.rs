//! Names that requests need before they are processed: `HostnameLookups`, `UseCanonicalName DNS`.

use server::core::{CanonicalName, HostnameLookups};
use server::hooks::{Bound, Step, Verdict};
use server::hostname;
use server::request::Request;

use super::Core;

/// Whether a section needs the client's name.
pub(super) fn asks(core: Bound<'_, Core>) -> bool {
    core.dir.hostname_lookups.or(HostnameLookups::Off) != HostnameLookups::Off
}

/// Whether a section uses the name of the local address as the server's.
pub(super) fn asks_own(core: Bound<'_, Core>) -> bool {
    core.dir.use_canonical_name.or(CanonicalName::Off) == CanonicalName::Dns
}

/// Looks up the client's name if an expression may use it, since expressions can't wait. Other
/// users look it up when they need it, so that clients without a name are not delayed
/// unnecessarily.
pub(super) fn look_up<'r>(_: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    if !hostname::is_named(request) {
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(async move {
        hostname::client_name(request).await;
        Verdict::Declined
    }))
}

/// Looks up the name of the local address, since URLs can't wait for it.
pub(super) fn look_up_own<'r>(_: Bound<'r, Core>, request: &'r mut Request) -> Step<'r> {
    if !hostname::is_own_unknown(request) {
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(async move {
        hostname::look_up_own(request).await;
        Verdict::Declined
    }))
}
