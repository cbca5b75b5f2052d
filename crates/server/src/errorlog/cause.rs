//! Why an operation failed, as a line says it before its message (`apr_strerror`).

use std::fmt;

use rt::names::Unresolved;
use rustix::io::Errno;

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system's error.
    System(Errno),
    /// A file or connection ended.
    End,
    /// A request body ended early.
    Incomplete,
    /// An operation took too long.
    TimedOut,
    /// A filter has failed, and has said why (`AP_FILTER_ERROR`).
    Filter,
    /// No address belongs to a name.
    Unresolved(Unresolved),
    /// An address is of another family (EAI_ADDRFAMILY).
    OtherFamily,
}

impl From<Errno> for Cause {
    fn from(error: Errno) -> Cause {
        Cause::System(error)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::System(error) => {
                let text = std::io::Error::from(*error).to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                write!(f, "({}){text}", error.raw_os_error())
            }
            Cause::End => f.write_str("(70014)End of file found"),
            Cause::Incomplete => {
                f.write_str("(70008)Partial results are valid but processing is incomplete")
            }
            Cause::TimedOut => f.write_str("(70007)The timeout specified has expired"),
            Cause::Filter => f.write_str("(-102)Unknown error -102"),
            Cause::Unresolved(why) => write!(f, "(EAI {}){}", why.number(), why.text()),
            Cause::OtherFamily => f.write_str("(EAI 9)Address family for hostname not supported"),
        }
    }
}
