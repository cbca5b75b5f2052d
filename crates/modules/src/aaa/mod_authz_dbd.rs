//! mod_authz_dbd: groups of users in SQL databases, and logins that are noted there.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_dbd.html>

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bstr::BString;
use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes, Target};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::expression::Expression;
use super::line::plain_words;
use super::mod_authz_user::required;
use super::provider::{AUTHZ, Authz, AuthzProvider, Requirement};
use crate::database::mod_dbd::{self, Argument, Failure, Outcome};

/// `mod_authz_dbd.c`
pub struct AuthzDbd;

/// The error without mod_dbd.
const NEEDS_DBD: &str = "You must load mod_dbd to enable AuthzDBD functions";

impl Module for AuthzDbd {
    const NAME: &'static str = "authz_dbd_module";
    const FILE: &'static str = "mod_authz_dbd.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthzDbd>] = &[
        Row::<AuthzDbd>::new(
            "AuthzDBDLoginToReferer",
            Takes::Flag(|cx, on| {
                cx.dir().to_referer.set(on);
                Ok(())
            }),
            "On|Off",
            "Redirects a client that logs in or out to the page that it came from.",
        )
        .standing(Places::DIRECTORY, Override::NONE)
        .default("Off"),
        Row::<AuthzDbd>::new(
            "AuthzDBDQuery",
            Takes::One(set_query),
            "query",
            "Sets the statement that finds groups, or notes a login.",
        )
        .standing(Places::DIRECTORY, Override::NONE),
        Row::<AuthzDbd>::new(
            "AuthzDBDRedirectQuery",
            Takes::One(set_redirect_query),
            "query",
            "Sets the statement that finds the page for a client that logs in or out.",
        )
        .standing(Places::DIRECTORY, Override::NONE),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthzDbd>) {
        hooks.provider(AUTHZ, "dbd-group", AuthzProvider::new(group));
        let action = |name| AuthzProvider::new(move |_, _| Ok(Arc::new(Action(name))));
        hooks.provider(AUTHZ, "dbd-login", action("login"));
        hooks.provider(AUTHZ, "dbd-logout", action("logout"));
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// The label of `AuthzDBDQuery`.
        query: Setting<Arc<str>>,
        /// The label of `AuthzDBDRedirectQuery`.
        redirect: Setting<Arc<str>>,
        /// `AuthzDBDLoginToReferer`
        to_referer: Setting<bool>,
    }
}

fn set_query(cx: &mut Cx<'_, '_, AuthzDbd>, arg: &Arg) -> Set {
    let label = mod_dbd::prepare(cx.target, "authz_dbd", arg, NEEDS_DBD)?;
    cx.dir().query.set(label.into());
    Ok(())
}

fn set_redirect_query(cx: &mut Cx<'_, '_, AuthzDbd>, arg: &Arg) -> Set {
    let label = mod_dbd::prepare(cx.target, "authz_dbd", arg, NEEDS_DBD)?;
    cx.dir().redirect.set(label.into());
    Ok(())
}

fn dir(request: &Request) -> Dir {
    request.dir_of::<AuthzDbd>().cloned().unwrap_or_default()
}

fn log(request: &Request, number: u32, text: fmt::Arguments<'_>) {
    request.log::<AuthzDbd>(Level::Error, number, text);
}

fn user(request: &Request) -> Option<Vec<Argument>> {
    request.user.clone().map(|user| vec![Argument::Text(user)])
}

fn shown(request: &Request) -> BString {
    request.user.clone().unwrap_or_default().into()
}

/// `Require dbd-group NAME…`
struct Group(Expression);

fn group(target: &mut Target<'_>, arguments: &[u8]) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(Group(required(target, arguments)?)))
}

impl Requirement for Group {
    fn waits(&self) -> bool {
        true
    }

