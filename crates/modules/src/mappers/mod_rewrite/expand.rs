//! Fills templates: references, variables, look-ups in maps.
//!
//! Source: `do_expand`, `lookup_variable`, `lookup_map`.

use messages::Message;
use pcre::Captures;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use server::subrequest;
use wire::Method;

use super::flags::Escape;
use super::settings::{Directory, Settings};
use super::template::{Part, Template};
use super::trace::Trace;
use super::variable::{LookAhead, Plain, Variable};
use super::{Rewrite, input, value};

/// The maximum number of bytes that one pass through rules may fill into templates. Results with a
/// file name are limited further, but queries and variables that contain themselves would double
/// each time.
pub(super) const FILLED_BYTES_LIMIT: usize = 16 << 20;

/// The values of `%1`.
#[derive(Default)]
pub(super) struct References {
    subject: Vec<u8>,
    captures: Captures,
}

impl References {
    /// Sets the groups of a match.
    pub fn set(&mut self, subject: &[u8], captures: Captures) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        self.captures = captures;
    }

    /// Clears all references.
    pub fn clear(&mut self) {
        self.captures = Captures::new();
    }

    fn text(&self, group: usize) -> &[u8] {
        self.captures.text(group, &self.subject).unwrap_or_default()
    }
}

/// A filled template.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// The text.
    pub text: Vec<u8>,
    /// Whether the first question mark is in the template itself; `None` if there is none.
    pub first_mark: Option<bool>,
    /// The same for the last one.
    pub last_mark: Option<bool>,
}

impl Filled {
    fn literal(&mut self, text: &[u8]) {
        self.mark(text, true);
        self.text.extend_from_slice(text);
    }

    /// Notes whether the text appended from `start` has a question mark.
    fn mark_from(&mut self, start: usize) {
        let has_mark = self.text.get(start..).is_some_and(|added| added.contains(&b'?'));
        if has_mark {
            self.mark(b"?", false);
        }
    }

    fn mark(&mut self, text: &[u8], is_literal: bool) {
        if text.contains(&b'?') {
            self.first_mark.get_or_insert(is_literal);
            self.last_mark = Some(is_literal);
        }
    }
}

/// The inputs of a rule's templates, besides the request.
pub(super) struct Scope<'r> {
    /// The host's settings, for its maps.
    pub settings: &'r Settings,
    /// The directory whose rules run; `None` for the server's.
    pub directory: Option<&'r Directory>,
    /// The path that rules are matched with.
    pub subject: Vec<u8>,
    /// `$0`–`$9`, in the subject.
    pub of_rule: Captures,
    /// `%0`–`%9`
    pub of_condition: References,
    /// Header fields read for the current condition.
    pub fields: Vec<Vec<u8>>,
    /// Memory for the next text that is filled in and not kept.
    pub spare: Vec<u8>,
    /// How much of [`FILLED_BYTES_LIMIT`] is left.
    pub left: usize,
    /// The log.
    pub trace: Trace,
}

