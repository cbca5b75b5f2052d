//! The parameters of a connection to PostgreSQL, which are libpq's.
//!
//! Specification: <https://www.postgresql.org/docs/current/libpq-connect.html>.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::security::Security;
use super::text;

/// PostgreSQL's port.
const PORT: u16 = 5432;
/// The folder of its UNIX sockets, which is Debian's.
pub(super) const SOCKET_FOLDER: &str = "/var/run/postgresql";
/// The longest wait for a connection, if `connect_timeout` is not given.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// Parameters that may come from the server's environment, and the names of its variables.
const VARIABLES: [(&str, &str); 19] = [
    ("application_name", "PGAPPNAME"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("client_encoding", "PGCLIENTENCODING"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("dbname", "PGDATABASE"),
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("options", "PGOPTIONS"),
    ("passfile", "PGPASSFILE"),
    ("password", "PGPASSWORD"),
    ("port", "PGPORT"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("sslcert", "PGSSLCERT"),
    ("sslcrl", "PGSSLCRL"),
    ("sslkey", "PGSSLKEY"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("user", "PGUSER"),
];

/// Parameters that change nothing here.
const WITHOUT_EFFECT: [&str; 8] = [
    "fallback_application_name",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "sslcompression",
    "sslsni",
    "tcp_user_timeout",
];

/// What to connect with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Conninfo {
    /// The servers, in the order in which they are tried.
    pub servers: Vec<Server>,
    /// `user`; if there is none, that of the process.
    pub user: Option<String>,
    /// `password`
    pub password: Option<Vec<u8>>,
    /// `passfile`; if there is none, `.pgpass` in the user's home.
    pub passfile: Option<PathBuf>,
    /// `dbname`; if there is none, the name of the user.
    pub database: Option<String>,
    /// Other parameters of the session.
    pub session: Vec<(String, String)>,
    /// `connect_timeout`
    pub connect_wait: Duration,
    /// `sslmode` and what belongs to it.
    pub security: Security,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// By TCP.
    Tcp {
        /// The name or address that a certificate has to name. May be empty.
        host: String,
        /// An address that makes it needless to look the name up.
        address: Option<String>,
        port: u16,
    },
    /// By a UNIX socket in a folder.
    Unix { folder: String, port: u16 },
}

impl Conninfo {
    /// Parses a text.
    ///
    /// # Errors
    /// What is wrong with it, or is not supported.
    pub fn parse(text: &str) -> Result<Conninfo, String> {
        Conninfo::with(text, |name| env::var(name).ok())
    }

    fn with(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Conninfo, String> {
        let from_environment = VARIABLES.iter().filter_map(|(name, from)| {
            Some(((*name).to_owned(), variable(from).filter(|value| !value.is_empty())?))
        });
        let mut given: BTreeMap<String, String> = from_environment.collect();
        // The last one counts. An empty value is that of a parameter that is not given.
        for (name, value) in text::parameters(text)? {
            given.insert(name, value);
        }
        let mut take = |name: &str| given.remove(name).filter(|value| !value.is_empty());
        let (hosts, addresses, ports) = (take("host"), take("hostaddr"), take("port"));
        let servers = servers(hosts.as_deref(), addresses.as_deref(), ports.as_deref())?;
        let session = ["options", "application_name", "client_encoding"];
        let session = session.iter().filter_map(|name| Some(((*name).to_owned(), take(name)?)));
        let info = Conninfo {
            servers,
            session: session.collect(),
            user: take("user"),
            password: take("password").map(String::into_bytes),
            passfile: take("passfile").map(PathBuf::from),
            database: take("dbname"),
            connect_wait: take("connect_timeout").map_or(Ok(CONNECT_WAIT), |text| wait(&text))?,
            security: Security::take(&mut take)?,
        };
        let only: [(&str, &[&str]); 4] = [
            ("channel_binding", &["disable", "prefer"]),
            ("gssencmode", &["disable", "prefer"]),
            ("load_balance_hosts", &["disable"]),
            ("target_session_attrs", &["any"]),
        ];
        for (name, values) in only {
            if let Some(value) = take(name).filter(|value| !values.contains(&value.as_str())) {
                return Err(format!("{name}={value} is not supported"));
            }
        }
        match given.keys().find(|name| !WITHOUT_EFFECT.contains(&name.as_str())) {
            Some(name) => Err(format!("the connection option '{name}' is not supported")),
            None => Ok(info),
        }
    }
}

fn wait(value: &str) -> Result<Duration, String> {
    let seconds = value.trim().parse::<i64>();
    let seconds = seconds.map_err(|_| format!("connect_timeout={value} is no number"))?;
    // As in libpq, one second is two, and no limit is ours.
    let limit = i64::try_from(CONNECT_WAIT.as_secs()).unwrap_or(i64::MAX);
    let seconds = if seconds <= 0 { limit } else { seconds.clamp(2, limit) };
    Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

fn servers(
    hosts: Option<&str>,
    addresses: Option<&str>,
    ports: Option<&str>,
) -> Result<Vec<Server>, String> {
    let list = |text: Option<&str>| -> Vec<String> {
        text.map(|text| text.split(',').map(str::to_owned).collect()).unwrap_or_default()
    };
    let (hosts, addresses, ports) = (list(hosts), list(addresses), list(ports));
    let count = hosts.len().max(addresses.len()).max(1);
    if !addresses.is_empty() && !hosts.is_empty() && addresses.len() != hosts.len() {
        let (hosts, addresses) = (hosts.len(), addresses.len());
        return Err(format!("could not match {hosts} host names to {addresses} hostaddr values"));
    }
    if ports.len() > 1 && ports.len() != count {
        let ports = ports.len();
        return Err(format!("could not match {ports} port numbers to {count} hosts"));
    }
    let at = |list: &[String], place: usize| list.get(place).cloned().unwrap_or_default();
    let server = |place: usize| {
        let port = port(&at(&ports, if ports.len() == 1 { 0 } else { place }))?;
        let (host, address) = (at(&hosts, place), at(&addresses, place));
        let address = Some(address).filter(|address| !address.is_empty());
        let folder = if host.is_empty() { SOCKET_FOLDER } else { host.as_str() };
        Ok(match folder.starts_with('/') && address.is_none() {
            true => Server::Unix { folder: folder.to_owned(), port },
            false => Server::Tcp { host, address, port },
        })
    };
    (0..count).map(server).collect()
}

fn port(text: &str) -> Result<u16, String> {
    let invalid = || format!("invalid port number: '{text}'");
    match text.trim() {
        "" => Ok(PORT),
        number => number.parse().ok().filter(|port| *port > 0).ok_or_else(invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::super::security::SslMode;
    use super::*;

    fn parsed(text: &str) -> Conninfo {
        Conninfo::with(text, |_| None).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn tcp(host: &str, port: u16) -> Server {
        Server::Tcp { host: host.to_owned(), address: None, port }
    }

    fn unix(folder: &str, port: u16) -> Server {
        Server::Unix { folder: folder.to_owned(), port }
    }

    #[test]
    fn parameters_are_libpqs() {
        let info = parsed(
            "host=/run/pg port = 6000 user='o\\'hara x' password=a\\ b dbname=d connect_timeout=1",
        );
        assert_eq!(info.servers, [unix("/run/pg", 6000)]);
        assert_eq!(info.user.as_deref(), Some("o'hara x"));
        assert_eq!(info.database.as_deref(), Some("d"));
        assert_eq!(info.password.as_deref(), Some(&b"a b"[..]));
        assert_eq!(info.connect_wait, Duration::from_secs(2));
        let info = parsed("host=a,b port=1,2 user=u");
        assert_eq!(info.servers, [tcp("a", 1), tcp("b", 2)]);
        assert_eq!(info.database, None);
        assert_eq!(parsed("").servers, [unix("/var/run/postgresql", 5432)]);
        let address = Some("::1".to_owned());
        let server = Server::Tcp { host: "db".to_owned(), address, port: 5432 };
        assert_eq!(parsed("host=db hostaddr=::1").servers, [server]);
        assert_eq!(parsed("host=a host=b").servers, [tcp("b", 5432)]);
        assert_eq!(parsed("postgresql://u@h:1/d?sslmode=require").security.mode, SslMode::Require);
    }

    #[test]
    fn the_environment_has_what_is_not_given() {
        let variable = |name: &str| match name {
            "PGHOST" => Some("db".to_owned()),
            "PGUSER" => Some("www".to_owned()),
            "PGSSLMODE" => Some(String::new()),
            _ => None,
        };
        let info = Conninfo::with("user=u", variable).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((info.servers, info.user), (vec![tcp("db", 5432)], Some("u".to_owned())));
        assert_eq!(info.security.mode, SslMode::Prefer);
    }

    #[test]
    fn what_is_not_supported_is_an_error() {
        for (wrong, why) in [
            ("port=x", "invalid port"),
            ("port=70000", "invalid port"),
            ("host=a,b port=1,2,3", "port numbers"),
            ("host=a,b hostaddr=::1", "hostaddr"),
            ("sslmode=x", "sslmode"),
            ("sslpassword=x", "'sslpassword'"),
            ("service=x", "'service'"),
            ("channel_binding=require", "channel_binding"),
            ("target_session_attrs=prefer-standby", "target_session_attrs"),
            ("connect_timeout=x", "no number"),
        ] {
            let found = Conninfo::with(wrong, |_| None);
            assert!(found.is_err_and(|found| found.contains(why)), "{wrong}");
        }
    }
}
