//! What stands at a path.

/// The metadata of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// The kind of entry.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, microseconds since the epoch.
    pub mtime_us: u64,
    /// When content or attributes last changed, in microseconds since the epoch. It can't be set
    /// back.
    pub ctime_us: u64,
    /// Inode.
    pub inode: u64,
    /// Device.
    pub device: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The number of hard links.
    pub links: u64,
}

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// It does not exist, or was not looked up.
    #[default]
    None,
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}
