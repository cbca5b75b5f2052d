//! mod_log_config: the access log.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_log_config.html>

mod buffer;
mod format;
mod item;
pub(crate) mod json;
mod letter;
mod rows;
mod time;

pub use item::LogItem;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use conf::Span;
use conf::expr::Expr;
use server::build::Build;
use server::directive::Row;
use server::hooks::{Bound, Hooks, Rank, Step, Verdict};
use server::host::{Host, Server};
use server::hostname;
use server::matching::{self, Stop};
use server::merge::{Append, Outermost, Overlay, Own, Replace, Setting};
use server::module::Module;
use server::request::Request;
use server::sinks::{SinkId, Target};

use crate::metadata::mod_ident;
use format::Format;

/// `mod_log_config.c`
pub struct LogConfig;

/// A configured log. Its format may be defined later.
#[derive(Clone)]
pub struct Log {
    sink: SinkId,
    /// The file as written.
    file: Vec<u8>,
    /// The format's text or nickname; `None` for `TransferLog`.
    format: Option<Vec<u8>>,
    condition: Option<Condition>,
    span: Span,
}

/// Which requests are logged.
#[derive(Clone)]
pub enum Condition {
    /// `env=name`
    Env(Vec<u8>),
    /// `env=!name`
    NotEnv(Vec<u8>),
    /// `expr=…`
    Expr(Arc<Expr>),
}

/// A log ready for use.
pub struct ReadyLog {
    sink: SinkId,
    format: Arc<Format>,
    condition: Option<Condition>,
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `CustomLog` and `TransferLog`. A host with its own logs does not use the main server's.
        pub logs: Replace<Log>,
        /// `GlobalLog`
        pub global_logs: Append<Log>,
        /// `LogFormat` with a nickname.
        pub formats: Overlay<Vec<u8>, Vec<u8>>,
        /// `LogFormat` without a nickname, used by `TransferLog`.
        pub default_format: Setting<Vec<u8>>,
        /// `BufferedLogs`
        pub buffered: Outermost<bool>,
        /// All logs of the host, with resolved formats.
        pub ready: Own<Arc<Vec<ReadyLog>>>,
    }
}

impl Module for LogConfig {
    const NAME: &'static str = "log_config_module";
    const FILE: &'static str = "mod_log_config.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<LogConfig>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.post_config(make_ready);
        hooks.on_log(
            Rank::MIDDLE,
            |bound| !bound.server.ready.0.is_empty(),
            |bound| bound.server.ready.0.iter().all(ReadyLog::reads_head_alone),
            log,
        );
        hooks.every_second(buffer::flush);
    }
}

/// A log that is a file, for the check of its folder.
pub struct LogFile {
    /// Its path.
    pub path: PathBuf,
    /// Its name as written.
    pub written: Vec<u8>,
    /// The directive.
    pub span: Span,
}

/// The files of a host's logs, in the order of their directives.
pub fn files(server: &Server, host: &Host) -> Vec<LogFile> {
    let slot = server.registry.slot_of::<LogConfig>();
    let Some(settings) = slot.and_then(|slot| host.server.share::<Settings>(slot)) else {
        return Vec::new();
    };
    let logs = settings.logs.iter().chain(settings.global_logs.iter());
    let file = |log: &Log| match server.sinks.target(log.sink) {
        Some(Target::File(path)) => {
            Some(LogFile { path, written: log.file.clone(), span: log.span })
        }
        _ => None,
    };
    let mut files: Vec<LogFile> = logs.filter_map(file).collect();
    files.sort_by_key(|file| file.span);
    files
}

/// `LogFormat "%h %l %u %t \"%r\" %>s %b"`: the Common Log Format.
const COMMON: &[u8] = b"%h %l %u %t \"%r\" %>s %b";

/// Resolves every log's format, now that all nicknames are known (`init_config_log`).
fn make_ready(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<LogConfig>() else { return };
    let registry = build.registry.clone();
    let mut known = BTreeMap::new();
    let mut faults = Vec::new();
    build.edit_servers(slot, |settings: &mut Settings| {
        let mut ready = Vec::new();
        for log in settings.logs.iter().chain(settings.global_logs.iter()) {
            let text = settings.text_of(log);
            let format = known
                .entry(text.clone())
                .or_insert_with(|| Format::parse(&text, &registry).map(Arc::new));
            match format {
                Ok(format) => ready.push(ReadyLog {
                    sink: log.sink,
                    format: format.clone(),
                    condition: log.condition.clone(),
                }),
                Err(why) => faults.push((log.span, why.clone())),
            }
        }
        settings.ready.0 = Arc::new(ready);
    });
    for (span, why) in faults {
        build.error(span, why);
    }
}

impl Settings {
    fn text_of(&self, log: &Log) -> Vec<u8> {
        let Some(named) = &log.format else {
            return self.default_format.or_ref(&COMMON.to_vec()).clone();
        };
        match self.formats.get(named) {
            Some(text) => text.clone(),
            None if named == b"json" => json::FORMAT.to_vec(),
            None => named.clone(),
        }
    }
}

/// Writes the request's lines (`multi_log_transaction`).
fn log<'r>(bound: Bound<'r, LogConfig>, request: &'r mut Request) -> Step<'r> {
    let any =
        |names: fn(&Format) -> bool| bound.server.ready.0.iter().any(|log| names(&log.format));
    let client = hostname::is_unknown(request) && any(|format| format.names_client);
    let peer = hostname::is_peer_unknown(request) && any(|format| format.names_peer);
    let ident = mod_ident::is_unasked(request) && any(|format| format.names_user_of_host);
    if client || peer || ident {
        return Step::Pending(Box::pin(async move {
            if client {
                hostname::client_name(request).await;
            }
            if peer {
                hostname::look_up_peer(request).await;
            }
            if ident {
                mod_ident::ask(request).await;
            }
            let mut done = 0;
            let step = |request: &mut Request| write_all(bound, request, &mut done);
            matching::settled(request, step).await.unwrap_or_else(Verdict::Status)
        }));
    }
    let mut done = 0;
    matching::settle(request, move |request| write_all(bound, request, &mut done))
}

/// Writes the lines of all logs except those already done.
fn write_all(
    bound: Bound<'_, LogConfig>,
    request: &mut Request,
    done: &mut usize,
) -> Result<Verdict, Stop> {
    while let Some(log) = bound.server.ready.0.get(*done) {
        if log.wants(request)? {
            buffer::write(request, log.sink, bound.server.buffered.0, |request, line| {
                log.format.write(request, line);
            });
        }
        *done += 1;
    }
    Ok(Verdict::Ok)
}

impl ReadyLog {
    fn reads_head_alone(&self) -> bool {
        self.condition.is_none() && self.format.reads_head_alone()
    }

    fn wants(&self, request: &mut Request) -> Result<bool, Stop> {
        Ok(match &self.condition {
            None => true,
            // As in Apache, of the request that the client sent: not of an ErrorDocument, say.
            Some(Condition::Env(name)) => request.original().env.contains(name),
            Some(Condition::NotEnv(name)) => !request.original().env.contains(name),
            Some(Condition::Expr(expr)) => {
                match server::expr::holds(expr, request.original_for_log()) {
                    Err(Stop::Later) => return Err(Stop::Later),
                    held => held == Ok(true),
                }
            }
        })
    }
}
