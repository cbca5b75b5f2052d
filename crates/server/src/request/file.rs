//! What follows a file in a URI.

/// `AcceptPathInfo`, as a handler sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathInfoUse {
    /// The handler's own default.
    #[default]
    Default,
    /// Trailing path information is accepted.
    Accept,
    /// It makes the request a 404.
    Reject,
}
