//! File systems whose inotify events report every change.

use std::path::Path;

/// statfs(2) types of local file systems, which can't change without the kernel's knowledge.
const LOCAL_TYPES: &[u32] = &[
    0x0000_EF53, // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0xCA45_1A4E, // bcachefs
    0x3153_464A, // jfs
    0x5265_4973, // reiserfs
    0x7371_7368, // squashfs
    0xE0F5_E1E2, // erofs
    0x0000_9660, // iso9660
    0x0000_4D44, // vfat
    0x2011_BAB0, // exfat
];

pub(crate) fn is_watchable(path: &Path) -> bool {
    let Ok(status) = rustix::fs::statfs(path) else { return false };
    // The field is wider than 32 bits on some machines, and sign-extended on others.
    LOCAL_TYPES.contains(&(status.f_type as u32))
}
