//! Typed values of arguments, with Apache's own messages for invalid ones.

mod address;
mod escape;
mod number;
mod path;

pub use address::{ListenAddress, Subnet, SubnetError, VirtualHostAddress, VirtualHostName};
pub use escape::percent_decoded;
pub use number::{Unit, flag, integer, size, timeout};
pub use path::{log_level, relative_to};
