//! TLS to servers: rustls's own buffered one, and OpenSSL's if it is installed.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rt::{ConnectOptions, Handle, Loop, Remote, Stream, TlsError, tls};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

/// Far longer than any step takes: the machine may stall for a while.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A self-signed certificate for a name.
struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    pem: String,
}

fn identity(name: &str) -> Identity {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    Identity {
        certificate: made.cert.der().clone(),
        key: PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap(),
        pem: made.cert.pem() + &made.signing_key.serialize_pem(),
    }
}

fn roots(of: &Identity) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(of.certificate.clone()).unwrap();
    roots
}

fn client_config(trusted: &Identity) -> Arc<ClientConfig> {
    let config = ClientConfig::builder().with_root_certificates(roots(trusted));
    Arc::new(config.with_no_client_auth())
}

fn server_config(own: &Identity) -> Arc<ServerConfig> {
    let config = ServerConfig::builder().with_no_client_auth();
    let key = own.key.clone_key();
    Arc::new(config.with_single_cert(vec![own.certificate.clone()], key).unwrap())
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

/// Serves each connection with `serve`, in turn.
fn server(
    config: Arc<ServerConfig>,
    serve: impl Fn(StreamOwned<ServerConnection, TcpStream>) + Send + 'static,
) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(config.clone()).unwrap();
            serve(StreamOwned::new(connection, stream));
        }
    });
    remote
}

fn echo(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    let mut buffer = [0; 20_000];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
    stream.conn.send_close_notify();
    let _ = stream.flush();
    // The FIN comes later than the close_notify, which is the end of the data.
    thread::sleep(Duration::from_millis(20));
}

async fn secure(
    handle: &Handle,
    remote: &Remote,
    config: &Arc<ClientConfig>,
) -> Result<Stream, TlsError> {
    let deadline = handle.deadline(TIMEOUT);
    let stream = Stream::connect(remote, &ConnectOptions::default(), deadline).await.unwrap();
    tls::connect(stream, config.clone(), name(), deadline).await
}

/// Runs `client` on a loop for many connections, then on one that works in place.
fn on_both_loops(mut client: impl AsyncFnMut(Handle)) {
    Loop::run("many", async |handle| client(handle).await).unwrap();
    Loop::new("in place").in_place().start(async |handle| client(handle).await).unwrap();
}

#[test]
fn talks_resumes_and_stays_reusable() {
    let own = identity("localhost");
    let config = client_config(&own);
    let remote = server(server_config(&own), echo);
    let mut resumed = Vec::new();
    on_both_loops(async |handle| {
        let deadline = handle.deadline(TIMEOUT);
        for _ in 0..2 {
            let mut stream = secure(&handle, &remote, &config).await.unwrap();
            for _ in 0..3 {
                // Session tickets have arrived meanwhile.
                assert!(stream.is_reusable());
                stream.write_all(b"ping", TIMEOUT).await.unwrap();
                let mut buffer = Vec::with_capacity(100);
                while buffer.len() < 4 {
                    stream.read(&mut buffer, deadline).await.unwrap();
                }
                assert_eq!(buffer, b"ping");
            }
            let info = stream.tls().unwrap();
            assert_eq!(info.version(), Some(ProtocolVersion::TLSv1_3));
            assert_eq!(info.server_name(), Some("localhost"));
            assert_eq!(info.peer_certificates().unwrap().first(), Some(&own.certificate));
            resumed.push(info.is_resumed());
            stream.shutdown_write().unwrap();
            let mut rest = Vec::with_capacity(10);
            assert_eq!(stream.read(&mut rest, deadline).await.unwrap(), 0);
            assert!(!stream.is_reusable());
        }
    });
    assert_eq!(resumed, [false, true, true, true]);
}

#[test]
fn large_bodies_go_both_ways() {
    let own = identity("localhost");
    let config = client_config(&own);
    let remote = server(server_config(&own), |mut stream| {
        let mut body = vec![0; 700_000];
        stream.read_exact(&mut body).unwrap();
        stream.write_all(&body).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    });
    let body: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    on_both_loops(async |handle| {
        let mut stream = secure(&handle, &remote, &config).await.unwrap();
        stream.write_all(&body, TIMEOUT).await.unwrap();
        let mut answer = Vec::with_capacity(10_000);
        while stream.read(&mut answer, handle.deadline(TIMEOUT)).await.unwrap() > 0 {
            answer.reserve(10_000);
        }
        assert!(answer == body);
    });
}

#[test]
fn a_server_that_is_not_trusted_is_refused() {
    let (own, other) = (identity("localhost"), identity("localhost"));
    let elsewhere = identity("elsewhere");
    let cases = [(&own, &other), (&elsewhere, &elsewhere)];
    for (presented, trusted) in cases {
        let remote = server(server_config(presented), echo);
        let config = client_config(trusted);
        on_both_loops(async |handle| {
            let outcome = secure(&handle, &remote, &config).await;
            let Err(TlsError::Handshake(error)) = outcome else { panic!("it was trusted") };
            assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
        });
    }
}

