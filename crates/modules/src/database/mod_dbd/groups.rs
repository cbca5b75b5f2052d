//! Hosts that share a database.
//!
//! Source: `dbd_post_config`.

use std::collections::BTreeMap;
use std::iter::once;
use std::sync::Arc;

use conf::Span;
use server::config::build::Build;

use super::statement::Statement;
use super::{Database, Dbd, ServerConfig, Settings, settings};

/// Statements by label, also empty ones.
type Queries = BTreeMap<String, String>;

/// Hosts whose connections are made alike, and whose statements don't contradict each other: all
/// statements are prepared on each connection.
struct Group {
    /// Those of the first host, without statements.
    settings: Settings,
    queries: Queries,
}

impl Group {
    /// Whether another host joins the group.
    fn takes(&self, settings: &Settings, queries: &Queries) -> bool {
        let is_same = |(label, text): (&String, &String)| {
            self.queries.get(label).is_none_or(|own| own == text)
        };
        match settings.persists {
            true => self.settings.connects_as(settings) && queries.iter().all(is_same),
            false => self.settings == *settings && self.queries == *queries,
        }
    }

    /// Whether a host has joined the group.
    fn has(&self, settings: &Settings, queries: &Queries) -> bool {
        let is_known = |label: &String| self.queries.contains_key(label);
        self.takes(settings, queries) && queries.keys().all(is_known)
    }

    fn database(&self) -> Arc<Database> {
        let places = self.settings.driver.places();
        let queries = self.queries.iter().filter(|(_, text)| !text.is_empty());
        let statements = queries.map(|(label, text)| Statement::new(label, text, places)).collect();
        Arc::new(Database::new(Settings { statements, ..self.settings.clone() }))
    }
}

fn queries(own: &ServerConfig) -> Queries {
    own.queries.iter().map(|(label, text)| (label.clone(), text.clone())).collect()
}

/// The databases of all hosts.
pub(super) struct Databases(Vec<(Group, Arc<Database>)>);

impl Databases {
    /// Groups the hosts; also what is wrong with their parameters.
    pub fn new(build: &Build) -> (Databases, BTreeMap<String, Span>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut faults = BTreeMap::new();
        // Apache's list of hosts begins with the last one, and its list of groups as well.
        let hosts = build.hosts.iter().rev().map(|host| &host.server);
        for server in once(&build.main.server).chain(hosts) {
            let Some(own) = build.server_config::<Dbd>(server) else { continue };
            let settings = match settings(own) {
                Ok(Some(settings)) => settings,
                Ok(None) => continue,
                Err((why, span)) => {
                    faults.insert(why, span);
                    continue;
                }
            };
            let queries = queries(own);
            match groups.iter_mut().rev().find(|group| group.takes(&settings, &queries)) {
                Some(group) => group.queries.extend(queries),
                None => groups.push(Group { settings, queries }),
            }
        }
        let with_database = |group: Group| {
            let database = group.database();
            (group, database)
        };
        (Databases(groups.into_iter().map(with_database).collect()), faults)
    }

    /// That of a host.
    pub fn of(&self, own: &ServerConfig) -> Option<Arc<Database>> {
        let (settings, queries) = (settings(own).ok()??, queries(own));
        let (_, database) = self.0.iter().find(|(group, _)| group.has(&settings, &queries))?;
        Some(database.clone())
    }

    /// All of them.
    pub fn all(&self) -> Arc<[Arc<Database>]> {
        self.0.iter().map(|(_, database)| database.clone()).collect()
    }
}
