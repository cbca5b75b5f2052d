//! Whether a host speaks TLS, which versions and suites, and which names it answers to.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::ciphers::{self, Target};
use tls::protocols;

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
    .state(State::Partial("not in sections; suites without forward secrecy are not available")),
    host(
        "SSLHonorCipherOrder",
        Takes::Flag(|cx, on| put(cx, |server| &mut server.honor_cipher_order, on)),
        "on|off",
        "off",
        "Makes the order of the server's suites count, not that of the client's.",
    ),
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
    if !cx.outside_sections() {
        let message = "SSLCipherSuite can't be honoured here: the suite is chosen when the \
            connection begins";
        return Err(Fault::new(message).help("say it in the virtual host"));
    }
    let (target, spec) = match args {
        [spec] => (Target::Tls12, spec),
        [target, spec] => {
            (Target::parse(text(target)?).map_err(|finding| Fault::new(finding.message))?, spec)
        }
        _ => return Ok(()),
    };
    let spec = text(spec)?.to_owned();
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
