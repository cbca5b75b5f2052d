//! Executes a page: its text and what its elements make become the body.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use server::core::OptionFlags;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::Include;
use super::captured::Captured;
use super::compiled::Compiled;
use super::config::{self, Directory};
use super::flow::Flow;
use super::output::Output;
use super::parse::{Element, Fault, Piece};
use super::rest::{Pause, may_pause};
use super::variables::Known;
use super::{echo, exec, file_info, flow, include};

/// A page in execution.
pub(super) struct Page<'r> {
    /// Its request.
    pub request: Of<'r>,
    /// What is executed.
    pub compiled: Arc<Compiled>,
    /// The index of the piece that is executed.
    pub at: usize,
    /// What it has made.
    pub out: Output,
    /// What is known of its variables.
    pub known: Known,
    /// `errmsg`
    pub error_message: Arc<[u8]>,
    /// `echomsg`
    pub undefined_echo: Arc<[u8]>,
    /// `timefmt`
    pub time_format: Arc<[u8]>,
    /// `sizefmt`
    pub has_sizes_in_bytes: bool,
    /// Which parts are shown.
    pub flow: Flow,
    /// `$0`–`$9`
    pub captured: Captured,
    /// Whether programs may be included.
    pub may_execute: bool,
    /// A fault that no message has replaced yet: as in Apache, a faulty element in a part that is
    /// not shown keeps all that follow from being executed.
    has_fault: bool,
    /// Whether what follows a program may be executed later.
    pub may_pause: bool,
    /// What is waited for before the page goes on.
    pub pause: Option<Pause>,
    /// How many values of the element that is executed are done, if the page has paused there.
    pub done_values: usize,
}

/// The request of a page, or its twin while the response is sent.
pub(super) enum Of<'r> {
    Request(&'r mut Request),
    Twin(Box<Request>),
}

impl Deref for Of<'_> {
    type Target = Request;

    fn deref(&self) -> &Request {
        match self {
            Of::Request(request) => request,
            Of::Twin(request) => request,
        }
    }
}

impl DerefMut for Of<'_> {
    fn deref_mut(&mut self) -> &mut Request {
        match self {
            Of::Request(request) => request,
            Of::Twin(request) => request,
        }
    }
}

