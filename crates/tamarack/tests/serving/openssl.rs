//! OpenSSL's own client and responder against the server: tickets under a key that several servers
//! share, stapled responses, and client certificates that are checked with a responder.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::load::wait_for_their_end;
use crate::site::Site;
use crate::tls::{KEYS, Tls};

/// The output of `openssl s_client` for one request.
fn ask(port: u16, arguments: &[&str]) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-ign_eof"])
        .args(["-servername", "localhost", "-CAfile", &format!("{KEYS}/ca.pem")])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A refused client may have ended before it is written to.
    let _ = client.stdin.take().unwrap().write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let output = client.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn is_answered(shown: &str) -> bool {
    shown.contains("200 OK") && shown.contains("hello")
}

/// Restarts, and waits until all processes with the old keys have ended.
fn restart(site: &Site) {
    let old = site.children();
    site.restart_gracefully();
    wait_for_their_end(site, &old);
}

#[test]
fn servers_with_one_ticket_key_file_resume_each_others_sessions() {
    let (mut first, mut second) = (Site::new("tickets-1"), Site::new("tickets-2"));
    let key = first.path("ticket.key");
    let session = first.path("session.pem");
    fs::write(&key, [*b"name of the key.", *b"secret of HMAC..", *b"secret of AES..."].concat())
        .unwrap();
    let lines = Tls::configuration("server.key").replace("SSLSessionCache", "#");
    let with = |key: &Path| format!("{lines}\nSSLSessionTicketKeyFile {}\n", key.display());
    first.configure(&with(&key));
    second.configure(&with(&key));
    first.start();
    second.start();
    let session = session.to_str().unwrap();
    for version in ["-tls1_2", "-tls1_3"] {
        let made = ask(first.port, &[version, "-sess_out", session]);
        assert!(is_answered(&made) && made.contains("New, TLSv1."), "{made}");
        let resumed = ask(second.port, &[version, "-sess_in", session]);
        assert!(is_answered(&resumed) && resumed.contains("Reused, TLSv1."), "{resumed}");
    }
    restart(&second);
    assert!(ask(second.port, &["-tls1_3", "-sess_in", session]).contains("Reused, "));
    // All 48 bytes are significant.
    for place in [0, 16, 47] {
        let mut other = fs::read(&key).unwrap();
        other[place] ^= 1;
        fs::write(second.path("other.key"), other).unwrap();
        second.configure(&with(&second.path("other.key")));
        restart(&second);
        let shown = ask(second.port, &["-tls1_3", "-sess_in", session]);
        assert!(is_answered(&shown) && shown.contains("New, "), "{place}: {shown}");
    }
}

#[test]
fn groups_of_the_key_exchange_are_those_of_the_configuration() {
    let mut site = Site::new("groups");
    let lines = Tls::configuration("server.key");
    site.configure(&format!("{lines}SSLOpenSSLConfCmd Curves X25519:?X448:secp384r1\n"));
    site.start();
    for (group, is_offered) in [("X25519", true), ("P-384", true), ("P-256", false)] {
        let shown = ask(site.port, &["-tls1_3", "-groups", group]);
        assert_eq!(is_answered(&shown), is_offered, "{group}: {shown}");
    }
    // In TLS 1.2 the client's list also applies to the certificate's key, which is P-256.
    let shown = ask(site.port, &["-tls1_2", "-groups", "P-256:P-384"]);
    assert!(shown.contains("secp384r1") && is_answered(&shown), "{shown}");
    site.configure(&format!("{lines}SSLOpenSSLConfCmd Groups prime256v1\n"));
    restart(&site);
    assert!(is_answered(&ask(site.port, &["-groups", "P-384:P-256:X25519"])));
    assert!(!is_answered(&ask(site.port, &["-groups", "P-384:X25519"])));
}

