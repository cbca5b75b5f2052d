//! `Require group` and `Require file-group`, for the modules that know the groups of users.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use server::directive::{Fault, Target};
use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use super::expression::Expression;
use super::line::{plain_words, words};
use super::mod_authz_owner::file_group;
use super::mod_authz_user::required;
use super::provider::{Authz, AuthzProvider, Requirement};

/// What is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Required {
    /// One of the groups that the directive names.
    Named,
    /// The group of the file.
    OfFile,
}

/// A module that knows groups.
pub(super) trait KnowsGroups: Module {
    /// The groups of a user.
    type Groups;

    /// What precedes the reason why an expression can't be evaluated, and its number.
    const EXPRESSION: (u32, &'static str);

    /// The number of the line for a user who is in none of the groups.
    const NOT_AMONG: u32;

    /// The same for the group of the file, and the line.
    const NOT_OF_FILE: (u32, &'static str);

    /// The level of the lines about users who are refused.
    const REFUSED: Level;

    /// Whether that line is logged for a file without a group, too.
    const LOGS_WITHOUT_GROUP: bool;

    /// The user's groups; without any, the decision, which has been logged.
    fn groups(
        request: &mut Request,
        what: Required,
    ) -> impl Future<Output = Result<Self::Groups, Authz>>;

    /// Whether names in `Require` may be in quotes.
    const UNQUOTES: bool;

    /// Whether a group is among the user's.
    fn is_among(name: &[u8], groups: &Self::Groups) -> bool;
}

/// The provider of `Require group NAME…`.
pub(super) fn named<M: KnowsGroups>() -> AuthzProvider {
    AuthzProvider::new(|target, arguments| of_names::<M>(target, arguments))
}

fn of_names<M: KnowsGroups>(
    target: &mut Target<'_>,
    arguments: &[u8],
) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(Named::<M>(required(target, arguments)?, PhantomData)))
}

/// The provider of `Require file-group`: the user must be in the group of the file.
pub(super) fn of_file<M: KnowsGroups>() -> AuthzProvider {
    AuthzProvider::new(|_, _| Ok(Arc::new(OfFile::<M>(PhantomData))))
}

struct Named<M>(Expression, PhantomData<fn() -> M>);

impl<M: KnowsGroups> Requirement for Named<M> {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let groups = match M::groups(request, Required::Named).await {
                Ok(groups) => groups,
                Err(decided) => return decided,
            };
            let names = match self.0.value(request) {
                Ok(names) => names,
                Err(why) => {
                    let (number, what) = M::EXPRESSION;
                    let message = format_args!("{what}: Can't evaluate require expression: {why}");
                    request.log::<M>(Level::Error, number, message);
                    return Authz::Denied;
                }
            };
            let is_member = match M::UNQUOTES {
                true => words(&names).any(|name| M::is_among(&name, &groups)),
                false => plain_words(&names).any(|name| M::is_among(name, &groups)),
            };
            if is_member {
                return Authz::Granted;
            }
            let reason = "user is not part of the 'require'ed group(s).";
            refused::<M>(request, M::NOT_AMONG, format_args!("{reason}"));
            Authz::Denied
        })
    }
}

struct OfFile<M>(PhantomData<fn() -> M>);

impl<M: KnowsGroups> Requirement for OfFile<M> {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let groups = match M::groups(request, Required::OfFile).await {
                Ok(groups) => groups,
                Err(decided) => return decided,
            };
            let name = file_group(request).await;
            if name.as_ref().is_some_and(|name| M::is_among(name, &groups)) {
                return Authz::Granted;
            }
            if name.is_some() || M::LOGS_WITHOUT_GROUP {
                let (number, reason) = M::NOT_OF_FILE;
                refused::<M>(request, number, format_args!("{reason}"));
            }
            Authz::Denied
        })
    }
}

/// Logs why a user is refused.
pub(super) fn refused<M: KnowsGroups>(
    request: &Request,
    number: u32,
    reason: std::fmt::Arguments<'_>,
) {
    let user = Verbatim::new(request.user.as_deref().unwrap_or_default());
    let uri = Verbatim::new(&request.resource.uri);
    let message =
        format_args!("Authorization of user {user} to access {uri} failed, reason: {reason}");
    request.log::<M>(M::REFUSED, number, message);
}
