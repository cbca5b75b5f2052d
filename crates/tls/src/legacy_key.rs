//! OpenSSL's encryption of private keys before PKCS#5 v2: the DEK-Info header over a key derived by
//! MD5 (`EVP_BytesToKey`), and PKCS#8 with PBES1 (RFC 8018 section 6.1, RFC 7292 appendix B).

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::iv::FixedLength;
use cbc::cipher::{BlockDecryptMut, KeyIvInit, block_padding::Pkcs7};
use md5::{Digest, Md5};
use x509_parser::der_parser::oid;
use x509_parser::oid_registry::Oid;

/// The limit on iterations: more would delay the start.
const MAX_ROUNDS: u32 = 10_000_000;

/// Why decryption failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The format is not supported.
    Unsupported,
    /// The pass phrase is wrong (or the file damaged).
    WrongPassphrase,
}

/// Decrypts the body of a block whose DEK-Info header is `info` (`AES-128-CBC,0123…`).
pub(crate) fn dek_info(info: &str, body: &[u8], passphrase: &[u8]) -> Result<Vec<u8>, Failure> {
    let (name, iv) = info.split_once(',').ok_or(Failure::Unsupported)?;
    let iv = unhex(iv.trim()).ok_or(Failure::Unsupported)?;
    let salt = iv.get(..8).ok_or(Failure::Unsupported)?;
    let key = |length| bytes_to_key(passphrase, salt, length);
    match name {
        "AES-128-CBC" => aes(&AES_128, &key(16), &iv, body),
        "AES-192-CBC" => aes(&AES_192, &key(24), &iv, body),
        "AES-256-CBC" => aes(&AES_256, &key(32), &iv, body),
        "DES-EDE3-CBC" => block_cipher::<des::TdesEde3>(&key(24), &iv, body),
        "DES-CBC" => block_cipher::<des::Des>(&key(8), &iv, body),
        _ => Err(Failure::Unsupported),
    }
}

/// Decrypts an `EncryptedPrivateKeyInfo` with PBES1 into a PKCS#8 key.
pub(crate) fn pbes1(der: &[u8], passphrase: &[u8]) -> Result<Vec<u8>, Failure> {
    let scheme = Pbes1::parse(der).ok_or(Failure::Unsupported)?;
    if scheme.rounds > MAX_ROUNDS {
        return Err(Failure::Unsupported);
    }
    let (salt, rounds) = (&scheme.salt, scheme.rounds);
    if scheme.oid == oid!(1.2.840.113549.1.12.1.3) {
        let key = pkcs12_derive(1, passphrase, salt, rounds, 24);
        let iv = pkcs12_derive(2, passphrase, salt, rounds, 8);
        return block_cipher::<des::TdesEde3>(&key, &iv, &scheme.body);
    }
    let derived = if scheme.oid == oid!(1.2.840.113549.1.5.3) {
        pbkdf1(|data| Md5::digest(data).to_vec(), passphrase, salt, rounds)
    } else if scheme.oid == oid!(1.2.840.113549.1.5.10) {
        pbkdf1(sha1, passphrase, salt, rounds)
    } else {
        return Err(Failure::Unsupported);
    };
    match (derived.get(..8), derived.get(8..16)) {
        (Some(key), Some(iv)) => block_cipher::<des::Des>(key, iv, &scheme.body),
        _ => Err(Failure::Unsupported),
    }
}

struct Pbes1 {
    oid: Oid<'static>,
    salt: Vec<u8>,
    rounds: u32,
    body: Vec<u8>,
}

