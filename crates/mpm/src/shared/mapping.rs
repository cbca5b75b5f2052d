//! Memory mappings shared between processes.

#![expect(unsafe_code, reason = "memory shared between processes")]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

/// The largest region (1 GiB), so that a mistake in a configuration is an error instead of
/// exhausting the machine.
pub const REGION_BYTES_MAX: usize = 1 << 30;

/// A type that shared memory may hold: made of atomics only, and valid if all its bytes are 0.
///
/// # Safety
/// All-zero bytes must be a valid value, every field must be an atomic (or padding), and nothing in
/// it may need dropping.
pub(crate) unsafe trait Cells: Sync {}

// SAFETY: atomics of plain integers; zero is a value of each.
unsafe impl Cells for AtomicU8 {}
// SAFETY: as above.
unsafe impl Cells for AtomicU32 {}
// SAFETY: as above.
unsafe impl Cells for AtomicU64 {}

/// Maps `count` zeroed cells of anonymous memory, shared with forked children. The mapping lasts as
/// long as the process.
pub(crate) fn map_cells<T: Cells>(count: usize) -> io::Result<&'static [T]> {
    let bytes = bytes_of::<T>(count)?;
    if bytes == 0 {
        return Ok(&[]);
    }
    // SAFETY: a new anonymous mapping at an address chosen by the kernel overlaps no memory in use.
    let start = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            // NORESERVE: unused room must not count even as committed memory.
            MapFlags::SHARED | MapFlags::NORESERVE,
        )?
    };
    // SAFETY: the mapping is page-aligned (no cell needs more than 64), `bytes` long, zeroed and
    // never unmapped; `Cells` guarantees that zero is valid and that all access is atomic.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<T>(), count) })
}

/// As [`map_cells`], backed by a memfd, which is created if none is given. A process that executes
/// another program loses its mappings but can hand over the file.
pub(crate) fn map_file_cells<T: Cells>(
    count: usize,
    file: Option<OwnedFd>,
) -> io::Result<(&'static [T], OwnedFd)> {
    let bytes = bytes_of::<T>(count)?;
    let file = match file {
        Some(file) => file,
        None => {
            let file = new_file()?;
            ftruncate(&file, bytes as u64)?;
            file
        }
    };
    // An access beyond the end of the file would raise SIGBUS.
    if u64::try_from(fstat(&file)?.st_size).ok() != Some(bytes as u64) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if bytes == 0 {
        return Ok((&[], file));
    }
    // SAFETY: a new mapping at an address chosen by the kernel overlaps no memory in use.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            &file,
            0,
        )?
    };
    // SAFETY: as in `map_cells`; the file is as long as the mapping and is never truncated: only
    // this program has had access to it.
    Ok((unsafe { std::slice::from_raw_parts(start.cast::<T>(), count) }, file))
}

/// Kernels before 6.3 don't know the flag; later ones warn without it.
fn new_file() -> rustix::io::Result<OwnedFd> {
    const NAME: &str = "tamarack";
    memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| memfd_create(NAME, MemfdFlags::CLOEXEC))
}

fn bytes_of<T>(count: usize) -> io::Result<usize> {
    count
        .checked_mul(size_of::<T>())
        .filter(|bytes| *bytes <= REGION_BYTES_MAX)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
