//! uwsgi requests: a packet of variables, then the body as it is. The response is HTTP/1, read
//! until the connection ends: [`crate::response`].
//!
//! The packet: modifier 1, length of the variables (2 bytes, the low one first), modifier 2; then
//! for each variable length and bytes of its name, length and bytes of its value.
//!
//! Specification: <https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html>. Source:
//! `uwsgi_send_headers` (mod_proxy_uwsgi).

use crate::status::Status;

/// Most bytes of the variables with their lengths: what the header can say.
pub const VARIABLES_BYTES: usize = 65_535;

/// The kind of a request. Apache sends both as 0: WSGI, PSGI or Rack, by the backend's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// The language or command.
    pub first: u8,
    /// Its detail.
    pub second: u8,
}

/// The variables exceed [`VARIABLES_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet size too large ({bytes})")]
pub struct TooLarge {
    /// Bytes up to the variable that does not fit any more; Apache counts all.
    pub bytes: usize,
}

impl TooLarge {
    /// The status of the response.
    pub const STATUS: Status = 500;

    /// Apache's message number.
    pub const LOG_NUMBER: u32 = 10259;
}

/// Appends the packet of a request.
pub fn write_request<'a>(
    out: &mut Vec<u8>,
    modifiers: Modifiers,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), TooLarge> {
    let start = out.len();
    out.extend_from_slice(&[modifiers.first, 0, 0, modifiers.second]);
    let begin = out.len();
    for (name, value) in pairs {
        let bytes = out.len() - begin + name.len() + value.len() + 4;
        if bytes > VARIABLES_BYTES {
            out.truncate(start);
            return Err(TooLarge { bytes });
        }
        for text in [name, value] {
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
    let len = (out.len() - begin) as u16;
    if let Some(place) = out.get_mut(start + 1..start + 3) {
        place.copy_from_slice(&len.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn pairs(pairs: &Pairs) -> impl Iterator<Item = (&[u8], &[u8])> {
        pairs.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    fn read(packet: &[u8]) -> Pairs {
        let [0, low, high, 0, rest @ ..] = packet else { panic!("{packet:?}") };
        assert_eq!(usize::from(u16::from_le_bytes([*low, *high])), rest.len());
        let mut rest = rest;
        let mut text = || {
            let (len, after) = rest.split_first_chunk::<2>()?;
            let (text, after) = after.split_at(usize::from(u16::from_le_bytes(*len)));
            rest = after;
            Some(text.to_vec())
        };
        std::iter::from_fn(|| Some((text()?, text()?))).collect()
    }

    // Recorded from Apache 2.4.71, but for the variables.
    #[test]
    fn a_request_is_written_as_apache_writes_it() {
        let mut out = Vec::new();
        let given = vec![
            (b"AJP_foo".to_vec(), b"bar".to_vec()),
            (b"PATH".to_vec(), vec![b'p'; 415]),
            (b"SERVER_SIGNATURE".to_vec(), Vec::new()),
        ];
        assert_eq!(write_request(&mut out, Modifiers::default(), pairs(&given)), Ok(()));
        let mut expected = b"\0\xc9\x01\0\x07\0AJP_foo\x03\0bar\x04\0PATH\x9f\x01".to_vec();
        expected.extend([b'p'; 415]);
        expected.extend(b"\x10\0SERVER_SIGNATURE\0\0");
        assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn a_packet_has_a_limit() {
        let of = |len: usize| vec![(b"A".to_vec(), vec![b'v'; len])];
        let mut out = b"x".to_vec();
        let modifiers = Modifiers { first: 5, second: 6 };
        assert_eq!(write_request(&mut out, modifiers, pairs(&of(65_530))), Ok(()));
        assert_eq!(out[..5], [b'x', 5, 255, 255, 6]);
        out.truncate(1);
        let too_large = TooLarge { bytes: 65_536 };
        assert_eq!(write_request(&mut out, modifiers, pairs(&of(65_531))), Err(too_large));
        assert_eq!(out, b"x");
    }

    proptest! {
        #[test]
        fn what_is_written_reads(
            given in prop::collection::vec((
                prop::collection::vec(any::<u8>(), 0..300),
                prop::collection::vec(any::<u8>(), 0..300),
            ), 0..9),
        ) {
            let mut out = Vec::new();
            let written = write_request(&mut out, Modifiers::default(), pairs(&given));
            prop_assert_eq!(written, Ok(()));
            prop_assert_eq!(read(&out), given);
        }
    }
}
