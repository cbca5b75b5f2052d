//! The variables of a request as a program gets them.
//!
//! Source: `ap_create_environment`.

use std::borrow::Cow;
use std::os::unix::ffi::OsStringExt;
use std::sync::LazyLock;

use wire::Table;

/// The server's time zone.
static TZ: LazyLock<Option<Vec<u8>>> =
    LazyLock::new(|| std::env::var_os("TZ").map(OsStringExt::into_vec));

/// Variables whose names shells and programs can use.
pub(crate) struct Environment<'t>(&'t Table);

impl<'t> Environment<'t> {
    /// The variables of a table.
    pub fn of(table: &'t Table) -> Environment<'t> {
        Environment(table)
    }

    /// Names and values. A name with other bytes than letters, digits and `_` is cleaned; if the
    /// clean name is taken, the variable is left out.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'t, [u8]>, &'t [u8])> {
        let table = self.0;
        let zone = TZ.as_deref().filter(|_| !table.contains(b"TZ"));
        let zone = zone.map(|zone| (Cow::Borrowed(b"TZ".as_slice()), zone));
        zone.into_iter().chain(table.iter().filter_map(move |(name, value)| {
            let name = clean(name);
            let is_taken = matches!(name, Cow::Owned(_)) && table.contains(&name);
            (!is_taken).then_some((name, value))
        }))
    }
}

fn clean(name: &[u8]) -> Cow<'_, [u8]> {
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let begins_with_digit = name.first().is_some_and(u8::is_ascii_digit);
    if name.iter().all(is_usual) && !begins_with_digit {
        return Cow::Borrowed(name);
    }
    let mut clean: Vec<u8> =
        name.iter().map(|byte| if is_usual(byte) { *byte } else { b'_' }).collect();
    if let Some(first) = clean.first_mut().filter(|first| first.is_ascii_digit()) {
        *first = b'_';
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned_and_do_not_collide() {
        let mut table = Table::new();
        for (name, value) in [
            ("REQUEST-METHOD", "forged"),
            ("REQUEST_METHOD", "GET"),
            ("1digit", "one"),
            ("a.b", "two"),
            ("TZ", "UTC"),
            ("", "empty"),
        ] {
            table.add(name.as_bytes(), value.as_bytes());
        }
        let all: Vec<String> = Environment::of(&table)
            .iter()
            .map(|(name, value)| {
                format!("{}={}", String::from_utf8_lossy(&name), String::from_utf8_lossy(value))
            })
            .collect();
        assert_eq!(all, ["REQUEST_METHOD=GET", "_digit=one", "a_b=two", "TZ=UTC", "=empty"]);
    }
}
