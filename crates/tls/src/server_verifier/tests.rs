use super::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

struct Authority {
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

fn params(common: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    params
}

fn authority(name: &str) -> Authority {
    let mut params = params(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let der = params.self_signed(&key).unwrap().der().clone();
    Authority { der, issuer: Issuer::new(params, key) }
}

fn leaf(by: &Authority, params: &CertificateParams) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    params.signed_by(&key, &by.issuer).unwrap().der().clone()
}

fn verifier(mode: Mode, name_check: NameCheck, authorities: &[&Authority]) -> ServerVerifier {
    let authorities = authorities.iter().map(|one| one.der.clone()).collect();
    let chain = Chain::new(KeyUsage::server_auth(), 1, authorities);
    ServerVerifier { mode, chain: chain.into(), name_check, checks_time: true }
}

fn verdict(
    verifier: &ServerVerifier,
    leaf: &CertificateDer<'_>,
    name: &str,
) -> Result<(), CertificateError> {
    let name = ServerName::try_from(name).unwrap();
    match verifier.verify_server_cert(leaf, &[], &name, &[], UnixTime::now()) {
        Ok(_) => Ok(()),
        Err(Error::InvalidCertificate(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn authorities_count_as_the_mode_says() {
    let (root, stranger) = (authority("root"), authority("stranger"));
    let good = leaf(&root, &params("backend", &["backend.example"]));
    let unknown = leaf(&stranger, &params("backend", &["backend.example"]));
    let mut usage = params("backend", &["backend.example"]);
    usage.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let for_clients = leaf(&root, &usage);
    for (mode, of_unknown, of_purpose) in [
        (Mode::None, true, true),
        (Mode::Optional, false, false),
        (Mode::Require, false, false),
        (Mode::OptionalNoCa, true, false),
    ] {
        let verifier = verifier(mode, NameCheck::Names, &[&root]);
        assert_eq!(verdict(&verifier, &good, "backend.example"), Ok(()));
        assert_eq!(verdict(&verifier, &unknown, "backend.example").is_ok(), of_unknown, "{mode:?}");
        let outcome = verdict(&verifier, &for_clients, "backend.example");
        assert_eq!(outcome.is_ok(), of_purpose, "{mode:?}");
    }
}

#[test]
fn the_name_is_checked_even_if_nothing_is_verified() {
    let root = authority("root");
    let certificate = leaf(&root, &params("common.example", &["one.example", "*.many.example"]));
    let cases = [
        ("one.example", true, false),
        ("ONE.example", true, false),
        ("a.many.example", true, false),
        ("a.b.many.example", false, false),
        ("common.example", true, true),
        ("other.example", false, false),
        ("127.0.0.1", false, false),
    ];
    for (name, by_names, by_common_name) in cases {
        for (check, expected) in [
            (NameCheck::Names, by_names),
            (NameCheck::CommonName, by_common_name),
            (NameCheck::None, true),
        ] {
            let outcome = verdict(&verifier(Mode::None, check, &[]), &certificate, name);
            assert_eq!(outcome.is_ok(), expected, "{name} {check:?}");
            if !expected {
                assert_eq!(outcome, Err(CertificateError::NotValidForName));
            }
        }
    }
    let wild = leaf(&root, &params("*.many.example", &["one.example"]));
    let verifier = verifier(Mode::None, NameCheck::CommonName, &[]);
    assert_eq!(verdict(&verifier, &wild, "a.many.example"), Ok(()));
}

#[test]
fn the_time_is_checked_unless_it_is_switched_off() {
    let root = authority("root");
    let mut old = params("backend", &["backend.example"]);
    old.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let mut new = params("backend", &["backend.example"]);
    new.not_before = rcgen::date_time_ymd(2999, 1, 1);
    new.not_after = rcgen::date_time_ymd(3000, 1, 1);
    for (params, error) in [(old, CertificateError::Expired), (new, CertificateError::NotValidYet)]
    {
        let certificate = leaf(&root, &params);
        let mut verifier = verifier(Mode::None, NameCheck::Names, &[]);
        assert_eq!(verdict(&verifier, &certificate, "backend.example"), Err(error));
        verifier.checks_time = false;
        assert_eq!(verdict(&verifier, &certificate, "backend.example"), Ok(()));
    }
    let junk = CertificateDer::from(vec![0x30, 0]);
    let verifier = verifier(Mode::None, NameCheck::None, &[]);
    assert_eq!(verdict(&verifier, &junk, "a.example"), Err(CertificateError::BadEncoding));
}

#[test]
fn the_two_directives_about_names_go_together() {
    let cases = [
        (None, None, NameCheck::Names),
        (None, Some(true), NameCheck::Names),
        (None, Some(false), NameCheck::None),
        (Some(true), None, NameCheck::Names),
        (Some(true), Some(false), NameCheck::Names),
        (Some(false), None, NameCheck::None),
        (Some(false), Some(true), NameCheck::CommonName),
        (Some(false), Some(false), NameCheck::None),
    ];
    for (peer_name, peer_cn, expected) in cases {
        assert_eq!(NameCheck::of(peer_name, peer_cn), expected, "{peer_name:?} {peer_cn:?}");
    }
}
