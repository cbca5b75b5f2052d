//! Asks a container whether it is there. Source: `ajp_handle_cping_cpong`.

use std::io;
use std::time::Duration;

use rt::Stream;
use wire::ajp::{AjpEvent, CPING, PACKET_BYTES, PacketDecoder};

pub(crate) use super::conversation::Broken;

/// Asks a container for a sign of life.
///
/// # Errors
/// It gives none within `timeout`.
pub(crate) async fn ping(stream: &mut Stream, timeout: Duration) -> Result<(), Broken> {
    let written = stream.write_all(&CPING, timeout).await;
    written.map_err(|error| Broken::Io(error, None))?;
    let mut decoder = PacketDecoder::new(PACKET_BYTES);
    decoder.expect_pong();
    let end = stream.handle().deadline(timeout);
    let mut received = Vec::new();
    loop {
        match decoder.decode(&received) {
            Ok(AjpEvent::NeedMore) => {}
            // More than the answer makes the connection useless.
            Ok(AjpEvent::Pong { consumed }) if consumed == received.len() => return Ok(()),
            Ok(_) => return Err(Broken::Io(io::ErrorKind::InvalidData.into(), None)),
            Err(fault) => return Err(Broken::Fault(fault)),
        }
        received.reserve(PACKET_BYTES);
        let cut = |error| Broken::Io(error, Some(decoder.end_of_input(&[])));
        match stream.read(&mut received, end).await {
            Ok(0) => return Err(cut(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(cut(error)),
        }
    }
}
