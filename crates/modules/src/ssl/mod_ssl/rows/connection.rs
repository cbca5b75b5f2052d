//! Whether a host uses TLS, with which versions and suites, and which names it accepts.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::ciphers::{self, Target};
use tls::groups;

use super::{
    Here, anywhere, cipher_spec, fault, global, host, protocols, put, tell, tell_suites, text,
};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::config::Engine;
use crate::ssl::mod_ssl::policy::SniPolicy;

pub(super) const ROWS: &[Row<Ssl>] = &[
    host(
        "SSLEngine",
        Takes::One(engine),
        "on|off",
        "off",
        "Turns TLS on for a host, as does `Listen … https`. `optional` (RFC 2817) means off, with \
         a notice in the error log, as in current Apache.",
    ),
    host(
        "SSLProtocol",
        Takes::Some { least: 1, most: usize::MAX, set: protocol },
        "[+|-]protocol ...",
        "all -SSLv3",
        "Sets the protocol versions.",
    )
    .state(State::Partial("TLS versions below 1.2 are not available")),
    anywhere(
        "SSLCipherSuite",
        Takes::Some { least: 1, most: 2, set: cipher_suite },
        "[protocol] cipher-spec",
        "DEFAULT",
        "Sets the cipher suites for TLS 1.2 or, after `TLSv1.3`, for TLS 1.3, in OpenSSL's syntax.",
    )
    .state(State::Partial(
        "suites without forward secrecy are not available; a section refuses connections with \
         suites other than its own",
    )),
    host(
        "SSLHonorCipherOrder",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.honor_cipher_order, on)),
        "on|off",
        "off",
        "Prefers the server's order of suites to the client's.",
    ),
    host(
        "SSLOpenSSLConfCmd",
        Takes::Two(openssl_command),
        "command-name command-value",
        "",
        "Sets the key exchange groups in OpenSSL's syntax: `Groups` or `Curves` with a list, \
         `ECDHParameters` with one group.",
    )
    .state(State::Partial("other commands are refused, since they configure OpenSSL")),
    host(
        "SSLStrictSNIVHostCheck",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.strict_sni, on)),
        "on|off",
        "off",
        "Refuses clients whose handshake names no host.",
    ),
    global(
        "SSLVHostSNIPolicy",
        Takes::One(sni_policy),
        "strict|secure|authonly|insecure",
        "secure",
        "Sets which hosts requests on a connection may name, besides the host of its handshake.",
    ),
    global(
        "SSLRandomSeed",
        Takes::Some { least: 2, most: 3, set: random_seed },
        "context source [bytes]",
        "",
        "Sets a source of randomness for OpenSSL.",
    )
    .state(State::Accepted("the system's source is used")),
];

fn engine(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let is = |word: &[u8]| arg.text.eq_ignore_ascii_case(word);
    let engine = match () {
        () if is(b"on") => Engine::On,
        () if is(b"off") => Engine::Off,
        () if is(b"optional") => Engine::Optional,
        () => return Err(Fault::new("Argument must be On or Off").at(arg)),
    };
    put(cx, |server| &mut server.engine, engine)
}

fn protocol(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let chosen = protocols(cx, args)?;
    put(cx, |server| &mut server.protocols, chosen)
}

fn cipher_suite(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (target, spec) = cipher_spec(args)?;
    if !cx.outside_sections() {
        return section_suites(cx, target, &spec);
    }
    tell_suites(cx, target, &spec)?;
    match target {
        Target::Tls12 => put(cx, |server| &mut server.cipher_suite, spec),
        Target::Tls13 => put(cx, |server| &mut server.cipher_suite_tls13, spec),
    }
}

/// The suite of a connection can't be changed: a section accepts connections with one of its
/// suites.
fn section_suites(cx: &mut Here<'_, '_>, target: Target, spec: &str) -> Set {
    if target == Target::Tls13 {
        return Err(Fault::new("TLSv1.3 ciphers cannot be set inside a directory context"));
    }
    let choice = ciphers::tls12(spec);
    tell(cx, choice.findings)?;
    if choice.suites.is_empty() {
        return Err(fault(cx, ciphers::nothing_left(spec)));
    }
    let numbers = choice.suites.iter().map(|suite| u16::from(suite.suite())).collect();
    cx.dir().cipher_suites.set(numbers);
    Ok(())
}

fn openssl_command(cx: &mut Here<'_, '_>, command: &Arg, value: &Arg) -> Set {
    let name = text(command)?;
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if ["Groups", "Curves", "ECDHParameters"].into_iter().any(is) {
        let (groups, findings) =
            groups::parse(text(value)?).map_err(|finding| fault(cx, finding).at(value))?;
        tell(cx, findings)?;
        cx.server().openssl_commands.push((command.text.to_vec(), value.text.to_vec()));
        return put(cx, |server| &mut server.groups, groups);
    }
    Err(match REFUSED.iter().find(|(known, _)| is(known)) {
        Some((known, help)) => {
            let why = format!("SSLOpenSSLConfCmd {known} is not supported: there is no OpenSSL");
            Fault::new(why).at(command).help(*help)
        }
        None => Fault::new(format!("'{name}': invalid OpenSSL configuration command")).at(command),
    })
}

/// The other commands of `SSL_CONF_cmd`, and the equivalent without OpenSSL.
const REFUSED: [(&str, &str); 21] = [
    ("CipherString", "use SSLCipherSuite"),
    ("Ciphersuites", "use SSLCipherSuite TLSv1.3"),
    ("Protocol", "use SSLProtocol"),
    ("MinProtocol", "use SSLProtocol"),
    ("MaxProtocol", "use SSLProtocol"),
    ("Options", "use SSLSessionTickets, SSLHonorCipherOrder and SSLProtocol as far as possible"),
    ("DHParameters", "no suite that needs them is available: remove the line"),
    ("VerifyMode", "use SSLVerifyClient"),
    ("VerifyCAFile", "use SSLCACertificateFile"),
    ("VerifyCAPath", "use SSLCACertificatePath"),
    ("RequestCAFile", "use SSLCADNRequestFile"),
    ("ClientCAFile", "use SSLCADNRequestFile"),
    ("RequestCAPath", "use SSLCADNRequestPath"),
    ("ClientCAPath", "use SSLCADNRequestPath"),
    ("Certificate", "use SSLCertificateFile"),
    ("PrivateKey", "use SSLCertificateKeyFile"),
    ("SignatureAlgorithms", "rustls offers all that it supports: remove the line"),
    ("ClientSignatureAlgorithms", "rustls accepts all that it supports: remove the line"),
    ("NumTickets", "two tickets are sent, which is the default: remove the line"),
    ("RecordPadding", "records are not padded: remove the line"),
    ("AntiReplay", "no data is accepted before the handshake ends: remove the line"),
];

fn sni_policy(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let word = text(arg)?;
    let policy = SniPolicy::parse(word).ok_or_else(|| {
        Fault::new(format!("Invalid SSLVhostSNIPolicy argument '{word}'")).at(arg)
    })?;
    cx.server().sni_policy.0 = policy;
    Ok(())
}

fn random_seed(_: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let Some(context) = args.first() else { return Ok(()) };
    let word = text(context)?;
    if ["startup", "connect"].iter().any(|known| word.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(Fault::new(format!("SSLRandomSeed: invalid context: `{word}'")).at(context))
}
