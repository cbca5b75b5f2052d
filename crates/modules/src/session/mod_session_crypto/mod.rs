//! mod_session_crypto: encrypts sessions on their way to the client.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_session_crypto.html>

mod cipher;
mod keys;

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::merge::{Replace, Setting};
use server::module::Module;
use server::request::Request;

use super::mod_session::{CODEC, Codec};
use cipher::Cipher;
use keys::Passphrase;

/// `mod_session_crypto.c`
pub struct SessionCrypto;

impl Module for SessionCrypto {
    const NAME: &'static str = "session_crypto_module";
    const FILE: &'static str = "mod_session_crypto.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<SessionCrypto>] = &[
        Row::new(
            "SessionCryptoCipher",
            Takes::One(cipher),
            "name",
            "Sets the cipher: aes256, aes192, aes128 or 3des192.",
        )
        .standing(Places::ALL, Override::AUTH_CONFIG)
        .default("aes256"),
        Row::new(
            "SessionCryptoDriver",
            Takes::Some { least: 1, most: usize::MAX, set: |_, _| Ok(()) },
            "name [param[=value]]",
            "Names the library that encrypts.",
        )
        .standing(Places::SERVER, Override::NONE)
        .state(State::Accepted("the ciphers are built in")),
        Row::new(
            "SessionCryptoPassphrase",
            Takes::Each(passphrase),
            "secret [ secret ... ]",
            "Sets the passphrases: sessions are encrypted with the first, and decrypted with any.",
        )
        .standing(Places::ALL, Override::AUTH_CONFIG)
        .state(State::Partial("`exec:` is refused: SessionCryptoPassphraseFile names a file")),
        Row::new(
            "SessionCryptoPassphraseFile",
            Takes::One(passphrase_file),
            "filename",
            "Sets the passphrases from the lines of a file.",
        )
        .standing(Places::HOST.or(Places::DIRECTORY), Override::NONE),
    ];

    fn hooks(hooks: &mut Hooks<'_, SessionCrypto>) {
        hooks.provider(CODEC, "crypto", Codec { encode, decode });
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// The passphrases.
        pub passphrases: Replace<Arc<Passphrase>>,
        /// `SessionCryptoCipher`; the name of one that does not exist.
        pub cipher: Setting<Result<Cipher, Vec<u8>>>,
    }
}

/// Most bytes of a file of passphrases.
const FILE_BYTES_MAX: usize = 64 * 1024;

fn cipher(cx: &mut Cx<'_, '_, SessionCrypto>, arg: &Arg) -> Set {
    // As in Apache, a name that does not exist is noticed by requests.
    cx.dir().cipher.set(Cipher::of(&arg.text).ok_or_else(|| arg.text.to_vec()));
    Ok(())
}

fn passphrase(cx: &mut Cx<'_, '_, SessionCrypto>, arg: &Arg) -> Set {
    if arg.text.starts_with(b"exec:") {
        let help = "put what it prints into a file, and name that with SessionCryptoPassphraseFile";
        let why = "SessionCryptoPassphrase: no programs are started for passphrases";
        return Err(Fault::new(why).at(arg).help(help));
    }
    cx.dir().passphrases.push(Arc::new(Passphrase::new(&arg.text)));
    Ok(())
}

fn passphrase_file(cx: &mut Cx<'_, '_, SessionCrypto>, arg: &Arg) -> Set {
    let path = cx.build().path(&arg.text);
    let lines = crate::aaa::line::open(&path, FILE_BYTES_MAX).map_err(|why| {
        let path = path.display();
        Fault::new(format!("SessionCryptoPassphraseFile: Could not open file {path}: {why}"))
            .at(arg)
    })?;
    for line in lines {
        for word in crate::aaa::line::words(&line) {
            cx.dir().passphrases.push(Arc::new(Passphrase::new(&word)));
        }
    }
    Ok(())
}

/// The cipher for a request; one that does not exist has been logged.
fn cipher_of(request: &Request, dir: &Dir) -> Result<Cipher, ()> {
    match dir.cipher.get() {
        None => Ok(Cipher::Aes256),
        Some(Ok(cipher)) => Ok(*cipher),
        Some(Err(name)) => {
            let name = Verbatim::new(name);
            let message = format_args!(
                "cipher '{name}' not recognised by crypto driver. session encryption not possible, \
                 options: 3des192, aes128, aes192, aes256"
            );
            request.log::<SessionCrypto>(Level::Error, 1824, message);
            Err(())
        }
    }
}

/// Source: `session_crypto_encode`.
fn encode(request: &Request, text: Vec<u8>) -> Result<Vec<u8>, ()> {
    let Some(dir) = request.dir_of::<SessionCrypto>() else { return Ok(text) };
    let Some(first) = dir.passphrases.first().filter(|_| !text.is_empty()) else {
        return Ok(text);
    };
    let cipher = cipher_of(request, dir)?;
    keys::seal(cipher, first, text).ok_or_else(|| {
        request.log::<SessionCrypto>(Level::Error, 1841, format_args!("encrypt session failed"));
    })
}

/// Source: `session_crypto_decode`.
fn decode(request: &Request, text: &[u8]) -> Result<Option<Vec<u8>>, ()> {
    let Some(dir) = request.dir_of::<SessionCrypto>().filter(|dir| !dir.passphrases.is_empty())
    else {
        return Ok(None);
    };
    let cipher = cipher_of(request, dir)?;
    let opened = dir.passphrases.iter().find_map(|one| keys::open(cipher, one, text));
    opened.map(Some).ok_or_else(|| {
        let message = format_args!("decrypt session failed, wrong passphrase?");
        request.log::<SessionCrypto>(Level::Error, 1842, message);
    })
}
