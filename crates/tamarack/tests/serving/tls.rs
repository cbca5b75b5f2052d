//! TLS across restarts, and keys with a pass phrase.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

use crate::client::Client;
use crate::load::{under_load_by, wait_for_their_end};
use crate::site::{PROGRAM, Site};

/// Certificates and keys of the black-box tests.
pub const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls");
/// The pass phrase of the encrypted ones.
const PASS_PHRASE: &str = "tamarack";

/// Clients that trust the tests' authority and share their sessions.
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    pub fn new() -> Tls {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(format!("{KEYS}/ca.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Tls { config: Arc::new(config) }
    }

    /// Lines that make a site a TLS site.
    pub fn configuration(key: &str) -> String {
        format!(
            "SSLEngine on\nSSLCertificateFile {KEYS}/server.pem\n\
             SSLCertificateKeyFile {KEYS}/{key}\nSSLSessionCache shmcb:logs/cache(512000)\n"
        )
    }

    /// The same clients, which negotiate this protocol.
    pub fn speaking(self, protocol: &[u8]) -> Tls {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        Tls { config: Arc::new(config) }
    }

    pub fn stream<S: Read + Write>(
        &self,
        socket: S,
    ) -> io::Result<StreamOwned<ClientConnection, S>> {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(self.config.clone(), name);
        let mut stream = StreamOwned::new(connection.map_err(io::Error::other)?, socket);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(stream)
    }

    pub fn connect(&self, port: u16) -> io::Result<Client> {
        Client::connect_over(port, |socket| self.stream(socket))
    }

    /// Sends one request: returns the status, and whether a session was resumed.
    pub fn get(&self, port: u16) -> (u16, bool) {
        let mut is_resumed = false;
        let mut client = Client::connect_over(port, |socket| {
            let stream = self.stream(socket)?;
            is_resumed = stream.conn.handshake_kind() == Some(HandshakeKind::Resumed);
            Ok(stream)
        })
        .unwrap();
        (client.get("/").unwrap().status, is_resumed)
    }
}

#[test]
fn no_request_fails_when_restarted_under_tls() {
    const RESTARTS: usize = 20;
    let tls = Tls::new();
    let mut site = Site::new("tls-restarts");
    site.configure(&Tls::configuration("server.key"));
    site.start();
    assert_eq!(tls.get(site.port), (200, false));
    let old = site.children();
    let seen = under_load_by(
        &site,
        20,
        |port| tls.connect(port),
        |_| {
            for number in 1..=RESTARTS {
                let broken = if number % 5 == 0 { "Frobnicate On" } else { "" };
                site.configure(&(Tls::configuration("server.key") + broken));
                site.restart_gracefully();
            }
        },
    );
    seen.assert_all_answered(&site);
    wait_for_their_end(&site, &old);
    assert_eq!(tls.get(site.port), (200, true), "sessions outlive their processes");
}

/// Starts the server at a terminal created by `script`, where the pass phrase is typed.
fn start_at_terminal(site: &Site, typed: &str) -> String {
    let (root, said) = (site.root.display(), site.path("logs/terminal"));
    let mut terminal = Command::new("script")
        .args(["-qefc", &format!("{PROGRAM} -d {root} -f httpd.conf -k start")])
        .arg(&said)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(&said).unwrap_or_default();
    let prompts = |count: usize| move || read().matches("Enter pass phrase:").count() >= count;
    let mut input = terminal.stdin.take().unwrap();
    for (index, line) in typed.lines().enumerate() {
        site.wait_until("a prompt", prompts(index + 1));
        writeln!(input, "{line}").unwrap();
    }
    let status = terminal.wait().unwrap();
    assert!(status.success(), "{}", read());
    read()
}

#[test]
fn a_pass_phrase_is_asked_for_once() {
    let (tls, site) = (Tls::new(), Site::new("pass-phrase"));
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("skipped: there is no script(1)");
        return;
    }
    site.configure(&Tls::configuration("server-encrypted.key"));
    // There is no terminal to ask at.
    let without = site.run(&["-t"]);
    assert!(without.status.success(), "a check needs no key: {without:?}");
    let shown = start_at_terminal(&site, &format!("wrong\n{PASS_PHRASE}\n"));
    assert!(shown.contains("Pass phrase incorrect (5 more retries permitted)"), "{shown}");
    let is_silent = |typed: &str| !shown.contains(&format!("phrase:{typed}"));
    assert!(is_silent("wrong") && is_silent(PASS_PHRASE), "what is typed is not shown: {shown}");
    assert_eq!(tls.get(site.port).0, 200);
    // A restart has the key, and no terminal.
    site.restart_gracefully();
    assert_eq!(site.count_lines("resuming normal operations"), 2, "{}", site.error_log());
    assert_eq!(tls.get(site.port).0, 200);
    // Another executable gets the key from this one, and hands it on in turn.
    let pipes = pipes_of(&site);
    for taken in 1..=2 {
        let old = site.children();
        site.signal(nix::sys::signal::SIGUSR2);
        site.wait_until("an upgrade", || site.count_lines("has taken over") == taken);
        wait_for_their_end(&site, &old);
        assert_eq!(tls.get(site.port).0, 200);
    }
    assert_eq!(pipes_of(&site), pipes, "what it came by is closed");
    // A key without a typed pass phrase stays closed, and the message names the remedy.
    fs::copy(format!("{KEYS}/server-encrypted.key"), site.path("other.key")).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(site.path("other.key"))
        .unwrap()
        .write_all(b"\n")
        .unwrap();
    let other = Tls::configuration("server-encrypted.key")
        .replace(&format!("{KEYS}/server-encrypted.key"), "other.key");
    site.configure(&other);
    site.signal(nix::sys::signal::SIGUSR2);
    site.wait_for_line("AH20011");
    assert_eq!(site.count_lines("start the server at a terminal"), 1, "{}", site.error_log());
    assert_eq!(tls.get(site.port).0, 200);
}

/// The pipes that the supervisor has open.
fn pipes_of(site: &Site) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{}/fd", site.supervisor())).unwrap().flatten();
    let links = open.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("pipe:")).collect()
}
