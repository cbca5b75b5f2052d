//! mod_authz_core: authorisation by `Require` lines.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_core.html>

pub mod builtin;
mod check;
mod rows;
pub mod rule;

use std::sync::Arc;

use server::directive::Row;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict, always};
use server::log::Level;
use server::matching;
use server::merge::Merge;
use server::module::Module;
use server::request::Request;

use super::mod_authn_core;
use super::provider::{AUTHZ, Authz, AuthzProvider};
use rule::{Logic, Rule};

/// `mod_authz_core.c`
pub struct AuthzCore;

impl Module for AuthzCore {
    const NAME: &'static str = "authz_core_module";
    const FILE: &'static str = "mod_authz_core.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthzCore>] = rows::ALL;

    fn hooks(hooks: &mut Hooks<'_, AuthzCore>) {
        hooks.provider(AUTHZ, "all", AuthzProvider::new(builtin::all));
        hooks.provider(AUTHZ, "env", AuthzProvider::new(builtin::env));
        hooks.provider(AUTHZ, "method", AuthzProvider::new(builtin::method));
        hooks.provider(AUTHZ, "expr", AuthzProvider::new(builtin::expr));
        hooks.post_config(check::post_config);
        let last = Rank::LAST;
        hooks.on(Phase::AccessCheckerEx, last, Dir::is_open, |_, _| Step::OK).pure();
        hooks.on(Phase::AccessCheckerEx, last, Dir::is_silent, nothing_required).pure();
        hooks.on(Phase::AccessCheckerEx, last, Dir::asks, authorize_userless);
        hooks.on(Phase::AuthChecker, last, always, authorize_user);
    }
}

/// The value of `AuthMerging`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// The inner rules replace the outer ones.
    Off,
    /// Both must succeed.
    And,
    /// One must succeed.
    Or,
}

/// Per-directory configuration.
#[derive(Clone, Default)]
pub struct Dir {
    /// The rules: a container, even for a single line.
    pub rules: Option<Arc<Rule>>,
    /// `AuthMerging`
    pub merging: Option<Merging>,
    /// `AuthzSendForbiddenOnFailure`
    pub forbidden_on_failure: Option<bool>,
}

/// Source: `merge_authz_core_dir_config`.
impl Merge for Dir {
    fn merge(outer: &Dir, inner: &Dir) -> Dir {
        let only_status = inner.merging.is_none() && inner.rules.is_none();
        let (merging, rules) = if only_status && outer.rules.is_some() {
            (outer.merging, outer.rules.clone())
        } else {
            let rules = match (inner.merging, &outer.rules, &inner.rules) {
                (None | Some(Merging::Off), _, inner) => inner.clone(),
                (Some(merging), Some(outer), Some(inner)) => {
                    let logic = if merging == Merging::And { Logic::And } else { Logic::Or };
                    let mut both = Rule::group(logic, false, true);
                    both.methods = outer.methods.union(inner.methods);
                    if let rule::Kind::Group(group) = &mut both.kind {
                        group.rules = vec![(**outer).clone(), (**inner).clone()];
                    }
                    Some(Arc::new(both))
                }
                (_, outer, inner) => inner.clone().or_else(|| outer.clone()),
            };
            (inner.merging, rules)
        };
        let forbidden_on_failure = inner.forbidden_on_failure.or(outer.forbidden_on_failure);
        Dir { rules, merging, forbidden_on_failure }
    }
}

impl Dir {
    /// Whether access is granted regardless of the request: the usual `Require all granted`.
    fn is_open(cx: Bound<'_, AuthzCore>) -> bool {
        let rules = cx.dir.rules.as_ref();
        rules.is_some_and(|rules| rules.constant() == Some(Authz::Granted))
    }

    /// Whether there are no rules.
    fn is_silent(cx: Bound<'_, AuthzCore>) -> bool {
        cx.dir.rules.is_none()
    }

    /// Whether the rules must be evaluated.
    fn asks(cx: Bound<'_, AuthzCore>) -> bool {
        !Dir::is_open(cx) && !Dir::is_silent(cx)
    }
}

fn nothing_required<'r>(_: Bound<'r, AuthzCore>, request: &'r mut Request) -> Step<'r> {
    if mod_authn_core::auth_type(request).is_none() {
        let text = format_args!("authorization result: granted (no directives)");
        request.log::<AuthzCore>(Level::Debug, 1628, text);
        return Step::OK;
    }
    let message =
        format_args!("AuthType configured with no corresponding authorization directives");
    request.log::<AuthzCore>(Level::Error, 1627, message);
    Step::status(500)
}

fn authorize_userless<'r>(cx: Bound<'r, AuthzCore>, request: &'r mut Request) -> Step<'r> {
    let Some(rules) = &cx.dir.rules else { return Step::OK };
    if rules.waits() {
        return Step::Pending(Box::pin(async move {
            let found = rules.decide(request).await;
            verdict_userless(request, found)
        }));
    }
    matching::settle(request, |request| {
        let found = rules.known(request)?;
        Ok(verdict_userless(request, found))
    })
}

