//! SQL statements with places for parameters in the way of C's `printf`: `%s`, `%d`. A parameter is
//! always bound, never a part of the text.
//!
//! Source: `apr_dbd_prepare`.

/// A statement, and the form in which a driver wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The label by which modules name it.
    pub label: String,
    /// The text, with the places of parameters as the driver writes them.
    pub sql: String,
    /// The types of the parameters.
    pub types: Vec<Type>,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `%s`, and letters that have no meaning.
    String,
    /// `%hhd`, `%hhu`, `%hd`
    Short,
    /// `%hu`, `%d`
    Int,
    /// `%u`, `%ld`, `%lu`, `%lld`, `%llu`
    Long,
    /// `%f`
    Float,
    /// `%lf`
    Double,
    /// `%pDt`, `%pDc`
    Text,
    /// `%pDi`
    Time,
    /// `%pDd`
    Date,
    /// `%pDa`, `%pDs`
    Timestamp,
    /// `%pDz`
    ZonedTimestamp,
    /// `%pDb`
    Blob,
    /// `%pDn`
    Null,
}

/// How a driver writes the place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// `?`
    Question,
    /// `$1`, `$2`
    Dollar,
}

impl Statement {
    /// A statement without parameters, as it is written.
    pub(super) fn verbatim(text: &str) -> Statement {
        Statement { label: String::new(), sql: text.to_owned(), types: Vec::new() }
    }

    /// Makes a statement of a text.
    pub(super) fn new(label: &str, text: &str, places: Places) -> Statement {
        let (mut sql, mut types) = (String::with_capacity(text.len()), Vec::new());
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            let (before, after) = rest.split_at(at);
            sql.push_str(before);
            let after = after.get(1..).unwrap_or_default();
            match after.chars().next() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    let (kind, length) = kind(after);
                    types.push(kind);
                    match places {
                        Places::Question => sql.push('?'),
                        Places::Dollar => sql.push_str(&format!("${}", types.len())),
                    }
                    rest = after.get(length..).unwrap_or_default();
                }
                Some('%') => {
                    sql.push('%');
                    rest = after.get(1..).unwrap_or_default();
                }
                _ => {
                    sql.push('%');
                    rest = after;
                }
            }
        }
        sql.push_str(rest);
        Statement { label: label.to_owned(), sql, types }
    }
}

/// The type at the beginning of a text, and the number of letters that it takes.
fn kind(text: &str) -> (Type, usize) {
    const KINDS: [(&str, Type); 22] = [
        ("hhd", Type::Short),
        ("hhu", Type::Short),
        ("hd", Type::Short),
        ("hu", Type::Int),
        ("d", Type::Int),
        ("u", Type::Long),
        ("lld", Type::Long),
        ("llu", Type::Long),
        ("ld", Type::Long),
        ("lu", Type::Long),
        ("lf", Type::Double),
        ("f", Type::Float),
        ("pDt", Type::Text),
        ("pDc", Type::Text),
        ("pDi", Type::Time),
        ("pDd", Type::Date),
        ("pDa", Type::Timestamp),
        ("pDs", Type::Timestamp),
        ("pDz", Type::ZonedTimestamp),
        ("pDb", Type::Blob),
        ("pDn", Type::Null),
        ("s", Type::String),
    ];
    let known = KINDS.iter().find(|(letters, _)| text.starts_with(letters));
    known.map_or((Type::String, 1), |(letters, kind)| (*kind, letters.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> (String, Vec<Type>) {
        let made = Statement::new("x", text, Places::Dollar);
        (made.sql, made.types)
    }

    #[test]
    fn parameters_have_places() {
        let text = "SELECT a FROM b WHERE c = %s AND d LIKE '%%x' AND e = %d";
        let sql = "SELECT a FROM b WHERE c = $1 AND d LIKE '%x' AND e = $2";
        assert_eq!(made(text), (sql.to_owned(), vec![Type::String, Type::Int]));
        let question = Statement::new("x", text, Places::Question);
        assert_eq!(question.sql, "SELECT a FROM b WHERE c = ? AND d LIKE '%x' AND e = ?");
    }

    #[test]
    fn types_are_those_of_letters() {
        let of = |text: &str| made(text);
        assert_eq!(
            of("%hhd%lld%lf"),
            ("$1$2$3".into(), vec![Type::Short, Type::Long, Type::Double])
        );
        assert_eq!(of("%pDt%pDx"), ("$1$2Dx".into(), vec![Type::Text, Type::String]));
        assert_eq!(of("%qx"), ("$1x".into(), vec![Type::String]));
        assert_eq!(of("100% %"), ("100% %".into(), vec![]));
        assert_eq!(of("%%s"), ("%s".into(), vec![]));
        assert_eq!(of("%\u{e4}"), ("%\u{e4}".into(), vec![]));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let made = Statement::new("x", &text, Places::Question);
            proptest::prop_assert!(made.sql.matches('?').count() >= made.types.len());
        }
    }
}
