//! Connections to backends (`https://` in mod_proxy): versions, suites, whom to trust, and the
//! certificates to present.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Row, Set, State, Takes};
use server::merge::Setting;
use tls::ciphers::Target;
use tls::revocation::Check;
use tls::verify::Mode;

use super::{
    Here, cipher_spec, depth, fault, file, folder, host, note, protocols, tell_suites, text, words,
};
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

fn protocol(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let chosen = protocols(cx, args)?;
    put(cx, |backends| &mut backends.protocols, chosen)
}

fn cipher_suite(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (target, spec) = cipher_spec(args)?;
    tell_suites(cx, target, &spec)?;
    match target {
        Target::Tls12 => put(cx, |backends| &mut backends.cipher_suite, spec),
        Target::Tls13 => put(cx, |backends| &mut backends.cipher_suite_tls13, spec),
    }
}

fn verify(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let mode = Mode::parse(text(arg)?).map_err(|finding| fault(cx, finding).at(arg))?;
    put(cx, |backends| &mut backends.verify, mode)
}

fn revocation(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let found = Check::parse(words(args)?).map_err(|finding| fault(cx, finding))?;
    put(cx, |backends| &mut backends.revocation_check, found)
}
