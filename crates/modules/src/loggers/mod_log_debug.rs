//! mod_log_debug: writes messages with expressions to the error log, in a phase of the request.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_log_debug.html>

use std::sync::Arc;

use conf::Arg;
use conf::expr::{Backrefs, EvalError, Expr, Flags};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;
use server::hooks::{Bound, Hooks, Phase, Rank, RequestHook, Step, Verdict};
use server::log::Level;
use server::matching::{self, Stop};
use server::merge::{Append, Setting};
use server::module::Module;
use server::request::Request;

/// `mod_log_debug.c`
pub struct LogDebug;

/// A `LogMessage`.
#[derive(Clone)]
pub struct Entry {
    message: Arc<Expr>,
    condition: Option<Arc<Expr>>,
    /// The phase; `None` for all of them.
    phase: Option<Phase>,
    /// File and line of the directive.
    place: Arc<(String, u32)>,
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// Set if some section of the host has a `LogMessage`.
        has_entries: Setting<()>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `LogMessage`
        entries: Append<Entry>,
    }
}

impl Module for LogDebug {
    const NAME: &'static str = "log_debug_module";
    const FILE: &'static str = "mod_log_debug.c";
    type Server = Settings;
    type Dir = Directory;
    // Some subrequests are authorised again if it is loaded, as in Apache.
    const ACTS_UNASKED: bool = true;
    const DIRECTIVES: &'static [Row<LogDebug>] = &[Row::<LogDebug>::new(
        "LogMessage",
        Takes::Some { least: 1, most: 3, set: log_message },
        "message [hook=hook] [expr=expression]",
        "Writes a message, which may contain expressions, to the error log in a phase of each \
         request.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE)];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        for (phase, _, wants, run) in HOOKS {
            hooks.on(phase, Rank::FIRST, wants, run);
        }
        // As in Apache, a request that was redirected internally is logged as it was before: under
        // a configuration that is not the hook's.
        let has_entries = |bound: Bound<'_, LogDebug>| bound.server.has_entries.is_set();
        hooks.on(Phase::LogTransaction, Rank::FIRST, has_entries, log_transaction);
        hooks.merges_by_uri();
    }
}

/// A phase, its name in `hook=`, whether a configuration has entries for it, and its hook.
type Hook = (Phase, &'static str, fn(Bound<'_, LogDebug>) -> bool, RequestHook<LogDebug>);

/// A phase's [`Hook`]. The phase is a constant, since hooks are plain functions.
const fn hook<const PHASE: usize>(phase: Phase, name: &'static str) -> Hook {
    assert!(phase as usize == PHASE);
    (phase, name, wants::<PHASE>, run::<PHASE>)
}

const HOOKS: [Hook; 12] = [
    hook::<{ Phase::QuickHandler as usize }>(Phase::QuickHandler, "quick_handler"),
    hook::<{ Phase::Handler as usize }>(Phase::Handler, "handler"),
    hook::<{ Phase::TranslateName as usize }>(Phase::TranslateName, "translate_name"),
    hook::<{ Phase::MapToStorage as usize }>(Phase::MapToStorage, "map_to_storage"),
    hook::<{ Phase::Fixups as usize }>(Phase::Fixups, "fixups"),
    hook::<{ Phase::TypeChecker as usize }>(Phase::TypeChecker, "type_checker"),
    hook::<{ Phase::AccessChecker as usize }>(Phase::AccessChecker, "check_access"),
    hook::<{ Phase::AccessCheckerEx as usize }>(Phase::AccessCheckerEx, "check_access_ex"),
    hook::<{ Phase::CheckUserId as usize }>(Phase::CheckUserId, "check_authn"),
    hook::<{ Phase::AuthChecker as usize }>(Phase::AuthChecker, "check_authz"),
    hook::<{ Phase::InsertFilter as usize }>(Phase::InsertFilter, "insert_filter"),
    hook::<{ Phase::PreTranslateName as usize }>(Phase::PreTranslateName, "pre_translate_name"),
];

