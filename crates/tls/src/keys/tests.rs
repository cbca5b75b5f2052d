use super::*;
use crate::passphrase::PassphraseSource;
use std::process::{Command, Stdio};

struct Always(&'static str);

impl PassphraseSource for Always {
    fn ask(&mut self, _: &Question<'_>, retry: Option<usize>) -> Option<Vec<u8>> {
        retry.is_none().then(|| self.0.into())
    }
}

const QUESTION: Question<'_> = Question { host_id: "h:443", index: 0, path: b"k.pem" };

/// OpenSSL's output, given `input` on its standard input.
fn openssl(args: &str, input: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut child = Command::new("openssl")
        .args(args.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().stdout
}

fn open(text: &[u8], passphrase: &'static str) -> Result<PrivateKeyDer<'static>, KeyError> {
    load(text, &QUESTION, &mut Passphrases::new(&mut Always(passphrase)))
}

fn usable(key: PrivateKeyDer<'static>) -> bool {
    crate::provider().key_provider.load_private_key(key).is_ok()
}

#[test]
fn every_form_that_openssl_writes() {
    let rsa = openssl("genrsa 2048", b"");
    let ec = openssl("ecparam -genkey -name prime256v1", b"");
    for (key, how, locked) in [
        (&rsa, "pkey", false),
        (&rsa, "rsa -traditional", false),
        (&rsa, "rsa -traditional -aes128 -passout pass:secret", true),
        (&rsa, "rsa -traditional -aes256 -passout pass:secret", true),
        (&rsa, "rsa -traditional -des3 -passout pass:secret", true),
        (&rsa, "pkcs8 -topk8 -passout pass:secret", true),
        (&rsa, "pkcs8 -topk8 -v2 aes-128-cbc -v2prf hmacWithSHA1 -passout pass:secret", true),
        (&rsa, "pkcs8 -topk8 -v2 des3 -passout pass:secret", true),
        (&rsa, "pkcs8 -topk8 -v1 PBE-SHA1-3DES -passout pass:secret", true),
        (&ec, "ec", false),
        (&ec, "ec -aes128 -passout pass:secret", true),
        (&ec, "pkcs8 -topk8 -nocrypt", false),
        (&ec, "pkcs8 -topk8 -v2 aes-256-cbc -passout pass:secret", true),
    ] {
        let text = openssl(how, key);
        assert_eq!(needs_passphrase(&text), locked, "{how}");
        assert!(usable(open(&text, "secret").unwrap()), "{how}");
        if locked {
            // One wrong pass phrase in 65,536 yields what begins like a key but is none.
            let refused = ["wrong", "false"].map(|other| open(&text, other));
            assert!(refused.contains(&Err(KeyError::Locked)), "{how}");
            assert!(refused.into_iter().flatten().all(|other| !usable(other)), "{how}");
        }
    }
}

#[test]
fn a_restart_asks_for_no_pass_phrase() {
    let text = openssl("genpkey -algorithm ed25519 -aes-128-cbc -pass pass:secret", b"");
    let mut source = Always("secret");
    let mut first = Passphrases::new(&mut source);
    let key = load(&text, &QUESTION, &mut first).unwrap();
    let mut second = Passphrases::none().with_kept(first.into_kept());
    assert_eq!(load(&text, &QUESTION, &mut second).unwrap(), key);
    let changed = [&text[..], b"\n"].concat();
    assert_eq!(load(&changed, &QUESTION, &mut second).unwrap_err(), KeyError::Unanswered);
}

#[test]
fn single_des_of_pbes1() {
    let rsa = openssl("genrsa 2048", b"");
    for how in ["PBE-MD5-DES", "PBE-SHA1-DES"] {
        let args = format!(
            "pkcs8 -topk8 -provider legacy -provider default -v1 {how} -passout pass:secret"
        );
        let text = openssl(&args, &rsa);
        if !text.is_empty() {
            assert!(usable(open(&text, "secret").unwrap()), "{how}");
        }
    }
}

#[test]
fn what_is_not_a_key() {
    assert_eq!(open(b"nothing", "").unwrap_err(), KeyError::Missing);
    let other = pem::encode("DSA PRIVATE KEY", &[0x30, 0]);
    assert!(matches!(open(other.as_bytes(), ""), Err(KeyError::Unsupported(_))));
    let text = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
        DEK-Info: RC2-CBC,0011223344556677\n\n\
        AAAA\n-----END RSA PRIVATE KEY-----\n";
    assert!(matches!(open(text, "x"), Err(KeyError::Unsupported(_))));
}
