//! mod_setenvif: variables by what a request is like.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_setenvif.html>

mod condition;
mod rows;

use std::borrow::Cow;

use conf::expr::Backrefs;
use pcre::{Captures, MAX_SUBSTITUTION_BYTES, substitute};
use server::directive::Row;
use server::expr;
use server::hooks::{Answer, Bound, Hooks, Phase, Rank, Verdict};
use server::hostname;
use server::log::Level;
use server::merge::Append;
use server::module::Module;
use server::request::Request;

use condition::{Attribute, Condition, Effect, Test};

/// `mod_setenvif.c`
pub struct Setenvif;

server::config! {
    /// What the module knows of a server, or of a directory: the same.
    pub struct Settings {
        /// In order of appearance, outer places first.
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
fn run<'r>(conditions: &'r [Condition], request: &'r mut Request) -> Answer<'r> {
    if conditions.iter().any(Condition::asks_for_host) {
        return Answer::Wait(Box::pin(async move {
            let host = client_name(request).await;
            apply_all(conditions, request, Some(&host));
            Verdict::Declined
        }));
    }
    apply_all(conditions, request, None);
    Answer::DECLINED
}

/// The client's name under `HostnameLookups`; its address where it has none.
async fn client_name(request: &mut Request) -> Vec<u8> {
    if let Some(name) = hostname::client_name(request).await {
        return name.to_vec();
    }
    request.useragent_addr.ip().to_canonical().to_string().into_bytes()
}

fn apply_all(conditions: &[Condition], request: &mut Request, host: Option<&[u8]>) {
    // Lines in a row on the same attribute see its value as it was before the first of them: it is
    // held as soon as one has changed something. Nothing is copied where nothing matches.
    let mut held: Option<Vec<u8>> = None;
    let mut last: Option<&Attribute> = None;
    for condition in conditions {
        match &condition.test {
            Test::Attribute(attribute, pattern) => {
                if last.is_none_or(|last| !last.is_same(attribute)) {
                    held = None;
                    last = Some(attribute);
                }
                let subject = match &held {
                    Some(value) => Cow::Borrowed(value.as_slice()),
                    None => attribute.value(request, host),
                };
                let mut captures = Captures::new();
                if pattern.matches(&subject, &mut captures) {
                    let subject = subject.into_owned();
                    set(&condition.effects, request, &subject, &captures);
                    held = Some(subject);
                }
            }
            Test::Expression(expr) => {
                let mut backrefs = Backrefs::new();
                if let Ok(true) = expr::condition(expr, request, &mut backrefs) {
                    set(&condition.effects, request, backrefs.subject(), backrefs.captures());
                }
            }
        }
    }
}

/// Sets with `$0`–`$9` replaced by what was matched; as it stands where nothing was.
fn set(effects: &[Effect], request: &mut Request, subject: &[u8], captures: &Captures) {
    for effect in effects {
        let (name, template) = match effect {
            Effect::Set(name, template) => (name, template),
            Effect::Unset(name) => {
                request.env.unset(name);
                continue;
            }
        };
        let mut value = Vec::new();
        let limit = MAX_SUBSTITUTION_BYTES;
        if substitute(template, subject, captures, limit, &mut value).is_ok() {
            request.env.set(name, &value);
        } else {
            let template = bstr::BStr::new(template);
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
