//! Passing a connection to another process.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::{Layer, Stream};

impl Stream {
    /// Sends this connection's descriptor over `to`, a UNIX socket, with a zero byte. The other
    /// process has the connection then, and dropping this one does not end it.
    ///
    /// Errors: `Unsupported` with TLS, and those of sendmsg(2).
    pub fn pass_over(&self, to: &Stream) -> io::Result<()> {
        if matches!(self.layer, Layer::Tls(_)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let own = [self.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&own)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(to, &[IoSlice::new(&[0])], &mut control, flags)?;
        Ok(())
    }
}
