//! OpenSSL's own client against the building blocks, combined as mod_ssl does.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tls::certs::Pair;
use tls::passphrase::Passphrases;
use tls::server_config::{BuiltHost, HostTls, build};
use tls::sessions::{SharedSessions, context};
use tls::tickets::{KeyRing, REGION_WORDS, Ticketer};
use tls::trust::Locations;
use tls::vars::{Connection, Style};
use tls::verify::{ClientVerifier, Mode, Settings, Verdict};

const CONFIG: &str = "[req]\ndistinguished_name=dn\n[dn]\n\
    [ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign,cRLSign\n\
    [server]\nbasicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n\
    authorityInfoAccess=OCSP;URI:http://ocsp.example/\n\
    [client]\nbasicConstraints=CA:FALSE\n";

/// An authority, a server and two clients, one of them from an unknown authority.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tls-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        std::fs::write(folder.0.join("c.cnf"), CONFIG).unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config c.cnf";
        for name in ["ca", "stranger"] {
            folder.openssl(&format!(
                "req -x509 {key} -keyout {name}.key -out {name}.pem -days 9 \
                 -extensions ca -subj /CN={name}"
            ));
        }
        for (name, extensions) in [("server", "server"), ("client", "client")] {
            folder.openssl(&format!(
                "req -new {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"
            ));
            folder.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -set_serial 5 -days 9 \
                 -extfile c.cnf -extensions {extensions} -out {name}.pem"
            ));
        }
        folder
    }

    fn openssl(&self, args: &str) -> String {
        let output = Command::new("openssl")
            .args(args.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn path(&self, name: &str) -> Vec<u8> {
        self.0.join(name).to_str().unwrap().into()
    }

    fn host(&self) -> HostTls {
        HostTls {
            id: "localhost:443".into(),
            server_name: "localhost".into(),
            certificates: vec![Pair {
                certificate: self.path("server.pem"),
                key: Some(self.path("server.key")),
            }],
            chain_file: Some(self.path("ca.pem")),
            ..HostTls::default()
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn built(host: &HostTls) -> BuiltHost {
    build(host, &mut Passphrases::none()).unwrap()
}

/// Serves `count` connections, each with the variables that a request would see.
fn serve(
    config: Arc<ServerConfig>,
    verifier: Option<Arc<ClientVerifier>>,
    count: usize,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for _ in 0..count {
            let (socket, _) = listener.accept().unwrap();
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            let mut byte = [0];
            if stream.read(&mut byte).is_err() {
                continue;
            }
            let presented = stream.conn.peer_certificates().unwrap_or_default();
            let verdict = match &verifier {
                Some(verifier) => verifier.judge(presented, rustls_pki_types::UnixTime::now()),
                None => Verdict::Absent,
            };
            let failure = match &verdict {
                Verdict::Failed(reason) => Some(reason.to_string()),
                _ => None,
            };
            let presented: Vec<_> = presented.iter().map(|one| one.clone().into_owned()).collect();
            let seen = Connection {
                protocol: match stream.conn.protocol_version() {
                    Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
                    _ => "TLSv1.3",
                },
                suite: stream.conn.negotiated_cipher_suite().unwrap().suite(),
                resumed: stream.conn.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
                session_id: &std::cell::OnceCell::new(),
                server_name: stream.conn.server_name(),
                server_chain: &[],
                client_chain: &presented,
                failure: failure.as_deref(),
                interface: "mod_ssl/2.4.71",
            };
            let lines = seen.standard(Style::Rfc2253, 0);
            for (name, value) in lines {
                let line = format!("{name}={}\n", String::from_utf8_lossy(&value));
                let _ = stream.write_all(line.as_bytes());
            }
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    address
}

/// The output of `s_client` when it sends one line and reads to the end.
fn s_client(folder: &Folder, address: SocketAddr, args: &str) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string(), "-servername", "localhost"])
        .args(["-CAfile", "ca.pem", "-ign_eof"])
        .args(args.split_whitespace())
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(b"\n");
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn region(words: usize) -> &'static [AtomicU64] {
    Vec::leak((0..words).map(|_| AtomicU64::new(0)).collect())
}

#[test]
fn tickets_are_taken_by_every_child_and_no_other_host() {
    let folder = Folder::new("tickets");
    let ring = KeyRing::new(region(REGION_WORDS)).unwrap();
    assert!(ring.rotate());
    let child = |name: &[u8]| {
        let mut host = folder.host();
        host.ticketer = Some(Arc::new(Ticketer::shared(ring, context(&[name]), 300)));
        serve(built(&host).config, None, 2)
    };
    for version in ["-tls1_3", "-tls1_2"] {
        let (one, two, other) = (child(b"one"), child(b"one"), child(b"other"));
        let first = s_client(&folder, one, &format!("{version} -sess_out session"));
        assert!(first.contains("SSL_SESSION_RESUMED=Initial"), "{first}");
        let again = s_client(&folder, two, &format!("{version} -sess_in session"));
        assert!(again.contains("SSL_SESSION_RESUMED=Resumed"), "{again}");
        let elsewhere = s_client(&folder, other, &format!("{version} -sess_in session"));
        assert!(elsewhere.contains("SSL_SESSION_RESUMED=Initial"), "{elsewhere}");
    }
}

#[test]
fn sessions_are_in_the_shared_cache() {
    let folder = Folder::new("sessions");
    let words = region(65536 / 8);
    let child = || {
        let mut host = folder.host();
        host.sessions = Some(Arc::new(SharedSessions::new(words, context(&[b"one"]), 300)));
        serve(built(&host).config, None, 2)
    };
    for version in ["-tls1_3", "-tls1_2 -no_ticket"] {
        let first = s_client(&folder, child(), &format!("{version} -sess_out session"));
        assert!(first.contains("SSL_SESSION_RESUMED=Initial"), "{first}");
        let again = s_client(&folder, child(), &format!("{version} -sess_in session"));
        assert!(again.contains("SSL_SESSION_RESUMED=Resumed"), "{again}");
    }
}

#[test]
fn nothing_is_resumed_without_tickets_and_cache() {
    let folder = Folder::new("neither");
    let address = serve(built(&folder.host()).config, None, 2);
    let text = s_client(&folder, address, "-tls1_2");
    assert!(text.contains("SSL_SESSION_RESUMED=Initial"), "{text}");
    assert!(text.contains("Session-ID: \n"), "{text}");
    assert!(!text.contains("TLS session ticket:"), "{text}");
    let text = s_client(&folder, address, "-tls1_3");
    assert!(!text.contains("Post-Handshake New Session Ticket"), "{text}");
}

#[test]
fn clients_are_verified_as_in_apache() {
    let folder = Folder::new("clients");
    let known = "-cert client.pem -key client.key";
    let strange = "-cert stranger.pem -key stranger.key";
    for (mode, without, good, stranger) in [
        (Mode::Optional, Some("NONE"), Some("SUCCESS"), None),
        (Mode::Require, None, Some("SUCCESS"), None),
        (Mode::OptionalNoCa, Some("NONE"), Some("SUCCESS"), Some("FAILED:self-signed certificate")),
    ] {
        let settings = Settings {
            mode,
            authorities: Locations { file: Some(folder.path("ca.pem")), folder: None },
            ..Settings::default()
        };
        let verifier = ClientVerifier::load(&settings, &mut vec![]).unwrap().unwrap();
        let mut host = folder.host();
        host.verifier = Some(verifier.clone());
        let address = serve(built(&host).config, Some(verifier), 3);
        for (args, expected) in [("", without), (known, good), (strange, stranger)] {
            let text = s_client(&folder, address, args);
            let value = text.lines().find_map(|line| line.strip_prefix("SSL_CLIENT_VERIFY="));
            assert_eq!(value, expected, "{mode:?} {args}");
            assert!(text.contains("Acceptable client certificate CA names\nCN = ca"), "{text}");
        }
    }
}

#[test]
fn the_staple_and_the_chain_go_out() {
    let folder = Folder::new("staple");
    let built = built(&folder.host());
    let index = "V\t300101000000Z\t\t05\tunknown\t/CN=server\n";
    std::fs::write(folder.0.join("index.txt"), index).unwrap();
    folder.openssl(
        "ocsp -index index.txt -CA ca.pem -rsigner ca.pem -rkey ca.key -issuer ca.pem \
         -cert server.pem -respout staple.der -ndays 1",
    );
    let staple = std::fs::read(folder.0.join("staple.der")).unwrap();
    let address = serve(built.config.clone(), None, 2);
    let without = s_client(&folder, address, "-status -showcerts");
    assert!(without.contains("OCSP response: no response sent"), "{without}");
    assert_eq!(without.matches("BEGIN CERTIFICATE").count(), 2, "the server's and its authority's");
    assert!(without.contains("Verify return code: 0 (ok)"), "{without}");
    built.certificates.staple(0, Some(staple));
    let with = s_client(&folder, address, "-status");
    assert!(with.contains("Cert Status: good"), "{with}");
}

#[test]
fn old_protocols_are_refused() {
    let folder = Folder::new("old");
    let address = serve(built(&folder.host()).config, None, 2);
    let text = s_client(&folder, address, "-tls1_1 -cipher ALL:@SECLEVEL=0");
    assert!(text.contains("Cipher is (NONE)"), "{text}");
    let text = s_client(&folder, address, "-tls1_2 -cipher AES128-SHA");
    assert!(text.contains("Cipher is (NONE)"), "{text}");
}
