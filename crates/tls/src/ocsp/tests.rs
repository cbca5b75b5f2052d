use super::check::{self, Enable, Settings};
use super::response::{self, Fault, Policy, Status};
use super::*;
use crate::pem;
use crate::verify::Reason;
use proptest::prelude::*;
use std::path::PathBuf;
use std::process::Command;

/// An OpenSSL authority that acts as a responder, with a good certificate (serial 5) and a revoked
/// one (serial 6).
pub(crate) struct Responding {
    folder: PathBuf,
    pub root: CertificateDer<'static>,
    pub good: CertificateDer<'static>,
    pub revoked: CertificateDer<'static>,
}

const CONFIG: &str = "[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n\
    keyUsage=keyCertSign,cRLSign\n[leaf]\nbasicConstraints=CA:FALSE\n\
    authorityInfoAccess=OCSP;URI:http://ocsp.example:8888/ask?x\n\
    [resp]\nextendedKeyUsage=OCSPSigning\n";

impl Responding {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tls-ocsp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("c.cnf"), CONFIG).unwrap();
        let index = "V\t300101000000Z\t\t05\tunknown\t/CN=good\n\
            R\t300101000000Z\t250101000000Z\t06\tunknown\t/CN=revoked\n";
        std::fs::write(folder.join("index.txt"), index).unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config c.cnf";
        let run = |args: String| openssl(&folder, &args);
        run(format!(
            "req -x509 {key} -keyout ca.key -out ca.pem -days 9 -extensions ca -subj /CN=root"
        ));
        for (name, serial, extensions) in
            [("good", 5, "leaf"), ("revoked", 6, "leaf"), ("resp", 7, "resp")]
        {
            run(format!("req -new {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
            run(format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -set_serial {serial} \
                 -days 9 -extfile c.cnf -extensions {extensions} -out {name}.pem"
            ));
        }
        let read =
            |name: &str| pem::certificates(&std::fs::read(folder.join(name)).unwrap()).remove(0);
        let (root, good, revoked) = (read("ca.pem"), read("good.pem"), read("revoked.pem"));
        Self { folder, root, good, revoked }
    }

    fn answer(&self, request: &Request, signer: &str) -> Vec<u8> {
        self.answer_der(&request.der(), signer)
    }

    /// The response of `openssl ocsp` to a request.
    pub fn answer_der(&self, request: &[u8], signer: &str) -> Vec<u8> {
        std::fs::write(self.folder.join("req.der"), request).unwrap();
        openssl(
            &self.folder,
            &format!(
                "ocsp -index index.txt -CA ca.pem -rsigner {signer}.pem \
             -rkey {signer}.key -reqin req.der -respout resp.der -ndays 1"
            ),
        );
        std::fs::read(self.folder.join("resp.der")).unwrap()
    }

    fn policy(&self) -> Policy<'_> {
        Policy {
            issuer: &self.root,
            trusted: &[],
            verify_signature: true,
            skew_seconds: 300,
            max_age_seconds: None,
            now: crate::tickets::unix_seconds() as i64,
        }
    }
}

