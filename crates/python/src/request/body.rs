//! The body of a request: pieces with their lengths, the last of which is empty.

use std::mem::MaybeUninit;
use std::slice;

use pyo3_ffi as py;

use super::{LENGTH_BYTES, Request};
use crate::held::{Ref, called, locked, none, number};

/// The most bytes of an object: a slow body shows that it goes on.
const MOST_BYTES: usize = 64 << 10;

/// `piece(most)`: that many bytes of the body, or 64 KiB, or what comes before its end; with 0 what
/// is left of a piece. Empty at the end, None if the body is cut off.
pub(super) unsafe extern "C" fn piece(
    this: *mut py::PyObject,
    args: *mut *mut py::PyObject,
    count: py::Py_ssize_t,
) -> *mut py::PyObject {
    // SAFETY: as `called` needs it; the body has the lock.
    unsafe {
        called((this, args, count), c"piece(most)", |request: &Request, [most]| {
            match usize::try_from(number(most)?) {
                Ok(most @ 1..) => request.read(most.min(MOST_BYTES)),
                _ => match request.left() {
                    Some(left) => request.read(left),
                    None => none(),
                },
            }
        })
    }
}

impl Request {
    /// So many bytes of the body, or what comes before its end.
    ///
    /// # Safety
    /// With the lock of Python.
    unsafe fn read(&self, most: usize) -> Option<Ref> {
        // SAFETY: as the caller promises. The object is new, has room for `most` bytes, and is
        // known to nothing else until it is returned.
        unsafe {
            let object = py::PyBytes_FromStringAndSize(std::ptr::null(), most.cast_signed());
            let object = Ref::own(object)?;
            let start = py::PyBytes_AsString(object.as_ptr());
            let room = slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), most);
            let mut done = 0;
            while let Some(room) = room.get_mut(done..)
                && !room.is_empty()
            {
                let Some(left) = self.left() else { return none() };
                if left == 0 {
                    break;
                }
                let count = left.min(room.len());
                if !room.get_mut(..count).is_some_and(|room| self.read_exactly(room)) {
                    return none();
                }
                let mut ends = locked(&self.ends);
                ends.left = ends.left.saturating_sub(count);
                done += count;
            }
            match done < most {
                true => Ref::own(py::PyBytes_FromStringAndSize(start, done.cast_signed())),
                false => Some(object),
            }
        }
    }

    /// How much is left of the current piece, or of the next one; 0 at the end, `None` if there
    /// should be one.
    ///
    /// # Safety
    /// With the lock of Python.
    unsafe fn left(&self) -> Option<usize> {
        {
            let ends = locked(&self.ends);
            if ends.left > 0 || ends.has_read_all {
                return Some(ends.left);
            }
        }
        let mut bytes = [0; LENGTH_BYTES].map(MaybeUninit::new);
        // SAFETY: as the caller promises; all of the bytes have values from the beginning.
        let bytes = unsafe {
            if !self.read_exactly(&mut bytes) {
                return None;
            }
            bytes.map(|byte| byte.assume_init())
        };
        let length = u32::from_le_bytes(bytes) as usize;
        let mut ends = locked(&self.ends);
        (ends.left, ends.has_read_all) = (length, length == 0);
        Some(length)
    }

    /// Fills `out` with what comes; false if it does not come.
    ///
    /// # Safety
    /// With the lock of Python.
    unsafe fn read_exactly(&self, mut out: &mut [MaybeUninit<u8>]) -> bool {
        loop {
            {
                let rest = &mut locked(&self.ends).rest;
                let count = rest.len().min(out.len());
                let (known, unknown) = out.split_at_mut(count);
                for (place, byte) in known.iter_mut().zip(rest.drain(..count)) {
                    place.write(byte);
                }
                out = unknown;
            }
            if out.is_empty() {
                return true;
            }
            // SAFETY: as the caller promises.
            let received =
                unsafe { self.receive(|stream, ends| stream.take_into(&mut ends.read, out)) };
            let Some(count) = received else { return false };
            out = out.get_mut(count..).unwrap_or_default();
        }
    }
}
