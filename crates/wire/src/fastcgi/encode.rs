//! Records of a request.

use super::pairs::{pair_bytes, write_pair};
use super::{
    HEADER_BYTES, PARAMS_BYTES, PARAMS_RECORD_BYTES, REQUEST_ID, Role, STDIN_RECORD_BYTES, VERSION,
    kind,
};

/// The record that ends the body.
pub const END_OF_STDIN: [u8; HEADER_BYTES] = header(kind::STDIN, REQUEST_ID, 0);

/// The record that gives up the request.
pub const ABORT: [u8; HEADER_BYTES] = header(kind::ABORT_REQUEST, REQUEST_ID, 0);

const fn header(kind: u8, id: u16, len: u16) -> [u8; HEADER_BYTES] {
    let [id_high, id_low] = id.to_be_bytes();
    let [len_high, len_low] = len.to_be_bytes();
    [VERSION, kind, id_high, id_low, len_high, len_low, 0, 0]
}

/// The record that begins a request. If `keep` is set, the backend leaves the connection open after
/// its response.
pub const fn begin_request(role: Role, keep: bool) -> [u8; 2 * HEADER_BYTES] {
    let [a, b, c, d, e, f, g, h] = header(kind::BEGIN_REQUEST, REQUEST_ID, HEADER_BYTES as u16);
    [a, b, c, d, e, f, g, h, 0, role as u8, keep as u8, 0, 0, 0, 0, 0]
}

/// The header of a record of `len` bytes of the body, at most [`STDIN_RECORD_BYTES`]; 0 bytes end
/// it.
pub fn stdin_header(len: usize) -> [u8; HEADER_BYTES] {
    debug_assert!(len <= STDIN_RECORD_BYTES);
    header(kind::STDIN, REQUEST_ID, len as u16)
}

/// Pairs that were left out, since they do not fit into a record. Apache logs each (`AH02536`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped(pub usize);

/// The parameters exceed [`PARAMS_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameters of the request exceed {PARAMS_BYTES} bytes")]
pub struct ParamsError;

/// Appends the records of the parameters, and the empty one that ends them. A record holds whole
/// pairs, and no padding.
pub fn write_params<'a>(
    out: &mut Vec<u8>,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<Skipped, ParamsError> {
    let (before, mut skipped) = (out.len(), Skipped::default());
    let mut start = before;
    out.extend_from_slice(&header(kind::PARAMS, REQUEST_ID, 0));
    for (name, value) in pairs {
        let len = pair_bytes(name, value);
        if len > PARAMS_RECORD_BYTES {
            skipped.0 += 1;
            continue;
        }
        if out.len() - before + len > PARAMS_BYTES {
            out.truncate(before);
            return Err(ParamsError);
        }
        if out.len() - start - HEADER_BYTES + len > PARAMS_RECORD_BYTES {
            end_record(out, start);
            start = out.len();
            out.extend_from_slice(&header(kind::PARAMS, REQUEST_ID, 0));
        }
        write_pair(out, name, value);
    }
    if out.len() > start + HEADER_BYTES {
        end_record(out, start);
        out.extend_from_slice(&header(kind::PARAMS, REQUEST_ID, 0));
    }
    Ok(skipped)
}

/// Writes the length of the content into the header at `start`.
fn end_record(out: &mut [u8], start: usize) {
    let len = (out.len() - start - HEADER_BYTES) as u16;
    if let Some(place) = out.get_mut(start + 4..start + 6) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}

/// Appends the question for the values of these variables (`FCGI_MAX_CONNS` and others, section
/// 4.1). Names beyond the size of a record are left out.
pub fn write_get_values(out: &mut Vec<u8>, names: &[&[u8]]) {
    let start = out.len();
    out.extend_from_slice(&header(kind::GET_VALUES, 0, 0));
    for name in names {
        if out.len() - start + pair_bytes(name, b"") <= PARAMS_RECORD_BYTES {
            write_pair(out, name, b"");
        }
    }
    end_record(out, start);
}
