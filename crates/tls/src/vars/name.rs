//! Distinguished names as text: whole (RFC 2253, or OpenSSL's old one-line form) and in parts.

use x509_parser::der_parser::asn1_rs::{Any, Tag};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::der::element;

/// How `…_S_DN` and `…_I_DN` are written. Default: RFC 2253.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// `CN=a,O=b`, the last attribute first.
    #[default]
    Rfc2253,
    /// `/O=b/CN=a`: `SSLOptions +LegacyDNStringFormat`.
    Legacy,
}

/// The name as text.
pub fn text(name: &X509Name<'_>, style: Style) -> Vec<u8> {
    match style {
        Style::Rfc2253 => rfc2253(name),
        Style::Legacy => legacy(name),
    }
}

/// One part: `CN`, `OU_1`, `O_RAW`, `OU_0_RAW`.
pub fn part(name: &X509Name<'_>, which: &str) -> Option<Vec<u8>> {
    let (which, raw) = match which.strip_suffix("_RAW") {
        Some(which) => (which, true),
        None => (which, false),
    };
    let (label, index) = match which.split_once('_') {
        Some((label, index)) => (label, index.parse::<usize>().ok()?),
        None => (which, 0),
    };
    let (_, oid) = PARTS.iter().find(|(known, _)| *known == label)?;
    let attribute = name
        .iter_attributes()
        .filter(|attribute| attribute.attr_type().to_id_string() == *oid)
        .nth(index)?;
    let text = utf8(attribute.attr_value());
    Some(if raw { printed_raw(&text) } else { printed(&text) })
}

/// All parts of a name for StdEnvVars: the first of each kind without a number.
pub fn parts<'a>(
    name: &'a X509Name<'_>,
    prefix: &'a str,
) -> impl Iterator<Item = (String, Vec<u8>)> + 'a {
    PARTS.iter().filter(|(label, _)| *label != "SP").flat_map(move |(label, oid)| {
        name.iter_attributes()
            .filter(|attribute| attribute.attr_type().to_id_string() == *oid)
            .enumerate()
            .map(move |(index, attribute)| {
                let name = match index {
                    0 => format!("{prefix}{label}"),
                    _ => format!("{prefix}{label}_{index}"),
                };
                (name, printed(&utf8(attribute.attr_value())))
            })
    })
}

/// The text of a variable: control characters are in hexadecimal, so that they end no line and no
/// field. Nothing of what is not UTF-8. Source: `asn1_string_convert`.
pub fn printed(text: &[u8]) -> Vec<u8> {
    if std::str::from_utf8(text).is_err() {
        return Vec::new();
    }
    let mut printed = Vec::with_capacity(text.len());
    text.iter().for_each(|byte| print(*byte, &mut printed));
    printed
}

/// The same with one byte for each character that has one (`_RAW`).
fn printed_raw(text: &[u8]) -> Vec<u8> {
    let mut printed = Vec::with_capacity(text.len());
    for character in std::str::from_utf8(text).unwrap_or_default().chars() {
        match (u8::try_from(character), u32::from(character)) {
            (Ok(byte), _) => print(byte, &mut printed),
            (Err(_), code @ ..=0xffff) => printed.extend(format!("\\U{code:04X}").into_bytes()),
            (Err(_), code) => printed.extend(format!("\\W{code:08X}").into_bytes()),
        }
    }
    printed
}

/// A byte, with what would end a line or begin an escape escaped.
fn print(byte: u8, out: &mut Vec<u8>) {
    match byte {
        0..=0x1f | 0x7f => out.extend(format!("\\{byte:02X}").into_bytes()),
        b'\\' => out.extend(b"\\\\"),
        _ => out.push(byte),
    }
}

/// A string of any ASN.1 type as UTF-8.
pub fn utf8(value: &Any<'_>) -> Vec<u8> {
    let data = value.data;
    let text: String = match value.tag() {
        Tag::BmpString => {
            let units = data
                .chunks_exact(2)
                .map(|pair| pair.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte)));
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        Tag::UniversalString => data
            .chunks_exact(4)
            .map(|four| four.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
            .map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
        Tag::Utf8String => return data.to_vec(),
        _ => data.iter().copied().map(char::from).collect(),
    };
    text.into_bytes()
}

fn rfc2253(name: &X509Name<'_>) -> Vec<u8> {
    let mut relative: Vec<Vec<u8>> = name
        .iter_rdn()
        .map(|relative| {
            let attributes: Vec<Vec<u8>> = relative.iter().map(rfc2253_attribute).collect();
            attributes.join(&b'+')
        })
        .collect();
    relative.reverse();
    relative.join(&b',')
}

fn rfc2253_attribute(attribute: &AttributeTypeAndValue<'_>) -> Vec<u8> {
    let oid = attribute.attr_type().to_id_string();
    let value = attribute.attr_value();
    match short_name(&oid) {
        Some(name) => [name.as_bytes(), b"=", &escaped(&utf8(value))].concat(),
        None => {
            let tag = value.header.tag().0 as u8;
            let dump: String =
                element(tag, value.data).iter().map(|byte| format!("{byte:02X}")).collect();
            format!("{oid}=#{dump}").into_bytes()
        }
    }
}

/// RFC 2253 section 2.4: control characters in hexadecimal, UTF-8 unchanged.
fn escaped(value: &[u8]) -> Vec<u8> {
    let last = value.len().saturating_sub(1);
    let mut text = Vec::with_capacity(value.len());
    for (index, byte) in value.iter().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'<' | b'>' | b';' => text.extend([b'\\', *byte]),
            b'#' if index == 0 => text.extend(b"\\#"),
            b' ' if index == 0 || index == last => text.extend(b"\\ "),
            _ => print(*byte, &mut text),
        }
    }
    text
}

/// `X509_NAME_oneline`.
fn legacy(name: &X509Name<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    for attribute in name.iter_attributes() {
        let oid = attribute.attr_type().to_id_string();
        text.push(b'/');
        text.extend(short_name(&oid).unwrap_or(&oid).bytes());
        text.push(b'=');
        for byte in attribute.attr_value().data {
            match byte {
                b' '..=b'~' => text.push(*byte),
                _ => text.extend(format!("\\x{byte:02X}").into_bytes()),
            }
        }
    }
    text
}

/// The parts with variables, by mod_ssl's names.
const PARTS: &[(&str, &str)] = &[
    ("C", "2.5.4.6"),
    ("ST", "2.5.4.8"),
    ("SP", "2.5.4.8"),
    ("L", "2.5.4.7"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("CN", "2.5.4.3"),
    ("T", "2.5.4.12"),
    ("I", "2.5.4.43"),
    ("G", "2.5.4.42"),
    ("S", "2.5.4.4"),
    ("D", "2.5.4.13"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("Email", "1.2.840.113549.1.9.1"),
    ("SerialNumber", "2.5.4.5"),
];

/// OpenSSL's short name of an attribute.
fn short_name(oid: &str) -> Option<&'static str> {
    SHORT_NAMES.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name)
}

const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.16", "postalAddress"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.18", "postOfficeBox"),
    ("2.5.4.20", "telephoneNumber"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.72", "role"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.3", "mail"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.2.840.113549.1.9.8", "unstructuredAddress"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];
