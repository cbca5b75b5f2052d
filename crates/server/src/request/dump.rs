//! What is logged of the traffic of a connection (mod_dumpio).

/// Directions that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// What is received.
    pub input: bool,
    /// What is sent.
    pub output: bool,
}
