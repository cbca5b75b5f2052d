//! Proxying and balancing.

use server::missing::{Missing, missing};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[missing!("proxy_http2", "")];
