//! The server's certificates and keys.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::passphrase::Dialog;

use super::{Here, file, global, host, note, put, text};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::config::Server;

pub(super) const ROWS: &[Row<Ssl>] = &[
    host(
        "SSLCertificateFile",
        Takes::One(|cx, arg| add(cx, arg, |server| &mut server.certificates)),
        "file-path|certid",
        "",
        "Sets a PEM certificate of the host, optionally followed by its chain and key; one line \
         per type of key.",
    )
    .state(State::Partial("certificates in PKCS#11 tokens are refused")),
    host(
        "SSLCertificateKeyFile",
        Takes::One(|cx, arg| add(cx, arg, |server| &mut server.keys)),
        "file-path|keyid",
        "",
        "Sets the private key of the certificate at the same position.",
    )
    .state(State::Partial("keys in PKCS#11 tokens are refused")),
    host(
        "SSLCertificateChainFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.chain_file, path)
        }),
        "file-path",
        "",
        "Sets the issuers' certificates that are sent after a certificate without a chain.",
    ),
    global(
        "SSLPassPhraseDialog",
        Takes::One(dialog),
        "builtin||path|exec:path",
        "builtin",
        "Sets the source of pass phrases for encrypted keys: the terminal or a program.",
    ),
];

type List = server::merge::Supplant<Vec<u8>>;

fn add(cx: &mut Here<'_, '_>, arg: &Arg, list: fn(&mut Server) -> &mut List) -> Set {
    let is_token = arg.text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"pkcs11:"));
    if is_token {
        let message = format!("{}: PKCS#11 tokens are not supported", cx.target.directive);
        return Err(Fault::new(message).at(arg));
    }
    let path = file(cx, arg)?;
    note(cx);
    list(cx.server()).push(path);
    Ok(())
}

fn dialog(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let command = match Dialog::parse(&arg.text).map_err(|why| Fault::new(why).at(arg))? {
        Dialog::Builtin => {
            cx.server().dialog.0 = Dialog::Builtin;
            return Ok(());
        }
        Dialog::Pipe(command) | Dialog::Exec(command) => command,
    };
    let command = bstr::BString::from(command);
    let (program, rest) = match command.iter().position(|byte| *byte == b' ') {
        Some(blank) => command.split_at(blank),
        None => (&command[..], &b""[..]),
    };
    let path = cx.build().path(program);
    if !path.exists() {
        let message = format!("SSLPassPhraseDialog: file '{}' does not exist", path.display());
        return Err(Fault::new(message).at(arg));
    }
    let command = [super::bytes(path), rest.to_vec()].concat();
    let is_exec = text(arg)?.starts_with("exec:");
    cx.server().dialog.0 = if is_exec { Dialog::Exec(command) } else { Dialog::Pipe(command) };
    Ok(())
}
