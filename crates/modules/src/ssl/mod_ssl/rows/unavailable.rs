//! Directives that are not available, since they are specific to OpenSSL.

use conf::Arg;
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

fn unless_off(_: &mut Here<'_, '_>, on: bool) -> Set {
    if on { Err(Fault::new("it is always off")) } else { Ok(()) }
}

fn unless_builtin(_: &mut Here<'_, '_>, arg: &Arg) -> Set {
    match arg.text.eq_ignore_ascii_case(b"builtin") {
        true => Ok(()),
        false => Err(Fault::new("only builtin is available").at(arg)),
    }
}
