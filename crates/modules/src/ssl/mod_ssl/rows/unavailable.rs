//! What there is not: TLS to backends, for now; and what of OpenSSL's has no place here, for good.

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
        "Will name the authorities that backends are certified by.",
    ),
    later(
        "SSLProxyCACertificatePath",
        ONE,
        "directory-path",
        "",
        "Will name a folder with the authorities that backends are certified by.",
    ),
    later(
        "SSLProxyCARevocationCheck",
        MANY,
        "chain|leaf|none",
        "none",
        "Will tell which certificates of backends are looked up in revocation lists.",
    ),
    later(
        "SSLProxyCARevocationFile",
        ONE,
        "file-path",
        "",
        "Will name the revocation lists for backends.",
    ),
    later(
        "SSLProxyCARevocationPath",
        ONE,
        "directory-path",
        "",
        "Will name a folder with the revocation lists for backends.",
    ),
    later(
        "SSLProxyCheckPeerCN",
        FLAG,
        "on|off",
        "on",
        "Will compare a backend's common name with the name asked for.",
    ),
    later(
        "SSLProxyCheckPeerExpire",
        FLAG,
        "on|off",
        "on",
        "Will refuse backends whose certificates have expired.",
    ),
    later(
        "SSLProxyCheckPeerName",
        FLAG,
        "on|off",
        "on",
        "Will compare a backend's names with the name asked for.",
    ),
    later(
        "SSLProxyCipherSuite",
        ONE_OR_TWO,
        "[protocol] cipher-spec",
        "ALL:!ADH:RC4+RSA:+HIGH:+MEDIUM:+LOW:+EXP",
        "Will list the cipher suites for connections to backends.",
    ),
    later("SSLProxyEngine", FLAG, "on|off", "off", "Will turn TLS on for connections to backends."),
    later(
        "SSLProxyMachineCertificateChainFile",
        ONE,
        "filename",
        "",
        "Will name the issuers of our own certificates for backends.",
    ),
    later(
        "SSLProxyMachineCertificateFile",
        ONE,
        "filename",
        "",
        "Will name our own certificates and keys for backends.",
    ),
    later(
        "SSLProxyMachineCertificatePath",
        ONE,
        "directory",
        "",
        "Will name a folder with our own certificates and keys for backends.",
    ),
    later(
        "SSLProxyProtocol",
        MANY,
        "[+|-]protocol ...",
        "all -SSLv3",
        "Will list the protocol versions for connections to backends.",
    ),
    later(
        "SSLProxyVerify",
        ONE,
        "level",
        "none",
        "Will tell whether backends have to show a certificate.",
    ),
    later(
        "SSLProxyVerifyDepth",
        ONE,
        "number",
        "1",
        "Will bound how many authorities may stand above a backend's certificate.",
    ),
    host(
        "SSLCompression",
        Takes::Flag(unless_off),
        "on|off",
        "off",
        "Compressed what is encrypted.",
    )
    .state(State::Refused("compression inside TLS gives secrets away (CRIME); `off` is taken")),
    host(
        "SSLInsecureRenegotiation",
        Takes::Flag(unless_off),
        "on|off",
        "off",
        "Allowed renegotiation with clients that are open to an attack.",
    )
    .state(State::Refused("there is no renegotiation; `off` is taken")),
    global("SSLFIPS", Takes::Flag(unless_off), "on|off", "off", "Turned OpenSSL's FIPS mode on.")
        .state(State::Refused("the library is not the validated build; `off` is taken")),
    global(
        "SSLCryptoDevice",
        Takes::One(unless_builtin),
        "engine",
        "builtin",
        "Named an OpenSSL engine.",
    )
    .state(State::Refused("there are no OpenSSL engines; `builtin` is taken")),
    host(
        "SSLSRPVerifierFile",
        Takes::One(|_, _| Err(Fault::new("there is no SRP"))),
        "file-path",
        "",
        "Named the verifiers of TLS-SRP.",
    )
    .state(State::Refused("TLS-SRP is not available")),
    host(
        "SSLSRPUnknownUserSeed",
        Takes::One(|_, _| Err(Fault::new("there is no SRP"))),
        "secret-string",
        "",
        "Hid from clients of TLS-SRP which users there are.",
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
        false => Err(Fault::new("builtin is all there is").at(arg)),
    }
}
