//! SCGI requests: the fields as a netstring, `length:name NUL value NUL … ,`, then the body. The
//! response is a program's output: [`crate::script_head`].
//!
//! Specification: <https://python.ca/scgi/protocol.txt>. Source: `send_headers` (mod_proxy_scgi).

/// Most bytes of the fields. Apache has no such limit.
pub const FIELDS_BYTES: usize = 1 << 20;

/// Why a request can't be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScgiError {
    /// The fields exceed [`FIELDS_BYTES`].
    #[error("fields of the request exceed {FIELDS_BYTES} bytes")]
    TooLarge,
    /// A name or value contains NUL, which would begin another field.
    #[error("field of the request contains NUL")]
    Nul,
}

/// Appends the fields of a request whose body has `content_length` bytes. `CONTENT_LENGTH` comes
/// first, `SCGI` second; of `pairs`, those two are left out, since a second one would be an error
/// by the specification.
pub fn write_request<'a>(
    out: &mut Vec<u8>,
    content_length: u64,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
) -> Result<(), ScgiError> {
    let own = format!("CONTENT_LENGTH\0{content_length}\0SCGI\x001\0");
    let pairs = pairs.filter(|(name, _)| !matches!(*name, b"CONTENT_LENGTH" | b"SCGI"));
    let mut len = own.len();
    for (name, value) in pairs.clone() {
        if name.contains(&0) || value.contains(&0) {
            return Err(ScgiError::Nul);
        }
        len += name.len() + value.len() + 2;
        if len > FIELDS_BYTES {
            return Err(ScgiError::TooLarge);
        }
    }
    out.extend_from_slice(format!("{len}:").as_bytes());
    out.extend_from_slice(own.as_bytes());
    for (name, value) in pairs {
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(value);
        out.push(0);
    }
    out.push(b',');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn pairs(pairs: &Pairs) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        pairs.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// The fields of a request, read by the specification.
    fn read(bytes: &[u8]) -> Pairs {
        let colon = bytes.iter().position(|byte| *byte == b':').unwrap();
        let len: usize = std::str::from_utf8(&bytes[..colon]).unwrap().parse().unwrap();
        let fields = &bytes[colon + 1..colon + 1 + len];
        assert_eq!(&bytes[colon + 1 + len..], b",");
        let mut texts = fields.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0);
        std::iter::from_fn(|| Some((texts.next()?.to_vec(), texts.next()?.to_vec()))).collect()
    }

    // Recorded from Apache 2.4.71, but for the fields.
    #[test]
    fn a_request_is_written_as_apache_writes_it() {
        let mut out = Vec::new();
        let given = vec![
            (b"AJP_foo".to_vec(), b"bar".to_vec()),
            (b"CONTENT_LENGTH".to_vec(), b"11".to_vec()),
            (b"SERVER_SIGNATURE".to_vec(), Vec::new()),
        ];
        assert_eq!(write_request(&mut out, 10, pairs(&given)), Ok(()));
        let expected = b"55:CONTENT_LENGTH\x0010\0SCGI\x001\0AJP_foo\0bar\0SERVER_SIGNATURE\0\0,";
        assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn limits_have_names() {
        let mut out = Vec::new();
        let nul = vec![(b"A".to_vec(), b"b\0EVIL\0c".to_vec())];
        assert_eq!(write_request(&mut out, 0, pairs(&nul)), Err(ScgiError::Nul));
        let long = vec![(b"A".to_vec(), vec![b'v'; FIELDS_BYTES])];
        assert_eq!(write_request(&mut out, 0, pairs(&long)), Err(ScgiError::TooLarge));
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_written_reads(
            given in prop::collection::vec((
                prop::collection::vec(1u8.., 1..20), prop::collection::vec(1u8.., 0..50),
            ), 0..9),
            length: u64,
        ) {
            let mut out = Vec::new();
            prop_assert_eq!(write_request(&mut out, length, pairs(&given)), Ok(()));
            let read = read(&out);
            prop_assert_eq!(read[0].1.clone(), length.to_string().into_bytes());
            prop_assert_eq!(&read[2..], &given[..]);
        }
    }
}
