//! Who logs in, and with what.

use std::env;
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};

use super::conninfo::{Conninfo, SOCKET_FOLDER, Server};
use super::passfile::{self, Wanted};

/// The user of a connection.
pub(super) struct Account {
    pub user: String,
    pub database: String,
    /// The password, or why there is none.
    pub password: Result<Vec<u8>, String>,
    /// The home of the process's user, in which files of defaults are.
    pub home: Option<PathBuf>,
}

impl Account {
    /// The user for a server: what is not configured comes from the process's user.
    pub fn of(info: &Conninfo, server: &Server) -> Account {
        let own = User::from_uid(geteuid()).ok().flatten();
        let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = home.or_else(|| own.as_ref().map(|own| own.dir.clone()));
        let user = info.user.clone().or_else(|| own.map(|own| own.name)).unwrap_or_default();
        let database = info.database.clone().unwrap_or_else(|| user.clone());
        let password = match &info.password {
            Some(password) => Ok(password.clone()),
            None => from_file(info, server, home.as_deref(), &database, &user),
        };
        Account { user, database, password, home }
    }
}

fn from_file(
    info: &Conninfo,
    server: &Server,
    home: Option<&Path>,
    database: &str,
    user: &str,
) -> Result<Vec<u8>, String> {
    let (host, port) = match server {
        Server::Tcp { host, address: Some(address), port } if host.is_empty() => (address, *port),
        Server::Tcp { host, port, .. } | Server::Unix { folder: host, port } => (host, *port),
    };
    let host = if host == SOCKET_FOLDER { "localhost" } else { host };
    let path = info.passfile.clone().or_else(|| home.map(|home| home.join(".pgpass")));
    let wanted = Wanted { host, port, database, user };
    let found = path.map_or(Ok(None), |path| passfile::password(&path, &wanted));
    found?.ok_or_else(|| "fe_sendauth: no password supplied".to_owned())
}
