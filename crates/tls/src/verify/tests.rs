use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use std::time::Duration;

struct Authority {
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(77_u64));
    params
}

fn authority(name: &str, above: Option<&Authority>) -> Authority {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().unwrap();
    let certificate = match above {
        Some(above) => params.signed_by(&key, &above.issuer),
        None => params.self_signed(&key),
    };
    Authority { der: certificate.unwrap().der().clone(), issuer: Issuer::new(params, key) }
}

fn client(
    by: Option<&Authority>,
    change: impl FnOnce(&mut CertificateParams),
) -> CertificateDer<'static> {
    let mut params = params("client");
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = match by {
        Some(by) => params.signed_by(&key, &by.issuer),
        None => params.self_signed(&key),
    };
    certificate.unwrap().der().clone()
}

fn verifier(mode: Mode, depth: usize, authorities: &[&Authority]) -> ClientVerifier {
    let authorities = authorities.iter().map(|one| one.der.clone()).collect();
    let chain = Chain::new(KeyUsage::client_auth(), depth, authorities);
    ClientVerifier { mode, names: vec![], chain }
}

fn verdict(verifier: &ClientVerifier, presented: &[CertificateDer<'static>]) -> String {
    verifier.judge(presented, UnixTime::now()).variable()
}

#[test]
fn verdicts_in_apaches_words() {
    let (root, stranger) = (authority("root", None), authority("stranger", None));
    let verifier = verifier(Mode::Require, 1, &[&root]);
    assert_eq!(verdict(&verifier, &[]), "NONE");
    assert_eq!(verdict(&verifier, &[client(Some(&root), |_| ())]), "SUCCESS");
    let unknown = client(Some(&stranger), |_| ());
    assert_eq!(
        verdict(&verifier, std::slice::from_ref(&unknown)),
        "FAILED:unable to verify the first certificate"
    );
    assert_eq!(
        verdict(&verifier, &[unknown, stranger.der]),
        "FAILED:self-signed certificate in certificate chain"
    );
    assert_eq!(verdict(&verifier, &[client(None, |_| ())]), "FAILED:self-signed certificate");
    let old = client(Some(&root), |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    assert_eq!(verdict(&verifier, &[old]), "FAILED:certificate has expired");
    let junk = CertificateDer::from(vec![0x30, 0]);
    assert!(verdict(&verifier, &[junk]).starts_with("FAILED:"));
}

#[test]
fn depth_counts_the_certificates_above() {
    let root = authority("root", None);
    let middle = authority("middle", Some(&root));
    let leaf = client(Some(&middle), |_| ());
    let presented = [leaf.clone(), middle.der.clone()];
    assert_eq!(
        verdict(&verifier(Mode::Require, 1, &[&root]), &presented),
        "FAILED:certificate chain too long"
    );
    let deep = verifier(Mode::Require, 2, &[&root]);
    assert_eq!(verdict(&deep, &presented), "SUCCESS");
    let Verdict::Trusted(path) = deep.judge(&presented, UnixTime::now()) else { panic!() };
    assert_eq!(path, [leaf.clone(), middle.der.clone(), root.der.clone()]);
    // An authority that another issued completes a path but is no end of one.
    let both = verifier(Mode::Require, 2, &[&root, &middle]);
    assert_eq!(verdict(&both, std::slice::from_ref(&leaf)), "SUCCESS");
    let rootless = verifier(Mode::Require, 2, &[&middle]);
    assert_eq!(verdict(&rootless, &[leaf]), "FAILED:unable to get local issuer certificate");
}

#[test]
fn depth_zero_is_for_known_self_signed_certificates() {
    let own = client(None, |_| ());
    let mut verifier = verifier(Mode::Require, 0, &[]);
    verifier.chain.roots = vec![own.clone()];
    assert_eq!(verdict(&verifier, &[own]), "SUCCESS");
}

#[test]
fn optional_no_ca_overlooks_the_issuer_and_nothing_else() {
    let root = authority("root", None);
    let verifier = verifier(Mode::OptionalNoCa, 1, &[&root]);
    let shake = |leaf: &CertificateDer<'static>| {
        verifier.verify_client_cert(leaf, &[], UnixTime::now()).is_ok()
    };
    assert!(shake(&client(None, |_| ())));
    assert!(shake(&authority("own", None).der));
    assert!(shake(&client(Some(&root), |_| ())));
    assert!(!shake(&client(None, |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1))));
    assert!(!verifier.client_auth_mandatory());
}

