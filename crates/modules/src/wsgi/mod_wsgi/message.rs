//! The message to a worker that begins a request.

use server::log::Level;
use server::request::{FileKind, Request};
use wire::wsgi::write_head;

use super::target::Target;
use super::{Bound, Wsgi, environ};

/// Room for the heads of most requests.
pub(super) const HEAD_ROOM: usize = 2048;

/// What this loop knows of a script: time, number, and size of its file, with a space behind each.
/// Empty if that is not the file of the request.
fn identity(request: &Request, target: &Target) -> Vec<u8> {
    let resource = &request.resource;
    let mut text = Vec::new();
    if resource.file.kind == FileKind::Regular && resource.filename == target.script {
        text.reserve(64);
        for number in [resource.file.mtime_us, resource.file.inode, resource.file.size] {
            text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            text.push(b' ');
        }
    }
    text
}

/// The message to the worker, which may see the files of this server.
pub(super) fn request_head(
    bound: Bound<'_, Wsgi>,
    request: &Request,
    target: &Target,
    sees_files: bool,
) -> Result<Vec<u8>, u16> {
    let identity = if sees_files { identity(request, target) } else { Vec::new() };
    let dir = bound.dir;
    let mut flags = Vec::with_capacity(4);
    for (flag, is_on) in [
        (b'r', dir.reloading.or(true)),
        (b'b', !request.body_in.is_empty()),
        (b's', dir.sendfile.or(false)),
        (b'i', dir.ignore_activity.or(false)),
        (b'h', request.head.header_only),
    ] {
        if is_on {
            flags.push(flag);
        }
    }
    let received = request.time_us.to_string();
    let parts: [&[u8]; 8] = [
        b"r",
        &target.script,
        &target.callable,
        &flags,
        &identity,
        &target.handler_script,
        &request.resource.filename,
        received.as_bytes(),
    ];
    let mut head = Vec::with_capacity(HEAD_ROOM);
    write_head(&mut head, &parts, environ::given(&request.env)).map_err(|fault| {
        request.log::<Wsgi>(Level::Error, 0, format_args!("{fault}"));
        413u16
    })?;
    Ok(head)
}