    /// Source: `dbdgroup_check_authorization`.
    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let Some(arguments) = user(request) else { return Authz::DeniedNoUser };
            let Some(outcome) = find_groups(request, arguments).await else {
                return Authz::GeneralError;
            };
            let names = match self.0.value(request) {
                Ok(names) => names,
                Err(why) => {
                    let text = format_args!(
                        "authz_dbd authorize: require dbd-group: Can't evaluate require \
                         expression: {why}"
                    );
                    log(request, 2590, text);
                    return Authz::Denied;
                }
            };
            let groups = || outcome.rows.iter().filter_map(|row| row.first()?.as_ref());
            match plain_words(&names).any(|name| groups().any(|group| group == name)) {
                true => Authz::Granted,
                false => Authz::Denied,
            }
        })
    }
}

/// Source: `authz_dbd_group_query`.
async fn find_groups(request: &Request, arguments: Vec<Argument>) -> Option<Outcome> {
    let Some(label) = dir(request).query.get().cloned() else {
        log(request, 1649, format_args!("No query configured for dbd-group!"));
        return None;
    };
    match mod_dbd::query(request, &label, arguments).await {
        Ok(outcome) => return Some(outcome),
        Err(Failure::NoConnection) => {
            let text = "No db handle available for dbd-query! Check your database access";
            log(request, 2903, format_args!("{text}"));
        }
        Err(Failure::NoStatement) => {
            log(request, 1650, format_args!("Error retrieving query for dbd-group!"));
        }
        Err(Failure::Query(why)) => {
            let text = format_args!("authz_dbd, in groups query for {} [{why}]", shown(request));
            log(request, 1652, text);
        }
    }
    None
}

/// `Require dbd-login`, `Require dbd-logout`
struct Action(&'static str);

impl Requirement for Action {
    fn waits(&self) -> bool {
        true
    }

    /// Source: `dbdlogin_check_authorization`.
    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let Some(arguments) = user(request) else { return Authz::DeniedNoUser };
            match note(request, self.0, arguments).await {
                true => Authz::Granted,
                false => Authz::Denied,
            }
        })
    }
}

/// Notes a login in the database, and redirects the client. Source: `authz_dbd_login`.
async fn note(request: &mut Request, action: &str, arguments: Vec<Argument>) -> bool {
    let own = dir(request);
    let Some(label) = own.query.get() else {
        log(request, 1642, format_args!("No query configured for {action}!"));
        return false;
    };
    match mod_dbd::query(request, label, arguments.clone()).await {
        Ok(Outcome { changed: 1, .. }) => {}
        Ok(Outcome { changed, .. }) => {
            let user = shown(request);
            let text = format_args!("authz_dbd: {action} of user {user} updated {changed} rows");
            request.log::<AuthzDbd>(Level::Warn, 1644, text);
        }
        Err(why) => {
            let user = shown(request);
            match why {
                Failure::NoConnection => {
                    let check = "Check your database access";
                    let text = format_args!("No db handle available for {action}! {check}");
                    log(request, 2902, text);
                }
                Failure::NoStatement => {
                    log(request, 1643, format_args!("Error retrieving Query for {action}!"));
                }
                Failure::Query(why) => {
                    let text =
                        format_args!("authz_dbd: query for {action} failed; user {user} [{why}]");
                    log(request, 1645, text);
                }
            }
            return false;
        }
    }
    let referer = request.head.headers_in.get(b"Referer").map(<[u8]>::to_vec);
    let mut to = referer.filter(|_| own.to_referer.or(false));
    if to.is_none()
        && let Some(label) = own.redirect.get()
    {
        to = find_page(request, action, label, arguments).await;
    }
    if let Some(to) = to {
        request.response.status = 302;
        request.response.err_headers_out.set(b"Location", &to);
    }
    true
}

async fn find_page(
    request: &Request,
    action: &str,
    label: &str,
    arguments: Vec<Argument>,
) -> Option<Vec<u8>> {
    match mod_dbd::query(request, label, arguments).await {
        Ok(outcome) => outcome.rows.into_iter().find_map(|row| row.into_iter().next().flatten()),
        Err(Failure::Query(why)) => {
            let user = shown(request);
            log(request, 1648, format_args!("authz_dbd/redirect for {action} of {user} [{why}]"));
            None
        }
        Err(_) => {
            log(request, 1646, format_args!("authz_dbd: no redirect query!"));
            None
        }
    }
}
