//! Typed values of arguments, each with Apache's own words for what it refuses.

mod address;
mod number;
mod path;

pub use address::{ListenAddress, Subnet, SubnetError, VirtualHostAddress, VirtualHostName};
pub use number::{Unit, flag, integer, size, timeout};
pub use path::{log_level, relative_to};
