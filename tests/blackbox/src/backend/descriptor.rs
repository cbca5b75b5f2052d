//! Descriptors that come over a UNIX socket.

use std::io::IoSliceMut;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use socket2::Socket;

/// The length of the message that carries a descriptor.
pub(super) const MESSAGE_BYTES: usize = 1;

/// As much as a message may have.
const ROOM_BYTES: usize = 64;

/// Waits for a message with one descriptor; `None` if the server closes instead, or sends another
/// number of them.
pub(super) fn receive(socket: &Socket) -> Option<(Vec<u8>, Socket)> {
    let mut message = [0; ROOM_BYTES];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut message)];
    let received = recvmsg(socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    let rights = control.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut descriptors: Vec<_> = rights.flatten().collect();
    let is_one = descriptors.len() == 1 && !received.flags.contains(ReturnFlags::CTRUNC);
    let client = Socket::from(descriptors.pop().filter(|_| is_one)?);
    client.set_nonblocking(false).ok()?;
    Some((message.get(..received.bytes)?.to_vec(), client))
}
