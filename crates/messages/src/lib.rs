//! The numbers of log messages that Apache does not have; where the event is Apache's, so is the
//! number.
//!
//! A number never changes and stands for one event. The compiler refuses one that is given twice.

/// A message of our own, in the log as `AH20001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Message {
    /// A listening socket can't accept.
    AcceptFailed = 20001,
    /// Log lines could not be written.
    LinesLost = 20002,
    /// The limit on open files leaves no room for more connections.
    DescriptorsExhausted = 20003,

    /// `-k upgrade`: the new executable is being tried.
    UpgradeTried = 20010,
    /// The new executable can't be used.
    UpgradeRefused = 20011,
    /// The supervisor executes the new executable.
    UpgradeHandsOver = 20012,
    /// The new executable failed to start.
    UpgradeFailed = 20013,
    /// The previous executable can't be executed again.
    RollbackFailed = 20014,
    /// No new process can be started at all.
    NoNewProcess = 20015,
    /// The new executable serves.
    UpgradeDone = 20016,

    /// A loop or thread hangs, and its process is replaced.
    HungReplaced = 20020,
    /// A loop or thread hangs for a reason that replacing it would not help.
    HungSpared = 20021,
    /// A child can't start a thread.
    NoThread = 20022,

    /// A regular expression was given up.
    MatchUndecided = 20040,
    /// An `.htaccess` file could not be read for want of a thread.
    HtaccessUnread = 20041,
    /// The blocking pool takes no more work of a kind, or lost it.
    PoolRefused = 20042,

    /// A loop waits for its CPU and may run elsewhere.
    Widened = 20100,
    /// It is bound again.
    Returned = 20101,
    /// The allowed CPUs have changed.
    Replanned = 20102,
    /// A loop or process was bound.
    Bound = 20103,
    /// New connections are distributed by other weights.
    Steered = 20104,
    /// A stalled loop gets no new connections.
    Avoided = 20105,
    /// It turns again.
    Readmitted = 20106,
    /// The kernel refuses to distribute new connections so.
    NotSteered = 20107,
    /// A loop hands accepted connections over, or stops doing so.
    HandsOver = 20108,
    /// Idle connections may migrate.
    Migrates = 20109,
    /// New connections go to the loop of the receiving CPU.
    SteeredByCpu = 20110,
    /// Another program has bound a thread, or has unbound it.
    BoundByOther = 20111,
    /// `CPUAffinity` names CPUs that are not allowed.
    AffinityUnheeded = 20112,

    /// A module was loaded that is not here yet.
    ModuleMissing = 20120,
    /// A directive of such a module has no effect.
    DirectiveInert = 20121,
    /// The configuration names a handler that no active module provides.
    HandlerUnprovided = 20122,
    /// A request asked for such a handler.
    HandlerMissing = 20123,
    /// A response was withheld, because a filter that is not here yet would have changed it.
    ResponseWithheld = 20124,

    /// A request exceeded the limit of look-ups.
    TooManyLookups = 20200,
    /// A file's content could not be hashed.
    DigestFailed = 20201,
}

impl Message {
    /// The number in the log.
    pub const fn number(self) -> u32 {
        self as u32
    }
}
