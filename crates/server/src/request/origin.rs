//! Where a request comes from: the client, an internal redirect, another request.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use super::Request;
use crate::phases::walk::IfWalks;
use crate::plan::Plan;

/// What a subrequest knows of the request that made it.
#[derive(Clone)]
pub struct MainRequest {
    /// The main request's plan: authorisation is not repeated under the very same one.
    pub plan: Rc<Plan>,
    /// [`Request::copy`] of the main request.
    pub copy: u64,
    /// [`Request::if_walks`] of the main request.
    pub if_walks: IfWalks,
    /// The main request's path.
    pub uri: Vec<u8>,
    /// The main request's file.
    pub filename: Vec<u8>,
    /// The user of the main request.
    pub user: Option<Vec<u8>>,
    /// How the user of the main request authenticated.
    pub auth_type: Option<Cow<'static, str>>,
}

/// How deep we are in internal redirects and subrequests (`LimitInternalRecursion`).
#[derive(Clone, Debug, Default)]
pub struct Depth {
    /// Internal redirects.
    pub redirects: u16,
    /// Subrequests.
    pub subrequests: u16,
    /// Look-ups that this very request has made.
    pub made: u32,
    /// An expression waits for the subrequest's outcome, and can't do so for long.
    pub in_expression: bool,
    /// Look-ups that share a limit with this request's, as far as one of them was made.
    pub lookups: Option<Rc<Lookups>>,
}

/// Look-ups that share one limit ([`crate::phases::subrequest::LOOKUP_LIMIT`]).
#[derive(Debug, Default)]
pub struct Lookups {
    /// How many were made.
    pub made: Cell<u32>,
    /// Whether the log says that one was refused.
    pub have_logged: Cell<bool>,
}

impl Request {
    /// The target as the client sent it, before internal redirects.
    pub fn original_target(&self) -> &[u8] {
        &self.original().unparsed_uri
    }

    /// The request as it came, before internal redirects.
    pub fn original(&self) -> &Request {
        let mut first = self;
        while let Some(prev) = &first.prev {
            first = prev;
        }
        first
    }

    /// Whether this is a subrequest that begins with a file name.
    pub fn is_file_lookup(&self) -> bool {
        self.file_lookup
    }

    /// Whether this is the request that the client sent (`ap_is_initial_req`).
    pub fn is_initial(&self) -> bool {
        self.main.is_none() && self.prev.is_none()
    }
}
