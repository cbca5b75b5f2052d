use super::*;
use rcgen::{CertificateParams, KeyPair};

fn certificate(names: &[&str]) -> CertificateDer<'static> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    CertificateParams::new(names).unwrap().self_signed(&key).unwrap().der().clone()
}

#[test]
fn names_match_as_in_apache() {
    let der = certificate(&["www.example.org", "*.example.com"]);
    let parsed = parse(&der).unwrap();
    assert!(matches_name(&parsed, "WWW.example.org"));
    assert!(matches_name(&parsed, "a.example.com"));
    assert!(!matches_name(&parsed, "a.b.example.com"));
    assert!(!matches_name(&parsed, "example.com"));
    assert!(!matches_name(&parsed, "other"));
}

#[test]
fn a_chain_is_completed_without_the_root() {
    let make = |name: &str, by: Option<&rcgen::Issuer<'static, KeyPair>>| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = match by {
            Some(by) => params.signed_by(&key, by).unwrap(),
            None => params.self_signed(&key).unwrap(),
        };
        (der.der().clone(), rcgen::Issuer::new(params, key))
    };
    let (root, root_issuer) = make("root", None);
    let (middle, middle_issuer) = make("middle", Some(&root_issuer));
    let (leaf, _) = make("leaf", Some(&middle_issuer));
    let mut chain = vec![leaf.clone()];
    complete(&mut chain, &[root, middle.clone()]);
    assert_eq!(chain, [leaf, middle]);
}

#[test]
fn remarks_name_what_is_odd() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(1));
    params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let der = params.self_signed(&key).unwrap().der().clone();
    let found = remarks(&parse(&der).unwrap(), "h:443:0", "b.example");
    let numbers: Vec<_> = found.iter().map(|finding| finding.number).collect();
    assert_eq!(numbers, [Some(1906), Some(1907), Some(1909), None, None]);
    assert!(found[3].message.contains("expired"));
}
