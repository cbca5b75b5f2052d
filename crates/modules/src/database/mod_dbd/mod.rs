//! mod_dbd: connections to SQL databases, for other modules.
//!
//! A host's directives make a [`Database`]: a pool of connections in each process. They are opened,
//! used and closed on the blocking pool.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_dbd.html>

mod driver;
mod groups;
mod maintain;
mod pgsql;
mod pool;
mod prepare;
mod rows;
mod sqlite3;
mod statement;

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
use self::groups::Databases;
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

impl Settings {
    /// Whether connections are made as with others; what is executed on them does not count.
    fn connects_as(&self, other: &Settings) -> bool {
        let Settings { statements, initial, .. } = self.clone();
        *self == Settings { statements, initial, ..other.clone() }
    }
}

/// The most connections of a pool: each takes a descriptor.
const CONNECTIONS_MAX: usize = 1024;

/// Makes the databases of all hosts.
fn post_config(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Dbd>() else { return };
    let has_driver =
        |server| build.server_config::<Dbd>(server).is_some_and(|own| own.driver.is_set());
    if !has_driver(&build.main.server) && !build.hosts.iter().any(|host| has_driver(&host.server)) {
        return;
    }
    let (databases, faults) = Databases::new(build);
    for (why, span) in faults {
        build.error(span, format!("DBDParams: {why}"));
    }
    let all = databases.all();
    build.edit_servers::<ServerConfig>(slot, |own| {
        own.database.0 = databases.of(own);
        own.all.0 = (!all.is_empty()).then(|| all.clone());
    });
}

/// What connections are made with, except for statements.
fn settings(own: &ServerConfig) -> Result<Option<Settings>, (String, Span)> {
    let Some(driver) = own.driver.get().copied() else { return Ok(None) };
    let empty = (String::new(), Span::default());
    let (text, span) = own.parameters.or_ref(&empty);
    let parameters = driver.parameters(text).map_err(|why| (why, *span))?;
    Ok(Some(Settings {
        driver,
        parameters,
        persists: own.persists.or(true),
        statements: Vec::new(),
        initial: own.initial.iter().map(|text| Statement::verbatim(text)).collect(),
        min: own.min.or(1),
        keep: own.keep.or(2),
        max: own.max.or(10).clamp(1, CONNECTIONS_MAX),
        expiry: Duration::from_secs(own.expiry_s.or(300)),
    }))
}