impl Drop for Responding {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn openssl(folder: &PathBuf, args: &str) {
    let output =
        Command::new("openssl").args(args.split_whitespace()).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The DER in an HTTP request.
pub(crate) fn body_of(request: &HttpRequest) -> &[u8] {
    let end = request.bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    &request.bytes[end + 4..]
}

fn request(certificate: &CertificateDer<'_>, by: &Responding) -> Request {
    Request::new(CertificateId::of(certificate, &by.root).unwrap(), true)
}

#[test]
fn answers_of_openssls_responder() {
    let by = Responding::new("answers");
    for (certificate, status) in [(&by.good, Status::Good), (&by.revoked, Status::Revoked)] {
        let request = request(certificate, &by);
        for signer in ["ca", "resp"] {
            let answer = by.answer(&request, signer);
            assert_eq!(response::verify(&answer, &request, &by.policy()).unwrap().status, status);
        }
    }
    // Another certificate of the same issuer must not sign, and a response to another request is
    // rejected.
    let asked = request(&by.good, &by);
    let forged = by.answer(&asked, "good");
    assert_eq!(response::verify(&forged, &asked, &by.policy()), Err(Fault::Signature));
    let unverified = Policy { verify_signature: false, ..by.policy() };
    assert!(response::verify(&forged, &asked, &unverified).is_ok());
    let answer = by.answer(&asked, "ca");
    let again = request(&by.good, &by);
    assert_eq!(response::verify(&answer, &again, &by.policy()), Err(Fault::Nonce));
    let other = Request { nonce: None, ..request(&by.revoked, &by) };
    assert_eq!(response::verify(&answer, &other, &by.policy()), Err(Fault::OtherCertificate));
    let mut late = by.policy();
    late.now += 2 * 24 * 3600;
    assert_eq!(response::verify(&answer, &asked, &late), Err(Fault::Time));
    let mut aged = by.policy();
    aged.now += 1000;
    aged.max_age_seconds = Some(600);
    assert_eq!(response::verify(&answer, &asked, &aged), Err(Fault::Time));
    let unchanged = response::verify(&answer, &asked, &by.policy());
    let mut changed = answer;
    for position in 0..changed.len() {
        changed[position] ^= 1;
        let judged = response::verify(&changed, &asked, &by.policy());
        assert!(judged.is_err() || judged == unchanged, "{position}");
        changed[position] ^= 1;
    }
    assert_eq!(
        response::verify(&[0x30, 3, 0x0a, 1, 3], &asked, &by.policy()),
        Err(Fault::Responder(3))
    );
}

#[test]
fn a_clients_path_is_asked_about() {
    let by = Responding::new("path");
    let settings = Settings { enable: Enable::On, ..Settings::default() };
    let now = crate::tickets::unix_seconds() as i64;
    for (certificate, expected) in [(&by.good, Ok(())), (&by.revoked, Err(Reason::Revoked))] {
        let path = [certificate.clone(), by.root.clone()];
        let questions = check::questions(&path, &settings).unwrap();
        let [question] = questions.as_slice() else { panic!() };
        assert_eq!((question.http.host.as_str(), question.http.port), ("ocsp.example", 8888));
        assert!(question.http.bytes.starts_with(b"POST /ask?x HTTP/1.0\r\n"));
        let told = by.answer_der(body_of(&question.http), "ca");
        assert_eq!(question.judge(Some(&told), &settings, now), expected);
        assert_eq!(question.judge(None, &settings, now), Err(Reason::OcspFailed));
    }
    let overriding = Settings { override_responder: true, ..settings };
    let path = [by.good.clone(), by.root.clone()];
    assert!(check::questions(&path, &overriding).is_err(), "no default responder");
    assert_eq!(check::questions(&path, &Settings::default()).unwrap().len(), 0);
}

#[test]
fn responders_urls() {
    let parse = |url| Responder::parse(url).map(|one| (one.host, one.port, one.path));
    let of = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
    assert_eq!(parse("http://a.example"), of("a.example", 80, "/"));
    assert_eq!(parse("HTTP://a:81/b?c"), of("a", 81, "/b?c"));
    assert_eq!(parse("http://[::1]:81"), of("::1", 81, "/"));
    for wrong in ["https://a/", "http://", "http://a:x/", "http://a/\r\nX: y", "ä", ""] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}

#[test]
fn http_answers() {
    assert_eq!(http_body(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\nbody"), Some(&b"body"[..]));
    assert_eq!(http_body(b"HTTP/1.1 404 No\r\n\r\nbody"), None);
    assert_eq!(http_body(b"junk"), None);
}

proptest! {
    #[test]
    fn any_answer_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let issuer = CertificateDer::from(vec![]);
        let id = CertificateId { der: vec![] };
        let policy = Policy {
            issuer: &issuer, trusted: &[], verify_signature: false,
            skew_seconds: 0, max_age_seconds: None, now: 0,
        };
        let request = Request { id, nonce: None };
        prop_assert!(response::verify(&bytes, &request, &policy).is_err());
        let wrapped = sequence(&[&element(crate::der::ENUMERATED, &[0]), &bytes]);
        prop_assert!(response::verify(&wrapped, &request, &policy).is_err());
    }
}