#[test]
fn a_client_certificate_is_given_and_a_missing_one_is_an_error() {
    let (own, client) = (identity("localhost"), identity("client"));
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots(&client))).build().unwrap();
    let config = ServerConfig::builder().with_client_cert_verifier(verifier);
    let key = own.key.clone_key();
    let config = config.with_single_cert(vec![own.certificate.clone()], key).unwrap();
    let remote = server(Arc::new(config), |mut stream| {
        let mut request = [0; 4];
        if stream.read_exact(&mut request).is_ok() {
            let count = stream.conn.peer_certificates().map_or(0, <[_]>::len);
            stream.write_all(&[b'0' + u8::try_from(count).unwrap()]).unwrap();
        }
    });
    let with = ClientConfig::builder().with_root_certificates(roots(&own));
    let key = client.key.clone_key();
    let with = with.with_client_auth_cert(vec![client.certificate.clone()], key).unwrap();
    let (with, without) = (Arc::new(with), client_config(&own));
    on_both_loops(async |handle| {
        let deadline = handle.deadline(TIMEOUT);
        let mut buffer = Vec::with_capacity(10);
        let mut stream = secure(&handle, &remote, &with).await.unwrap();
        stream.write_all(b"ping", TIMEOUT).await.unwrap();
        stream.read(&mut buffer, deadline).await.unwrap();
        assert_eq!(buffer, b"1");
        let mut stream = secure(&handle, &remote, &without).await.unwrap();
        let error = stream.read(&mut buffer, deadline).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("CertificateRequired"), "{error}");
        assert!(!stream.is_reusable());
    });
}

#[test]
fn servers_that_are_silent_close_or_speak_no_tls_are_errors() {
    let config = client_config(&identity("localhost"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    thread::spawn(move || {
        for (number, mut stream) in listener.incoming().map_while(Result::ok).enumerate() {
            match number % 3 {
                0 => {
                    let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
                    let _ = stream.read_to_end(&mut Vec::new());
                }
                1 => {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    let _ = stream.read_to_end(&mut Vec::new());
                }
                _ => drop(thread::spawn(move || stream.read_to_end(&mut Vec::new()))),
            }
        }
    });
    on_both_loops(async |handle| {
        let outcome = secure(&handle, &remote, &config).await;
        assert!(matches!(outcome, Err(TlsError::Handshake(_))));
        let outcome = secure(&handle, &remote, &config).await;
        assert!(matches!(outcome, Err(TlsError::Closed)));
        let options = ConnectOptions::default();
        let stream = Stream::connect(&remote, &options, handle.deadline(TIMEOUT)).await.unwrap();
        let deadline = handle.deadline(Duration::from_millis(50));
        match tls::connect(stream, config.clone(), name(), deadline).await {
            Err(TlsError::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            _ => unreachable!("the server says nothing"),
        }
    });
}

/// `openssl s_server` with a file of its own; ended when dropped.
struct OpenSsl(Child, PathBuf, SocketAddr);

impl OpenSsl {
    /// `None` if there is no such program.
    fn start(own: &Identity, name: &str, options: &[&str]) -> Option<Self> {
        let file = format!("rt-tls-client-{name}-{}.pem", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, &own.pem).unwrap();
        let mut command = Command::new("openssl");
        command.args(["s_server", "-accept", "127.0.0.1:0", "-rev", "-cert"]).arg(&path);
        command.args(options).stdin(Stdio::piped());
        let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            let _ = std::fs::remove_file(path);
            return None;
        };
        let output = BufReader::new(child.stdout.as_mut().unwrap());
        let accepts = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.parse().ok());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, accepts.unwrap()));
        Some(Self(child, path, address))
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::fs::remove_file(&self.1);
    }
}

#[test]
fn talks_to_openssl_in_both_versions() {
    let own = identity("localhost");
    let config = client_config(&own);
    let versions = [
        ("tls13", &["-tls1_3"][..], ProtocolVersion::TLSv1_3),
        (
            "tls12",
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"],
            ProtocolVersion::TLSv1_2,
        ),
    ];
    for (label, options, version) in versions {
        let Some(openssl) = OpenSsl::start(&own, label, options) else {
            eprintln!("skipped: openssl is not installed");
            return;
        };
        let remote = Remote::Tcp(openssl.2);
        on_both_loops(async |handle| {
            let mut stream = secure(&handle, &remote, &config).await.unwrap();
            assert_eq!(stream.tls().unwrap().version(), Some(version));
            for _ in 0..2 {
                assert!(stream.is_reusable());
                stream.write_all(b"stressed\n", TIMEOUT).await.unwrap();
                let mut buffer = Vec::with_capacity(100);
                while !buffer.ends_with(b"\n") {
                    stream.read(&mut buffer, handle.deadline(TIMEOUT)).await.unwrap();
                }
                assert_eq!(buffer, b"desserts\n");
            }
        });
    }
}
