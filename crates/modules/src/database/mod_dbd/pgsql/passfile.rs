//! Passwords from a file: `passfile`, or `.pgpass` in the home of the process's user.
//!
//! Specification: <https://www.postgresql.org/docs/current/libpq-pgpass.html>.

use std::io::{self, Read};
use std::path::Path;

/// The most bytes of such a file that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whose password is looked for.
pub(super) struct Wanted<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

/// The password in a file, if it has one. Source: `passwordFromFile`.
///
/// # Errors
/// A file that is not for its owner alone, or can't be read.
pub(super) fn password(path: &Path, wanted: &Wanted<'_>) -> Result<Option<Vec<u8>>, String> {
    let shown = path.display();
    let text = match read(path) {
        Ok(Some(text)) => text,
        Ok(None) => {
            return Err(format!(
                "password file \"{shown}\" has group or world access; permissions should be u=rw \
                 (0600) or less"
            ));
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(format!("could not read password file \"{shown}\": {why}")),
    };
    Ok(text.split(|byte| *byte == b'\n').find_map(|line| password_in(line, wanted)))
}

/// The text, unless others may read or change it.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let (file, found) = regular::open_with_stat(path)?;
    if found.st_mode & 0o077 != 0 {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(Some(text))
}

/// The password of a line of `host:port:database:user:password`, if that is for what is wanted.
fn password_in(line: &[u8], wanted: &Wanted<'_>) -> Option<Vec<u8>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"#") {
        return None;
    }
    let port = wanted.port.to_string();
    let mut rest = line;
    for wanted in [wanted.host, &port, wanted.database, wanted.user] {
        let (field, after) = field(rest);
        let after = after?;
        if !is_any(rest) && field != wanted.as_bytes() {
            return None;
        }
        rest = after;
    }
    Some(field(rest).0)
}

/// Whether a line begins with the field `*`, which is not escaped.
fn is_any(text: &[u8]) -> bool {
    text.starts_with(b"*:")
}

/// The field up to a colon, in which a backslash escapes; and what follows the colon.
fn field(text: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut field = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b':' => return (field, text.get(at + 1..)),
            b'\\' if at + 1 < text.len() => {
                at += 1;
                field.extend(text.get(at));
            }
            _ => field.push(*byte),
        }
        at += 1;
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const WANTED: Wanted<'static> = Wanted { host: "db", port: 5432, database: "d:1", user: "www" };

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        for (line, password) in [
            ("db:5432:d\\:1:www:secret", Some("secret")),
            ("*:*:*:*:a\\:b\\\\c", Some("a:b\\c")),
            ("*:*:*:www:x\r", Some("x")),
            ("db:5432:d:1:www:secret", None),
            ("db:5433:*:www:secret", None),
            ("\\*:*:*:*:secret", None),
            ("#*:*:*:*:secret", None),
            ("*:*:*", None),
            ("", None),
        ] {
            let found = password_in(line.as_bytes(), &WANTED);
            assert_eq!(found.as_deref(), password.map(str::as_bytes), "{line}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("tamarack-pgpass-{}", std::process::id()));
        fs::write(&path, "# comment\nother:*:*:*:no\n*:*:*:*:yes\n*:*:*:*:late\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(password(&path, &WANTED), Ok(Some(b"yes".to_vec())));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(password(&path, &WANTED).is_err_and(|why| why.contains("world access")));
        fs::remove_file(&path).unwrap();
        assert_eq!(password(&path, &WANTED), Ok(None));
    }
}