impl Pbes1 {
    fn parse(der: &[u8]) -> Option<Self> {
        use x509_parser::der_parser::der::parse_der;
        let (_, info) = parse_der(der).ok()?;
        let [algorithm, body] = info.as_sequence().ok()?.as_slice() else { return None };
        let [oid, parameters] = algorithm.as_sequence().ok()?.as_slice() else { return None };
        let [salt, rounds] = parameters.as_sequence().ok()?.as_slice() else { return None };
        Some(Self {
            oid: oid.as_oid().ok()?.to_owned(),
            salt: salt.as_slice().ok()?.to_vec(),
            rounds: rounds.as_u32().ok()?,
            body: body.as_slice().ok()?.to_vec(),
        })
    }
}

fn aes(
    algorithm: &'static Algorithm,
    key: &[u8],
    iv: &[u8],
    body: &[u8],
) -> Result<Vec<u8>, Failure> {
    let iv: [u8; 16] = iv.try_into().map_err(|_| Failure::Unsupported)?;
    let key = UnboundCipherKey::new(algorithm, key).map_err(|_| Failure::Unsupported)?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(|_| Failure::Unsupported)?;
    let mut body = body.to_vec();
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let plain = key.decrypt(&mut body, context).map_err(|_| Failure::WrongPassphrase)?;
    Ok(plain.to_vec())
}

fn block_cipher<C>(key: &[u8], iv: &[u8], body: &[u8]) -> Result<Vec<u8>, Failure>
where
    C: cbc::cipher::BlockDecryptMut + cbc::cipher::BlockCipher + cbc::cipher::KeyInit,
{
    cbc::Decryptor::<C>::new_from_slices(key, iv)
        .map_err(|_| Failure::Unsupported)?
        .decrypt_padded_vec_mut::<Pkcs7>(body)
        .map_err(|_| Failure::WrongPassphrase)
}

/// `EVP_BytesToKey` with MD5 and one round.
fn bytes_to_key(passphrase: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    while key.len() < length {
        let mut hash = Md5::new();
        hash.update(&previous);
        hash.update(passphrase);
        hash.update(salt);
        previous = hash.finalize().to_vec();
        key.extend_from_slice(&previous);
    }
    key.truncate(length);
    key
}

fn pbkdf1(hash: impl Fn(&[u8]) -> Vec<u8>, passphrase: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut derived = hash(&[passphrase, salt].concat());
    for _ in 1..rounds {
        derived = hash(&derived);
    }
    derived
}

/// The key derivation of PKCS#12 with SHA-1 (RFC 7292 appendix B.2): `purpose` is 1 for a key and
/// 2 for an initialisation vector.
fn pkcs12_derive(
    purpose: u8,
    passphrase: &[u8],
    salt: &[u8],
    rounds: u32,
    length: usize,
) -> Vec<u8> {
    const BLOCK: usize = 64;
    let password: Vec<u8> = String::from_utf8_lossy(passphrase)
        .encode_utf16()
        .chain([0])
        .flat_map(u16::to_be_bytes)
        .collect();
    let fill = |data: &[u8]| -> Vec<u8> {
        data.iter().copied().cycle().take(data.len().next_multiple_of(BLOCK)).collect()
    };
    let mut input = [fill(salt), fill(&password)].concat();
    let mut derived = Vec::new();
    while derived.len() < length {
        let mut hash = sha1(&[&[purpose; BLOCK][..], &input].concat());
        for _ in 1..rounds {
            hash = sha1(&hash);
        }
        let addend: Vec<u8> = hash.iter().copied().cycle().take(BLOCK).collect();
        for block in input.chunks_mut(BLOCK) {
            add_one_and(block, &addend);
        }
        derived.extend_from_slice(&hash);
    }
    derived.truncate(length);
    derived
}

/// block = block + addend + 1, modulo 2 to the 512.
fn add_one_and(block: &mut [u8], addend: &[u8]) {
    let mut carry = 1_u16;
    for (byte, add) in block.iter_mut().zip(addend).rev() {
        let sum = u16::from(*byte) + u16::from(*add) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
}

fn sha1(data: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, data).as_ref().to_vec()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(text.get(i..i + 2)?, 16).ok()).collect()
}
