//! TLS over real loopback sockets, with rustls's own buffered client at the other end.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rt::{Acceptor, Handle, Loop, Stream, TlsError, tls};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, ServerConfig};

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Configurations that trust each other, for `localhost`.
fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    (Arc::new(server), Arc::new(client))
}

/// Accepts `count` connections in turn and passes each to `server`.
fn serve<T: Send + 'static>(
    count: usize,
    client: impl FnOnce(std::net::SocketAddr) -> T + Send + 'static,
    mut server: impl AsyncFnMut(Handle, Stream),
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = thread::spawn(move || client(address));
    Loop::run("test", |handle| async move {
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
        for _ in 0..count {
            let accepted = acceptor.accept().await.unwrap();
            server(handle.clone(), Stream::new(accepted).unwrap()).await;
        }
    })
    .unwrap();
    client.join().unwrap()
}

fn connect(
    config: &Arc<ClientConfig>,
    address: std::net::SocketAddr,
) -> rustls::StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config.clone(), name).unwrap();
    rustls::StreamOwned::new(connection, TcpStream::connect(address).unwrap())
}

async fn secure(handle: &Handle, stream: Stream, config: &Arc<ServerConfig>) -> Stream {
    let deadline = handle.deadline(TIMEOUT);
    tls::accept(stream, deadline, |hello| {
        assert_eq!(hello.server_name(), Some("localhost"));
        Some(config.clone())
    })
    .await
    .unwrap()
}

#[test]
fn talks_resumes_and_tells_what_was_negotiated() {
    let (config, client) = configs();
    let mut resumed = Vec::new();
    serve(
        2,
        move |address| {
            for _ in 0..2 {
                let mut tls = connect(&client, address);
                tls.write_all(b"ping").unwrap();
                let mut answer = Vec::new();
                tls.read_to_end(&mut answer).unwrap();
                assert_eq!(answer, b"pong, and a close_notify");
            }
        },
        async |handle, stream| {
            let mut stream = secure(&handle, stream, &config).await;
            let mut buffer = Vec::with_capacity(3);
            let deadline = handle.deadline(TIMEOUT);
            assert_eq!(stream.read(&mut buffer, deadline).await.unwrap(), 3);
            let mut rest = Vec::with_capacity(100);
            assert_eq!(stream.read(&mut rest, deadline).await.unwrap(), 1);
            assert_eq!([buffer, rest].concat(), b"ping");
            stream.write_all(b"pong", TIMEOUT).await.unwrap();
            let mut parts = [IoSlice::new(b", and a "), IoSlice::new(b"close_notify")];
            stream.write_vectored(&mut parts, TIMEOUT).await.unwrap();
            let info = stream.tls().unwrap();
            assert_eq!(info.version(), Some(ProtocolVersion::TLSv1_3));
            assert_eq!(info.alpn(), Some(&b"http/1.1"[..]));
            assert_eq!(info.server_name(), Some("localhost"));
            assert!(info.cipher_suite().is_some() && info.peer_certificates().is_none());
            resumed.push(info.is_resumed());
            stream.linger().await;
        },
    );
    assert_eq!(resumed, [false, true]);
}

#[test]
fn large_bodies_go_both_ways_byte_by_byte_and_from_files() {
    let (config, client) = configs();
    let body: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    let path = std::env::temp_dir().join(format!("rt-tls-{}", std::process::id()));
    std::fs::write(&path, &body).unwrap();
    let file = File::open(&path).unwrap();
    let expected = body.clone();
    let answer = serve(
        1,
        move |address| {
            let mut tls = connect(&client, address);
            tls.write_all(&expected).unwrap();
            let mut answer = Vec::new();
            tls.read_to_end(&mut answer).unwrap();
            answer
        },
        async |handle, stream| {
            let mut stream = secure(&handle, stream, &config).await;
            let deadline = handle.deadline(TIMEOUT);
            let mut upload = Vec::new();
            while upload.len() < body.len() {
                upload.reserve(10_000);
                assert!(stream.read(&mut upload, deadline).await.unwrap() > 0);
            }
            assert_eq!(upload, body);
            stream.write_all(&body, TIMEOUT).await.unwrap();
            stream.send_file(b"head", &file, 1, 699_999, TIMEOUT).await.unwrap();
            let error = stream.send_file(b"", &file, 699_999, 2, TIMEOUT).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
            stream.linger().await;
        },
    );
    std::fs::remove_file(path).unwrap();
    let body: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    assert!(answer.starts_with(&body));
    assert_eq!(answer.get(700_000..700_004), Some(&b"head"[..]));
    assert_eq!(answer.get(700_004..1_400_003), body.get(1..));
    assert!(answer.len() >= 1_400_003);
}

