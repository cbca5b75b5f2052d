//! The companion that starts programs for requests.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mpm::companion::Task;
use mpm::{Companion, Line};
use server::host::Server;
use server::request::Request;

use super::{Settings, Unixd, suexec};
use crate::filters::mod_ext_filter::ExtFilter;
use crate::generators::mod_cgi::{Cgi, Cgid};

/// What starts programs, which all hosts share; unset before the server runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handle(Arc<OnceLock<Spawner>>);

/// The companion as requests see it.
#[derive(Debug)]
pub(crate) struct Spawner {
    /// The line on which it receives orders.
    pub line: Arc<Line>,
    /// The wrapper for programs that run as other users; `None` if they can't.
    pub suexec: Option<PathBuf>,
}

/// What starts programs for a request; `None` if nothing does, as in `tamarack explain`.
pub(crate) fn of(request: &Request) -> Option<&Spawner> {
    request.server_of::<Unixd>()?.spawner.0.0.get()
}

/// The companion, if a module is active that starts programs. At most `programs_max` run at a time.
///
/// # Errors
/// Its line can't be created.
pub fn companion(server: &Arc<Server>, programs_max: usize) -> Result<Option<Companion>, String> {
    let registry = &server.registry;
    let slots =
        [registry.slot_of::<Cgi>(), registry.slot_of::<Cgid>(), registry.slot_of::<ExtFilter>()];
    let unixd = registry.slot_of::<Unixd>();
    let unixd = unixd.and_then(|slot| server.main().server.share::<Settings>(slot));
    let Some(unixd) = unixd.filter(|_| slots.iter().any(Option::is_some)) else {
        return Ok(None);
    };
    let line = Line::new().map_err(|error| format!("no line to a companion: {error}"))?;
    let line = Arc::new(line);
    let spawner = Spawner { line: line.clone(), suexec: suexec::in_force(&unixd) };
    let _ = unixd.spawner.0.0.set(spawner);
    Ok(Some(Companion {
        name: "companion that starts programs".to_owned(),
        line,
        task: Task::Spawner { programs_max },
    }))
}
