use super::*;
use std::process::Command;

const CONFIG: &str = "[req]\ndistinguished_name=dn\n[dn]\n[cl]\nbasicConstraints=CA:FALSE\n\
    subjectAltName=email:cl@example.org,email:two@example.org,DNS:client.example.org,\
    otherName:1.3.6.1.4.1.311.20.2.3;UTF8:user@corp.example\n\
    nsComment=hello world\n1.2.3.4.5.6=ASN1:UTF8String:foobar\n";

const SUBJECT: &str = "/C=DE/ST=Sachsen/O=Ümläut, Söhne /OU=one/OU=two/CN=Max Müller/SN=M\
    /UID=max/description=#a\"b/emailAddress=max@example.org/serialNumber=77/DC=org";

/// Generated once for all tests.
fn certificate() -> CertificateDer<'static> {
    static MADE: std::sync::OnceLock<CertificateDer<'static>> = std::sync::OnceLock::new();
    MADE.get_or_init(make).clone()
}

fn make() -> CertificateDer<'static> {
    let folder = std::env::temp_dir().join(format!("tls-vars-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("c.cnf"), CONFIG).unwrap();
    let out = Command::new("openssl")
        .args(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -utf8"
                .split(' '),
        )
        .args("-days 100 -set_serial 0x00c0ffee -extensions cl -config c.cnf -subj".split(' '))
        .arg(SUBJECT)
        .current_dir(&folder)
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(folder);
    pem::certificates(&out.stdout).remove(0)
}

fn connection() -> Connection<'static> {
    let certificate = certificate();
    let id = Box::leak(Box::new(OnceCell::new()));
    let _ = id.set(Box::new([0xab; 32]));
    Connection {
        protocol: "TLSv1.3",
        suite: CipherSuite::TLS13_AES_256_GCM_SHA384,
        resumed: false,
        session_id: id,
        server_name: Some("localhost"),
        server_chain: Vec::leak(vec![certificate.clone()]),
        client_chain: Vec::leak(vec![certificate.clone(), certificate]),
        failure: None,
        interface: "mod_ssl/2.4.71",
    }
}

