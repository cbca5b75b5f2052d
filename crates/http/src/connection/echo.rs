//! A connection on which the client gets back what it sends (mod_echo).
//!
//! Source: `process_echo_connection` (modules/echo/mod_echo.c).

use rt::Stream;
use server::log::Level;

use super::Connection;

/// Bytes of a line that are sent back before its end has come (`HUGE_STRING_LEN`).
const LINE_BYTES: usize = 8192;

/// Sends back what arrives, line by line, until the client ends the connection.
pub(super) async fn run(mut connection: Connection) {
    let engine = connection.engine.clone();
    let _active = engine.connections.active();
    let Some(mut stream) = connection.stream.take() else { return };
    let done = echo(&mut stream, &connection).await;
    if let Err(failure) = done {
        let client = connection.info.peer.ip();
        let (number, what) = match failure {
            Failure::Reading => (1611, "reading from"),
            Failure::Writing => (1613, "writing to"),
        };
        let message = format_args!("ProtocolEcho: Failure {what} {client}");
        engine.server.log_connection(&connection.info, FILE, Level::Info, number, message);
        return;
    }
    connection.stream = Some(stream);
    connection.close().await;
}

/// The module that turns it on.
const FILE: &str = "mod_echo.c";

/// What the connection has failed at.
enum Failure {
    Reading,
    Writing,
}

async fn echo(stream: &mut Stream, connection: &Connection) -> Result<(), Failure> {
    let core = &connection.info.base_host.core;
    let mut timeout = core.timeout();
    let mut input = Vec::with_capacity(LINE_BYTES);
    loop {
        let deadline = connection.engine.handle.deadline(timeout);
        input.reserve(LINE_BYTES);
        let count = stream.read(&mut input, deadline).await.map_err(|_| Failure::Reading)?;
        let lines = match input.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if count == 0 || input.len() >= LINE_BYTES => input.len(),
            None => 0,
        };
        if lines > 0 {
            let (lines, rest) = input.split_at(lines);
            stream.write_all(lines, timeout).await.map_err(|_| Failure::Writing)?;
            input = rest.to_vec();
            timeout = core.keep_alive_timeout();
        }
        if count == 0 {
            return Ok(());
        }
    }
}
