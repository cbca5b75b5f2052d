//! The names of the variables in which a program gets the fields of a request (RFC 3875 section
//! 4.1.18).

/// The beginning of such a name.
const PREFIX: &[u8] = b"HTTP_";

/// Writes the variable of a field to `name`; false, with a name of no use, if the field's name has
/// other characters than letters, digits and `-`.
pub fn of_field(field: &[u8], name: &mut Vec<u8>) -> bool {
    name.clear();
    name.extend_from_slice(PREFIX);
    name.extend_from_slice(field);
    let mut is_valid = true;
    for byte in name.get_mut(PREFIX.len()..).unwrap_or_default() {
        *byte = IN_VARIABLE[usize::from(*byte)];
        is_valid &= *byte != 0;
    }
    is_valid
}

/// What the bytes of a field's name are in that of its variable; 0 for those that no variable has.
static IN_VARIABLE: [u8; 256] = in_variable();

const fn in_variable() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0u8;
    while byte < 0x80 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_uppercase();
        }
        byte += 1;
    }
    table[b'-' as usize] = b'_';
    table
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
