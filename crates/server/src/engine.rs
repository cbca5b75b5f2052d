//! What one loop has of its own: caches, clocks, its slot in the scoreboard.

use std::sync::Arc;

use crate::host::Server;
use crate::plan::PlanCache;
use crate::walk::HtaccessCache;

/// One loop's state. Nothing in it is shared with another loop but the configuration.
pub struct Engine {
    /// The configuration.
    pub server: Arc<Server>,
    /// Merged configurations and their plans.
    pub plans: PlanCache,
    /// Parsed `.htaccess` files.
    pub htaccess: HtaccessCache,
}
