//! What a provider concludes from what it has found of a user. Users of these providers are kept by
//! mod_authn_socache.

use server::module::Module;
use server::request::Request;

use super::mod_authn_socache;
use super::password;
use super::provider::{Authn, Login, RealmHash};

/// It can't be known, as has been logged.
pub struct Unread;

/// A user's hash, if there is such a user.
pub type Found = Result<Option<Vec<u8>>, Unread>;

/// Compares a login with what `provider` has found of its user.
pub async fn compare<M: Module>(
    request: &mut Request,
    provider: &str,
    login: &Login,
    found: Found,
) -> Authn {
    match found {
        Ok(Some(kept)) => {
            mod_authn_socache::keep(request, provider, &login.user, None, &kept).await;
            password::compare::<M>(request, &login.password, kept).await
        }
        Ok(None) => Authn::UserNotFound,
        Err(Unread) => Authn::GeneralError,
    }
}

/// The digest of a user in a realm that `provider` has found.
pub async fn digest(
    request: &mut Request,
    provider: &str,
    (user, realm): (&[u8], &[u8]),
    found: Found,
) -> RealmHash {
    match found {
        Ok(Some(hash)) => {
            mod_authn_socache::keep(request, provider, user, Some(realm), &hash).await;
            RealmHash::Found(hash)
        }
        Ok(None) => RealmHash::UserNotFound,
        Err(Unread) => RealmHash::GeneralError,
    }
}
