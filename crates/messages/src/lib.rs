//! The numbers of our own log messages. If the event is Apache's, the number is Apache's as well.
//!
//! A number never changes and stands for one event. The compiler refuses duplicates.

/// A message of our own, in the log as `AH20001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Message {
    /// A listening socket failed to accept.
    AcceptFailed = 20001,
    /// Log lines could not be written.
    LinesLost = 20002,
    /// The limit on open files leaves no room for more connections.
    DescriptorsExhausted = 20003,

    /// `-k upgrade`: the new executable is on trial.
    UpgradeTried = 20010,
    /// The new executable is unusable.
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

    /// A loop or thread is stalled, and its process is replaced.
    HungReplaced = 20020,
    /// A loop or thread is stalled for a reason that a replacement would not fix.
    HungSpared = 20021,
    /// A child can't start a thread.
    NoThread = 20022,

    /// A companion process has died, or can't be started.
    CompanionDied = 20030,
    /// The program of a `RewriteMap` has ended and is started again.
    MapProgramEnded = 20031,
    /// The program of a `RewriteMap` did not answer properly, and is started again.
    MapProgramFaulty = 20032,
    /// A question to the program of a `RewriteMap` has no answer.
    MapUnanswered = 20033,

    /// A regular expression is undecided.
    MatchUndecided = 20040,
    /// An `.htaccess` file could not be read for lack of a thread.
    HtaccessUnread = 20041,
    /// The blocking pool refused or lost work.
    PoolRefused = 20042,

    /// A loop waits for its CPU and may run elsewhere.
    Widened = 20100,
    /// A loop is bound again.
    Returned = 20101,
    /// The allowed CPUs have changed.
    Replanned = 20102,
    /// A loop or process was bound.
    Bound = 20103,
    /// The weights that distribute new connections have changed.
    Steered = 20104,
    /// A stalled loop gets no new connections.
    Avoided = 20105,
    /// A stalled loop turns again.
    Readmitted = 20106,
    /// The kernel refuses to distribute new connections by weights.
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

    /// A missing module is loaded.
    ModuleMissing = 20120,
    /// A directive of a missing module has no effect.
    DirectiveInert = 20121,
    /// The configuration names a handler that no active module provides.
    HandlerUnprovided = 20122,
    /// A request needed such a handler.
    HandlerMissing = 20123,
    /// A response was withheld, because a missing filter would have changed it.
    ResponseWithheld = 20124,

    /// A request exceeded the limit of look-ups.
    TooManyLookups = 20200,
    /// A file's content could not be hashed.
    DigestFailed = 20201,
    /// The texts that rules of mod_rewrite make exceed a limit.
    RewriteTooLong = 20202,
    /// A page is too long for mod_include to be parsed.
    PageTooLong = 20203,
    /// A connection of TLS was to be passed to another process.
    TlsNotPassed = 20210,
    /// A login form has a control character in a media type.
    MediaTypeInForm = 20211,
}

impl Message {
    /// The number in the log.
    pub const fn number(self) -> u32 {
        self as u32
    }
}
