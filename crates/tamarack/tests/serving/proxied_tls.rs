//! TLS to another server: which certificates are accepted, which names are asked for, and whether a
//! kept connection serves requests that want another one.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixListener;

use crate::client::Client;
use crate::site::Site;
use crate::tls::{KEYS, Tls};

/// A server with TLS that tells what it sees, with the certificate `name`.
fn backend(name: &str) -> Site {
    let mut site = Site::new(&format!("proxied-tls-{name}"));
    site.configure(&format!(
        "SSLEngine on\n\
         SSLCertificateFile {KEYS}/{name}.pem\nSSLCertificateKeyFile {KEYS}/{name}.key\n\
         SSLSessionCache shmcb:logs/cache(512000)\nSSLVerifyClient optional\n\
         SSLCACertificateFile {KEYS}/ca.pem\n\
         Header set X-Seen \"expr=%{{SSL_PROTOCOL}} [%{{SSL_TLS_SNI}}] [%{{HTTP_HOST}}]\"\n"
    ));
    site.start();
    site
}

/// A host for each name, with its lines, all of which forward to `url`.
fn front(hosts: &[(&str, &str, &str)]) -> Site {
    let mut site = Site::new("proxied-tls");
    let port = site.port;
    let mut text = String::from("LogLevel info\n");
    for (name, url, lines) in hosts {
        text.push_str(&format!(
            "<VirtualHost 127.0.0.1:{port}>\nServerName {name}\nProxyPass / {url}\n{lines}\n\
             </VirtualHost>\n"
        ));
    }
    site.configure(&text);
    site.start();
    site
}

/// The status, and what the server behind has seen.
fn ask(client: &mut Client, name: &str) -> (u16, String) {
    client.send(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n").as_bytes()).unwrap();
    let answer = client.answer().unwrap();
    (answer.status, answer.field("X-Seen").unwrap_or_default().to_owned())
}

#[test]
fn certificates_of_backends_are_checked_as_configured() {
    let (good, old) = (backend("server"), backend("expired"));
    let (by_name, by_address) =
        (format!("https://localhost:{}/", good.port), format!("https://127.0.0.1:{}/", good.port));
    let expired = format!("https://localhost:{}/", old.port);
    let verified =
        format!("SSLProxyEngine on\nSSLProxyVerify require\nSSLProxyCACertificateFile {KEYS}");
    let (trusting, strange) = (format!("{verified}/ca.pem"), format!("{verified}/other-ca.pem"));
    let section = format!("<Proxy {by_name}>\n{trusting}\n</Proxy>");
    let site = front(&[
        ("off.test", &by_name, ""),
        ("on.test", &by_name, "SSLProxyEngine on"),
        ("verified.test", &by_name, &trusting),
        ("section.test", &by_name, &section),
        ("strange.test", &by_name, &strange),
        ("address.test", &by_address, "SSLProxyEngine on"),
        ("unnamed.test", &by_address, "SSLProxyEngine on\nSSLProxyCheckPeerName off"),
        ("preserved.test", &by_name, "SSLProxyEngine on\nProxyPreserveHost on"),
        ("expired.test", &expired, "SSLProxyEngine on\nSSLProxyCheckPeerName off"),
        (
            "ignored.test",
            &expired,
            "SSLProxyEngine on\nSSLProxyCheckPeerName off\nSSLProxyCheckPeerExpire off\n\
             SSLProxyProtocol TLSv1.2",
        ),
    ]);
    let mut asked = Vec::new();
    for (name, status, line) in [
        ("off.test", 500, "AH00961: https: failed to enable ssl support for localhost:"),
        ("on.test", 200, ""),
        ("verified.test", 200, ""),
        ("section.test", 200, ""),
        ("strange.test", 500, "AH02039: [remote localhost:"),
        ("address.test", 500, "SSL Proxy: Peer certificate does not match for hostname 127.0.0.1"),
        ("unnamed.test", 200, ""),
        ("preserved.test", 500, "does not match for hostname preserved.test"),
        ("expired.test", 500, "SSL Proxy: Peer certificate is expired"),
        ("ignored.test", 200, ""),
    ] {
        let mut client = site.client();
        let (found, seen) = ask(&mut client, name);
        assert_eq!(found, status, "{name}: {seen} {}", site.error_log());
        assert!(site.error_log().contains(line), "{name}: {line}: {}", site.error_log());
        asked.push((name, seen));
    }
    let seen = |name: &str| asked.iter().find(|one| one.0 == name).unwrap().1.clone();
    assert_eq!(seen("on.test"), format!("TLSv1.3 [localhost] [localhost:{}]", good.port));
    assert_eq!(seen("unnamed.test"), format!("TLSv1.3 [] [127.0.0.1:{}]", good.port));
    assert!(seen("ignored.test").starts_with("TLSv1.2 "), "{}", seen("ignored.test"));
}

#[test]
fn a_kept_connection_serves_the_same_name_only() {
    let good = backend("server");
    let url = format!("https://localhost:{}/", good.port);
    let lines = "SSLProxyEngine on\nSSLProxyCheckPeerName off\nProxyPreserveHost on\n\
                 ServerAlias two.test";
    let site = front(&[("one.test", &url, lines)]);
    let mut client = site.client();
    for name in ["one.test", "one.test", "two.test", "one.test"] {
        let (status, seen) = ask(&mut client, name);
        assert_eq!((status, seen), (200, format!("TLSv1.3 [{name}] [{name}]")), "{name}");
    }
    // The server that is asked is one with TLS.
    assert_eq!(Tls::new().get(good.port).0, 200);
}

/// mod_proxy_fdpass: the other process would respond in plain text. Apache passes the connection.
#[test]
fn a_connection_of_tls_is_passed_to_no_other_process() {
    let mut site = Site::new("passed-tls");
    fs::create_dir_all(site.path("run")).unwrap();
    let other = UnixListener::bind(site.path("run/app.sock")).unwrap();
    site.configure(&(Tls::configuration("server.key") + "ProxyPass /app fd://run/app.sock\n"));
    site.start();
    let mut client = Tls::new().connect(site.port).unwrap();
    assert_eq!(client.get("/app").unwrap().status, 500);
    let mut passed = Vec::new();
    other.accept().unwrap().0.read_to_end(&mut passed).unwrap();
    assert_eq!(passed, b"");
    site.wait_for_line("AH20210");
}
