//! Findings about a configuration: requests that can't be honoured, or only with a warning.

use std::fmt;

/// The severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For the error log at level info.
    Info,
    /// For the error log at level warn; the server starts.
    Warning,
    /// The server must not start with this configuration.
    Error,
}

/// A finding about one directive. The caller adds the directive's position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The directive concerned, as `SSLCipherSuite`.
    pub directive: &'static str,
    /// Apache's log number (`AH01909` is 1909) where the event is the same.
    pub number: Option<u16>,
    /// One sentence without a full stop.
    pub message: String,
}

impl Finding {
    /// A finding that prevents the start.
    pub fn error(directive: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, directive, number: None, message: message.into() }
    }

    /// A finding for the error log.
    pub fn warning(directive: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, directive, number: None, message: message.into() }
    }

    /// A finding of level info.
    pub fn info(directive: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Info, directive, number: None, message: message.into() }
    }

    /// Whether the configuration can't be used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The finding with Apache's log number.
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