impl Scope<'_> {
    /// The directory's path, for the log.
    pub fn path(&self) -> Option<&[u8]> {
        self.directory.and_then(|directory| directory.path.as_deref())
    }

    /// Fills a template.
    ///
    /// # Errors
    /// The status that ends the request.
    pub async fn fill(
        &mut self,
        request: &mut Request,
        template: &Template,
        escape: Option<&Escape>,
    ) -> Result<Filled, u16> {
        self.fill_in(request, template, escape, Vec::new()).await
    }

    /// Fills a template for a moment: the text goes back to [`Scope::spare`].
    ///
    /// # Errors
    /// The status that ends the request.
    pub async fn fill_briefly(
        &mut self,
        request: &mut Request,
        template: &Template,
    ) -> Result<Vec<u8>, u16> {
        let mut room = std::mem::take(&mut self.spare);
        room.clear();
        Ok(self.fill_in(request, template, None, room).await?.text)
    }

    async fn fill_in(
        &mut self,
        request: &mut Request,
        template: &Template,
        escape: Option<&Escape>,
        room: Vec<u8>,
    ) -> Result<Filled, u16> {
        let mut filled = Filled { text: room, ..Filled::default() };
        for part in &template.0 {
            let start = filled.text.len();
            match part {
                Part::Literal(text) => filled.literal(text),
                Part::Escaped(byte) => filled.text.push(*byte),
                Part::OfRule(group) => {
                    let text = self.of_rule.text(*group, &self.subject).unwrap_or_default();
                    self.append(request, text, escape, &mut filled.text);
                    filled.mark_from(start);
                }
                Part::OfCondition(group) => {
                    self.append(request, self.of_condition.text(*group), escape, &mut filled.text);
                    filled.mark_from(start);
                }
                Part::Variable(variable) => {
                    self.variable(request, variable, &mut filled.text).await?;
                    filled.mark_from(start);
                }
                Part::Map(look_up) => {
                    let value = Box::pin(self.look_up(request, look_up, escape)).await?;
                    filled.text.extend_from_slice(&value);
                    filled.mark_from(start);
                }
            }
            self.spend(request, filled.text.len() - start)?;
        }
        Ok(filled)
    }

    /// Counts what was filled in.
    fn spend(&mut self, request: &Request, bytes: usize) -> Result<(), u16> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let uri = Verbatim::new(&request.resource.uri);
            let text = format_args!(
                "mod_rewrite: the rules for '{uri}' make more than {FILLED_BYTES_LIMIT} bytes"
            );
            request.log::<Rewrite>(Level::Error, Message::RewriteTooLong.number(), text);
            500u16
        })?;
        Ok(())
    }

    /// Appends the value of a reference.
    fn append(&self, request: &Request, text: &[u8], escape: Option<&Escape>, out: &mut Vec<u8>) {
        let Some(escape) = escape.filter(|_| !text.is_empty()) else {
            return out.extend_from_slice(text);
        };
        let start = out.len();
        escape.append(out, text);
        let (text, to) = (Verbatim::new(text), Verbatim::new(out.get(start..).unwrap_or_default()));
        let line = format_args!("escaping backreference '{text}' to '{to}'");
        self.trace.line(request, Level::Trace5, self.path(), line);
    }

    async fn variable(
        &mut self,
        request: &mut Request,
        variable: &Variable,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        match variable {
            Variable::Nothing => {}
            Variable::Env(name) => {
                input::looks_at_variable(request, name);
                if request.is_undecided(name) {
                    return Err(500);
                }
                value::append_env(request, name, out);
            }
            Variable::Ssl(name) => {
                request.depends.pure = false;
                value::append_ssl(request, name, out);
            }
            Variable::Field(name) => self.field(request, name, out),
            Variable::Time(format) => {
                request.depends.pure = false;
                let start = out.len();
                value::append_time(request, format, out);
                if variable == &Variable::parse(b"TIME") {
                    let shown = Verbatim::new(out.get(start..).unwrap_or_default());
                    let line = format_args!("RESULT='{shown}'");
                    self.trace.line(request, Level::Trace1, self.path(), line);
                }
            }
            Variable::Named(name) => {
                value::prepare(request, *name).await;
                if *name == Plain::Ipv6 {
                    let on = if value::is_ipv6(request) { "on" } else { "off" };
                    let line = format_args!("IPV6='{on}'");
                    self.trace.line(request, Level::Trace1, self.path(), line);
                }
                value::append(request, *name, out);
            }
            Variable::LookAhead(ahead) => Box::pin(self.look_ahead(request, ahead, out)).await?,
        }
        Ok(())
    }

    /// Appends a header field; except for `Host`, an existing one counts for `Vary`.
    fn field(&mut self, request: &mut Request, name: &[u8], out: &mut Vec<u8>) {
        input::looks_at_field(request, name);
        let Some(value) = request.head.headers_in.get(name) else { return };
        out.extend_from_slice(value);
        if !name.eq_ignore_ascii_case(b"Host") {
            self.fields.push(name.to_vec());
        }
    }

    /// Appends a variable of a subrequest; empty within a subrequest for the same path, which would
    /// recurse forever (`subreq_ok`).
    async fn look_ahead(
        &mut self,
        request: &mut Request,
        ahead: &LookAhead,
        out: &mut Vec<u8>,
    ) -> Result<(), u16> {
        if !may_ask(request) {
            return Ok(());
        }
        let is_whole = self.subject.first() == Some(&b'/');
        let by_file = ahead.of_file && (self.directory.is_none() || !is_whole);
        let path = match self.directory {
            Some(_) if !is_whole => [self.place(request, !ahead.of_file), &self.subject].concat(),
            _ => self.subject.clone(),
        };
        let mut sub = match by_file {
            true => subrequest::lookup_file(request, &path).await,
            false => subrequest::lookup_uri(request, &path, Method::GET).await,
        };
        let start = out.len();
        self.variable(&mut sub, &ahead.variable, out).await?;
        request.depends_as(&sub);
        let (path, name) = (Verbatim::new(&path), Verbatim::new(&ahead.name));
        let found = Verbatim::new(out.get(start..).unwrap_or_default());
        let line = format_args!("lookahead: path={path} var={name} -> val={found}");
        self.trace.line(request, Level::Trace5, self.path(), line);
        Ok(())
    }

    /// The location of the request's directory: its `RewriteBase` if wanted and set.
    fn place<'a>(&self, request: &'a Request, wants_base: bool) -> &'a [u8] {
        let Some(directory) = request.dir_of::<Rewrite>() else { return b"" };
        let base = directory.base.as_deref().filter(|_| wants_base);
        base.or(directory.path.as_deref()).unwrap_or_default()
    }
}

/// Whether a subrequest is allowed: not within one for the same path, and not at the limit of
/// internal redirects.
pub(super) fn may_ask(request: &Request) -> bool {
    subrequest::may_look_up(request)
        && request.main.as_ref().is_none_or(|main| main.uri != request.resource.uri)
}
