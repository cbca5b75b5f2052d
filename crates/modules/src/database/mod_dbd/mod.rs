//! mod_dbd: connections to SQL databases, for other modules.
//!
//! A host's directives make a [`Database`]: a pool of connections in each process. They are opened,
//! used and closed on the blocking pool.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_dbd.html>

mod driver;
mod maintain;
mod pgsql;
mod pool;
mod prepare;
mod rows;
mod sqlite3;
mod statement;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use conf::Span;
use server::config::build::Build;
use server::directive::Row;
use server::hooks::Hooks;
use server::merge::{Append, Overlay, Own, Setting};
use server::module::Module;

pub(crate) use self::driver::{Argument, Outcome};
use self::driver::{Driver, Parameters};
pub(crate) use self::pool::{Database, Failure};
pub(crate) use self::prepare::{prepare, query};
use self::statement::Statement;

/// `mod_dbd.c`
pub struct Dbd;

const FILE: &str = Dbd::FILE;

impl Module for Dbd {
    const NAME: &'static str = "dbd_module";
    const FILE: &'static str = "mod_dbd.c";
    type Server = ServerConfig;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Dbd>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Dbd>) {
        hooks.post_config(post_config);
        hooks.every_second(maintain::every_second);
    }
}

server::config! {
    /// Configuration of the server.
    pub struct ServerConfig {
        /// `DBDriver`
        driver: Setting<Driver>,
        /// `DBDParams`, and where it stands.
        parameters: Setting<(String, Span)>,
        /// `DBDPersist`
        persists: Setting<bool>,
        /// `DBDPrepareSQL`, and the queries of modules: texts by label.
        queries: Overlay<String, String>,
        /// `DBDInitSQL`
        initial: Append<String>,
        /// `DBDMin`
        min: Setting<usize>,
        /// `DBDKeep`
        keep: Setting<usize>,
        /// `DBDMax`
        max: Setting<usize>,
        /// `DBDExptime`, seconds.
        expiry_s: Setting<u64>,
        /// What the directives above make; `None` without a driver.
        database: Own<Option<Arc<Database>>>,
        /// Those of all hosts, if there are any.
        all: Own<Option<Arc<[Arc<Database>]>>>,
    }
}

/// The settings of a database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    driver: Driver,
    parameters: Parameters,
    /// Whether connections are kept.
    persists: bool,
    statements: Vec<Statement>,
    /// `DBDInitSQL`
    initial: Vec<Statement>,
    /// How many connections are kept for any time, kept for a time, and are the most.
    min: usize,
    keep: usize,
    max: usize,
    /// How long one is kept for a time.
    expiry: Duration,
}

/// The most connections of a pool: each takes a descriptor.
const CONNECTIONS_MAX: usize = 1024;

/// Makes the databases of all hosts. Those with the same settings share one, as in Apache
/// (`dbd_post_config`).
fn post_config(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Dbd>() else { return };
    let has_driver =
        |server| build.server_config::<Dbd>(server).is_some_and(|own| own.driver.is_set());
    if !has_driver(&build.main.server) && !build.hosts.iter().any(|host| has_driver(&host.server)) {
        return;
    }
    let mut made: Vec<Arc<Database>> = Vec::new();
    let mut faults: BTreeMap<String, Span> = BTreeMap::new();
    build.edit_servers::<ServerConfig>(slot, |own| match settings(own) {
        Ok(None) => own.database.0 = None,
        Ok(Some(settings)) => {
            let known = made.iter().find(|known| known.settings == settings).cloned();
            own.database.0 = Some(known.unwrap_or_else(|| {
                let new = Arc::new(Database::new(settings));
                made.push(new.clone());
                new
            }));
        }
        Err((why, span)) => {
            faults.insert(why, span);
        }
    });
    for (why, span) in faults {
        build.error(span, format!("DBDParams: {why}"));
    }
    if !made.is_empty() {
        let all: Arc<[Arc<Database>]> = Arc::from(made);
        build.edit_servers::<ServerConfig>(slot, |own| own.all.0 = Some(all.clone()));
    }
}

fn settings(own: &ServerConfig) -> Result<Option<Settings>, (String, Span)> {
    let Some(driver) = own.driver.get().copied() else { return Ok(None) };
    let empty = (String::new(), Span::default());
    let (text, span) = own.parameters.or_ref(&empty);
    let parameters = driver.parameters(text).map_err(|why| (why, *span))?;
    let queries = own.queries.iter().filter(|(_, text)| !text.is_empty());
    let statement = |label: &str, text: &str| Statement::new(label, text, driver.places());
    Ok(Some(Settings {
        driver,
        parameters,
        persists: own.persists.or(true),
        statements: queries.map(|(label, text)| statement(label, text)).collect(),
        initial: own.initial.iter().map(|text| Statement::verbatim(text)).collect(),
        min: own.min.or(1),
        keep: own.keep.or(2),
        max: own.max.or(10).clamp(1, CONNECTIONS_MAX),
        expiry: Duration::from_secs(own.expiry_s.or(300)),
    }))
}
