//! mod_auth_basic: HTTP Basic authentication (RFC 7617).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_auth_basic.html>

use std::borrow::Cow;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use conf::Arg;
use md5::{Digest, Md5};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict, always};
use server::log::Level;
use server::merge::{Replace, Setting};
use server::module::Module;
use server::request::{Proxied, Request};

use super::expression::Expression;
use super::line::until;
use super::mod_authn_core::{auth_type, realm};
use super::provider::{
    AUTHN, Authn, AuthnProvider, CHALLENGE, Challenge, Login, Pending, RealmHash,
};

/// `mod_auth_basic.c`
pub struct AuthBasic;

/// The default provider (`AUTHN_DEFAULT_PROVIDER`).
const DEFAULT_PROVIDER: &str = "file";

impl Module for AuthBasic {
    const NAME: &'static str = "auth_basic_module";
    const FILE: &'static str = "mod_auth_basic.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthBasic>] = &[
        Row::<AuthBasic>::new(
            "AuthBasicAuthoritative",
            Takes::Flag(|cx, on| {
                cx.dir().authoritative.set(on);
                Ok(())
            }),
            "On|Off",
            "Sets whether a user unknown to all providers is refused or left to other modules.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("On"),
        Row::<AuthBasic>::new(
            "AuthBasicFake",
            Takes::Some { least: 1, most: 2, set: fake },
            "off|username [password]",
            "Adds an Authorization field for the servers behind this one, from the given user name \
             and password.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("none"),
        Row::<AuthBasic>::new(
            "AuthBasicProvider",
            Takes::Each(provider),
            "provider-name [provider-name] ...",
            "Sets the providers that authenticate users, in the order in which they are tried.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("file"),
        Row::<AuthBasic>::new(
            "AuthBasicUseDigestAlgorithm",
            Takes::One(use_digest),
            "MD5|Off",
            "Compares the digest of user name, realm and password with the one from the providers.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("Off"),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthBasic>) {
        hooks.provider(CHALLENGE, "Basic", Challenge(ask));
        hooks.on(Phase::CheckUserId, Rank::MIDDLE, always, authenticate);
        let fakes = |cx: Bound<'_, AuthBasic>| matches!(cx.dir.fake.get(), Some(Some(_)));
        hooks.on(Phase::Fixups, Rank::LAST, fakes, add_fake);
    }
}

/// A provider by name.
#[derive(Clone)]
pub struct Named {
    name: String,
    provider: AuthnProvider,
}

/// `AuthBasicFake`: user and password.
#[derive(Clone)]
pub struct Fake {
    user: Expression,
    password: Expression,
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `AuthBasicProvider`
        pub providers: Replace<Named>,
        /// `AuthBasicAuthoritative`
        pub authoritative: Setting<bool>,
        /// `AuthBasicFake`; `None` for off.
        pub fake: Setting<Option<Fake>>,
        /// `AuthBasicUseDigestAlgorithm`: whether it is MD5.
        pub use_md5: Setting<bool>,
    }
}

fn provider(cx: &mut Cx<'_, '_, AuthBasic>, arg: &Arg) -> Set {
    let name = arg.text.to_string();
    let Some(found) = cx.build().provider::<AuthnProvider>(AUTHN, &name) else {
        return Err(cx.build().unknown_provider("Authn", &name).at(arg));
    };
    let provider = (*found).clone();
    cx.dir().providers.push(Named { name, provider });
    Ok(())
}

fn use_digest(cx: &mut Cx<'_, '_, AuthBasic>, arg: &Arg) -> Set {
    if !arg.is("MD5") && !arg.is("Off") {
        let why = format!("Invalid algorithm in AuthBasicUseDigestAlgorithm: {}", arg.text);
        return Err(Fault::new(why).at(arg));
    }
    let on = arg.is("MD5");
    cx.dir().use_md5.set(on);
    Ok(())
}

fn fake(cx: &mut Cx<'_, '_, AuthBasic>, args: &[Arg]) -> Set {
    let Some(user) = args.first() else { return Ok(()) };
    if user.is("off") {
        cx.dir().fake.set(None);
        return Ok(());
    }
    let name = &user.text;
    let password = args.get(1).map_or(&b"password"[..], |arg| &arg.text);
    let user = Expression::parse(cx.target, name).map_err(|why| {
        Fault::new(format!("Could not parse fake username expression '{name}': {why}"))
    })?;
    let password = Expression::parse(cx.target, password).map_err(|why| {
        Fault::new(format!(
            "Could not parse fake password expression associated to user '{name}': {why}"
        ))
    })?;
    cx.dir().fake.set(Some(Fake { user, password }));
    Ok(())
}

/// Source: `authenticate_basic_user`.
fn authenticate<'r>(cx: Bound<'r, AuthBasic>, request: &'r mut Request) -> Step<'r> {
    let Some(kind) = auth_type(request).filter(|kind| kind.eq_ignore_ascii_case(b"Basic")) else {
        return Step::DECLINED;
    };
    let Some(realm) = realm(request) else {
        let uri = request.resource.uri.clone();
        let uri = Verbatim::new(&uri);
        request.log::<AuthBasic>(Level::Error, 1615, format_args!("need AuthName: {uri}"));
        return Step::status(500);
    };
    request.auth_type = Some(match kind.as_slice() {
        b"Basic" => Cow::Borrowed("Basic"),
        other => Cow::Owned(String::from_utf8_lossy(other).into_owned()),
    });
    let Some(login) = login(request) else {
        ask(request);
        return Step::status(401);
    };
    request.user = Some(login.user.clone());
    if let Some(found) = ask_at_once(cx.dir, request, &login) {
        return Step::Ready(conclude(cx.dir, request, &login, found));
    }
    Step::Pending(Box::pin(async move {
        let found = ask_providers(cx.dir, request, &login, &realm).await;
        conclude(cx.dir, request, &login, found)
    }))
}

/// The user name and password that the client sent (`get_basic_auth`).
fn login(request: &Request) -> Option<Login> {
    let name: &[u8] = match is_forward(request) {
        true => b"Proxy-Authorization",
        false => b"Authorization",
    };
    let field = request.head.headers_in.get(name)?;
    let sent = sent(field);
    if sent.is_none() {
        let uri = Verbatim::new(&request.resource.uri);
        let message = format_args!("client used wrong authentication scheme: {uri}");
        request.log::<AuthBasic>(Level::Error, 1614, message);
    }
    sent
}

/// Whether the client logs in at this server as its proxy (RFC 9110 section 11.7).
pub(super) fn is_forward(request: &Request) -> bool {
    request.resource.proxied == Proxied::Forward
}

/// The user name and password in a value of `Authorization`; `None` for another scheme.
pub fn sent(field: &[u8]) -> Option<Login> {
    let (scheme, rest) = until(field, b' ');
    scheme.eq_ignore_ascii_case(b"Basic").then(|| decode(rest))
}

/// Decodes the text after `Basic` into user name and password. A byte that is not base64, or a NUL,
/// ends it.
fn decode(text: &[u8]) -> Login {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut text = text.get(blanks..).unwrap_or_default();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let length = text.iter().take_while(|byte| is_base64(byte)).count();
    // A single letter of four has six bits, which is less than a byte.
    let length = if length % 4 == 1 { length - 1 } else { length };
    text = text.get(..length).unwrap_or_default();
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
    );
    let mut decoded = engine.decode(text).unwrap_or_default();
    if let Some(end) = decoded.iter().position(|byte| *byte == 0) {
        decoded.truncate(end);
    }
    match decoded.iter().position(|byte| *byte == b':') {
        Some(colon) => {
            let password = decoded.split_off(colon + 1);
            decoded.pop();
            Login { user: decoded, password }
        }
        None => Login { user: decoded, password: Vec::new() },
    }
}

/// What the providers say, if none has to wait for it: a repeated login costs no future.
fn ask_at_once(dir: &Dir, request: &mut Request, login: &Login) -> Option<Authn> {
    if dir.use_md5.or(false) {
        return None;
    }
    let default = if dir.providers.is_empty() { Some(default_provider(request)?) } else { None };
    let named = dir.providers.iter().map(|of| &of.provider);
    for provider in named.chain(default.as_deref()) {
        match provider.check_password(request, login) {
            Pending::Now(Authn::UserNotFound) => {}
            Pending::Now(found) => return Some(found),
            Pending::Wait(_) => return None,
        }
    }
    Some(Authn::UserNotFound)
}

async fn ask_providers(dir: &Dir, request: &mut Request, login: &Login, realm: &[u8]) -> Authn {
    let digest = dir.use_md5.or(false).then(|| {
        let text = [&login.user, &b":"[..], realm, b":", &login.password].concat();
        super::password::hex(&Md5::digest(text))
    });
    if !dir.providers.is_empty() {
        let mut found = Authn::UserNotFound;
        for of in dir.providers.iter() {
            found = ask_one(of.provider.clone(), &of.name, request, login, realm, &digest).await;
            if found != Authn::UserNotFound {
                break;
            }
        }
        return found;
    }
    let Some(provider) = default_provider(request) else {
        request.log::<AuthBasic>(Level::Error, 1616, format_args!("No Authn provider configured"));
        return Authn::GeneralError;
    };
    ask_one((*provider).clone(), DEFAULT_PROVIDER, request, login, realm, &digest).await
}

fn default_provider(request: &Request) -> Option<Arc<AuthnProvider>> {
    request.engine.server.registry.hooks.provider(AUTHN, DEFAULT_PROVIDER)
}

async fn ask_one(
    provider: AuthnProvider,
    name: &str,
    request: &mut Request,
    login: &Login,
    realm: &[u8],
    digest: &Option<Vec<u8>>,
) -> Authn {
    request.notes.set(b"authn_provider_name", name.as_bytes());
    let found = match digest {
        None => provider.check_password(request, login).get().await,
        Some(digest) => {
            let kept = match provider.realm_hash(request, &login.user, realm) {
                Some(pending) => Some(pending.get().await),
                None => None,
            };
            compare_digest(request, name, digest, kept)
        }
    };
    request.notes.unset(b"authn_provider_name");
    found
}

fn compare_digest(request: &Request, name: &str, digest: &[u8], kept: Option<RealmHash>) -> Authn {
    match kept {
        Some(RealmHash::Found(kept)) => {
            // The time that the comparison takes does not show how much of the digest is right.
            match verify_slices_are_equal(&kept.to_ascii_lowercase(), digest) {
                Ok(()) => Authn::Granted,
                Err(_) => Authn::Denied,
            }
        }
        Some(RealmHash::UserNotFound) => Authn::UserNotFound,
        Some(RealmHash::GeneralError) => Authn::GeneralError,
        None => {
            let message = format_args!(
                "Authn provider configured with AuthBasicUseDigestAlgorithm does not support \
                 HTTP Digest authentication: {name}"
            );
            request.log::<AuthBasic>(Level::Error, 2493, message);
            Authn::GeneralError
        }
    }
}

fn conclude(dir: &Dir, request: &mut Request, login: &Login, found: Authn) -> Verdict {
    if found == Authn::Granted {
        return Verdict::Ok;
    }
    if !dir.authoritative.or(true) && found != Authn::Denied {
        return Verdict::Declined;
    }
    let (user, uri) = (Verbatim::new(&login.user), Verbatim::new(&request.resource.uri));
    match found {
        Authn::Denied => {
            let message = format_args!(
                "user {user}: authentication failure for \"{uri}\": Password Mismatch"
            );
            request.log::<AuthBasic>(Level::Error, 1617, message);
        }
        Authn::UserNotFound => {
            let message = format_args!("user {user} not found: {uri}");
            request.log::<AuthBasic>(Level::Error, 1618, message);
        }
        Authn::Granted | Authn::GeneralError => return Verdict::Status(500),
    }
    ask(request);
    Verdict::Status(401)
}

/// Sets the header field of a 401 (`note_basic_auth_failure`).
pub(super) fn ask(request: &mut Request) {
    let realm = realm(request).unwrap_or_default();
    let field = [b"Basic realm=\"", realm.as_slice(), b"\""].concat();
    let name: &[u8] = match is_forward(request) {
        true => b"Proxy-Authenticate",
        false => b"WWW-Authenticate",
    };
    request.response.err_headers_out.set(name, &field);
}

/// Source: `authenticate_basic_fake`.
fn add_fake<'r>(cx: Bound<'r, AuthBasic>, request: &'r mut Request) -> Step<'r> {
    let Some(Some(fake)) = cx.dir.fake.get() else { return Step::DECLINED };
    let parts = [(&fake.user, "user", 2455, 2458), (&fake.password, "password", 2456, 2459)];
    let mut login: Vec<u8> = Vec::new();
    for (expression, what, failed, empty) in parts {
        let value = expression.value(request);
        let uri = Verbatim::new(&request.resource.uri);
        match value {
            Err(why) => {
                let message = format_args!(
                    "AuthBasicFake: could not evaluate {what} expression for URI '{uri}': {why}"
                );
                request.log::<AuthBasic>(Level::Error, failed, message);
                return Step::status(500);
            }
            Ok(value) if value.is_empty() => {
                let message = format_args!(
                    "AuthBasicFake: empty {what} expression for URI '{uri}', ignoring"
                );
                request.log::<AuthBasic>(Level::Debug, empty, message);
                request.unset_authorization();
                return Step::DECLINED;
            }
            Ok(value) => {
                if !login.is_empty() {
                    login.push(b':');
                }
                login.extend_from_slice(&value);
            }
        }
    }
    let field = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(login));
    request.set_authorization(field.as_bytes());
    Step::OK
}

#[cfg(test)]
mod tests {
    use super::decode;

    fn login(text: &str) -> (String, String) {
        let login = decode(text.as_bytes());
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (text(&login.user), text(&login.password))
    }

    #[test]
    fn logins_are_read_as_apache_does() {
        let pair = |user: &str, password: &str| (user.to_owned(), password.to_owned());
        assert_eq!(login("YWxpY2U6dGVzdA=="), pair("alice", "test"));
        assert_eq!(login("  YWxpY2U6dGVzdA"), pair("alice", "test"));
        assert_eq!(login("YWxpY2U6dGVzdA==xx"), pair("alice", "test"));
        assert_eq!(login("YWxpY2U="), pair("alice", ""));
        assert_eq!(login("YXByMQA6c2VjcmV0"), pair("apr1", ""));
        assert_eq!(login("OnNlY3JldA=="), pair("", "secret"));
        assert_eq!(login("!!!!"), pair("", ""));
        assert_eq!(login("A"), pair("", ""));
    }

    proptest::proptest! {
        #[test]
        fn no_field_panics(text: Vec<u8>) {
            let login = decode(&text);
            proptest::prop_assert!(!login.user.contains(&b':'));
        }
    }
}
