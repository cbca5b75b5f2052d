//! mod_authnz_fcgi: FastCGI authorizers authenticate and authorise users.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authnz_fcgi.html>

mod ask;
mod check;
mod rows;

use std::sync::Arc;

use server::directive::{Fault, Row};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank};
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::expression::Expression;
use super::provider::{Authenticate, Authn, Authz, Login, Pending, Requirement};
use ask::ask;

/// `mod_authnz_fcgi.c`
pub struct AuthnzFcgi;

/// An authorizer (`fcgi_provider_conf`).
#[derive(Debug)]
struct Provider {
    name: String,
    /// Its address as written.
    backend: String,
    host: String,
    port: u16,
    is_authn: bool,
    is_authz: bool,
}

/// `AuthnzFcgiCheckAuthnProvider`
#[derive(Clone)]
struct CheckAuthn {
    /// The provider's name, or `None` in any case of letters.
    name: String,
    authoritative: bool,
    default_user: Option<Vec<u8>>,
    requires_basic: bool,
    user: Option<Expression>,
}

server::config! {
    /// The configuration per directory.
    pub struct Dir {
        /// `AuthnzFcgiCheckAuthnProvider`
        check: Setting<CheckAuthn>,
    }
}

/// The provider that has authenticated a request and authorises it, too.
struct Successful(String);

impl Module for AuthnzFcgi {
    const NAME: &'static str = "authnz_fcgi_module";
    const FILE: &'static str = "mod_authnz_fcgi.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnzFcgi>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, AuthnzFcgi>) {
        hooks
            .on(Phase::CheckUserId, Rank::MIDDLE, is_asked, check::check)
            .before(&["mod_auth_basic.c"]);
    }
}

fn is_asked(bound: Bound<'_, AuthnzFcgi>) -> bool {
    bound.dir.check.get().is_some_and(|check| !check.name.eq_ignore_ascii_case("None"))
}

/// A provider for AuthBasicProvider.
struct Authenticator(Arc<Provider>);

impl Authenticate for Authenticator {
    /// Source: `fcgi_check_password`
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        let provider = &self.0;
        Pending::Wait(Box::pin(async move {
            let user = Verbatim::new(&login.user);
            let name = &provider.name;
            let text = format_args!("fcgi_check_password({user}, {:X<3}): provider {name}", "");
            request.log::<AuthnzFcgi>(Level::Debug, 2524, text);
            log_provider(request, provider);
            // Without a role, an application does both at once.
            let role = if provider.is_authz { None } else { Some("AUTHENTICATOR") };
            ask(request, provider, Some(&login.password), role).await;
            match request.response.status {
                200 => {
                    note_success(request, provider);
                    Authn::Granted
                }
                500 => Authn::GeneralError,
                _ => Authn::Denied,
            }
        }))
    }
}

/// Remembers that the provider need not be asked again to authorise the request.
fn note_success(request: &mut Request, provider: &Provider) {
    if provider.is_authz {
        request.keep(Successful(provider.name.clone()));
    }
}

/// Source: `log_provider_info`
fn log_provider(request: &Request, provider: &Provider) {
    let Provider { name, backend, host, port, is_authn, is_authz } = provider;
    let authn = if *is_authn { 'N' } else { '_' };
    let authz = if *is_authz { 'Z' } else { '_' };
    let text =
        format_args!("name {name}, backend {backend}, host {host}, port {port}, {authn}{authz}");
    request.log::<AuthnzFcgi>(Level::Debug, 2496, text);
}

/// `Require provider-name`
struct Authorizer(Arc<Provider>);

/// Source: `fcgi_authz_parse`
fn parse_requirement(
    provider: &Arc<Provider>,
    arguments: &[u8],
) -> Result<Arc<dyn Requirement>, Fault> {
    if !arguments.is_empty() {
        return Err(Fault::new(
            "mod_authnz_fcgi doesn't support restrictions on providers (i.e., multiple require \
             args)",
        ));
    }
    Ok(Arc::new(Authorizer(provider.clone())))
}

impl Requirement for Authorizer {
    fn waits(&self) -> bool {
        true
    }

    /// Source: `fcgi_authz_check`
    fn wait<'r>(
        &'r self,
        request: &'r mut Request,
    ) -> std::pin::Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let provider = &self.0;
            request.log::<AuthnzFcgi>(Level::Debug, 2527, format_args!("fcgi_authz_check()"));
            log_provider(request, provider);
            if request.user.is_none() {
                return Authz::DeniedNoUser;
            }
            if provider.is_authn {
                let known = request.kept::<Successful>();
                let is_it = known.is_some_and(|Successful(name)| *name == provider.name);
                return if is_it { Authz::Granted } else { Authz::Denied };
            }
            ask(request, provider, None, Some("AUTHORIZER")).await;
            match request.response.status {
                200 => Authz::Granted,
                500 => Authz::GeneralError,
                _ => Authz::Denied,
            }
        })
    }
}
