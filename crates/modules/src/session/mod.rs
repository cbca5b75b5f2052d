//! Apache's `modules/session`.

pub mod mod_session;
pub mod mod_session_cookie;
pub mod mod_session_crypto;
pub mod mod_session_dbd;

use server::module::{ErasedModule, module};

/// The modules of this family, in the order of [`crate::all`].
pub(super) fn modules() -> Vec<&'static dyn ErasedModule> {
    vec![
        module::<mod_session::Session>(),
        module::<mod_session_cookie::SessionCookie>(),
        module::<mod_session_crypto::SessionCrypto>(),
        module::<mod_session_dbd::SessionDbd>(),
    ]
}
