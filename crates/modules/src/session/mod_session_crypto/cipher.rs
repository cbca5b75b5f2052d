//! The ciphers, all in CBC mode with padding.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use des::TdesEde3;

/// A cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// `aes128`
    Aes128,
    /// `aes192`
    Aes192,
    /// `aes256`
    Aes256,
    /// `3des192`
    TripleDes,
}

impl Cipher {
    /// The cipher of a name.
    pub fn of(name: &[u8]) -> Option<Cipher> {
        match name {
            b"aes128" => Some(Cipher::Aes128),
            b"aes192" => Some(Cipher::Aes192),
            b"aes256" => Some(Cipher::Aes256),
            b"3des192" => Some(Cipher::TripleDes),
            _ => None,
        }
    }

    /// Bytes of a key.
    pub fn key_bytes(self) -> usize {
        match self {
            Cipher::Aes128 => 16,
            Cipher::Aes192 | Cipher::TripleDes => 24,
            Cipher::Aes256 => 32,
        }
    }

    /// Bytes of a block, and of the initialisation vector.
    pub fn block_bytes(self) -> usize {
        if self == Cipher::TripleDes { 8 } else { 16 }
    }

    fn aes(self) -> &'static Algorithm {
        match self {
            Cipher::Aes128 => &AES_128,
            Cipher::Aes192 => &AES_192,
            Cipher::Aes256 | Cipher::TripleDes => &AES_256,
        }
    }

    /// Encrypts; `None` if key or vector have another length.
    pub fn encrypt(self, key: &[u8], iv: &[u8], mut text: Vec<u8>) -> Option<Vec<u8>> {
        if self == Cipher::TripleDes {
            let encryptor = cbc::Encryptor::<TdesEde3>::new_from_slices(key, iv).ok()?;
            return Some(encryptor.encrypt_padded_vec_mut::<Pkcs7>(&text));
        }
        let key = UnboundCipherKey::new(self.aes(), key).ok()?;
        let key = PaddedBlockEncryptingKey::cbc_pkcs7(key).ok()?;
        let iv: [u8; 16] = iv.try_into().ok()?;
        key.less_safe_encrypt(&mut text, EncryptionContext::Iv128(FixedLength::from(iv))).ok()?;
        Some(text)
    }

    /// Decrypts; `None` if that is not possible.
    pub fn decrypt(self, key: &[u8], iv: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        if self == Cipher::TripleDes {
            let decryptor = cbc::Decryptor::<TdesEde3>::new_from_slices(key, iv).ok()?;
            return decryptor.decrypt_padded_vec_mut::<Pkcs7>(text).ok();
        }
        let key = UnboundCipherKey::new(self.aes(), key).ok()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
        let iv: [u8; 16] = iv.try_into().ok()?;
        let mut text = text.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        Some(key.decrypt(&mut text, context).ok()?.to_vec())
    }
}