impl<'r> Page<'r> {
    /// A page at its beginning.
    pub fn new(request: &'r mut Request, compiled: Arc<Compiled>, known: Known) -> Page<'r> {
        let default = Directory::default();
        let dir = request.dir_of::<Include>().unwrap_or(&default);
        let text = |setting: Option<&Arc<[u8]>>, default: &[u8]| {
            setting.cloned().unwrap_or_else(|| Arc::from(default))
        };
        let error_message = text(dir.error_message.get(), config::ERROR_MESSAGE);
        let undefined_echo = text(dir.undefined_echo.get(), config::UNDEFINED_ECHO);
        let time_format = text(dir.time_format.get(), config::TIME_FORMAT);
        Page {
            may_execute: request.plan.core.options.flags().has(OptionFlags::INCLUDES_EXEC),
            may_pause: may_pause(request),
            request: Of::Request(request),
            compiled,
            at: 0,
            out: Output::default(),
            known,
            error_message,
            undefined_echo,
            time_format,
            has_sizes_in_bytes: false,
            flow: Flow::default(),
            captured: Captured::default(),
            has_fault: false,
            pause: None,
            done_values: 0,
        }
    }

    /// The same page with another request.
    #[rustfmt::skip]
    pub fn detached(self, request: Of<'static>) -> Page<'static> {
        let Page {
            request: _, compiled, at, out, known, error_message, undefined_echo, time_format,
            has_sizes_in_bytes, flow, captured, may_execute, has_fault,
            may_pause, pause, done_values,
        } = self;
        Page {
            request, compiled, at, out, known, error_message, undefined_echo, time_format,
            has_sizes_in_bytes, flow, captured, may_execute, has_fault,
            may_pause, pause, done_values,
        }
    }

    /// Executes all pieces, or those up to a pause.
    pub async fn execute(&mut self) {
        let compiled = self.compiled.clone();
        for (at, piece) in compiled.pieces.iter().enumerate().skip(self.at) {
            self.at = at;
            match piece {
                Piece::Text(range) if self.flow.is_shown() => {
                    self.out.put_slice(compiled.source.slice(range.clone()));
                }
                Piece::Text(_) => {}
                Piece::Element(element) => {
                    if self.done_values == 0 {
                        self.out.pass(self.flow.is_shown());
                    }
                    self.execute_element(element).await;
                    if self.pause.is_some() {
                        return;
                    }
                    self.done_values = 0;
                }
                Piece::Unfinished => {
                    self.out.pass(self.flow.is_shown());
                    let file = Verbatim::new(&self.request.resource.filename);
                    let text =
                        "SSI directive was not properly finished at the end of parsed document";
                    self.log(Level::Error, 1372, format_args!("{text} {file}"));
                    self.fail_if_shown();
                }
            }
        }
        if !self.flow.is_shown() {
            let file = Verbatim::new(&self.request.resource.filename);
            let text = format_args!("missing closing endif directive in parsed document {file}");
            self.log(Level::Warn, 1373, text);
        }
    }

    async fn execute_element(&mut self, element: &Element) {
        for fault in &element.faults {
            self.log_fault(element, *fault);
            self.has_fault = true;
        }
        if self.has_fault {
            if self.flow.is_shown() {
                self.has_fault = false;
                self.fail();
            }
            return;
        }
        match element.name.as_slice() {
            b"if" => flow::begin(self, element).await,
            b"elif" => flow::alternative(self, element).await,
            b"else" => flow::otherwise(self, element),
            b"endif" => flow::end(self, element),
            b"echo" => echo::echo(self, element),
            b"set" => echo::set(self, element),
            b"printenv" => echo::print_all(self, element),
            b"config" => self.configure(element),
            b"fsize" => file_info::size(self, element).await,
            b"flastmod" => file_info::last_modified(self, element).await,
            b"include" => include::include(self, element).await,
            b"comment" => {}
            b"exec" if exec::is_available(&self.request) => exec::exec(self, element).await,
            _ => {
                let (name, file) = (Verbatim::new(&element.name), self.file());
                let text = format!("unknown directive \"{name}\" in parsed doc {file}");
                self.log(Level::Error, 1371, format_args!("{text}"));
                self.fail_if_shown();
            }
        }
    }

    fn log_fault(&self, element: &Element, fault: Fault) {
        let (name, file) =
            (Verbatim::new(&element.name), Verbatim::new(&self.request.resource.filename));
        let number = match fault {
            Fault::NoName => {
                let text = format_args!("missing directive name in parsed document {file}");
                return self.log(Level::Error, 1368, text);
            }
            Fault::OnlyValue => 1369,
            Fault::NoArgumentName => 1370,
        };
        let text = format_args!("missing argument name for value to tag {name} in {file}");
        self.log(Level::Error, number, text);
    }

    /// `<!--#config … -->`
    ///
    /// Source: `handle_config`
    fn configure(&mut self, element: &Element) {
        if !self.begins(element, 1, (1347, "missing argument for config element in")) {
            return;
        }
        for (name, value) in element.values() {
            let value = |page: &mut Self| page.substituted(value);
            match name {
                b"errmsg" => self.error_message = value(self).into(),
                b"echomsg" => self.undefined_echo = value(self).into(),
                b"timefmt" => {
                    self.time_format = value(self).into();
                    self.set_times();
                }
                b"sizefmt" => {
                    let format = value(self);
                    match format.as_slice() {
                        b"bytes" => self.has_sizes_in_bytes = true,
                        b"abbrev" => self.has_sizes_in_bytes = false,
                        _ => {
                            let (format, file) = (Verbatim::new(&format), self.file());
                            let text = format!(
                                "unknown value \"{format}\" to parameter \"sizefmt\" of tag config \
                                 in {file}"
                            );
                            return self.refuse(1348, &text);
                        }
                    }
                }
                _ => {
                    let (name, file) = (Verbatim::new(name), self.file());
                    let text = format!("unknown parameter \"{name}\" to tag config in {file}");
                    return self.refuse(1349, &text);
                }
            }
        }
    }

    /// Whether an element is executed: it is shown, and has `least` arguments. Otherwise `missing`
    /// is logged, a number and a text.
    pub fn begins(&mut self, element: &Element, least: usize, missing: (u32, &str)) -> bool {
        let is_complete = element.arguments.len() >= least;
        self.check(is_complete, self.flow.is_shown(), missing);
        if self.flow.is_shown() && !is_complete {
            self.fail();
        }
        self.flow.is_shown() && is_complete
    }

    /// Logs `missing` if something `is_right` not, as an error if it is `heeded`.
    pub fn check(&self, is_right: bool, heeded: bool, (number, missing): (u32, &str)) {
        if !is_right {
            let level = if heeded { Level::Error } else { Level::Warn };
            self.log(level, number, format_args!("{missing} {}", self.file()));
        }
    }

    /// The name of the file, for messages.
    pub fn file(&self) -> String {
        String::from_utf8_lossy(&self.request.resource.filename).into_owned()
    }

    /// Logs a message.
    pub fn log(&self, level: Level, number: u32, text: std::fmt::Arguments<'_>) {
        self.request.log::<Include>(level, number, text);
    }

    /// Logs an error and shows the message for errors.
    pub fn refuse(&mut self, number: u32, text: &str) {
        self.log(Level::Error, number, format_args!("{text}"));
        self.fail();
    }

    /// Shows the message for errors.
    pub fn fail(&mut self) {
        let message = self.error_message.clone();
        self.out.put(&message);
    }

    fn fail_if_shown(&mut self) {
        if self.flow.is_shown() {
            self.fail();
        }
    }
}
