//! The variables of one certificate: `M_SERIAL`, `S_DN_CN`, `V_END`, `SAN_DNS_0`, …

use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::Any;
use x509_parser::der_parser::asn1_rs::FromDer;
use x509_parser::extensions::GeneralName;
use x509_parser::time::ASN1Time;

use super::name::{self, Style};
use super::strip;
use crate::der::{Reader, context};

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// One variable, without `SSL_CLIENT_` or `SSL_SERVER_`.
pub fn variable(
    certificate: &X509Certificate<'_>,
    which: &str,
    style: Style,
    now: i64,
) -> Option<Vec<u8>> {
    if let Some(part) = strip(which, "S_DN_") {
        return name::part(certificate.subject(), part);
    }
    if let Some(part) = strip(which, "I_DN_") {
        return name::part(certificate.issuer(), part);
    }
    if let Some(kind) = strip(which, "SAN_") {
        let (kind, index) = kind.rsplit_once('_')?;
        let kind = KINDS.into_iter().find(|known| known.eq_ignore_ascii_case(kind))?;
        return alternative(certificate, kind).nth(index.parse().ok()?);
    }
    let validity = certificate.validity();
    Some(match which.to_ascii_uppercase().as_str() {
        "M_VERSION" => (certificate.version().0 + 1).to_string().into_bytes(),
        "M_SERIAL" => serial(certificate).into_bytes(),
        "S_DN" => name::text(certificate.subject(), style),
        "I_DN" => name::text(certificate.issuer(), style),
        "V_START" => time(&validity.not_before).into_bytes(),
        "V_END" => time(&validity.not_after).into_bytes(),
        "V_REMAIN" => {
            let seconds = validity.not_after.timestamp() - now;
            (seconds.max(0) / SECONDS_PER_DAY).to_string().into_bytes()
        }
        "A_SIG" => algorithm(&certificate.signature_algorithm.algorithm.to_id_string()),
        "A_KEY" => algorithm(&certificate.public_key().algorithm.algorithm.to_id_string()),
        "CERT_RFC4523_CEA" => exact_assertion(certificate),
        _ => return None,
    })
}

/// The alternative names in StdEnvVars: mail, host, and one kind of other names.
pub fn alternative_names<'a>(
    certificate: &'a X509Certificate<'_>,
    other: &'a str,
) -> impl Iterator<Item = (String, Vec<u8>)> + 'a {
    ["Email", "DNS", other].into_iter().flat_map(move |kind| {
        alternative(certificate, kind)
            .enumerate()
            .map(move |(index, value)| (format!("SAN_{kind}_{index}"), value))
    })
}

/// The values of an extension for `PeerExtList` in SSLRequire: the text of ASN.1 string types, and
/// nothing for other types.
pub fn extension_values(certificate: &X509Certificate<'_>, oid: &str) -> Vec<Vec<u8>> {
    let oid = if oid == "nsComment" { NS_COMMENT } else { oid };
    certificate
        .extensions()
        .iter()
        .filter(|extension| extension.oid.to_id_string() == oid)
        .filter_map(|extension| Any::from_der(extension.value).ok())
        .filter(|(_, value)| matches!(value.tag().0, 12 | 22 | 26 | 30))
        .map(|(_, value)| name::utf8(&value))
        .collect()
}

const NS_COMMENT: &str = "2.16.840.1.113730.1.13";
const KINDS: [&str; 4] = ["Email", "DNS", "OTHER_msUPN", "OTHER_dnsSRV"];
const MS_UPN: &str = "1.3.6.1.4.1.311.20.2.3";
const DNS_SRV: &str = "1.3.6.1.5.5.7.8.7";

fn alternative<'a>(
    certificate: &'a X509Certificate<'_>,
    kind: &'a str,
) -> impl Iterator<Item = Vec<u8>> + 'a {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|extension| &extension.value.general_names);
    names.into_iter().flatten().filter_map(move |name| match (kind, name) {
        ("Email", GeneralName::RFC822Name(mail)) => Some(name::printed(mail.as_bytes())),
        ("DNS", GeneralName::DNSName(host)) => Some(name::printed(host.as_bytes())),
        ("OTHER_msUPN", GeneralName::OtherName(oid, value)) if oid.to_id_string() == MS_UPN => {
            other_name(value)
        }
        ("OTHER_dnsSRV", GeneralName::OtherName(oid, value)) if oid.to_id_string() == DNS_SRV => {
            other_name(value)
        }
        _ => None,
    })
}

/// The string inside `[0] EXPLICIT`.
fn other_name(value: &[u8]) -> Option<Vec<u8>> {
    let element = Reader::new(value).enter(context(0))?.next_element()?;
    Some(name::printed(element.content))
}

/// As written by `i2a_ASN1_INTEGER`: two digits per byte.
fn serial(certificate: &X509Certificate<'_>) -> String {
    let raw = certificate.raw_serial();
    let start = raw.iter().position(|byte| *byte != 0).unwrap_or(raw.len().saturating_sub(1));
    raw.iter().skip(start).map(|byte| format!("{byte:02X}")).collect()
}

/// As written by `ASN1_TIME_print`: `Nov  5 23:45:51 2026 GMT`.
fn time(time: &ASN1Time) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = time.to_datetime();
    let month = MONTHS.get(usize::from(u8::from(at.month())) - 1).copied().unwrap_or_default();
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{month} {:2} {hour:02}:{minute:02}:{second:02} {} GMT", at.day(), at.year())
}

fn exact_assertion(certificate: &X509Certificate<'_>) -> Vec<u8> {
    let issuer = name::text(certificate.issuer(), Style::Rfc2253);
    let head = format!("{{ serialNumber {}, issuer rdnSequence:\"", certificate.serial);
    [head.as_bytes(), &issuer, b"\" }"].concat()
}

/// OpenSSL's long name of an algorithm.
fn algorithm(oid: &str) -> Vec<u8> {
    let name = match oid {
        "1.2.840.113549.1.1.1" => "rsaEncryption",
        "1.2.840.113549.1.1.4" => "md5WithRSAEncryption",
        "1.2.840.113549.1.1.5" => "sha1WithRSAEncryption",
        "1.2.840.113549.1.1.10" => "rsassaPss",
        "1.2.840.113549.1.1.11" => "sha256WithRSAEncryption",
        "1.2.840.113549.1.1.12" => "sha384WithRSAEncryption",
        "1.2.840.113549.1.1.13" => "sha512WithRSAEncryption",
        "1.2.840.113549.1.1.14" => "sha224WithRSAEncryption",
        "1.2.840.10040.4.1" => "dsaEncryption",
        "1.2.840.10040.4.3" => "dsaWithSHA1",
        "2.16.840.1.101.3.4.3.2" => "dsa_with_SHA256",
        "1.2.840.10045.2.1" => "id-ecPublicKey",
        "1.2.840.10045.4.1" => "ecdsa-with-SHA1",
        "1.2.840.10045.4.3.1" => "ecdsa-with-SHA224",
        "1.2.840.10045.4.3.2" => "ecdsa-with-SHA256",
        "1.2.840.10045.4.3.3" => "ecdsa-with-SHA384",
        "1.2.840.10045.4.3.4" => "ecdsa-with-SHA512",
        "1.3.101.112" => "ED25519",
        "1.3.101.113" => "ED448",
        _ => "UNKNOWN",
    };
    name.as_bytes().to_vec()
}
