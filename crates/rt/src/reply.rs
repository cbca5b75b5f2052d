//! Receives an answer from another process on a local socket.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::Interest;

use crate::socket::Socket;

/// Bytes received at once.
const CHUNK_BYTES: usize = 4096;

/// Receives from a non-blocking socket until its end.
///
/// # Errors
/// `TimedOut` if the end does not come in time; `FileTooLarge` beyond `bytes_max`; those of
/// epoll_ctl(2) and read(2).
pub async fn receive(fd: OwnedFd, bytes_max: usize, wait: Duration) -> io::Result<Vec<u8>> {
    let socket = Socket::register(fd, Interest::READABLE)?;
    let all = async {
        let mut bytes = Vec::new();
        loop {
            let mut guard = std::future::poll_fn(|cx| socket.poll_read_ready(cx)).await?;
            bytes.reserve(CHUNK_BYTES);
            match rustix::io::read(socket.fd(), rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(0) => return Ok(bytes),
                Ok(_) if bytes.len() > bytes_max => return Err(io::ErrorKind::FileTooLarge.into()),
                Ok(_) => guard.retain_ready(),
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    };
    tokio::time::timeout(wait, all).await.map_err(|_| io::ErrorKind::TimedOut)?
}

/// Receives one message of at most [`CHUNK_BYTES`] from a non-blocking socket, with the descriptor
/// that came with it. An empty message is the end.
///
/// # Errors
/// `TimedOut` if nothing comes in time; those of epoll_ctl(2) and recvmsg(2).
pub async fn receive_descriptor(
    fd: OwnedFd,
    wait: Duration,
) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let socket = Socket::register(fd, Interest::READABLE)?;
    let received = async {
        loop {
            let mut guard = std::future::poll_fn(|cx| socket.poll_read_ready(cx)).await?;
            let mut bytes = vec![0; CHUNK_BYTES];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut rights = RecvAncillaryBuffer::new(&mut space);
            let parts = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(socket.fd(), parts, &mut rights, RecvFlags::CMSG_CLOEXEC) {
                Ok(got) => {
                    let mut descriptor = None;
                    for message in rights.drain() {
                        if let RecvAncillaryMessage::ScmRights(sent) = message {
                            descriptor = sent.last().or(descriptor);
                        }
                    }
                    bytes.truncate(got.bytes);
                    return Ok((bytes, descriptor));
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    };
    tokio::time::timeout(wait, received).await.map_err(|_| io::ErrorKind::TimedOut)?
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::Loop;

    #[test]
    fn an_answer_is_received_to_its_end_in_time() {
        Loop::run("reply", |handle| async move {
            let pair = || {
                let (own, other) = UnixStream::pair().unwrap();
                own.set_nonblocking(true).unwrap();
                (OwnedFd::from(own), other)
            };
            let long = Duration::from_secs(60);
            let (own, mut other) = pair();
            let later = handle.spawn_local({
                let handle = handle.clone();
                async move {
                    for part in [&b"one "[..], b"two"] {
                        other.write_all(part).unwrap();
                        handle.sleep(Duration::from_millis(5)).await;
                    }
                }
            });
            assert_eq!(receive(own, 100, long).await.unwrap(), b"one two");
            drop(later);
            let (own, mut other) = pair();
            other.write_all(b"too long").unwrap();
            let error = receive(own, 7, long).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            let (own, _other) = pair();
            let error = receive(own, 7, Duration::from_millis(5)).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        })
        .unwrap();
    }
}
