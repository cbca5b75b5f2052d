//! Sends a fixed response of 1 KiB to every request: the baseline for the layers above this crate.
//! `echo_http ADDRESS [watch|tls]`. With `watch`, each request awaits the drain of a file watch, as
//! a server that caches files does; with `tls`, it generates a certificate.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rt::{Acceptor, Handle, Loop, Stream, Watcher, tls};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8099".to_owned());
    let mode = std::env::args().nth(2).unwrap_or_default();
    let config = if mode == "tls" { Some(server_config()?) } else { None };
    let listener = TcpListener::bind(address)?;
    let mut engine = Loop::new("echo");
    if mode == "watch" {
        let watcher = Watcher::new()?;
        watcher.watch_dir(&std::env::temp_dir());
        engine = engine.watcher(Arc::new(watcher));
    }
    engine.start(|handle| async move {
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener))?;
        loop {
            let Ok(accepted) = acceptor.accept().await else { continue };
            let stream = Stream::new(accepted)?;
            let (config, handle) = (config.clone(), handle.clone());
            handle.clone().spawn_local(async move {
                let stream = match config {
                    None => stream,
                    Some(config) => {
                        let deadline = handle.deadline(TIMEOUT);
                        let Ok(stream) = tls::accept(stream, deadline, |_| Some(config)).await
                        else {
                            return;
                        };
                        stream
                    }
                };
                answer(handle, stream).await;
            });
        }
    })?
}

async fn answer(handle: Handle, mut stream: Stream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nContent-Type: text/plain\r\n\r\n";
    let answer = [head.as_bytes(), &[b'x'; 1024]].concat();
    let mut buffer = Vec::with_capacity(4096);
    loop {
        buffer.clear();
        while !buffer.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer, handle.deadline(TIMEOUT)).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        handle.drained().await;
        if stream.write_all(&answer, TIMEOUT).await.is_err() {
            return;
        }
        if buffer.windows(5).any(|word| word == b"close") {
            return stream.linger().await;
        }
    }
}

/// A configuration with a freshly generated ECDSA certificate.
fn server_config() -> std::io::Result<Arc<ServerConfig>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .map_err(std::io::Error::other)?;
    let key =
        PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(std::io::Error::other)?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(std::io::Error::other)?;
    Ok(Arc::new(config))
}
