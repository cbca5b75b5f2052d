//! What a configuration asked for and does not get, or gets with a word of caution.

use std::fmt;

/// How grave a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For the error log at level info.
    Info,
    /// For the error log at level warn; the server starts.
    Warning,
    /// The server must not start with this configuration.
    Error,
}

/// One remark about one directive. The caller knows where the directive stands and adds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// The directive that the remark concerns, as `SSLCipherSuite`.
    pub directive: &'static str,
    /// Apache's log number (`AH01909` is 1909) where the event is the same.
    pub number: Option<u16>,
    /// One sentence without a full stop.
    pub message: String,
}

impl Finding {
    /// A remark that stops the start.
    pub fn error(directive: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, directive, number: None, message: message.into() }
    }

    /// A remark for the error log.
    pub fn warning(directive: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, directive, number: None, message: message.into() }
    }

    /// A remark of level info.
    pub fn info(directive: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Info, directive, number: None, message: message.into() }
    }

    /// The same, under Apache's log number.
    pub fn numbered(mut self, number: u16) -> Self {
        self.number = Some(number);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number {
            write!(f, "AH{number:05}: ")?;
        }
        write!(f, "{}: {}", self.directive, self.message)
    }
}
