//! File systems whose inotify events report every change.

use std::path::Path;

/// statfs(2) types of local file systems, which can't change without the kernel's knowledge. Not
/// those whose names have no case (vfat, exfat): an event has the name as it is stored.
const LOCAL_TYPES: &[u32] = &[
    0x0000_EF53, // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0xCA45_1A4E, // bcachefs
    0x5265_4973, // reiserfs
    0x7371_7368, // squashfs
    0xE0F5_E1E2, // erofs
    0x0000_9660, // iso9660
    0x794C_7630, // overlay: every change through the mount (tests/overlay.rs)
];

/// `FS_CASEFOLD_FL`: names in the directory have no case.
const CASE_FOLDED: u32 = 0x4000_0000;

/// Whether every change of a name in the directory at `path` is reported under that name.
pub(super) fn is_watchable(path: &Path) -> bool {
    let Ok(directory) = regular::open_directory(path) else { return false };
    let Ok(status) = rustix::fs::fstatfs(&directory) else { return false };
    // The field is wider than 32 bits on some machines, and sign-extended on others.
    let is_local = LOCAL_TYPES.contains(&(status.f_type as u32));
    // A file system without flags has no directories with this one.
    let flags = rustix::fs::ioctl_getflags(&directory);
    is_local && !flags.is_ok_and(|flags| flags.bits() & CASE_FOLDED != 0)
}
