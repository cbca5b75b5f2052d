//! Asks a container whether it is there. Source: `ajp_handle_cping_cpong`.

use std::io;
use std::time::Duration;

use rt::Stream;
use wire::ajp::{AjpEvent, CPING, PACKET_BYTES, PacketDecoder};

/// Whether the container answers `CPING` within `timeout`.
///
/// # Errors
/// What is wrong with the connection.
pub(crate) async fn ping(stream: &mut Stream, timeout: Duration) -> io::Result<bool> {
    stream.write_all(&CPING, timeout).await?;
    let mut decoder = PacketDecoder::new(PACKET_BYTES);
    decoder.expect_pong();
    let end = stream.handle().deadline(timeout);
    let mut received = Vec::new();
    loop {
        match decoder.decode(&received) {
            Ok(AjpEvent::Pong { consumed }) => return Ok(consumed == received.len()),
            Ok(AjpEvent::NeedMore) => {}
            _ => return Ok(false),
        }
        received.reserve(PACKET_BYTES);
        if stream.read(&mut received, end).await? == 0 {
            return Ok(false);
        }
    }
}
