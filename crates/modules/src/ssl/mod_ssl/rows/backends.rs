//! Connections to backends (`https://` in mod_proxy): versions, suites, whom to trust, and the
//! certificates to present.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, State, Takes};
use server::merge::Setting;
use tls::ciphers::{self, Target};
use tls::revocation::Check;
use tls::verify::Mode;
use tls::{Finding, protocols};

use super::{Here, depth, fault, file, folder, host, note, tell, text, words};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::config::Backends;

pub(super) const ROWS: &[Row<Ssl>] = &[
    backend(
        "SSLProxyEngine",
        Takes::Flag(|cx, on| put(cx, |backends| &mut backends.engine, on)),
        "on|off",
        "off",
        "Allows TLS for connections to backends.",
    ),
    backend(
        "SSLProxyProtocol",
        Takes::Some { least: 1, most: usize::MAX, set: protocol },
        "[+|-]protocol ...",
        "all -SSLv3",
        "Sets the protocol versions for backends.",
    )
    .state(State::Partial("TLS versions below 1.2 are not available")),
    backend(
        "SSLProxyCipherSuite",
        Takes::Some { least: 1, most: 2, set: cipher_suite },
        "[protocol] cipher-spec",
        "ALL:!ADH:RC4+RSA:+HIGH:+MEDIUM:+LOW:+EXP",
        "Sets the cipher suites for backends, in OpenSSL's syntax.",
    )
    .state(State::Partial("suites without forward secrecy are not available")),
    backend(
        "SSLProxyVerify",
        Takes::One(verify),
        "level",
        "none",
        "Sets whether the certificates of backends are verified: none, optional, require, \
         optional_no_ca.",
    ),
    backend(
        "SSLProxyVerifyDepth",
        Takes::One(|cx, arg| {
            let depth = depth(cx, arg)?;
            put(cx, |backends| &mut backends.depth, depth)
        }),
        "number",
        "1",
        "Limits the number of issuers above a backend's certificate.",
    ),
    backend(
        "SSLProxyCACertificateFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |backends| &mut backends.authority_file, path)
        }),
        "file-path",
        "",
        "Sets the file of CA certificates that those of backends are verified with.",
    ),
    backend(
        "SSLProxyCACertificatePath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |backends| &mut backends.authority_folder, path)
        }),
        "directory-path",
        "",
        "Sets the folder of CA certificates that those of backends are verified with.",
    ),
    backend(
        "SSLProxyCARevocationFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |backends| &mut backends.revocation_file, path)
        }),
        "file-path",
        "",
        "Sets the file of revocation lists for backends.",
    ),
    backend(
        "SSLProxyCARevocationPath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |backends| &mut backends.revocation_folder, path)
        }),
        "directory-path",
        "",
        "Sets the folder of revocation lists for backends.",
    ),
    backend(
        "SSLProxyCARevocationCheck",
        Takes::Some { least: 1, most: usize::MAX, set: revocation },
        "chain|leaf|none [flags ...]",
        "none",
        "Sets which certificates of backends are looked up in the revocation lists.",
    ),
    backend(
        "SSLProxyCheckPeerCN",
        Takes::Flag(|cx, on| put(cx, |backends| &mut backends.checks_common_name, on)),
        "on|off",
        "on",
        "Compares the requested name with a certificate's common name, if SSLProxyCheckPeerName \
         is off.",
    ),
    backend(
        "SSLProxyCheckPeerExpire",
        Takes::Flag(|cx, on| put(cx, |backends| &mut backends.checks_time, on)),
        "on|off",
        "on",
        "Refuses backends whose certificate is not valid now.",
    ),
    backend(
        "SSLProxyCheckPeerName",
        Takes::Flag(|cx, on| put(cx, |backends| &mut backends.checks_name, on)),
        "on|off",
        "on",
        "Compares the requested name with the names of a backend's certificate.",
    ),
    backend(
        "SSLProxyMachineCertificateFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |backends| &mut backends.certificate_file, path)
        }),
        "filename",
        "",
        "Sets the file of certificates, with their keys, that backends may ask for.",
    ),
    backend(
        "SSLProxyMachineCertificatePath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |backends| &mut backends.certificate_folder, path)
        }),
        "directory",
        "",
        "Sets the folder of certificates, with their keys, that backends may ask for.",
    ),
    backend(
        "SSLProxyMachineCertificateChainFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |backends| &mut backends.chain_file, path)
        }),
        "filename",
        "",
        "Sets the issuers of the certificates that backends may ask for.",
    ),
];

/// A row for the context "server config, virtual host, proxy section".
const fn backend(
    name: &'static str,
    takes: Takes<Ssl>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Ssl> {
    host(name, takes, syntax, default, doc).standing(Places::HOST.or(Places::PROXY), Override::NONE)
}

fn put<T>(cx: &mut Here<'_, '_>, field: fn(&mut Backends) -> &mut Setting<T>, value: T) -> Set {
    note(cx);
    field(&mut cx.dir().backends).set(value);
    Ok(())
}

/// The parsers know the directives for clients.
fn renamed(cx: &Here<'_, '_>, finding: Finding) -> Finding {
    Finding { directive: cx.target.directive, ..finding }
}

fn protocol(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (chosen, findings) = protocols::parse(words(args)?).map_err(|finding| {
        match finding.message.starts_with("SSLv3") {
            true => Fault::new(finding.message),
            false => fault(renamed(cx, finding)),
        }
    })?;
    let findings = findings.into_iter().map(|finding| renamed(cx, finding)).collect();
    tell(cx, findings)?;
    put(cx, |backends| &mut backends.protocols, chosen)
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
    let choice = match target {
        Target::Tls12 => Ok(ciphers::tls12(&spec)),
        Target::Tls13 => ciphers::tls13(&spec),
    };
    let choice = choice.map_err(|finding| fault(renamed(cx, finding)))?;
    let findings = choice.findings.into_iter().map(|finding| renamed(cx, finding)).collect();
    tell(cx, findings)?;
    match target {
        Target::Tls12 => put(cx, |backends| &mut backends.cipher_suite, spec),
        Target::Tls13 => put(cx, |backends| &mut backends.cipher_suite_tls13, spec),
    }
}

fn verify(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let mode = Mode::parse(text(arg)?).map_err(|finding| fault(renamed(cx, finding)).at(arg))?;
    put(cx, |backends| &mut backends.verify, mode)
}

fn revocation(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let found = Check::parse(words(args)?).map_err(|finding| fault(renamed(cx, finding)))?;
    put(cx, |backends| &mut backends.revocation_check, found)
}
