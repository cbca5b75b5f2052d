//! Whether a host speaks TLS, which versions and suites, and which names it answers to.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::ciphers::{self, Target};
use tls::{groups, protocols};

use super::{Here, anywhere, fault, global, host, put, tell, text, words};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::config::Engine;
use crate::ssl::mod_ssl::policy::SniPolicy;

pub(super) const ROWS: &[Row<Ssl>] = &[
    host(
        "SSLEngine",
        Takes::One(engine),
        "on|off",
        "off",
        "Turns TLS on for a host; `Listen … https` does so too. `optional` (RFC 2817) is off, with \
         a notice in the error log, as in Apache since it gave that up.",
    ),
    host(
        "SSLProtocol",
        Takes::Some { least: 1, most: usize::MAX, set: protocol },
        "[+|-]protocol ...",
        "all -SSLv3",
        "Lists the protocol versions that are spoken.",
    )
    .state(State::Partial("there is no TLS below 1.2")),
    anywhere(
        "SSLCipherSuite",
        Takes::Some { least: 1, most: 2, set: cipher_suite },
        "[protocol] cipher-spec",
        "DEFAULT",
        "Lists the cipher suites in OpenSSL's words, for TLS 1.2 or, behind `TLSv1.3`, for that.",
    )
    .state(State::Partial(
        "suites without forward secrecy are not available; a section refuses connections with \
         other suites than its own",
    )),
    host(
        "SSLHonorCipherOrder",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.honor_cipher_order, on)),
        "on|off",
        "off",
        "Makes the order of the server's suites count, not that of the client's.",
    ),
    host(
        "SSLOpenSSLConfCmd",
        Takes::Two(openssl_command),
        "command-name command-value",
        "",
        "Lists the groups of the key exchange in OpenSSL's words: `Groups` or `Curves` with a \
         list, `ECDHParameters` with one of them.",
    )
    .state(State::Partial("other commands are refused: there is no OpenSSL that could obey")),
    host(
        "SSLStrictSNIVHostCheck",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.strict_sni, on)),
        "on|off",
        "off",
        "Refuses clients that do not say in their handshake which host they want.",
    ),
    global(
        "SSLVHostSNIPolicy",
        Takes::One(sni_policy),
        "strict|secure|authonly|insecure",
        "secure",
        "Tells which hosts a connection may ask for, beside the one that its handshake was for.",
    ),
    global(
        "SSLRandomSeed",
        Takes::Some { least: 2, most: 3, set: random_seed },
        "context source [bytes]",
        "",
        "Named a source of randomness for OpenSSL.",
    )
    .state(State::Accepted("the system's own source is used")),
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
    let (chosen, findings) = protocols::parse(words(args)?).map_err(|finding| {
        match finding.message.starts_with("SSLv3") {
            true => Fault::new(finding.message),
            false => fault(finding),
        }
    })?;
    tell(cx, findings)?;
    put(cx, |server| &mut server.protocols, chosen)
}

fn cipher_suite(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (target, spec) = match args {
        [spec] => (Target::Tls12, spec),
        [target, spec] => {
            (Target::parse(text(target)?).map_err(|finding| Fault::new(finding.message))?, spec)
        }
        _ => return Ok(()),
    };
    let spec = text(spec)?.to_owned();
    if !cx.outside_sections() {
        return section_suites(cx, target, &spec);
    }
    match target {
        Target::Tls12 => {
            tell(cx, ciphers::tls12(&spec).findings)?;
            put(cx, |server| &mut server.cipher_suite, spec)
        }
        Target::Tls13 => {
            tell(cx, ciphers::tls13(&spec).map_err(fault)?.findings)?;
            put(cx, |server| &mut server.cipher_suite_tls13, spec)
        }
    }
}

/// The suite of a connection can't be changed: a section takes those that have one of its own.
fn section_suites(cx: &mut Here<'_, '_>, target: Target, spec: &str) -> Set {
    if target == Target::Tls13 {
        return Err(Fault::new("TLSv1.3 ciphers cannot be set inside a directory context"));
    }
    let choice = ciphers::tls12(spec);
    tell(cx, choice.findings)?;
    if choice.suites.is_empty() {
        return Err(fault(ciphers::nothing_left(spec)));
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
            groups::parse(text(value)?).map_err(|finding| fault(finding).at(value))?;
        tell(cx, findings)?;
        return put(cx, |server| &mut server.groups, groups);
    }
    Err(match REFUSED.iter().find(|(known, _)| is(known)) {
        Some((known, help)) => {
            let why = format!("SSLOpenSSLConfCmd {known} can't be obeyed: there is no OpenSSL");
            Fault::new(why).at(command).help(*help)
        }
        None => Fault::new(format!("'{name}': invalid OpenSSL configuration command")).at(command),
    })
}

/// The other commands of `SSL_CONF_cmd`, and what says the same without OpenSSL.
const REFUSED: [(&str, &str); 21] = [
    ("CipherString", "say it by SSLCipherSuite"),
    ("Ciphersuites", "say it by SSLCipherSuite TLSv1.3"),
    ("Protocol", "say it by SSLProtocol"),
    ("MinProtocol", "say it by SSLProtocol"),
    ("MaxProtocol", "say it by SSLProtocol"),
    ("Options", "SSLSessionTickets, SSLHonorCipherOrder and SSLProtocol say what can be said"),
    ("DHParameters", "no suite that needs them is available: take the line out"),
    ("VerifyMode", "say it by SSLVerifyClient"),
    ("VerifyCAFile", "say it by SSLCACertificateFile"),
    ("VerifyCAPath", "say it by SSLCACertificatePath"),
    ("RequestCAFile", "say it by SSLCADNRequestFile"),
    ("ClientCAFile", "say it by SSLCADNRequestFile"),
    ("RequestCAPath", "say it by SSLCADNRequestPath"),
    ("ClientCAPath", "say it by SSLCADNRequestPath"),
    ("Certificate", "say it by SSLCertificateFile"),
    ("PrivateKey", "say it by SSLCertificateKeyFile"),
    ("SignatureAlgorithms", "rustls offers all that it has: take the line out"),
    ("ClientSignatureAlgorithms", "rustls takes all that it has: take the line out"),
    ("NumTickets", "there are two, as by default: take the line out"),
    ("RecordPadding", "records are not padded: take the line out"),
    ("AntiReplay", "no data is taken before the handshake ends: take the line out"),
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
