//! Client certificates: which clients must send one, and which issuers are trusted.

use conf::Arg;
use server::directive::{Fault, Row, Set, State, Takes};
use tls::revocation::Check;
use tls::verify::Mode;

use super::{Here, anywhere, fault, file, folder, host, put, text, words};
use crate::ssl::mod_ssl::Ssl;
use crate::ssl::mod_ssl::make::SECTION_NO_CA;

pub(super) const ROWS: &[Row<Ssl>] = &[
    anywhere(
        "SSLVerifyClient",
        Takes::One(verify),
        "level",
        "none",
        "Sets whether clients are asked for a certificate: none, optional, require, \
         optional_no_ca.",
    )
    .state(State::Partial(
        "In a section it applies to the host's handshakes. Not available in .htaccess. No \
         optional_no_ca in sections",
    )),
    anywhere(
        "SSLVerifyDepth",
        Takes::One(depth),
        "number",
        "1",
        "Limits the number of issuers above a client's certificate.",
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
        "Sets the file of CA certificates that client certificates are verified with.",
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
        "Sets the folder of CA certificates that client certificates are verified with, under \
         hashed names.",
    ),
    host(
        "SSLCADNRequestFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.requested_file, path)
        }),
        "file-path",
        "",
        "Sets the file of CA certificates whose names are sent to clients, if they are not the \
         trusted ones.",
    ),
    host(
        "SSLCADNRequestPath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |server| &mut server.requested_folder, path)
        }),
        "directory-path",
        "",
        "Sets the folder of CA certificates whose names are sent to clients.",
    ),
    host(
        "SSLCARevocationFile",
        Takes::One(|cx, arg| {
            let path = file(cx, arg)?;
            put(cx, |server| &mut server.revocation_file, path)
        }),
        "file-path",
        "",
        "Sets the file of revocation lists.",
    ),
    host(
        "SSLCARevocationPath",
        Takes::One(|cx, arg| {
            let path = folder(cx, arg)?;
            put(cx, |server| &mut server.revocation_folder, path)
        }),
        "directory-path",
        "",
        "Sets the folder of revocation lists, under hashed names.",
    ),
    host(
        "SSLCARevocationCheck",
        Takes::Some { least: 1, most: usize::MAX, set: revocation },
        "chain|leaf|none [flags ...]",
        "none",
        "Sets which certificates are looked up in the revocation lists: the client's or the whole \
         chain.",
    ),
];

fn verify(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let mode = Mode::parse(text(arg)?).map_err(|finding| fault(cx, finding).at(arg))?;
    if cx.outside_sections() {
        return put(cx, |server| &mut server.verify, mode);
    }
    // A certificate can't be requested later: the handshake requests it for all sections, which
    // check it for each request.
    if mode == Mode::OptionalNoCa {
        let span = cx.span();
        cx.server().places.insert(SECTION_NO_CA, span);
    }
    cx.server().section_modes.push(mode);
    cx.dir().verify.set(mode);
    Ok(())
}

fn depth(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let depth = super::depth(cx, arg)?;
    if cx.outside_sections() {
        return put(cx, |server| &mut server.verify_depth, depth);
    }
    cx.server().section_depths.push(depth);
    cx.dir().verify_depth.set(depth);
    Ok(())
}

/// A connection can't be renegotiated, so only the host can set how clients are verified.
fn of_the_host(cx: &Here<'_, '_>) -> Set {
    if cx.outside_sections() {
        return Ok(());
    }
    let name = cx.target.directive;
    let message = format!(
        "{name} is not supported here: clients are verified only at the beginning of a connection"
    );
    Err(Fault::new(message).help("set it in the virtual host"))
}

fn revocation(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let found = Check::parse(words(args)?).map_err(|finding| fault(cx, finding))?;
    put(cx, |server| &mut server.revocation_check, found)
}
