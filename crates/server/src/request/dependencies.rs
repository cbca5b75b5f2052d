//! What a response depends on, so that it can be cached with it.

use super::OwnValidators;
use crate::files::validity::Trace;
use crate::request::variant_key::VariantKeys;

/// What the response to a request depends on.
pub struct Dependencies {
    /// Whether only pure hooks have taken part so far.
    pub pure: bool,
    /// The variant keys that they used.
    pub variant_keys: VariantKeys,
    /// Paths that were examined, if the response may be cached.
    pub trace: Option<Trace>,
    /// What conditions were evaluated by, if the response may be cached.
    pub validators: Option<OwnValidators>,
}

impl Default for Dependencies {
    fn default() -> Dependencies {
        Dependencies {
            pure: true,
            variant_keys: VariantKeys::default(),
            trace: None,
            validators: None,
        }
    }
}

impl Dependencies {
    /// Clears everything for the next request.
    pub(super) fn renew(&mut self) {
        let Dependencies { pure, variant_keys, trace, validators } = self;
        (*pure, *trace, *validators) = (true, None, None);
        variant_keys.clear();
    }
}