fn verdict_userless(request: &Request, found: Authz) -> Verdict {
    match found {
        Authz::Granted => Verdict::Ok,
        // A user may change the outcome, so authentication comes first.
        Authz::DeniedNoUser => Verdict::Declined,
        Authz::Denied | Authz::Neutral | Authz::Undecided => denied(request),
        Authz::GeneralError | Authz::Later => Verdict::Status(500),
    }
}

fn authorize_user<'r>(cx: Bound<'r, AuthzCore>, request: &'r mut Request) -> Step<'r> {
    let Some(rules) = &cx.dir.rules else { return nothing_required(cx, request) };
    if rules.waits() {
        return Step::Pending(Box::pin(async move {
            let found = rules.decide(request).await;
            verdict_of_user(cx.dir, request, found)
        }));
    }
    matching::settle(request, |request| {
        let found = rules.known(request)?;
        Ok(verdict_of_user(cx.dir, request, found))
    })
}

fn verdict_of_user(dir: &Dir, request: &mut Request, found: Authz) -> Verdict {
    match found {
        Authz::Granted => Verdict::Ok,
        Authz::GeneralError | Authz::Later => Verdict::Status(500),
        Authz::Undecided => denied(request),
        Authz::DeniedNoUser => {
            let uri = Verbatim::new(&request.resource.uri);
            let message = format_args!("authorization failure (no authenticated user): {uri}");
            request.log::<AuthzCore>(Level::Error, 1629, message);
            ask_again(request)
        }
        Authz::Denied | Authz::Neutral => {
            if mod_authn_core::auth_type(request).is_none() {
                return denied(request);
            }
            let user = request.user.as_deref().unwrap_or_default();
            let (user, uri) = (Verbatim::new(user), Verbatim::new(&request.resource.uri));
            let message = format_args!("user {user}: authorization failure for \"{uri}\": ");
            request.log::<AuthzCore>(Level::Error, 1631, message);
            if dir.forbidden_on_failure == Some(true) {
                return Verdict::Status(403);
            }
            ask_again(request)
        }
    }
}

fn denied(request: &Request) -> Verdict {
    let (before, name) = match request.resource.filename.as_slice() {
        b"" => ("uri ", request.resource.uri.as_slice()),
        file => ("", file),
    };
    let name = Verbatim::new(name);
    let message = format_args!("client denied by server configuration: {before}{name}");
    request.log::<AuthzCore>(Level::Error, 1630, message);
    Verdict::Status(403)
}

/// Asks a user without access to log in as another.
fn ask_again(request: &mut Request) -> Verdict {
    if request.user.is_some() {
        mod_authn_core::challenge(request);
    }
    Verdict::Status(401)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aaa::provider::Requirement;
    use wire::MethodSet;

    struct Says(Authz);
    impl Requirement for Says {
        fn check(&self, _: &mut Request) -> Authz {
            self.0
        }
        fn constant(&self) -> Option<Authz> {
            Some(self.0)
        }
    }

    fn dir(says: Authz, merging: Option<Merging>) -> Dir {
        let line = rule::Line {
            provider: "x".to_owned(),
            arguments: Vec::new(),
            span: conf::Span::default(),
            requirement: Arc::new(Says(says)),
        };
        let mut group = Rule::group(Logic::Or, false, false);
        let kind = rule::Kind::Line(line);
        group.push(Rule { methods: MethodSet::ALL, negated: false, kind });
        Dir { rules: Some(Arc::new(group)), merging, forbidden_on_failure: None }
    }

    fn found(dir: &Dir) -> Option<Authz> {
        dir.rules.as_ref().and_then(|rules| rules.constant())
    }

    #[test]
    fn rules_are_inherited_replaced_or_combined() {
        let (no, yes) = (dir(Authz::Denied, None), dir(Authz::Granted, None));
        assert_eq!(found(&Dir::merge(&no, &yes)), Some(Authz::Granted));
        assert_eq!(found(&Dir::merge(&yes, &Dir::default())), Some(Authz::Granted));
        let and = dir(Authz::Granted, Some(Merging::And));
        assert_eq!(found(&Dir::merge(&no, &and)), Some(Authz::Denied));
        let or = dir(Authz::Granted, Some(Merging::Or));
        assert_eq!(found(&Dir::merge(&no, &or)), Some(Authz::Granted));
        let off = Dir { merging: Some(Merging::Off), ..Dir::default() };
        assert!(Dir::merge(&no, &off).rules.is_none());
        let and_nothing = Dir { merging: Some(Merging::And), ..Dir::default() };
        assert_eq!(found(&Dir::merge(&no, &and_nothing)), Some(Authz::Denied));
        let only_status = Dir { forbidden_on_failure: Some(true), ..Dir::default() };
        let merged = Dir::merge(&no, &only_status);
        assert_eq!(
            (found(&merged), merged.forbidden_on_failure),
            (Some(Authz::Denied), Some(true))
        );
    }
}
