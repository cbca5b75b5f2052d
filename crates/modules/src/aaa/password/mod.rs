//! Password hashes of `htpasswd` and crypt(3).
//!
//! Source: `apr_password_validate` (crypto/apr_passwd.c), crypt(5).

mod crypt_des;
mod crypt_md5;
pub mod verified;
mod yescrypt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use messages::Message;
use rt::Work;
use server::log::Level;
use server::module::Module;
use server::request::Request;
use sha1::{Digest, Sha1};

use super::provider::Authn;

/// Compares a password with a kept hash where that is to be done: on the pool, unless the same
/// password was right before.
pub async fn compare<M: Module>(request: &mut Request, password: &[u8], kept: Vec<u8>) -> Authn {
    let clock = request.engine.handle.clock();
    if verified::is_known(password, &kept, clock.now_ms()) {
        return Authn::Granted;
    }
    let pool = request.engine.handle.blocking().clone();
    let (sent, hash) = (password.to_vec(), kept.clone());
    match pool.run(Work::Login, move || is_right(&sent, &hash)).await {
        Ok(true) => {
            verified::remember(password, &kept, clock.now_ms());
            Authn::Granted
        }
        Ok(false) => Authn::Denied,
        Err(why) => {
            let number = Message::PoolRefused.number();
            request.log::<M>(Level::Error, number, format_args!("{why}"));
            Authn::GeneralError
        }
    }
}

/// Whether `password` matches the hash `kept`; never true for plain text. bcrypt and SHA-crypt are
/// slow by design: call this on the blocking pool.
pub fn is_right(password: &[u8], kept: &[u8]) -> bool {
    // C strings end at NUL, as did the password that was hashed.
    let end = password.iter().position(|byte| *byte == 0).unwrap_or(password.len());
    let password = password.get(..end).unwrap_or_default();
    if kept.starts_with(b"$2") {
        let kept = std::str::from_utf8(kept).unwrap_or_default();
        return bcrypt::verify(password, kept).unwrap_or(false);
    }
    let made = if kept.starts_with(b"$apr1$") {
        Some(crypt_md5::hash(password, kept, b"$apr1$"))
    } else if kept.starts_with(b"$1$") {
        Some(crypt_md5::hash(password, kept, b"$1$"))
    } else if kept.starts_with(b"{SHA}") {
        let digest = base64::engine::general_purpose::STANDARD.encode(Sha1::digest(password));
        Some([b"{SHA}", digest.as_bytes()].concat())
    } else if kept.starts_with(b"$5$") || kept.starts_with(b"$6$") {
        sha_crypt(password, kept)
    } else if kept.starts_with(b"$y$") {
        yescrypt::hash(password, kept)
    } else if kept.starts_with(b"_") {
        crypt_des::hash_bsdi(password, kept)
    } else {
        crypt_des::hash(password, kept)
    };
    made.is_some_and(|made| verify_slices_are_equal(&made, kept).is_ok())
}

/// The default number of rounds of SHA-crypt.
const SHA_ROUNDS: usize = 5000;

