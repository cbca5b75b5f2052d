//! The names of the variables in which a program gets the fields of a request (RFC 3875 section
//! 4.1.18).

/// The beginning of such a name.
const PREFIX: &[u8] = b"HTTP_";

/// Writes the variable of a field to `name`; false if the field's name has other characters than
/// letters, digits and `-`.
pub fn of_field(field: &[u8], name: &mut Vec<u8>) -> bool {
    name.clear();
    name.reserve(PREFIX.len() + field.len());
    name.extend_from_slice(PREFIX);
    let upper = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() };
    name.extend(field.iter().map(upper));
    // Without branches the compiler examines several at once.
    field.iter().fold(true, |all, byte| all & (byte.is_ascii_alphanumeric() | (*byte == b'-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields() {
        let mut name = Vec::new();
        assert!(of_field(b"Accept-Language", &mut name));
        assert_eq!(name, b"HTTP_ACCEPT_LANGUAGE");
        assert!(of_field(b"x-1", &mut name));
        assert_eq!(name, b"HTTP_X_1");
        assert!(!of_field(b"X_Forwarded_For", &mut name));
        assert!(!of_field(b"a.b", &mut name));
        for byte in 0..=u8::MAX {
            let is_valid = byte.is_ascii_alphanumeric() || byte == b'-';
            assert_eq!(of_field(&[b'a', byte, b'z'], &mut name), is_valid, "{byte}");
        }
    }
}
