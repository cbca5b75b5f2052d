//! Directives that are not available: TLS to backends, for now, and those specific to OpenSSL,
//! permanently.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, State, Takes};

use super::{Here, global, host};
use crate::ssl::mod_ssl::Ssl;

pub(super) const ROWS: &[Row<Ssl>] = &[
    later(
        "SSLProxyCACertificateFile",
        ONE,
        "file-path",
        "",
        "Will set the file of CA certificates for backends.",
    ),
    later(
        "SSLProxyCACertificatePath",
        ONE,
        "directory-path",
        "",
        "Will set the folder of CA certificates for backends.",
    ),
    later(
        "SSLProxyCARevocationCheck",
        MANY,
        "chain|leaf|none",
        "none",
        "Will set which certificates of backends are looked up in revocation lists.",
    ),
    later(
        "SSLProxyCARevocationFile",
        ONE,
        "file-path",
        "",
        "Will set the file of revocation lists for backends.",
    ),
    later(
        "SSLProxyCARevocationPath",
        ONE,
        "directory-path",
        "",
        "Will set the folder of revocation lists for backends.",
    ),
    later(
        "SSLProxyCheckPeerCN",
        FLAG,
        "on|off",
        "on",
        "Will compare a backend's common name with the requested name.",
    ),
    later(
        "SSLProxyCheckPeerExpire",
        FLAG,
        "on|off",
        "on",
        "Will refuse backends with expired certificates.",
    ),
    later(
        "SSLProxyCheckPeerName",
        FLAG,
        "on|off",
        "on",
        "Will compare a backend's names with the requested name.",
    ),
    later(
        "SSLProxyCipherSuite",
        ONE_OR_TWO,
        "[protocol] cipher-spec",
        "ALL:!ADH:RC4+RSA:+HIGH:+MEDIUM:+LOW:+EXP",
        "Will set the cipher suites for connections to backends.",
    ),
    later("SSLProxyEngine", FLAG, "on|off", "off", "Will turn TLS on for connections to backends."),
    later(
        "SSLProxyMachineCertificateChainFile",
        ONE,
        "filename",
        "",
        "Will set the issuers of the certificates that are sent to backends.",
    ),
    later(
        "SSLProxyMachineCertificateFile",
        ONE,
        "filename",
        "",
        "Will set the certificates and keys for backends.",
    ),
    later(
        "SSLProxyMachineCertificatePath",
        ONE,
        "directory",
        "",
        "Will set the folder of certificates and keys for backends.",
    ),
    later(
        "SSLProxyProtocol",
        MANY,
        "[+|-]protocol ...",
        "all -SSLv3",
        "Will set the protocol versions for connections to backends.",
    ),
    later(
        "SSLProxyVerify",
        ONE,
        "level",
        "none",
        "Will set whether backends must send a certificate.",
    ),
    later(
        "SSLProxyVerifyDepth",
        ONE,
        "number",
        "1",
        "Will limit the number of issuers above a backend's certificate.",
    ),
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

const ONE: Takes<Ssl> = Takes::One(|_, _| Ok(()));
const ONE_OR_TWO: Takes<Ssl> = Takes::Some { least: 1, most: 2, set: |_, _| Ok(()) };
const MANY: Takes<Ssl> = Takes::Some { least: 1, most: usize::MAX, set: |_, _| Ok(()) };
const FLAG: Takes<Ssl> = Takes::Flag(|_, _| Ok(()));

const fn later(
    name: &'static str,
    takes: Takes<Ssl>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Ssl> {
    host(name, takes, syntax, default, doc)
        .standing(Places::NOT_HTACCESS, Override::NONE)
        .state(State::NotYet)
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
