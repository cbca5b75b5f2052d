//! mod_setenvif: sets variables by properties of the request.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_setenvif.html>

mod condition;
mod rows;

use std::borrow::Cow;

use conf::expr::{Backrefs, EvalError};
use pcre::{Captures, Later, MAX_SUBSTITUTION_BYTES, Matched, substitute};
use server::directive::Row;
use server::errorlog::Verbatim;
use server::expr;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::hostname;
use server::log::Level;
use server::matching::{self, Stop};
use server::merge::Append;
use server::module::Module;
use server::request::Request;

use condition::{Attribute, Condition, Effect, Test};

/// `mod_setenvif.c`
pub struct Setenvif;

server::config! {
    /// Server and per-directory configuration, which are the same.
    pub struct Settings {
        /// Conditions in order, those of outer sections first.
        conditions: Append<Condition>,
    }
}

impl Module for Setenvif {
    const NAME: &'static str = "setenvif_module";
    const FILE: &'static str = "mod_setenvif.c";
    type Server = Settings;
    type Dir = Settings;
    const DIRECTIVES: &'static [Row<Setenvif>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(
            Phase::PostReadRequest,
            Rank::MIDDLE,
            |bound| !bound.server.conditions.is_empty(),
            |bound, request| run(&bound.server.conditions, request),
        );
        hooks.on(
            Phase::HeaderParser,
            Rank::MIDDLE,
            |bound: Bound<'_, Setenvif>| !bound.dir.conditions.is_empty(),
            |bound, request| run(&bound.dir.conditions, request),
        );
    }
}

/// Source: `match_headers`
fn run<'r>(conditions: &'r [Condition], request: &'r mut Request) -> Step<'r> {
    let mut walk = Walk::new(conditions);
    if conditions.iter().any(Condition::asks_for_host) {
        return Step::Pending(Box::pin(async move {
            walk.host = Some(client_name(request).await);
            let step = |request: &mut Request| walk.go_on(request);
            matching::settled(request, step).await.unwrap_or_else(Verdict::Status)
        }));
    }
    matching::settle(request, move |request| walk.go_on(request))
}

/// The client's name under `HostnameLookups`, or its address if it has none.
async fn client_name(request: &mut Request) -> Vec<u8> {
    if let Some(name) = hostname::client_name(request).await {
        return name.to_vec();
    }
    request.useragent_addr.ip().to_canonical().to_string().into_bytes()
}

/// The progress through the lines.
struct Walk<'c> {
    /// The remaining lines.
    conditions: &'c [Condition],
    /// The client's name, if a line needs it.
    host: Option<Vec<u8>>,
    /// The attribute's value before the first of several consecutive lines on it, which all of them
    /// test. It is copied only when a line has changed something.
    held: Option<Vec<u8>>,
    last: Option<&'c Attribute>,
}

impl<'c> Walk<'c> {
    fn new(conditions: &'c [Condition]) -> Walk<'c> {
        Walk { conditions, host: None, held: None, last: None }
    }

    /// Continues to the end, or to a match that has to be made first.
    fn go_on(&mut self, request: &mut Request) -> Result<Verdict, Stop> {
        while let Some((condition, rest)) = self.conditions.split_first() {
            self.apply(condition, request)?;
            self.conditions = rest;
        }
        Ok(Verdict::Declined)
    }

    fn apply(&mut self, condition: &'c Condition, request: &mut Request) -> Result<(), Later> {
        match &condition.test {
            Test::Attribute(attribute, pattern) => {
                if self.last.is_none_or(|last| !last.is_same(attribute)) {
                    self.held = None;
                    self.last = Some(attribute);
                }
                let subject = match &self.held {
                    Some(value) => Some(Cow::Borrowed(value.as_slice())),
                    None => attribute.value(request, self.host.as_deref())?,
                };
                let Some(subject) = subject else {
                    leave_undecided(&condition.effects, request);
                    return Ok(());
                };
                let mut captures = Captures::new();
                match pattern.matches(request, &subject, &mut captures)? {
                    Matched::Yes => {
                        let subject = subject.into_owned();
                        set(&condition.effects, request, &subject, &captures);
                        self.held = Some(subject);
                    }
                    Matched::No => {}
                    Matched::Undecided(_) => leave_undecided(&condition.effects, request),
                }
            }
            Test::Expression(expr) => {
                let mut backrefs = Backrefs::new();
                match expr::condition(expr, request, &mut backrefs)? {
                    Ok(true) => {
                        set(&condition.effects, request, backrefs.subject(), backrefs.captures());
                    }
                    Err(EvalError::Undecided) => leave_undecided(&condition.effects, request),
                    Ok(false) | Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// Marks the variables as undecided that a line would have changed.
fn leave_undecided(effects: &[Effect], request: &Request) {
    for effect in effects {
        let (Effect::Set(name, _) | Effect::Unset(name)) = effect;
        request.leave_undecided(name);
    }
}

/// Applies effects, with `$0`–`$9` replaced by the groups of the match, or unchanged without one.
fn set(effects: &[Effect], request: &mut Request, subject: &[u8], captures: &Captures) {
    for effect in effects {
        let (Effect::Set(name, _) | Effect::Unset(name)) = effect;
        let shown = Verbatim::new(name);
        request.log::<Setenvif>(Level::Trace2, 0, format_args!("Setting {shown}"));
        request.make_decided(name);
        let Effect::Set(_, template) = effect else {
            request.env.unset(name);
            continue;
        };
        let mut value = Vec::new();
        let limit = MAX_SUBSTITUTION_BYTES;
        if substitute(template, subject, captures, limit, &mut value).is_ok() {
            request.env.set(name, &value);
        } else {
            let template = Verbatim::new(template);
            request.log::<Setenvif>(
                Level::Crit,
                1505,
                format_args!(
                    "Regular expression replacement failed for '{template}', value too long?"
                ),
            );
        }
    }
}
