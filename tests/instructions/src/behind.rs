//! A server behind the proxy, on a thread of its own: it sends the same response each time.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::rig::{FILE_BYTES, Heads};

/// The end of a FastCGI request: an empty record of its input.
const REQUEST_END: [u8; 8] = [1, 5, 0, 1, 0, 0, 0, 0];

/// Starts the server; its port.
pub(crate) fn start(heads: Heads) -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    let (end, response) = match heads {
        Heads::Responder => (REQUEST_END.to_vec(), fastcgi()),
        _ => (b"\r\n\r\n".to_vec(), http()),
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // The proxy ends with the benchmark.
            let _ = serve(stream, &end, &response);
        }
    });
    Ok(port)
}

fn serve(mut stream: TcpStream, end: &[u8], response: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut received, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let count = stream.read(&mut buffer)?;
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if count == 0 {
            return Ok(());
        }
        if received.ends_with(end) {
            received.clear();
            stream.write_all(response)?;
        }
    }
}

fn http() -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: behind\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: \"behind\"\r\n\
         Content-Length: {FILE_BYTES}\r\n\r\n"
    );
    [head.as_bytes(), &[b'x'; FILE_BYTES]].concat()
}

/// A record of the output, its end, and that of the request.
fn fastcgi() -> Vec<u8> {
    let head = format!("Content-Type: text/html\r\nContent-Length: {FILE_BYTES}\r\n\r\n");
    let output = [head.as_bytes(), &[b'x'; FILE_BYTES]].concat();
    let [high, low] = (output.len() as u16).to_be_bytes();
    let record = |kind, high, low| [1, kind, 0, 1, high, low, 0, 0];
    [&record(6, high, low)[..], &output, &record(6, 0, 0), &record(3, 0, 8), &[0; 8]].concat()
}
