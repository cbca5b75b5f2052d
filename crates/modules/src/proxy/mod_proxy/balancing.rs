//! The interface between mod_proxy and mod_proxy_balancer.

use std::pin::Pin;
use std::sync::Arc;

use server::request::Request;

use super::workers::{Balancer, Worker};

/// The group and the name of the provider that chooses members.
pub const PROVIDER: (&str, &str) = ("proxy_hook", "balancer");

/// A provider of [`PROVIDER`].
pub type BalancingProvider = &'static dyn Balancing;

/// Chooses the members of balancers.
pub trait Balancing: Send + Sync {
    /// Chooses the member that the request goes to (`pre_request`).
    fn choose<'r>(
        &'r self,
        request: &'r mut Request,
        balancer: &'r Balancer,
        url: &'r [u8],
    ) -> Choosing<'r>;

    /// A member has been asked, with this status as the outcome (`post_request`).
    fn responded(&self, request: &mut Request, balancer: &Balancer, member: &Worker, status: u16);
}

/// The chosen member with the URL that it is asked for, or the status of the response without one.
pub type Chosen = Result<(Arc<Worker>, Vec<u8>), u16>;

/// How a choice ends.
pub enum Choosing<'r> {
    /// At once.
    Ready(Chosen),
    /// Members are waited for (`timeout`).
    Pending(Pin<Box<dyn Future<Output = Chosen> + 'r>>),
}
