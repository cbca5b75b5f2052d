//! The certificates, names and revocation lists for client verification, from files and hashed
//! folders (`openssl rehash`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustls::DistinguishedName;
use rustls_pki_types::CertificateDer;

use crate::der::{Reader, SEQUENCE};
use crate::{Finding, certs, pem};

/// Entries of a hashed folder that are read at most.
pub const MAX_FOLDER_ENTRIES: usize = 10_000;

/// A file and a folder, each optional: `SSLCACertificateFile` and `SSLCACertificatePath`, and
/// similar pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locations {
    /// Concatenated PEM blocks.
    pub file: Option<Vec<u8>>,
    /// A folder of PEM files named by hash. As in OpenSSL, other files in it are ignored.
    pub folder: Option<Vec<u8>>,
}

impl Locations {
    /// Whether neither is set.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.folder.is_none()
    }

    /// The certificates. The arguments are the names of the directives, for findings.
    ///
    /// # Errors
    /// A file that can't be read or has no certificate, a folder that can't be listed.
    pub fn certificates(
        &self,
        file_directive: &'static str,
        folder_directive: &'static str,
    ) -> Result<Vec<CertificateDer<'static>>, Finding> {
        let mut found: Vec<CertificateDer<'static>> = Vec::new();
        let texts = self.texts(file_directive, folder_directive, |kind| kind != Some('r'))?;
        self.check(&texts, file_directive)?;
        for text in &texts {
            for certificate in pem::certificates(text) {
                if !found.contains(&certificate) {
                    found.push(certificate);
                }
            }
        }
        match &self.file {
            Some(file) if found.is_empty() => {
                let file = String::from_utf8_lossy(file);
                Err(Finding::error(file_directive, format!("there is no certificate in '{file}'")))
            }
            _ => Ok(found),
        }
    }

    /// The revocation lists.
    ///
    /// # Errors
    /// A file that can't be read or has neither lists nor certificates, a folder that can't be
    /// listed.
    pub fn revocation_lists(
        &self,
        file_directive: &'static str,
        folder_directive: &'static str,
    ) -> Result<Vec<Vec<u8>>, Finding> {
        let texts = self.texts(file_directive, folder_directive, |kind| kind == Some('r'))?;
        self.check(&texts, file_directive)?;
        if let (Some(file), Some(text)) = (&self.file, texts.first())
            && !pem::is_der(text)
            && pem::blocks(text).is_empty()
        {
            let file = String::from_utf8_lossy(file);
            let text = format!("there is no revocation list in '{file}'");
            return Err(Finding::error(file_directive, text));
        }
        let lists = texts.iter().flat_map(|text| match pem::is_der(text) {
            true => vec![text.clone()],
            false => pem::blocks(text)
                .into_iter()
                .filter(|block| block.label == "X509 CRL")
                .map(|block| block.der)
                .collect(),
        });
        Ok(lists.collect())
    }

    /// Checks that all of the file can be decoded: who is trusted, or not any more, must not depend
    /// on where it was cut off.
    fn check(&self, texts: &[Vec<u8>], directive: &'static str) -> Result<(), Finding> {
        match (&self.file, texts.first()) {
            (Some(file), Some(text)) if !pem::is_der(text) && !pem::is_whole(text) => {
                let file = String::from_utf8_lossy(file);
                let text = format!("a block of '{file}' is cut off or not base64");
                Err(Finding::error(directive, text))
            }
            _ => Ok(()),
        }
    }

    /// The contents of the files; in the folder, of those whose kind is `wanted`.
    pub(crate) fn texts(
        &self,
        file_directive: &'static str,
        folder_directive: &'static str,
        wanted: impl Fn(Option<char>) -> bool,
    ) -> Result<Vec<Vec<u8>>, Finding> {
        let mut texts = Vec::new();
        if let Some(file) = &self.file {
            texts.push(certs::read(file_directive, file)?);
        }
        let Some(folder) = &self.folder else { return Ok(texts) };
        let entries = std::fs::read_dir(OsStr::from_bytes(folder)).map_err(|error| {
            let folder = String::from_utf8_lossy(folder);
            Finding::error(folder_directive, format!("cannot list '{folder}': {error}"))
        })?;
        let mut paths: Vec<Vec<u8>> = entries
            .filter_map(Result::ok)
            .take(MAX_FOLDER_ENTRIES)
            .filter(|entry| {
                let name = entry.file_name();
                name.to_str().and_then(hashed_kind).is_some_and(&wanted)
            })
            .map(|entry| entry.path().into_os_string().as_bytes().to_vec())
            .collect();
        paths.sort();
        for path in paths {
            texts.push(certs::read(folder_directive, &path)?);
        }
        Ok(texts)
    }
}

/// `1a2b3c4d.0` is a certificate, `1a2b3c4d.r0` a revocation list, anything else neither.
fn hashed_kind(name: &str) -> Option<Option<char>> {
    let (hash, suffix) = name.split_once('.')?;
    let kind = suffix.starts_with('r').then_some('r');
    let number = suffix.strip_prefix('r').unwrap_or(suffix);
    let hashed = hash.len() == 8
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit());
    hashed.then_some(kind)
}

/// The subjects of certificates, for the list of acceptable authorities sent to clients.
pub fn subjects(certificates: &[CertificateDer<'static>]) -> Vec<DistinguishedName> {
    let subject = |der: &CertificateDer<'static>| {
        let parsed = certs::parse(der).ok()?;
        let content = Reader::new(parsed.subject().as_raw()).content(SEQUENCE)?;
        Some(DistinguishedName::in_sequence(content))
    };
    certificates.iter().filter_map(subject).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hashed_names_count() {
        assert_eq!(hashed_kind("1a2b3c4d.0"), Some(None));
        assert_eq!(hashed_kind("1a2b3c4d.r12"), Some(Some('r')));
        for name in ["ca.pem", "1a2b3c4d", "1a2b3c4d.", "1a2b3c4d.r", "1a2b3c4.0", "1a2b3c4d.0~"] {
            assert_eq!(hashed_kind(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let locations =
            Locations { file: Some(b"/nonexistent/ca.pem".to_vec()), ..Locations::default() };
        let finding = locations.certificates("SSLCACertificateFile", "SSLCACertificatePath");
        assert_eq!(finding.unwrap_err().directive, "SSLCACertificateFile");
        assert!(Locations::default().certificates("a", "b").unwrap().is_empty());
    }
}
