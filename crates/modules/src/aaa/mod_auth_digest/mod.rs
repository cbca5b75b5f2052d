//! mod_auth_digest: HTTP Digest authentication (RFC 7616, with MD5 and `qop=auth` alone).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_auth_digest.html>

mod challenge;
mod check;
mod clients;
mod field;
mod nonce;
mod rows;
mod target;

use std::sync::Arc;

use server::directive::Row;
use server::hooks::{Hooks, Phase, Rank, always};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::provider::{AuthnProvider, CHALLENGE, Challenge};

/// `mod_auth_digest.c`
pub struct AuthDigest;

impl Module for AuthDigest {
    const NAME: &'static str = "auth_digest_module";
    const FILE: &'static str = "mod_auth_digest.c";
    type Server = ServerConfig;
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthDigest>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, AuthDigest>) {
        hooks.provider(CHALLENGE, "Digest", Challenge(challenge::ask_again));
        hooks.on(Phase::CheckUserId, Rank::MIDDLE, always, check::authenticate);
        // Of users alone, whose login is not pure.
        hooks.on(Phase::Fixups, Rank::MIDDLE, always, check::add_info).pure();
        hooks.share(clients::share);
    }
}

server::config! {
    /// Configuration of the server.
    pub struct ServerConfig {
        /// `AuthDigestShmemSize`, bytes.
        pub memory_bytes: Setting<usize>,
    }
}

server::config! {
    /// Per-directory configuration. As in Apache nothing is merged: one directive in a section,
    /// and nothing is inherited.
    pub struct Dir {
        /// All directives.
        pub own: Setting<Arc<Own>>,
    }
}

/// The directives of a section.
#[derive(Clone)]
pub struct Own {
    /// `AuthDigestProvider`
    providers: Vec<(String, AuthnProvider)>,
    /// `AuthDigestDomain`
    domain: Vec<u8>,
    /// `AuthDigestNonceLifetime`, seconds; 0 for one request, negative forever.
    lifetime_s: i64,
    /// `AuthDigestNcCheck`
    counts: bool,
}

/// The default of `AuthDigestNonceLifetime`, seconds.
const LIFETIME_S: i64 = 300;

impl Default for Own {
    fn default() -> Own {
        let (providers, domain) = (Vec::new(), Vec::new());
        Own { providers, domain, lifetime_s: LIFETIME_S, counts: false }
    }
}

impl Own {
    /// Whether each nonce counts for a client.
    fn knows_clients(&self) -> bool {
        self.counts || self.lifetime_s == 0
    }
}

fn own(request: &Request) -> Arc<Own> {
    let own = request.dir_of::<AuthDigest>().and_then(|dir| dir.own.get().cloned());
    own.unwrap_or_default()
}
