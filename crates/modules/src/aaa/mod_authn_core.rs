//! mod_authn_core: the authentication type and realm, and aliases for providers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_core.html>

use std::sync::Arc;

use conf::{Arg, Node};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, always};
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::expression::Expression;
use super::provider::{
    AUTHN, Apart, Authenticate, Authn, AuthnProvider, CHALLENGE, Challenge, Login, Pending,
    RealmHash, alias_words,
};

/// `mod_authn_core.c`
pub struct AuthnCore;

impl Module for AuthnCore {
    const NAME: &'static str = "authn_core_module";
    const FILE: &'static str = "mod_authn_core.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnCore>] = &[
        Row::<AuthnCore>::new(
            "AuthName",
            Takes::One(auth_name),
            "auth-domain",
            "Sets the realm, which browsers show when they ask for a login.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG),
        Row::<AuthnCore>::new(
            "AuthType",
            Takes::One(auth_type_row),
            "None|Basic|Digest|Form",
            "Sets the authentication type.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG),
        Row::<AuthnCore>::new(
            "AuthnProviderAlias",
            Takes::Section(provider_alias),
            "baseProvider Alias",
            "Defines an authentication provider by a name, a base provider and directives of its \
             own.",
        )
        .standing(Places::SERVER, Override::NONE),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthnCore>) {
        hooks.on(Phase::CheckUserId, Rank::LAST, always, nobody_asked);
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `AuthType`
        pub auth_type: Setting<Expression>,
        /// `AuthName`
        pub auth_name: Setting<Expression>,
    }
}

/// The authentication type for a request; `None` if there is none (`ap_auth_type`).
pub fn auth_type(request: &mut Request) -> Option<Vec<u8>> {
    let expression = request.dir_of::<AuthnCore>()?.auth_type.get()?.clone();
    match expression.value(request) {
        Ok(kind) if kind.eq_ignore_ascii_case(b"None") => None,
        Ok(kind) => Some(kind.into_owned()),
        Err(why) => {
            let message = format_args!("AuthType expression could not be evaluated: {why}");
            request.log::<AuthnCore>(Level::Error, 2834, message);
            None
        }
    }
}

/// The realm, escaped for a quoted string (`ap_auth_name`).
pub fn realm(request: &mut Request) -> Option<Vec<u8>> {
    let expression = request.dir_of::<AuthnCore>()?.auth_name.get()?.clone();
    match expression.value(request) {
        Ok(name) => Some(quotable(&name)),
        Err(why) => {
            let message = format_args!("AuthName expression could not be evaluated: {why}");
            request.log::<AuthnCore>(Level::Error, 2835, message);
            None
        }
    }
}

/// Asks for a login with the scheme of the request's `AuthType` (`ap_note_auth_failure`).
pub fn challenge(request: &mut Request) {
    let Some(kind) = auth_type(request) else {
        let uri = request.resource.uri.clone();
        let uri = Verbatim::new(&uri);
        let message = format_args!("need AuthType to note auth failure: {uri}");
        request.log::<AuthnCore>(Level::Error, 571, message);
        return;
    };
    let engine = request.engine.clone();
    let kind = String::from_utf8_lossy(&kind);
    if let Some(by) = engine.server.registry.hooks.provider::<Challenge>(CHALLENGE, &kind) {
        (by.0)(request);
    }
}

/// Puts a backslash before each quote without one (`ap_escape_quotes`).
fn quotable(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => {
                out.push(byte);
                out.extend(bytes.next());
            }
            _ => out.push(byte),
        }
    }
    out
}

/// Fails if no module has handled the `AuthType` (`authenticate_no_user`). Without an `AuthType`,
/// the connection's user suffices.
fn nobody_asked<'r>(_: Bound<'r, AuthnCore>, request: &'r mut Request) -> Step<'r> {
    let Some(kind) = auth_type(request) else {
        return if request.user.is_some() { Step::OK } else { Step::DECLINED };
    };
    let kind = bstr::BString::from(kind);
    let message = format_args!("AuthType {kind} configured without corresponding module");
    request.log::<AuthnCore>(Level::Error, 1796, message);
    Step::status(500)
}

fn auth_name(cx: &mut Cx<'_, '_, AuthnCore>, arg: &Arg) -> Set {
    let parsed = parse(cx, arg, "AuthName")?;
    cx.dir().auth_name.set(parsed);
    Ok(())
}

fn auth_type_row(cx: &mut Cx<'_, '_, AuthnCore>, arg: &Arg) -> Set {
    let parsed = parse(cx, arg, "AuthType")?;
    cx.dir().auth_type.set(parsed);
    Ok(())
}

fn parse(cx: &mut Cx<'_, '_, AuthnCore>, arg: &Arg, name: &str) -> Result<Expression, Fault> {
    if arg.text.is_empty() {
        return Err(Fault::new(format!("{name} takes one argument, which is empty here")).at(arg));
    }
    Expression::parse(cx.target, &arg.text).map_err(|why| {
        Fault::new(format!("Cannot parse expression '{}' in {name}: {why}", arg.text)).at(arg)
    })
}

/// Source: `authaliassection`.
fn provider_alias(cx: &mut Cx<'_, '_, AuthnCore>, raw: &Arg, nodes: &[Node]) -> Set {
    let Some((base, alias, _)) = alias_words(&raw.text) else {
        return Err("<AuthnProviderAlias> directive requires additional arguments".into());
    };
    if base.eq_ignore_ascii_case(&alias) {
        let why = "The alias provider name must be different from the base provider name.";
        return Err(Fault::new(why).at(raw));
    }
    if cx.build().provider::<AuthnProvider>(AUTHN, &alias).is_some() {
        return Err(Fault::new(format!(
            "The alias provider {alias} has already be registered previously as either a base \
             provider or an alias provider."
        ))
        .at(raw));
    }
    let apart = Apart::read(cx.target, "AuthnProviderAlias", nodes);
    let Some(found) = cx.build().provider::<AuthnProvider>(AUTHN, &base) else {
        return Err(cx.build().unknown_provider("Authn", &base).at(raw));
    };
    let provider: AuthnProvider = Arc::new(Alias { base: (*found).clone(), apart });
    cx.build().defined.define(AUTHN, alias, provider);
    Ok(())
}

/// A provider with directives of its own.
struct Alias {
    base: AuthnProvider,
    apart: Apart,
}

impl Authenticate for Alias {
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        Pending::Wait(Box::pin(async move {
            let before = self.apart.enter(request);
            let found = self.base.check_password(request, login).get().await;
            server::walk::enter(request, before);
            found
        }))
    }

    fn has_digests(&self) -> bool {
        self.base.has_digests()
    }

    fn realm_hash<'r>(
        &'r self,
        request: &'r mut Request,
        user: &'r [u8],
        realm: &'r [u8],
    ) -> Option<Pending<'r, RealmHash>> {
        let before = self.apart.enter(request);
        Some(Pending::Wait(Box::pin(async move {
            let found = match self.base.realm_hash(request, user, realm) {
                Some(pending) => pending.get().await,
                None => RealmHash::GeneralError,
            };
            server::walk::enter(request, before);
            found
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::quotable;

    #[test]
    fn quotes_are_escaped_once() {
        assert_eq!(quotable(br#"The "realm""#), br#"The \"realm\""#);
        assert_eq!(quotable(br#"a \" b"#), br#"a \" b"#);
        assert_eq!(quotable(br"end \"), br"end \");
    }
}
