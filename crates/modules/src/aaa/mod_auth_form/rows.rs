//! The directives of mod_auth_form.

use conf::Arg;
use server::config::build::Build;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::merge::Setting;

use super::{AuthForm, Named};
use crate::aaa::expression::Expression;
use crate::aaa::provider::{AUTHN, AuthnProvider};
use crate::atoi::atol;
use crate::filters::mod_request::KeptBody;
use crate::session::mod_session::Session;

type Here<'a, 't> = Cx<'a, 't, AuthForm>;

pub(super) const ROWS: &[Row<AuthForm>] = &[
    row(
        "AuthFormAuthoritative",
        Takes::Flag(|cx, on| put(&mut cx.dir().authoritative, on)),
        "On|Off",
        "Sets whether a user unknown to all providers is refused or left to other modules.",
    )
    .default("On"),
    row(
        "AuthFormBody",
        Takes::One(|cx, arg| {
            let name = name(arg, "AuthFormBody")?;
            put(&mut cx.dir().body_field, name)
        }),
        "fieldname",
        "Names the field of the body with which the request continues after a login.",
    )
    .default("httpd_body"),
    row(
        "AuthFormDisableNoStore",
        Takes::Flag(|cx, on| put(&mut cx.dir().may_store, on)),
        "On|Off",
        "Leaves out `Cache-Control: no-store` with a 401.",
    )
    .default("Off"),
    row(
        "AuthFormFakeBasicAuth",
        Takes::Flag(|cx, on| put(&mut cx.dir().fake, on)),
        "On|Off",
        "Adds an Authorization field for programs and the servers behind this one.",
    )
    .default("Off"),
    row(
        "AuthFormLocation",
        Takes::One(|cx, arg| {
            let name = name(arg, "AuthFormLocation")?;
            put(&mut cx.dir().location_field, name)
        }),
        "fieldname",
        "Names the field of the URL to which the client goes afterwards.",
    )
    .default("httpd_location"),
    row(
        "AuthFormLoginRequiredLocation",
        Takes::One(|cx, arg| {
            let target = expression(cx, arg, "login required")?;
            put(&mut cx.dir().login_required, target)
        }),
        "url",
        "Sends a client that is not logged in to this URL, an expression.",
    ),
    row(
        "AuthFormLoginSuccessLocation",
        Takes::One(|cx, arg| {
            let target = expression(cx, arg, "login success")?;
            put(&mut cx.dir().login_success, target)
        }),
        "url",
        "Sends a client to this URL, an expression, after a login without a location of its own.",
    ),
    row(
        "AuthFormLogoutLocation",
        Takes::One(|cx, arg| {
            let target = expression(cx, arg, "logout required")?;
            put(&mut cx.dir().logout, target)
        }),
        "uri",
        "Sends a client to this URL, an expression, after its logout.",
    ),
    row(
        "AuthFormMethod",
        Takes::One(|cx, arg| {
            let name = name(arg, "AuthFormMethod")?;
            put(&mut cx.dir().method_field, name)
        }),
        "fieldname",
        "Names the field of the method with which the request continues after a login.",
    )
    .default("httpd_method"),
    row(
        "AuthFormMimetype",
        Takes::One(|cx, arg| {
            let name = name(arg, "AuthFormMimetype")?;
            put(&mut cx.dir().media_type_field, name)
        }),
        "fieldname",
        "Names the field of the body's media type.",
    )
    .default("httpd_mimetype"),
    row(
        "AuthFormPassword",
        Takes::One(|cx, arg| {
            let name = name(arg, "AuthFormPassword")?;
            put(&mut cx.dir().password_field, name)
        }),
        "fieldname",
        "Names the field of the password.",
    )
    .default("httpd_password"),
    row(
        "AuthFormProvider",
        Takes::Each(provider),
        "provider-name [provider-name] ...",
        "Sets the providers that authenticate users, in the order in which they are tried.",
    )
    .default("file"),
    row(
        "AuthFormSitePassphrase",
        Takes::One(|cx, arg| put(&mut cx.dir().site, arg.text.to_vec())),
        "secret",
        "Trusts sessions with a proof made by this passphrase, without asking the providers again.",
    ),
    row(
        "AuthFormSize",
        Takes::One(size),
        "size",
        "Limits the bytes of a form's names and values, as they are after decoding.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("8192"),
    row(
        "AuthFormUsername",
        Takes::One(|cx, arg| {
            let name = name(arg, "AuthFormUsername")?;
            put(&mut cx.dir().user_field, name)
        }),
        "fieldname",
        "Names the field of the user name.",
    )
    .default("httpd_username"),
];

const fn row(
    name: &'static str,
    takes: Takes<AuthForm>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<AuthForm> {
    Row::new(name, takes, syntax, doc).standing(Places::PER_DIR, Override::AUTH_CONFIG)
}

fn put<T>(setting: &mut Setting<T>, value: T) -> Set {
    setting.set(value);
    Ok(())
}

/// Source: `check_string`.
fn name(arg: &Arg, directive: &str) -> Result<Vec<u8>, Fault> {
    if arg.text.is_empty() || arg.text.iter().any(|byte| matches!(byte, b'=' | b'&')) {
        let why = format!("{directive} cannot be empty, or contain '=' or '&'.");
        return Err(Fault::new(why).at(arg));
    }
    Ok(arg.text.to_vec())
}

fn expression(cx: &mut Here<'_, '_>, arg: &Arg, what: &str) -> Result<Expression, Fault> {
    Expression::parse(cx.target, &arg.text).map_err(|why| {
        Fault::new(format!("Could not parse {what} expression '{}': {why}", arg.text)).at(arg)
    })
}

fn provider(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let name = arg.text.to_string();
    let Some(found) = cx.build().provider::<AuthnProvider>(AUTHN, &name) else {
        return Err(cx.build().unknown_provider("Authn", &name).at(arg));
    };
    let provider = (*found).clone();
    cx.dir().providers.push(Named { name, provider });
    Ok(())
}

fn size(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let is_number = arg.text.first().is_some_and(u8::is_ascii_digit);
    let Some(bytes) = usize::try_from(atol(&arg.text)).ok().filter(|_| is_number) else {
        let why = "AuthCookieFormSize must be a size in bytes, or zero.";
        return Err(Fault::new(why).at(arg));
    };
    put(&mut cx.dir().form_bytes, bytes)
}

/// The modules that this one needs.
pub(super) fn check(build: &mut Build) {
    let needed = [
        (2617, "mod_session", build.registry.slot_of::<Session>()),
        (2618, "mod_request", build.registry.slot_of::<KeptBody>()),
    ];
    for (number, name, found) in needed {
        if build.for_real && found.is_none() {
            let why = format!("You must load {name} to enable the mod_auth_form functions");
            build.error_without_place(format!("AH0{number}: {why}"));
        }
    }
}