fn list(by: &Authority, serials: &[u64], next_update: Duration) -> Vec<u8> {
    let now = std::time::SystemTime::now();
    let revoked = |serial: &u64| RevokedCertParams {
        serial_number: SerialNumber::from(*serial),
        revocation_time: now.into(),
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: (now - Duration::from_secs(7200)).into(),
        next_update: (now - Duration::from_secs(3600) + next_update).into(),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: serials.iter().map(revoked).collect(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    params.signed_by(&by.issuer).unwrap().der().to_vec()
}

#[test]
fn revocation_lists() {
    const HOURS: Duration = Duration::from_secs(2 * 3600);
    let (root, stranger) = (authority("root", None), authority("root", None));
    let mut verifier = verifier(Mode::Require, 1, &[&root]);
    let leaf = [client(Some(&root), |_| ())];
    verifier.chain.check = revocation::Check::Chain;
    assert_eq!(verdict(&verifier, &leaf), "FAILED:unable to get certificate CRL");
    verifier.chain.missing_list_is_well = true;
    assert_eq!(verdict(&verifier, &leaf), "SUCCESS");
    for (lists, expected) in [
        (vec![list(&root, &[78], HOURS)], "SUCCESS"),
        (vec![list(&root, &[77], HOURS)], "FAILED:certificate revoked"),
        (vec![list(&root, &[78], Duration::ZERO)], "FAILED:CRL has expired"),
        (vec![list(&stranger, &[77], HOURS)], "FAILED:CRL signature failure"),
    ] {
        verifier.chain.lists = lists;
        assert_eq!(verdict(&verifier, &leaf), expected);
    }
}

#[test]
fn a_check_needs_lists() {
    let settings = Settings { revocation_check: revocation::Check::Leaf, ..Settings::default() };
    let finding = ClientVerifier::load(&settings, &mut vec![]).unwrap_err();
    assert_eq!(finding.number, Some(1899));
    assert!(ClientVerifier::load(&Settings::default(), &mut vec![]).unwrap().is_none());
    assert!(Mode::parse("maybe").is_err());
}

/// `openssl ca` writes lists of version 1 by default.
#[test]
fn lists_of_version_1() {
    let folder = std::env::temp_dir().join(format!("tls-crl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (root, stranger) = (authority("root", None), authority("root", None));
    let pem = |der: &[u8]| crate::pem::encode("CERTIFICATE", der);
    std::fs::write(folder.join("ca.pem"), pem(&root.der)).unwrap();
    std::fs::write(folder.join("ca.key"), root.issuer.key().serialize_pem()).unwrap();
    std::fs::write(
        folder.join("c.cnf"),
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\n",
    )
    .unwrap();
    let index = "R\t300101000000Z\t250101000000Z\t4D\tunknown\t/CN=client\n";
    std::fs::write(folder.join("index.txt"), index).unwrap();
    let made = std::process::Command::new("openssl")
        .args(
            "ca -gencrl -config c.cnf -keyfile ca.key -cert ca.pem -crldays 1 -out crl.pem"
                .split(' '),
        )
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let lists =
        Locations { file: Some(folder.join("crl.pem").to_str().unwrap().into()), folder: None };
    let lists = lists.revocation_lists("SSLCARevocationFile", "SSLCARevocationPath").unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for (by, expected) in [(&root, "revoked"), (&stranger, "CRL signature failure")] {
        let mut verifier = verifier(Mode::Require, 1, &[by]);
        verifier.chain.check = revocation::Check::Leaf;
        verifier.chain.lists = lists.clone();
        assert!(verdict(&verifier, &[client(Some(by), |_| ())]).ends_with(expected));
    }
}

/// OpenSSL loads nothing of such a file, and the server does not start (AH01895, AH01901).
#[test]
fn files_that_are_not_whole_are_refused() {
    let folder = std::env::temp_dir().join(format!("tls-cut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let root = authority("root", None);
    let of_list = crate::pem::encode("X509 CRL", &list(&root, &[77], Duration::from_secs(60)));
    let of_root = crate::pem::encode("CERTIFICATE", &root.der);
    let file = folder.join("file.pem");
    let locations = Locations { file: Some(file.to_str().unwrap().into()), folder: None };
    let lists = |text: &str| {
        std::fs::write(&file, text).unwrap();
        locations
            .revocation_lists("SSLCARevocationFile", "SSLCARevocationPath")
            .map(|all| all.len())
    };
    let certificates = |text: &str| {
        std::fs::write(&file, text).unwrap();
        locations.certificates("SSLCACertificateFile", "SSLCACertificatePath").map(|all| all.len())
    };
    assert_eq!(lists(&of_list).unwrap(), 1);
    assert_eq!(certificates(&of_root).unwrap(), 1);
    assert!(lists("no list\n").is_err());
    for whole in [&of_list, &of_root] {
        let cut = whole.get(..whole.len() / 2).unwrap();
        let damaged = whole.replacen("-----\nMI", "-----\n??", 1);
        let unended = whole.replace("-----END", "-----FIN");
        for broken in [cut, &damaged, &unended] {
            for text in [broken.to_owned(), format!("{whole}{broken}"), format!("{broken}{whole}")]
            {
                assert!(lists(&text).is_err(), "{text}");
                assert!(certificates(&text).is_err(), "{text}");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_certificate_of_version_1_is_none_that_rustls_takes() {
    let read = |text: &[u8]| crate::pem::certificates(text).remove(0);
    let root = read(include_bytes!("../../../../tests/tls/ca.pem"));
    let old = read(include_bytes!("../../../../tests/tls/old.pem"));
    let issuer = Issuer::new(params("unused"), KeyPair::generate().unwrap());
    let authority = Authority { der: root, issuer };
    let verifier = verifier(Mode::Require, 1, &[&authority]);
    let verdict = verifier.judge(&[old], UnixTime::now());
    assert!(matches!(verdict, Verdict::Failed(_)) && !verifier.admits(&verdict), "{verdict:?}");
}

#[test]
fn what_sections_ask_for_ends_no_handshake() {
    let known = authority("known", None);
    let verifier = verifier(Mode::OfSections, 1, &[&known]);
    assert!(verifier.offer_client_auth() && !verifier.client_auth_mandatory());
    let stranger = client(Some(&authority("unknown", None)), |_| {});
    assert!(verifier.verify_client_cert(&stranger, &[], UnixTime::now()).is_ok());
    let verdict = verifier.judge(&[stranger], UnixTime::now());
    assert!(matches!(verdict, Verdict::Failed(_)), "{verdict:?}");
}
