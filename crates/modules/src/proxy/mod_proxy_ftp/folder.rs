//! The way to a folder, and names on it. Source: part III of `proxy_ftp_handler`,
//! `ftp_escape_globbingchars`, `ftp_get_PWD`.

use server::request::Request;
use wire::ftp::{decode, escape_wildcards};

use super::ProxyFtp;
use super::control::Control;
use super::data::refused;
use crate::aaa::line;
use crate::proxy::mod_proxy::fault;

const NESTED: &str = "Use of /%2f is only allowed at the base directory";

/// Enters the folders of a path one by one; returns what follows the last slash.
pub(super) async fn enter<'p>(
    request: &mut Request,
    control: &mut Control,
    mut path: &'p [u8],
) -> Result<&'p [u8], u16> {
    if path.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"%2f")) {
        let slashes = path.iter().skip(3).take_while(|byte| **byte == b'/').count();
        path = path.get(3 + slashes..).unwrap_or_default();
        control.ask(request, "CWD", b"/").await?;
    }
    while let Some(slash) = path.iter().position(|byte| *byte == b'/') {
        let (folder, rest) = path.split_at(slash);
        let folder = plain(request, folder)?;
        change(request, control, &folder).await?;
        path = rest.get(1..).unwrap_or_default();
    }
    Ok(path)
}

/// A part of a path, decoded; there must be no slash in it.
pub(super) fn plain(request: &mut Request, part: &[u8]) -> Result<Vec<u8>, u16> {
    let part = decode(part);
    match part.contains(&b'/') {
        true => Err(fault::answer(request, 400, NESTED)),
        false => Ok(part),
    }
}

pub(super) async fn change(
    request: &mut Request,
    control: &mut Control,
    folder: &[u8],
) -> Result<(), u16> {
    let folder = argument(request, folder);
    let reply = control.ask(request, "CWD", &folder).await?;
    match reply.code {
        250 => Ok(()),
        550 => Err(fault::answer(request, 404, &reply.text)),
        _ => Err(refused(request, &reply.text)),
    }
}

/// The server's name of the folder, if it has one.
pub(super) async fn current(request: &mut Request, control: &mut Control) -> Option<Vec<u8>> {
    const FAILED: &str = "Failed to read PWD on ftp server";
    let reply = match control.ask(request, "PWD", b"").await {
        Ok(reply) => reply,
        Err(_) => {
            let _ = fault::answer(request, 502, FAILED);
            return None;
        }
    };
    match reply.code {
        257 => Some(line::first(&reply.text).map(|(name, _)| name).unwrap_or_default()),
        550 => {
            let _ = fault::answer(request, 502, FAILED);
            None
        }
        _ => None,
    }
}

/// A name as it is sent: `ProxyFtpEscapeWildcards`.
pub(super) fn argument(request: &Request, name: &[u8]) -> Vec<u8> {
    let directory = request.dir_of::<ProxyFtp>();
    match directory.is_none_or(|directory| directory.escapes_wildcards.or(true)) {
        true => escape_wildcards(name),
        false => name.to_vec(),
    }
}
