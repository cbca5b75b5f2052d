//! Sending files: sendfile(2) in slices, so that a fast client does not monopolise the loop, and
//! never from a disk that would block it.

use std::fs::File;
use std::io;
use std::time::Duration;

use super::{Layer, Stream, WRITE_TURN_BYTES};
use crate::file;

impl Stream {
    /// Sends `head` and then `len` bytes of `file` from `offset`, with the head in one packet with
    /// the first bytes of the file. `timeout` limits each wait without progress.
    ///
    /// Errors: `UnexpectedEof` if the file has become shorter than `offset + len`: the response is
    /// incomplete, so the connection can only be closed. `BrokenPipe`, `ConnectionReset`;
    /// `TimedOut`, also if a file that is not cached can't be read in time.
    pub async fn send_file(
        &mut self,
        head: &[u8],
        file: &File,
        offset: u64,
        len: u64,
        timeout: Duration,
    ) -> io::Result<()> {
        if len == 0 {
            return self.write_all(head, timeout).await;
        }
        match self.layer {
            Layer::Plain => {
                self.write_more(head, timeout).await?;
                self.send_file_plain(file, offset, len, timeout).await
            }
            Layer::Tls(_) => self.send_file_encrypted(head, file, offset, len, timeout).await,
        }
    }

    async fn send_file_plain(
        &mut self,
        file: &File,
        mut offset: u64,
        mut len: u64,
        timeout: Duration,
    ) -> io::Result<()> {
        while len > 0 {
            let slice = usize::try_from(len).unwrap_or(usize::MAX).min(WRITE_TURN_BYTES);
            // Read-ahead proceeds in order, so the last byte of the slice stands for all of it.
            if !file::is_resident(file, offset + slice as u64 - 1)? {
                file::warm(&self.state.blocking.clone(), file, offset, slice).await?;
            }
            let end = offset + slice as u64;
            while offset < end {
                let rest = usize::try_from(end - offset).unwrap_or(slice);
                match self.sendfile_raw(file, &mut offset, rest) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => {
                        len -= count as u64;
                        if self.state.in_place && count < rest {
                            // The call has blocked for as long as it may: the other tasks run now.
                            tokio::task::yield_now().await;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.writable(timeout).await?;
                    }
                    // In place the call blocks for the client, and a signal interrupts it.
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                        tokio::task::yield_now().await;
                    }
                    Err(error) => return Err(error),
                }
            }
            if len > 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    fn sendfile_raw(&mut self, file: &File, offset: &mut u64, len: usize) -> io::Result<usize> {
        let from = *offset;
        let count = self.try_output(|fd| {
            let mut position = from;
            Ok(rustix::fs::sendfile(fd, file, Some(&mut position), len)?)
        })?;
        *offset += count as u64;
        self.sent += count as u64;
        Ok(count)
    }
}
