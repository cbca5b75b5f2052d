//! Directives that are not available: those that are specific to OpenSSL, and old ones.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, State, Takes};

use super::{Here, global, host};
use crate::ssl::mod_ssl::Ssl;

pub(super) const ROWS: &[Row<Ssl>] = &[
    host("SSLCompression", Takes::Flag(unless_off), "on|off", "off", "Compresses TLS records.")
        .state(State::Refused("TLS compression leaks secrets (CRIME); `off` is accepted")),
    host(
        "SSLInsecureRenegotiation",
        Takes::Flag(unless_off),
        "on|off",
        "off",
        "Allows insecure renegotiation.",
    )
    .state(State::Refused("there is no renegotiation; `off` is accepted")),
    global("SSLFIPS", Takes::Flag(unless_off), "on|off", "off", "Turns OpenSSL's FIPS mode on.")
        .state(State::Refused("the library is not the validated build; `off` is accepted")),
    global(
        "SSLCryptoDevice",
        Takes::One(unless_builtin),
        "engine",
        "builtin",
        "Sets an OpenSSL engine.",
    )
    .state(State::Refused("there are no OpenSSL engines; `builtin` is accepted")),
    host(
        "SSLSRPVerifierFile",
        Takes::One(|_, _| Err(Fault::new("there is no SRP"))),
        "file-path",
        "",
        "Sets the verifiers of TLS-SRP.",
    )
    .state(State::Refused("TLS-SRP is not available")),
    host(
        "SSLSRPUnknownUserSeed",
        Takes::One(|_, _| Err(Fault::new("there is no SRP"))),
        "secret-string",
        "",
        "Hides the existence of users from clients of TLS-SRP.",
    )
    .state(State::Refused("TLS-SRP is not available")),
];

/// Directives that only have a name, and are not in the manual.
pub(super) const OLD: &[Row<Ssl>] = &[
    old("SSLLog", Takes::Raw(log), "file-path"),
    old("SSLLogLevel", Takes::Raw(log_level), "level"),
];

/// A directive of older versions of mod_ssl.
const fn old(name: &'static str, takes: Takes<Ssl>, syntax: &'static str) -> Row<Ssl> {
    Row::new(name, takes, syntax, "Is an error, as in Apache, which names what replaces it.")
        .standing(Places::ALL, Override::ALL)
}

fn log(_: &mut Here<'_, '_>, _: &Arg) -> Set {
    Err(Fault::new("SSLLog directive is no longer supported - use ErrorLog."))
}

fn log_level(_: &mut Here<'_, '_>, _: &Arg) -> Set {
    Err(Fault::new("SSLLogLevel directive is no longer supported - use LogLevel."))
}

fn unless_off(_: &mut Here<'_, '_>, on: bool) -> Set {
    if on { Err(Fault::new("it is always off")) } else { Ok(()) }
}

fn unless_builtin(_: &mut Here<'_, '_>, arg: &Arg) -> Set {
    match arg.text.eq_ignore_ascii_case(b"builtin") {
        true => Ok(()),
        false => Err(Fault::new("only builtin is available").at(arg)),
    }
}
