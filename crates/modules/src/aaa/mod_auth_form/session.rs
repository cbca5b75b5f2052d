//! The login in a session.
//!
//! Source: `get_session_auth`, `set_session_auth`, `check_site`.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use md5::{Digest, Md5};
use server::request::Request;

use super::Dir;
use crate::aaa::mod_authn_core::realm;
use crate::aaa::password::hex;
use crate::aaa::provider::Login;
use crate::session::mod_session::{self, Shared};

/// The ends of the names of what a session knows of a user.
const NAMES: [&str; 3] = ["user", "pw", "site"];

/// What a session knows of a user.
pub(super) struct Known {
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    /// What proves that the login was correct: [`proof`].
    site: Option<Vec<u8>>,
}

fn key(realm: &[u8], name: &str) -> Vec<u8> {
    [realm, b"-", name.as_bytes()].concat()
}

/// Reads the login.
pub(super) async fn read(request: &mut Request) -> Known {
    let realm = realm(request).unwrap_or_default();
    let session = mod_session::load(request).await;
    let mut values = [None, None, None];
    for (value, name) in values.iter_mut().zip(NAMES) {
        let session = or_again(request, session.as_ref()).await;
        *value = session.and_then(|values| values.borrow().get(&key(&realm, name)));
    }
    let [user, password, site] = values;
    Known { user, password, site }
}

/// The session, or what another load has: it may succeed, since the first one has hidden the
/// cookie. Apache loads it for each value that is got or set (`ap_session_get`, `ap_session_set`).
async fn or_again(request: &mut Request, session: Option<&Shared>) -> Option<Shared> {
    match session {
        Some(session) => Some(session.clone()),
        None => mod_session::load(request).await,
    }
}

/// Writes a login, or removes it.
pub(super) async fn write(dir: &Dir, request: &mut Request, login: Option<&Login>) {
    let realm = realm(request).unwrap_or_default();
    let session = mod_session::load(request).await;
    let site = match (login, dir.site.get()) {
        (Some(login), Some(site)) => Some(proof(&login.user, site)),
        _ => None,
    };
    let values = [
        login.map(|login| login.user.as_slice()),
        login.map(|login| login.password.as_slice()),
        site.as_deref(),
    ];
    for (value, name) in values.into_iter().zip(NAMES) {
        if let Some(session) = or_again(request, session.as_ref()).await {
            session.borrow_mut().set(&key(&realm, name), value);
        }
    }
}

/// The MD5 of user name and site passphrase.
fn proof(user: &[u8], site: &[u8]) -> Vec<u8> {
    hex(&Md5::digest([user, b":", site].concat()))
}

impl Known {
    /// Whether the session was written for this site after a login: the password is not checked
    /// again.
    pub fn is_of_site(&self, dir: &Dir) -> bool {
        let (Some(user), Some(sent), Some(site)) = (&self.user, &self.site, dir.site.get()) else {
            return false;
        };
        self.password.is_some() && verify_slices_are_equal(sent, &proof(user, site)).is_ok()
    }
}
