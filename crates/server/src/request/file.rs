//! What stands at a path, as a request knows it.

/// `AcceptPathInfo`, as a handler sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathInfoUse {
    /// The handler's own default.
    #[default]
    Default,
    /// Trailing path information is taken.
    Accept,
    /// It makes the request a 404.
    Reject,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, microseconds since the epoch.
    pub mtime_us: u64,
    /// When content or attributes last changed, which nobody can set back; microseconds since the
    /// epoch.
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
    /// Names that lead to it (hard links).
    pub links: u64,
}

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing is there (or it was not looked at).
    #[default]
    None,
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}
