//! `Require all`, `Require env`, `Require method`, `Require expr`.

use std::sync::Arc;

use conf::expr::{Backrefs, EvalError, Expr};
use server::directive::{Fault, Target};
use server::expr;
use server::log::Level;
use server::request::Request;
use wire::method::{Method, MethodSet};

use super::AuthzCore;
use crate::aaa::line::words;
use crate::aaa::provider::{Authz, Requirement};

type Parsed = Result<Arc<dyn Requirement>, Fault>;

/// `Require all granted|denied`
struct All(Authz);

pub(super) fn all(_: &mut Target<'_>, arguments: &[u8]) -> Parsed {
    if arguments.eq_ignore_ascii_case(b"granted") {
        Ok(Arc::new(All(Authz::Granted)))
    } else if arguments.eq_ignore_ascii_case(b"denied") {
        Ok(Arc::new(All(Authz::Denied)))
    } else {
        Err("Argument for 'Require all' must be 'granted' or 'denied'".into())
    }
}

impl Requirement for All {
    fn check(&self, _: &mut Request) -> Authz {
        self.0
    }
    fn constant(&self) -> Option<Authz> {
        Some(self.0)
    }
}

/// `Require env NAME…`: one of them must be set.
struct Env(Vec<Vec<u8>>);

pub(super) fn env(_: &mut Target<'_>, arguments: &[u8]) -> Parsed {
    Ok(Arc::new(Env(words(arguments).collect())))
}

impl Requirement for Env {
    fn check(&self, request: &mut Request) -> Authz {
        if self.0.iter().any(|name| request.env.contains(name) && !request.is_undecided(name)) {
            Authz::Granted
        } else if self.0.iter().any(|name| request.is_undecided(name)) {
            Authz::Undecided
        } else {
            Authz::Denied
        }
    }
}

/// `Require method NAME…`
struct Methods(MethodSet);

pub(super) fn method(target: &mut Target<'_>, arguments: &[u8]) -> Parsed {
    let mut methods = MethodSet::EMPTY;
    for word in words(arguments) {
        let method = Method::of(&word, &target.build.methods);
        if !method.is_known() {
            return Err(format!("Invalid Method '{}'", bstr::BStr::new(&word)).into());
        }
        methods.insert(method);
    }
    Ok(Arc::new(Methods(methods)))
}

impl Requirement for Methods {
    fn check(&self, request: &mut Request) -> Authz {
        granted_if(self.0.contains(request.head.method))
    }
}

/// `Require expr CONDITION`
struct Condition {
    expr: Expr,
    /// Whether the condition uses `REMOTE_USER`, so that a login may change the outcome.
    wants_user: bool,
}

pub(super) fn expr(target: &mut Target<'_>, arguments: &[u8]) -> Parsed {
    let text = unquoted(arguments);
    let parsed = expr::parse_bool(&target.build.registry, text, target.expr_flags());
    let expr = parsed
        .map_err(|why| Fault::new(format!("Cannot parse expression in require line: {why}")))?;
    let user: &[u8] = b"%{REMOTE_USER}";
    let wants_user = text.windows(user.len()).any(|part| part.eq_ignore_ascii_case(user));
    Ok(Arc::new(Condition { expr, wants_user }))
}

/// Removes double quotes around the whole text.
fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text)
}

impl Requirement for Condition {
    fn check(&self, request: &mut Request) -> Authz {
        let Ok(value) = expr::condition(&self.expr, request, &mut Backrefs::new()) else {
            return Authz::Later;
        };
        match value {
            Ok(true) => Authz::Granted,
            Ok(false) if self.wants_user => Authz::DeniedNoUser,
            Ok(false) => Authz::Denied,
            // Already logged.
            Err(EvalError::Undecided) => Authz::Undecided,
            Err(why) => {
                let message = format_args!("Error evaluating expression in 'Require expr': {why}");
                request.log::<AuthzCore>(Level::Error, 2320, message);
                Authz::GeneralError
            }
        }
    }
}

/// Granted or denied.
pub fn granted_if(met: bool) -> Authz {
    if met { Authz::Granted } else { Authz::Denied }
}
