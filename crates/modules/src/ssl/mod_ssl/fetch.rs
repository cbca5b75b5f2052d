//! Sends a request to an OCSP responder over plain HTTP, within limits of time and size. It blocks:
//! call it on the pool or on its own thread.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use tls::ocsp::{HttpRequest, MAX_RESPONSE_BYTES};

/// Most bytes of the response's head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Most addresses of a responder that are tried.
const MAX_ADDRESSES: usize = 4;

/// Sends the request and reads the response to its end; `None` on a timeout.
pub fn post(request: &HttpRequest, timeout: Duration) -> Option<Vec<u8>> {
    let end = Instant::now() + timeout;
    let left = || end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    let addresses = (request.host.as_str(), request.port).to_socket_addrs().ok()?;
    let mut addresses = addresses.take(MAX_ADDRESSES);
    let mut stream =
        addresses.find_map(|address| TcpStream::connect_timeout(&address, left()?).ok())?;
    stream.set_write_timeout(left()).ok()?;
    stream.write_all(&request.bytes).ok()?;
    let mut answer = Vec::new();
    let mut piece = [0; 8192];
    loop {
        stream.set_read_timeout(Some(left()?)).ok()?;
        match stream.read(&mut piece).ok()? {
            0 => return Some(answer),
            count => answer.extend_from_slice(piece.get(..count)?),
        }
        if answer.len() > MAX_RESPONSE_BYTES + MAX_HEAD_BYTES {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn request(port: u16) -> HttpRequest {
        HttpRequest { host: "127.0.0.1".into(), port, bytes: b"POST".to_vec() }
    }

    #[test]
    fn an_answer_is_read_to_its_end_and_silence_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            let (mut first, _) = listener.accept().unwrap();
            first.read_exact(&mut [0; 4]).unwrap();
            first.write_all(b"HTTP/1.0 200 OK\r\n\r\nbody").unwrap();
            drop(first);
            // Open for the duration of the test.
            let _silent = listener.accept();
            let _ = ended.recv();
        });
        let answer = post(&request(port), Duration::from_secs(90)).unwrap();
        assert!(answer.ends_with(b"\r\n\r\nbody"));
        assert_eq!(post(&request(port), Duration::from_millis(100)), None);
        drop(end);
    }
}