/// `$5$` and `$6$`, with or without `rounds=N$`.
fn sha_crypt(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = kept.split_at_checked(3)?;
    let (rounds, named, rest) = match rest.strip_prefix(b"rounds=") {
        Some(rest) => {
            let at = rest.iter().position(|byte| *byte == b'$')?;
            let (number, after) = rest.split_at(at);
            let rounds = std::str::from_utf8(number).ok()?.parse().ok()?;
            (rounds, Some(number), after.get(1..)?)
        }
        None => (SHA_ROUNDS, None, rest),
    };
    let salt = rest.split(|byte| *byte == b'$').next()?;
    let salt = salt.get(..salt.len().min(16))?;
    let hash = if scheme == b"$5$" {
        let params = sha_crypt::Sha256Params::new(rounds).ok()?;
        sha_crypt::sha256_crypt_b64(password, salt, &params).ok()?
    } else {
        let params = sha_crypt::Sha512Params::new(rounds).ok()?;
        sha_crypt::sha512_crypt_b64(password, salt, &params).ok()?
    };
    let named = named.map(|number| [b"rounds=", number, b"$"].concat()).unwrap_or_default();
    Some([scheme, &named, salt, b"$", hash.as_bytes()].concat())
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |value: u8| DIGITS.get(usize::from(value & 15)).copied().unwrap_or(b'0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// The digits of crypt(3)'s base 64, by value.
const LETTERS: [u8; 64] = *b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The digit for the six low bits.
fn letter(bits: u64) -> u8 {
    LETTERS.get((bits & 63) as usize).copied().unwrap_or(b'.')
}

#[cfg(test)]
mod tests {
    use super::is_right;

    /// Created by htpasswd and openssl.
    const KEPT: &[(&str, &str)] = &[
        ("secret", "$apr1$HvSABLvL$FzPRDHFTqNf8gY6E80r64/"),
        ("secret", "$2y$04$rERRN0u55KtyDNWS6V1zpemfejtXeS5ZUgwsk3JaSlcH/BekPaPca"),
        ("secret", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
        ("secret", "$5$.viX0kv4V1dsQsCP$Ib/VTrK/TNj7m90W4daNwPeJgu6jMx5BPXSeEN9iZyD"),
        (
            "secret",
            "$6$Gv.QyLOmQsGRWn3P$/YuRUPxUudyWXcrxDX4a3vNNqplWO5x1yIIqSrLFfWDRIO7lOi8uOIVj8coWhn\
             ZEz93eFXpbGLEtbmAhhUvyr1",
        ),
        ("secret", "QbQ149VGNllys"),
        ("secret", "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1"),
        ("a longer password than eight", "abkcfEndDLESY"),
        ("pässword", "$1$x$V3.RZpkIe3iEFSMxosZjR."),
        ("päss", "./Wrjs.Kc.GIM"),
        (
            "secret",
            "$6$rounds=1500$saltsalt$34Syr0FSbWlp9hNFif0BNSVHRPxwiPh79DU920TQC0DoAPilRd9UG4mV\
             ZjASSDEENmIuJl1xJneHoAcjNgCp00",
        ),
        ("secret", "$5$rounds=77777$a$dlRj/bLTvMk25Eh4lhVJG1KI2KVD8J/ZHXefGeqPiZ/"),
        (
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "$5$longsalt$36sGP4VTrBT8kII0OP0kxfVhdd9tLHKs4yeuoZ3fPk0",
        ),
        ("12345678", "ZzghNB6kZv6hQ"),
        ("secret", "_J9..abcd/H6HLCcf7nw"),
        ("a longer password than eight", "_J9..abcdAKStIRtsvTs"),
        ("secret", "$y$j75$abcdefgh$uMUXG79B2cFpoAYyDccUnsaH/aGTyBYMlnQidzyag01"),
    ];

    #[test]
    fn every_kind_is_understood() {
        for (password, kept) in KEPT {
            assert!(is_right(password.as_bytes(), kept.as_bytes()), "{kept}");
            assert!(!is_right(b"Secret", kept.as_bytes()), "{kept}");
            assert!(!is_right(b"", kept.as_bytes()), "{kept}");
        }
    }

    #[test]
    fn what_is_no_hash_is_never_right() {
        for kept in [
            "",
            "secret",
            "$",
            "$1$",
            "$2y$",
            "$5$",
            "$6$rounds=",
            "$y$",
            "$y$j9T$",
            "$y$j9T$s",
            "_",
            "_........",
            "{SHA}",
            "*",
            "s",
        ] {
            assert!(!is_right(b"secret", kept.as_bytes()), "{kept}");
            assert!(!is_right(kept.as_bytes(), kept.as_bytes()), "{kept}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_kept_panics(
            kept in "(\\$(1|5|6|2y|apr1)\\$)?[ -~]{0,70}",
            given: Vec<u8>,
        ) {
            proptest::prop_assume!(!kept.contains("rounds"));
            let _ = is_right(&given, kept.as_bytes());
        }
    }
}
