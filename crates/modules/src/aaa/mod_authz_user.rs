//! mod_authz_user: `Require user` and `Require valid-user`.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_user.html>

use std::sync::Arc;

use server::directive::{Fault, Target};
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use super::expression::Expression;
use super::line::words;
use super::provider::{AUTHZ, Authz, AuthzProvider, Requirement};

/// `mod_authz_user.c`
pub struct AuthzUser;

impl Module for AuthzUser {
    const NAME: &'static str = "authz_user_module";
    const FILE: &'static str = "mod_authz_user.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, AuthzUser>) {
        hooks.provider(AUTHZ, "user", AuthzProvider::new(user));
        hooks.provider(AUTHZ, "valid-user", AuthzProvider::new(|_, _| Ok(Arc::new(ValidUser))));
    }
}

/// `Require valid-user`
struct ValidUser;

impl Requirement for ValidUser {
    fn check(&self, request: &mut Request) -> Authz {
        if request.user.is_some() { Authz::Granted } else { Authz::DeniedNoUser }
    }
}

/// `Require user NAME…`
struct User(Expression);

fn user(target: &mut Target<'_>, arguments: &[u8]) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(User(required(target, arguments)?)))
}

/// Parses the arguments of a `Require` line as an expression.
///
/// # Errors
/// Apache's message.
pub fn required(target: &Target<'_>, arguments: &[u8]) -> Result<Expression, Fault> {
    Expression::parse(target, arguments)
        .map_err(|why| Fault::new(format!("Cannot parse expression in require line: {why}")))
}

impl Requirement for User {
    fn check(&self, request: &mut Request) -> Authz {
        if request.user.is_none() {
            return Authz::DeniedNoUser;
        }
        let names = match self.0.value(request) {
            Ok(names) => names,
            Err(why) => {
                let message = format_args!(
                    "authz_user authorize: require user: Can't evaluate expression: {why}"
                );
                request.log::<AuthzUser>(Level::Error, 2594, message);
                return Authz::Denied;
            }
        };
        if words(&names).any(|name| request.user.as_ref() == Some(&name)) {
            return Authz::Granted;
        }
        let uri = Verbatim::new(&request.resource.uri);
        let user = Verbatim::new(request.user.as_deref().unwrap_or_default());
        let message = format_args!(
            "access to {uri} failed, reason: user '{user}' does not meet 'require'ments for user \
             to be allowed access"
        );
        request.log::<AuthzUser>(Level::Debug, 1663, message);
        Authz::Denied
    }
}
