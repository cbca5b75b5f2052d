//! What an application gives to `start_response`, if it is usual.

use pyo3_ffi as py;

use crate::held::Ref;

/// The content of the frame of a head, and what it says of the body's length.
pub(super) struct Head {
    content: Vec<u8>,
    length: Option<usize>,
}

impl Head {
    /// The head of a status line and a list of fields that nothing else has; `None` if they are not
    /// the usual ones.
    ///
    /// # Safety
    /// With the lock of Python and objects that the caller keeps.
    pub unsafe fn of(line: &[u8], headers: &Ref) -> Option<Head> {
        // SAFETY: as the caller promises.
        unsafe {
            let count = py::PyList_Size(headers.as_ptr());
            let mut content = Vec::with_capacity(line.len() + 48 * count.unsigned_abs());
            content.extend_from_slice(line);
            let mut length = None;
            for place in 0..count {
                let header = py::PyList_GetItem(headers.as_ptr(), place);
                if header.is_null()
                    || py::PyTuple_CheckExact(header) == 0
                    || py::PyTuple_Size(header) != 2
                {
                    return None;
                }
                let name = plain(py::PyTuple_GetItem(header, 0))?;
                let value = plain(py::PyTuple_GetItem(header, 1))?;
                if name.is_empty() || name.iter().any(|byte| matches!(byte, b' ' | b':' | b'\t')) {
                    return None;
                }
                if name.eq_ignore_ascii_case(b"Content-Length") {
                    length = Some(decimal(value)?);
                }
                content.push(0);
                content.extend_from_slice(name);
                content.push(0);
                content.extend_from_slice(value);
            }
            Some(Head { content, length })
        }
    }

    /// The frames of the whole response with this body.
    pub fn frames(&self, data: &[u8]) -> Vec<u8> {
        let data = data.get(..self.length.unwrap_or(data.len())).unwrap_or(data);
        let mut frames = Vec::with_capacity(self.content.len() + data.len() + 15);
        put_frame(&mut frames, b'H', &self.content);
        if !data.is_empty() {
            put_frame(&mut frames, b'D', data);
        }
        put_frame(&mut frames, b'E', &[]);
        frames
    }
}

fn put_frame(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(content);
}

/// The characters of a text of visible ASCII, spaces and tabs.
pub(super) unsafe fn plain<'a>(object: *mut py::PyObject) -> Option<&'a [u8]> {
    // SAFETY: with the lock of Python and an object that the caller keeps. The object keeps its
    // characters as UTF-8.
    unsafe {
        if object.is_null() || py::PyUnicode_CheckExact(object) == 0 {
            return None;
        }
        let mut len = 0;
        let start = py::PyUnicode_AsUTF8AndSize(object, &raw mut len);
        if start.is_null() {
            py::PyErr_Clear();
            return None;
        }
        let text = std::slice::from_raw_parts(start.cast::<u8>(), len.cast_unsigned());
        text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')).then_some(text)
    }
}

pub(super) fn is_status(line: &[u8]) -> bool {
    let Some((digits, reason)) = line.split_at_checked(3) else { return false };
    digits.iter().all(u8::is_ascii_digit)
        && reason.first() == Some(&b' ')
        && !reason.contains(&b'\t')
}

/// A number without leading zeros or spaces.
fn decimal(text: &[u8]) -> Option<usize> {
    let is_plain = match text {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 18 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_plain.then(|| text.iter().fold(0, |all: usize, digit| all * 10 + usize::from(digit - b'0')))
}