#[test]
fn plain_http_comes_back_with_a_usable_socket() {
    let answer = serve(
        1,
        |address| {
            let mut plain = TcpStream::connect(address).unwrap();
            plain.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = Vec::new();
            plain.read_to_end(&mut answer).unwrap();
            answer
        },
        async |handle, stream| {
            let outcome = tls::accept(stream, handle.deadline(TIMEOUT), |_| None).await;
            let Err(TlsError::PlainHttp { mut stream, bytes }) = outcome else {
                unreachable!("plain HTTP taken for TLS")
            };
            assert_eq!(bytes, b"GET / HTTP/1.0\r\n\r\n");
            stream.write_all(b"400", TIMEOUT).await.unwrap();
            stream.linger().await;
        },
    );
    assert_eq!(answer, b"400");
}

#[test]
fn the_client_is_told_why_it_is_refused() {
    let (_, client) = configs();
    let (error, alert) = serve(
        2,
        move |address| {
            let error = connect(&client, address).write_all(b"x").unwrap_err();
            let mut junk = TcpStream::connect(address).unwrap();
            junk.write_all(b"\x16\x03\x01\x00\x04junk").unwrap();
            let mut alert = Vec::new();
            let _ = junk.read_to_end(&mut alert);
            (error.to_string(), alert)
        },
        async |handle, stream| {
            let outcome = tls::accept(stream, handle.deadline(TIMEOUT), |_| None).await;
            assert!(matches!(outcome, Err(TlsError::Refused | TlsError::Handshake(_))));
        },
    );
    assert!(error.contains("UnrecognisedName"), "{error}");
    assert_eq!(alert.first(), Some(&21));
}

/// A client's last flight is several messages in one piece: if the first is refused, the others
/// must still be processed.
#[test]
fn a_client_that_is_not_trusted_gets_its_alert() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = || PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let other = rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap();
        let mut authorities = RootCertStore::empty();
        authorities.add(other.cert.der().clone()).unwrap();
        let verifier = rustls::server::WebPkiClientVerifier::builder(Arc::new(authorities));
        let server = ServerConfig::builder()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certificate.clone()], key())
            .unwrap();
        let server = Arc::new(server);
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let client = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key())
            .unwrap();
        let client = Arc::new(client);
        let error = serve(
            1,
            move |address| {
                let mut stream = connect(&client, address);
                let _ = stream.write_all(b"x");
                stream.read(&mut [0; 16]).unwrap_err().to_string()
            },
            async |handle, stream| {
                let config = server.clone();
                let deadline = handle.deadline(TIMEOUT);
                let outcome = tls::accept(stream, deadline, |_| Some(config)).await;
                assert!(matches!(outcome, Err(TlsError::Handshake(_))));
            },
        );
        assert!(error.contains("AlertReceived") || error.contains("alert"), "{error}");
    }
}

#[test]
fn junk_after_the_hello_gets_an_alert() {
    let (config, client) = configs();
    let answer = serve(
        1,
        move |address| {
            let name = ServerName::try_from("localhost").unwrap();
            let mut hello = Vec::new();
            ClientConnection::new(client, name).unwrap().write_tls(&mut hello).unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&hello).unwrap();
            let mut answer = vec![0];
            stream.read_exact(&mut answer).unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            let _ = stream.read_to_end(&mut answer);
            answer
        },
        async |handle, stream| {
            let config = config.clone();
            let deadline = handle.deadline(TIMEOUT);
            let outcome = tls::accept(stream, deadline, |_| Some(config)).await;
            assert!(matches!(outcome, Err(TlsError::Handshake(_))));
        },
    );
    assert_eq!(answer.first(), Some(&0x16));
}

#[test]
fn a_handshake_that_stops_ends_at_its_deadline() {
    serve(
        1,
        |address| {
            let mut mute = TcpStream::connect(address).unwrap();
            mute.write_all(&[0x16, 3, 1]).unwrap();
            let _ = mute.read(&mut [0]);
        },
        async |handle, stream| {
            let deadline = handle.deadline(Duration::from_millis(50));
            match tls::accept(stream, deadline, |_| None).await {
                Err(TlsError::Io(error)) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
                }
                _ => unreachable!("half a record is no handshake"),
            }
        },
    );
}
