//! A channel from children to long-running programs that a companion has started: each message is
//! a connection. Programs take them from the queue that the kernel keeps, so that none waits behind
//! a busy program while another one is idle.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair, sockopt,
};

/// The content of each message: what counts is the descriptor.
const MESSAGE: &[u8] = b"c";

/// The sending end.
#[derive(Debug)]
pub struct Channel {
    fd: OwnedFd,
    /// What the kernel charges for each message in the queue.
    message_bytes: u32,
}

/// A connection whose other end is in the queue, or with a program.
#[derive(Debug)]
pub struct Sent {
    /// The own end; does not block.
    pub connection: OwnedFd,
    /// How many of the first bytes it has taken.
    pub taken: usize,
}

impl Channel {
    /// Creates a channel for `most` messages. Returns both ends: programs receive from the second
    /// one. Without root, the kernel may allow fewer.
    ///
    /// # Errors
    /// Those of socketpair(2).
    pub fn pair(most: usize) -> io::Result<(Channel, OwnedFd)> {
        let (fd, programs) = pair(SocketType::SEQPACKET)?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        // Messages are alike, so that the memory of all of them tells how many there are.
        send(&fd, MESSAGE, SendFlags::NOSIGNAL)?;
        let message_bytes = unread_bytes(fd.as_fd()).max(1);
        recv(&programs, &mut [0u8; 8][..], RecvFlags::DONTWAIT)?;
        let bytes = usize::try_from(message_bytes).unwrap_or(usize::MAX).saturating_mul(most);
        if sockopt::socket_send_buffer_size(&fd)? < bytes
            && sockopt::set_socket_send_buffer_size_force(&fd, bytes).is_err()
        {
            let _ = sockopt::set_socket_send_buffer_size(&fd, bytes);
        }
        Ok((Channel { fd, message_bytes }, programs))
    }

    /// The sending end that a companion has handed over, with its [`Channel::message_bytes`].
    pub fn from_fd(fd: OwnedFd, message_bytes: u32) -> Channel {
        Channel { fd, message_bytes: message_bytes.max(1) }
    }

    /// What the kernel charges for each message.
    pub fn message_bytes(&self) -> u32 {
        self.message_bytes
    }

    /// How many messages wait in the queue, from all processes.
    pub fn waiting(&self) -> usize {
        usize::try_from(unread_bytes(self.as_fd()) / self.message_bytes).unwrap_or(usize::MAX)
    }

    /// Puts a connection into the queue, with the first of these bytes in it.
    ///
    /// # Errors
    /// `WouldBlock` if the queue is full; `BrokenPipe` or `ConnectionReset` if no process has the
    /// other end of the channel any more; others if there are no descriptors.
    pub fn send(&self, first: &[u8]) -> io::Result<Sent> {
        let (connection, theirs) = pair(SocketType::STREAM)?;
        rustix::io::ioctl_fionbio(&connection, true)?;
        let taken = match send(&connection, first, SendFlags::NOSIGNAL) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let descriptors = [theirs.as_fd()];
        rights.push(SendAncillaryMessage::ScmRights(&descriptors));
        loop {
            let parts = [IoSlice::new(MESSAGE)];
            match sendmsg(&self.fd, &parts, &mut rights, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(Sent { connection, taken }),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a program has read what was sent on a connection: until then it is in the queue.
pub fn is_read(connection: BorrowedFd<'_>) -> bool {
    unread_bytes(connection) == 0
}

/// The memory of what was sent and not received yet; 0 if it is unknown.
#[expect(unsafe_code, reason = "ioctl(2)")]
fn unread_bytes(socket: BorrowedFd<'_>) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes an int.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done == 0 { u32::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Whether something waits in the queue whose receiving end this is.
pub fn is_waiting(programs: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(&programs, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&now)), Ok(1..))
}

fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_waits_until_a_program_reads_it() {
        let (channel, programs) = Channel::pair(10).unwrap();
        assert_eq!(channel.waiting(), 0);
        assert!(!is_waiting(programs.as_fd()));
        let sent = channel.send(b"first").unwrap();
        assert_eq!(sent.taken, 5);
        let other = channel.send(b"second").unwrap();
        assert_eq!(channel.waiting(), 2);
        assert!(is_waiting(programs.as_fd()) && !is_read(sent.connection.as_fd()));
        recv(&programs, &mut [0u8; 8][..], RecvFlags::DONTWAIT).unwrap();
        assert_eq!(channel.waiting(), 1);
        assert!(!is_read(other.connection.as_fd()));
        drop(programs);
        let error = channel.send(b"none").unwrap_err();
        let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
        assert!(gone.contains(&error.kind()), "{error:?}");
    }

    #[test]
    fn the_queue_is_bounded() {
        let (channel, _programs) = Channel::pair(1000).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match channel.send(b"x") {
                Ok(sent) => waiting.push(sent),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(waiting.len() >= 100, "{}", waiting.len());
        assert_eq!(channel.waiting(), waiting.len());
    }
}