#[test]
fn a_section_judges_what_the_handshake_showed_or_a_resumed_session_had() {
    let mut site = Site::new("sections");
    let lines = Tls::configuration("server.key");
    let section = |word: &str| {
        format!(
            "{lines}SSLCACertificateFile {KEYS}/ca.pem\n<Location \"/\">\n  \
             SSLVerifyClient {word}\n</Location>\n"
        )
    };
    site.configure(&section("require"));
    site.start();
    let session = site.path("session.pem");
    let session = session.to_str().unwrap();
    let named = |name: &str| [format!("{KEYS}/{name}.pem"), format!("{KEYS}/{name}.key")];
    let ([alice, alice_key], [stranger, stranger_key]) = (named("alice"), named("stranger"));
    for version in ["-tls1_2", "-tls1_3"] {
        let known = ["-cert", &alice, "-key", &alice_key, "-sess_out", session];
        let shown = ask(site.port, &[&[version][..], &known].concat());
        assert!(is_answered(&shown), "{shown}");
        let resumed = ask(site.port, &[version, "-sess_in", session]);
        assert!(is_answered(&resumed) && resumed.contains("Reused, "), "{resumed}");
        let unknown = ["-cert", &stranger, "-key", &stranger_key, "-sess_out", session];
        for arguments in [&unknown[..], &["-sess_in", session], &[]] {
            let shown = ask(site.port, &[&[version][..], arguments].concat());
            assert!(shown.contains("403 Forbidden"), "{version} {arguments:?}: {shown}");
        }
    }
    let other = Site::new("sections-no-ca");
    other.configure(&section("optional_no_ca"));
    let output = other.run(&["-k", "start"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("optional_no_ca is not supported"), "{said}");
}

#[test]
fn a_ticket_key_file_that_is_too_short_is_said_with_its_line() {
    let site = Site::new("short-ticket-key");
    site.write("ticket.key", &"x".repeat(47));
    let key = site.path("ticket.key");
    let lines = Tls::configuration("server.key");
    site.configure(&format!("{lines}SSLSessionTicketKeyFile {}\n", key.display()));
    let output = site.run(&["-k", "start"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let configuration = fs::read_to_string(site.path("httpd.conf")).unwrap();
    let line = 1 + configuration.lines().position(|line| line.contains("TicketKey")).unwrap();
    assert!(!output.status.success());
    assert!(said.contains(&format!("Syntax error on line {line} of ")), "{said}");
    let key = key.display();
    let what = format!("AH02287: Failed to read 48 bytes from {key}: (70014) End of file found");
    assert!(said.contains(&what), "{said}");
}

/// `openssl ocsp`, until it is dropped: the server and alice are good, and one certificate is
/// revoked.
struct Responder {
    child: Child,
    port: u16,
}

impl Responder {
    fn start(site: &Site) -> Responder {
        let (good, revoked) = ("V\t391231235959Z\t", "R\t391231235959Z\t250101000000Z");
        let people = [("server", good), ("alice", good), ("revoked", revoked)];
        let index = people.map(|(name, state)| {
            let serial = serial(name);
            format!("{state}\t{serial}\tunknown\t/CN={name}-{serial}\n")
        });
        site.write("index.txt", &index.concat());
        let mut child = Command::new("openssl")
            .args(["ocsp", "-port", "0", "-nmin", "60", "-index"])
            .arg(site.path("index.txt"))
            .args(["-CA", &format!("{KEYS}/ca.pem"), "-rsigner", &format!("{KEYS}/ca.pem")])
            .args(["-rkey", &format!("{KEYS}/ca.key")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(site.path("logs/responder")).unwrap())
            .spawn()
            .unwrap();
        // `ACCEPT [::]:40123 PID=123`
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let accept = |line: String| line.strip_prefix("ACCEPT ").map(str::to_owned);
        let place = lines.filter_map(accept).next().unwrap();
        let (_, port) = place.split_whitespace().next().unwrap().rsplit_once(':').unwrap();
        Responder { child, port: port.parse().unwrap() }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate's serial number as in OpenSSL's index.
fn serial(name: &str) -> String {
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-serial", "-in", &format!("{KEYS}/{name}.pem")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().strip_prefix("serial=").unwrap().to_owned()
}

#[test]
fn what_the_responder_says_is_stapled() {
    let mut site = Site::new("stapling");
    let responder = Responder::start(&site);
    let (lines, url) = (Tls::configuration("server.key"), responder.url());
    site.configure(&format!(
        "{lines}SSLCACertificateFile {KEYS}/ca.pem\nSSLUseStapling on\n\
         SSLStaplingCache shmcb:logs/stapling(32768)\nSSLStaplingForceURL {url}\n\
         SSLStaplingResponderTimeout 60\nSSLStaplingErrorCacheTimeout 1\n"
    ));
    site.start();
    let is_stapled = |shown: &str| {
        shown.contains("OCSP Response Status: successful") && shown.contains("Cert Status: good")
    };
    site.wait_until("a staple", || is_stapled(&ask(site.port, &["-status"])));
    // Each process queries the responder itself: another one may not have its response yet.
    site.wait_until("one with TLS 1.2", || is_stapled(&ask(site.port, &["-status", "-tls1_2"])));
}

#[test]
fn a_responder_is_asked_about_clients() {
    let mut site = Site::new("ocsp-clients");
    let responder = Responder::start(&site);
    let (lines, url) = (Tls::configuration("server.key"), responder.url());
    site.configure(&format!(
        "{lines}LogLevel ssl:info\nSSLCACertificateFile {KEYS}/ca.pem\n\
         SSLVerifyClient require\nSSLOCSPEnable on\n\
         SSLOCSPDefaultResponder {url}\nSSLOCSPOverrideResponder on\n\
         SSLOCSPResponderTimeout 60\n"
    ));
    site.start();
    let by = |name: &str, version: &str| {
        let (pem, key) = (format!("{KEYS}/{name}.pem"), format!("{KEYS}/{name}.key"));
        ask(site.port, &["-cert", &pem, "-key", &key, version])
    };
    for version in ["-tls1_2", "-tls1_3"] {
        let good = by("alice", version);
        assert!(is_answered(&good), "{good}");
        let refused = by("revoked", version);
        assert!(!refused.contains("HTTP/1.1 ") && !refused.contains("hello"), "{refused}");
    }
    site.wait_for_line("AH02039: Certificate Verification: certificate revoked");
    // A client is refused if the responder can't be queried.
    drop(responder);
    let unknown = by("alice", "-tls1_3");
    assert!(!is_answered(&unknown), "{unknown}");
}

#[test]
fn an_optional_engine_is_plain_and_says_so() {
    let mut site = Site::new("optional-engine");
    site.configure("LogLevel notice\nSSLEngine optional\n");
    site.start();
    assert_eq!(site.get("/").status, 200);
    assert_eq!(site.count_lines("AH10510: 'SSLEngine optional' is no longer supported"), 1);
}