/// Source: `cmd_log_message`.
fn log_message(cx: &mut Cx<'_, '_, LogDebug>, words: &[Arg]) -> Set {
    let [text, options @ ..] = words else { return Ok(()) };
    let flags = Flags { dont_vary: true, ..cx.expr_flags() };
    let registry = cx.build().registry.clone();
    let message = expr::parse_string(&registry, &text.text, flags).map_err(|why| {
        let shown = &text.text;
        Fault::new(format!("Could not parse message expression '{shown}': {why}")).at(text)
    })?;
    let span = cx.span();
    let place = Arc::new(cx.build().sources.place(span));
    let mut entry = Entry {
        message: Arc::new(message),
        condition: None,
        phase: Some(Phase::LogTransaction),
        place,
    };
    for option in options {
        let (name, value) = match option.text.iter().position(|byte| *byte == b'=') {
            Some(equals) => option.text.split_at(equals + 1),
            None => (&option.text[..], &[][..]),
        };
        if name.eq_ignore_ascii_case(b"hook=") {
            entry.phase = phase(value).map_err(|why| why.at(option))?;
        } else if name.eq_ignore_ascii_case(b"expr=") {
            let parsed = expr::parse_bool(&registry, value, flags).map_err(|why| {
                let shown = bstr::BStr::new(value);
                Fault::new(format!("Could not parse expression '{shown}': {why}")).at(option)
            })?;
            entry.condition = Some(Arc::new(parsed));
        } else {
            return Err(Fault::new(format!("Invalid argument {}", option.text)).at(option));
        }
    }
    cx.dir().entries.push(entry);
    cx.server().has_entries.set(());
    Ok(())
}

/// The name of the phase that is the default.
const LOG_TRANSACTION: &str = "log_transaction";

/// The phase of a name; `None` for all of them.
fn phase(name: &[u8]) -> Result<Option<Phase>, Fault> {
    if name.eq_ignore_ascii_case(LOG_TRANSACTION.as_bytes()) {
        return Ok(Some(Phase::LogTransaction));
    }
    if name == b"*" || name.eq_ignore_ascii_case(b"all") {
        return Ok(None);
    }
    let is_it = |hook: &&Hook| hook.1.as_bytes().eq_ignore_ascii_case(name);
    let found = HOOKS.iter().find(is_it).map(|hook| Some(hook.0));
    let shown = bstr::BStr::new(name);
    found.ok_or_else(|| Fault::new(format!("Invalid hook name: {shown}")))
}

impl Entry {
    fn is_for(&self, phase: usize) -> bool {
        self.phase.is_none_or(|own| own as usize == phase)
    }
}

fn wants<const PHASE: usize>(bound: Bound<'_, LogDebug>) -> bool {
    bound.dir.entries.iter().any(|entry| entry.is_for(PHASE))
}

/// Writes the phase's lines.
fn run<'r, const PHASE: usize>(bound: Bound<'r, LogDebug>, request: &'r mut Request) -> Step<'r> {
    let mut done = 0;
    matching::settle(request, move |request| {
        log_all(&bound.dir.entries, PHASE, request, &mut done)?;
        Ok(Verdict::Declined)
    })
}

fn log_transaction<'r>(_: Bound<'r, LogDebug>, request: &'r mut Request) -> Step<'r> {
    let mut done = 0;
    matching::settle(request, move |request| {
        let first = request.original_for_log();
        let plan = first.plan.clone();
        let slot = first.engine.server.registry.slot_of::<LogDebug>();
        if let Some(dir) = slot.and_then(|slot| plan.dir.get::<Directory>(slot)) {
            log_all(&dir.entries, Phase::LogTransaction as usize, first, &mut done)?;
        }
        Ok(Verdict::Declined)
    })
}

/// Writes the lines of a phase except those of the first `done` entries (`do_debug_log`).
fn log_all(
    entries: &[Entry],
    phase: usize,
    request: &mut Request,
    done: &mut usize,
) -> Result<(), Stop> {
    while let Some(entry) = entries.get(*done) {
        if entry.is_for(phase) {
            log(entry, phase, request)?;
        }
        *done += 1;
    }
    Ok(())
}

fn log(entry: &Entry, phase: usize, request: &mut Request) -> Result<(), Stop> {
    if let Some(condition) = &entry.condition {
        match expr::condition(condition, request, &mut Backrefs::new())? {
            Ok(true) => {}
            Ok(false) | Err(EvalError::Undecided) => return Ok(()),
            Err(why) => {
                let text = format_args!("Can't evaluate condition: {why}");
                request.log::<LogDebug>(Level::Error, 640, text);
                return Ok(());
            }
        }
    }
    let mut message = match expr::string(&entry.message, request) {
        Ok(message) => message,
        Err(EvalError::Later) => return Err(Stop::Later),
        Err(why) => {
            let text = format_args!("Can't evaluate message expression: {why}");
            request.log::<LogDebug>(Level::Error, 641, text);
            b"(null)".to_vec()
        }
    };
    if request.logs::<LogDebug>(Level::Debug) {
        let hook = HOOKS
            .iter()
            .find(|hook| hook.0 as usize == phase)
            .map_or(LOG_TRANSACTION, |hook| hook.1);
        let (file, line) = &*entry.place;
        message.extend(format!(" ({hook} hook, {file}:{line})").into_bytes());
    }
    request.log_bytes::<LogDebug>(Level::Info, 0, &message);
    Ok(())
}
