//! The lines of `LogLevel rewrite:trace1` to `trace8`, with Apache's texts.
//!
//! Source: `do_rewritelog`.

use std::fmt;
use std::sync::Arc;

use bstr::BStr;
use server::log::Level;
use server::request::Request;

use super::Rewrite;

/// Logs lines about one request; determines the level once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    /// The least urgent level to log; `None` if none of these levels is.
    level: Option<Level>,
}

impl Trace {
    /// Returns the log for a request.
    pub fn of(request: &Request) -> Trace {
        const LEVELS: [Level; 8] = [
            Level::Trace8,
            Level::Trace7,
            Level::Trace6,
            Level::Trace5,
            Level::Trace4,
            Level::Trace3,
            Level::Trace2,
            Level::Trace1,
        ];
        if !request.logs::<Rewrite>(Level::Trace1) {
            return Trace { level: None };
        }
        Trace { level: LEVELS.into_iter().find(|level| request.logs::<Rewrite>(*level)) }
    }

    /// Whether lines of a level are logged.
    pub fn writes(self, level: Level) -> bool {
        self.level.is_some_and(|least| level <= least)
    }

    /// Logs a line; `directory` if it is about the rules of one.
    #[inline]
    pub fn line(
        self,
        request: &Request,
        level: Level,
        directory: Option<&[u8]>,
        text: fmt::Arguments<'_>,
    ) {
        if self.writes(level) {
            write(request, level, directory, text);
        }
    }
}

#[cold]
fn write(request: &Request, level: Level, directory: Option<&[u8]>, text: fmt::Arguments<'_>) {
    let client = request.useragent_addr.ip().to_canonical();
    let user = match request.user.as_deref() {
        None => BStr::new(b"-"),
        Some(b"") => BStr::new(b"\"\""),
        Some(name) => BStr::new(name),
    };
    let host = BStr::new(request.server_name());
    let server = Arc::as_ptr(&request.host);
    let own = std::ptr::from_ref(request);
    let kind = if request.main.is_some() { "subreq" } else { "initial" };
    let mut redirects = 0;
    let mut before = request.prev.as_deref();
    while let Some(request) = before {
        redirects += 1;
        before = request.prev.as_deref();
    }
    let redirects = Shown(redirects > 0, format_args!("/redir#{redirects}"));
    let directory_name = BStr::new(directory.unwrap_or_default());
    let directory = Shown(directory.is_some(), format_args!("[perdir {directory_name}] "));
    request.log::<Rewrite>(
        level,
        0,
        format_args!(
            "{client} - {user} [{host}/sid#{server:p}][rid#{own:p}/{kind}{redirects}] \
             {directory}{text}"
        ),
    );
}

/// A text that may be omitted.
struct Shown<'t>(bool, fmt::Arguments<'t>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 { f.write_fmt(self.1) } else { Ok(()) }
    }
}
