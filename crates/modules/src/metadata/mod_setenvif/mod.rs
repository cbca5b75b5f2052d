//! mod_setenvif: variables by what a request is like.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_setenvif.html>

mod condition;
mod rows;

use conf::expr::Backrefs;
use pcre::{Captures, MAX_SUBSTITUTION_BYTES, substitute};
use server::core::dir_config::HostnameLookups;
use server::directive::Row;
use server::expr;
use server::hooks::{Answer, Bound, Hooks, Phase, Rank, Verdict};
use server::hostname;
use server::log::Level;
use server::merge::Append;
use server::module::Module;
use server::request::Request;

use condition::{Condition, Effect, Pattern, Test};

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
    let lookups = request.plan.core.hostname_lookups.or(HostnameLookups::Off);
    let name = match lookups {
        HostnameLookups::Off => None,
        HostnameLookups::On | HostnameLookups::Double => hostname::verified(request).await,
    };
    name.unwrap_or_else(|| request.useragent_addr.ip().to_canonical().to_string().into_bytes())
}

fn apply_all(conditions: &[Condition], request: &mut Request, host: Option<&[u8]>) {
    // Lines in a row on the same attribute see its value as it was before the first of them.
    let mut subject: Vec<u8> = Vec::new();
    let mut last: Option<&condition::Attribute> = None;
    for condition in conditions {
        match &condition.test {
            Test::Attribute(attribute, pattern) => {
                if last.is_none_or(|last| !last.is_same(attribute)) {
                    subject.clear();
                    attribute.value(request, host, &mut subject);
                    last = Some(attribute);
                }
                match pattern {
                    Pattern::Plain(text) => {
                        if bstr::ByteSlice::contains_str(subject.as_slice(), text) {
                            condition.effects.iter().for_each(|effect| {
                                set_plain(effect, request);
                            });
                        }
                    }
                    Pattern::Regex(regex) => {
                        let mut captures = Captures::new();
                        if regex.captures(&subject, &mut captures) {
                            set_filled(&condition.effects, request, &subject, &captures);
                        }
                    }
                }
            }
            Test::Expression(expr) => {
                let mut backrefs = Backrefs::new();
                if let Ok(true) = expr::condition(expr, request, &mut backrefs) {
                    let (subject, captures) = (backrefs.subject(), backrefs.captures());
                    set_filled(&condition.effects, request, subject, captures);
                }
            }
        }
    }
}

fn set_plain(effect: &Effect, request: &mut Request) {
    match effect {
        Effect::Unset(name) => {
            request.env.unset(name);
        }
        Effect::Set(name, value) => request.env.set(name, value),
    }
}

/// Sets with `$0`–`$9` replaced by what was matched.
fn set_filled(effects: &[Effect], request: &mut Request, subject: &[u8], captures: &Captures) {
    for effect in effects {
        let Effect::Set(name, template) = effect else {
            set_plain(effect, request);
            continue;
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