#[test]
fn values_are_those_of_apache() {
    let connection = connection();
    let now = crate::tickets::unix_seconds() as i64 + 60;
    let value = |name: &str| {
        connection.lookup(name, Style::Rfc2253, now).map(|value| String::from_utf8(value).unwrap())
    };
    for (name, expected) in [
        ("HTTPS", Some("on")),
        ("SSL_PROTOCOL", Some("TLSv1.3")),
        ("SSL_CIPHER", Some("TLS_AES_256_GCM_SHA384")),
        ("SSL_CIPHER_USEKEYSIZE", Some("256")),
        ("SSL_SESSION_ID", Some(&*"ab".repeat(32))),
        ("SSL_SESSION_RESUMED", Some("Initial")),
        ("SSL_TLS_SNI", Some("localhost")),
        ("SSL_FOO", None),
        ("SSL_CLIENT_VERIFY", Some("SUCCESS")),
        ("SSL_CLIENT_M_VERSION", Some("3")),
        ("SSL_CLIENT_M_SERIAL", Some("C0FFEE")),
        (
            "SSL_CLIENT_S_DN",
            Some(
                "DC=org,serialNumber=77,emailAddress=max@example.org,description=\\#a\\\"b,\
                 UID=max,SN=M,CN=Max Müller,OU=two,OU=one,O=Ümläut\\, Söhne\\ ,ST=Sachsen,C=DE",
            ),
        ),
        ("SSL_CLIENT_S_DN_OU", Some("one")),
        ("SSL_CLIENT_S_DN_OU_1", Some("two")),
        ("SSL_CLIENT_S_DN_OU_2", None),
        ("SSL_CLIENT_S_DN_SP", Some("Sachsen")),
        ("SSL_CLIENT_S_DN_Email", Some("max@example.org")),
        ("SSL_CLIENT_S_DN_RAW", None),
        ("SSL_CLIENT_S_DN_DC", None),
        ("SSL_CLIENT_SAN_Email_1", Some("two@example.org")),
        ("SSL_CLIENT_SAN_DNS_0", Some("client.example.org")),
        ("SSL_CLIENT_SAN_DNS", None),
        ("SSL_client_san_dns_0", Some("client.example.org")),
        ("SSL_client_m_serial", Some("C0FFEE")),
        ("ssl_protocol", Some("TLSv1.3")),
        ("SSL_CLIENT_S_DN_cn", None),
        ("SSL_CLIENT_S_DN_SerialNumber", Some("77")),
        ("SSL_CLIENT_S_DN_OU_0_RAW", Some("one")),
        ("SSL_CLIENT_S_DN_OU_RAW_0", None),
        ("SSL_CLIENT_SAN_OTHER_msUPN_0", Some("user@corp.example")),
        ("SSL_CLIENT_V_REMAIN", Some("99")),
        ("SSL_CLIENT_A_SIG", Some("ecdsa-with-SHA256")),
        ("SSL_CLIENT_A_KEY", Some("id-ecPublicKey")),
        ("SSL_CLIENT_CERT_CHAIN_1", None),
    ] {
        assert_eq!(value(name).as_deref(), expected, "{name}");
    }
    // A byte for each character that has one, as recorded in mod_ssl/odd_names.
    let raw = connection.lookup("SSL_CLIENT_S_DN_O_0_RAW", Style::Rfc2253, now);
    assert_eq!(raw.unwrap(), b"\xdcml\xe4ut, S\xf6hne ");
    assert_eq!(value("SSL_SERVER_CERT_RFC4523_CEA"), None);
    assert!(value("SSL_CLIENT_V_END").unwrap().ends_with(" GMT"));
    assert!(value("SSL_CLIENT_CERT_CHAIN_0").unwrap().starts_with("-----BEGIN CERTIFICATE-----\n"));
    let assertion = value("SSL_CLIENT_CERT_RFC4523_CEA").unwrap();
    assert!(assertion.starts_with("{ serialNumber 12648430, issuer rdnSequence:\"DC=org,"));
}

#[test]
fn the_legacy_form() {
    let value = connection().lookup("SSL_SERVER_S_DN", Style::Legacy, 0).unwrap();
    let text = String::from_utf8(value).unwrap();
    assert!(
        text.starts_with("/C=DE/ST=Sachsen/O=\\xC3\\x9Cml\\xC3\\xA4ut, S\\xC3\\xB6hne /OU=one/")
    );
}

#[test]
fn standard_variables() {
    let variables = connection().standard(Style::Rfc2253, 0);
    let has = |name: &str| variables.iter().any(|(known, _)| known == name);
    for name in [
        "SSL_CLIENT_S_DN_OU",
        "SSL_CLIENT_S_DN_OU_1",
        "SSL_SERVER_I_DN_CN",
        "SSL_CLIENT_SAN_OTHER_msUPN_0",
    ] {
        assert!(has(name), "{name}");
    }
    for name in ["SSL_CLIENT_S_DN_OU_0", "SSL_CLIENT_CERT", "SSL_SERVER_SAN_OTHER_msUPN_0"] {
        assert!(!has(name), "{name}");
    }
    let exported = connection().exported();
    let names: Vec<_> = exported.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["SSL_SERVER_CERT", "SSL_CLIENT_CERT", "SSL_CLIENT_CERT_CHAIN_0"]);
}

#[test]
fn extensions_by_their_number() {
    let der = certificate();
    let parsed = certs::parse(&der).unwrap();
    assert_eq!(certificate::extension_values(&parsed, "1.2.3.4.5.6"), [b"foobar"]);
    assert_eq!(certificate::extension_values(&parsed, "nsComment"), [b"hello world"]);
    assert!(certificate::extension_values(&parsed, "2.5.29.17").is_empty());
}
