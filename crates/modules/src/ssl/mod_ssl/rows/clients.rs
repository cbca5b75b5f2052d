//! Clients' certificates: who is asked for one, and who is trusted.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::revocation::Check;
use tls::verify::Mode;

use super::{Here, anywhere, fault, file, folder, host, number, put, text, words};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::make::SECTION_NO_CA;

pub(super) const ROWS: &[Row<Ssl>] = &[
    anywhere(
        "SSLVerifyClient",
        Takes::One(verify),
        "level",
        "none",
        "Tells whether clients are asked for a certificate: none, optional, require, \
         optional_no_ca.",
    )
    .state(State::Partial(
        "for a section the handshake asks; in an .htaccess it is too late to. Not optional_no_ca \
         in sections",
    )),
    anywhere(
        "SSLVerifyDepth",
        Takes::One(depth),
        "number",
        "1",
        "Bounds how many authorities may stand above a client's certificate.",
    ),
    anywhere(
        "SSLCACertificateFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            of_the_host(cx)?;
            put(cx, |server| &mut server.authority_file, path)
        }),
        "file-path",
        "",
        "Names the authorities that are trusted to certify clients, all in one file.",
    ),
    anywhere(
        "SSLCACertificatePath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            of_the_host(cx)?;
            put(cx, |server| &mut server.authority_folder, path)
        }),
        "directory-path",
        "",
        "Names a folder with the authorities that are trusted to certify clients, by hashed names.",
    ),
    host(
        "SSLCADNRequestFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.requested_file, path)
        }),
        "file-path",
        "",
        "Names the authorities whose names clients are told, where they are not the trusted ones.",
    ),
    host(
        "SSLCADNRequestPath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |server| &mut server.requested_folder, path)
        }),
        "directory-path",
        "",
        "Names a folder with the authorities whose names clients are told.",
    ),
    host(
        "SSLCARevocationFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.revocation_file, path)
        }),
        "file-path",
        "",
        "Names the revocation lists of the authorities, all in one file.",
    ),
    host(
        "SSLCARevocationPath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |server| &mut server.revocation_folder, path)
        }),
        "directory-path",
        "",
        "Names a folder with the revocation lists of the authorities, by hashed names.",
    ),
    host(
        "SSLCARevocationCheck",
        Takes::Some { least: 1, most: usize::MAX, set: revocation },
        "chain|leaf|none [flags ...]",
        "none",
        "Tells which certificates are looked up in the revocation lists: the client's or all.",
    ),
];

fn verify(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let mode = Mode::parse(text(arg)?).map_err(|finding| fault(finding).at(arg))?;
    if cx.outside_sections() {
        return put(cx, |server| &mut server.verify, mode);
    }
    // A connection can't be asked again: the handshake asks for what sections want, and they look
    // at what was shown then.
    if mode == Mode::OptionalNoCa {
        let span = cx.span();
        cx.server().places.insert(SECTION_NO_CA, span);
    }
    cx.server().section_modes.push(mode);
    cx.dir().verify.set(mode);
    Ok(())
}

fn depth(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let depth = number::<usize>(cx, arg)?;
    if cx.outside_sections() {
        return put(cx, |server| &mut server.verify_depth, depth);
    }
    cx.server().section_depths.push(depth);
    cx.dir().verify_depth.set(depth);
    Ok(())
}

/// A connection can't begin anew, so what clients are judged by is the host's alone.
fn of_the_host(cx: &Here<'_, '_>) -> Set {
    if cx.outside_sections() {
        return Ok(());
    }
    let name = cx.target.directive;
    let message = format!(
        "{name} can't be honoured here: clients are judged only when the connection begins"
    );
    Err(Fault::new(message).help("say it in the virtual host"))
}

fn revocation(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let found = Check::parse(words(args)?).map_err(fault)?;
    put(cx, |server| &mut server.revocation_check, found)
}
