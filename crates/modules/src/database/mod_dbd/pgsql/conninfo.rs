//! The parameters of a connection to PostgreSQL, in the form of libpq: `host=… dbname=…`.
//!
//! Specification: <https://www.postgresql.org/docs/current/libpq-connect.html>.

use std::path::PathBuf;
use std::time::Duration;

/// PostgreSQL's port.
const PORT: u16 = 5432;
/// The folder of its UNIX sockets, which is Debian's.
const SOCKET_FOLDER: &str = "/var/run/postgresql";
/// The longest wait for a connection, if `connect_timeout` is not given.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// The user, if none is given. libpq takes that of the process, which is not known yet.
const DEFAULT_USER: &str = "www-data";

/// What to connect with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Conninfo {
    /// The servers, in the order in which they are tried.
    pub servers: Vec<Server>,
    /// `user`
    pub user: String,
    /// `password`
    pub password: Vec<u8>,
    /// `dbname`
    pub database: String,
    /// Other parameters of the session.
    pub session: Vec<(String, String)>,
    /// `connect_timeout`
    pub connect_wait: Duration,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// A name or an address, and the port.
    Tcp(String, u16),
    /// The path of a UNIX socket.
    Unix(PathBuf),
}

impl Conninfo {
    /// Parses a text.
    ///
    /// # Errors
    /// What is wrong with it, or is not supported.
    pub fn parse(text: &str) -> Result<Conninfo, String> {
        if text.starts_with("postgresql://") || text.starts_with("postgres://") {
            return Err("a URI is not supported: write host=… port=… dbname=…".to_owned());
        }
        let (mut hosts, mut ports) = (String::new(), String::new());
        let (mut user, mut database) = (None, None);
        let (mut password, mut session) = (Vec::new(), Vec::new());
        let mut connect_wait = CONNECT_WAIT;
        for (name, value) in pairs(text)? {
            match name.as_str() {
                "host" if hosts.is_empty() => hosts = value,
                "host" => {}
                // An address makes the name needless.
                "hostaddr" => hosts = value,
                "port" => ports = value,
                "user" => user = Some(value).filter(|user| !user.is_empty()),
                "dbname" => database = Some(value).filter(|name| !name.is_empty()),
                "password" => password = value.into_bytes(),
                "connect_timeout" => connect_wait = wait(&value)?,
                "options" | "application_name" | "client_encoding" => session.push((name, value)),
                "sslmode" if !matches!(value.as_str(), "disable" | "allow" | "prefer") => {
                    return Err(format!("sslmode={value} is not supported: {NO_TLS}"));
                }
                "sslmode"
                | "fallback_application_name"
                | "keepalives"
                | "keepalives_idle"
                | "keepalives_interval"
                | "keepalives_count"
                | "tcp_user_timeout" => {}
                _ => return Err(format!("the connection option '{name}' is not supported")),
            }
        }
        let user = user.unwrap_or_else(|| DEFAULT_USER.to_owned());
        let database = database.unwrap_or_else(|| user.clone());
        let servers = servers(&hosts, &ports)?;
        Ok(Conninfo { servers, user, password, database, session, connect_wait })
    }
}

const NO_TLS: &str = "connect over a UNIX socket, the loopback interface or a tunnel";

fn wait(value: &str) -> Result<Duration, String> {
    let seconds = value.trim().parse::<i64>();
    let seconds = seconds.map_err(|_| format!("connect_timeout={value} is no number"))?;
    // As in libpq, one second is two, and no limit is ours.
    let limit = i64::try_from(CONNECT_WAIT.as_secs()).unwrap_or(i64::MAX);
    let seconds = if seconds <= 0 { limit } else { seconds.clamp(2, limit) };
    Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

fn servers(hosts: &str, ports: &str) -> Result<Vec<Server>, String> {
    let ports: Vec<&str> = ports.split(',').collect();
    let hosts = hosts.split(',').enumerate();
    let server = |(at, host): (usize, &str)| {
        let port = if ports.len() == 1 { ports.first() } else { ports.get(at) };
        let port = match port.copied().unwrap_or_default().trim() {
            "" => PORT,
            text => text
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| format!("invalid port number: '{text}'"))?,
        };
        let folder = if host.is_empty() { SOCKET_FOLDER } else { host };
        Ok(match folder.starts_with('/') {
            true => Server::Unix(PathBuf::from(format!("{folder}/.s.PGSQL.{port}"))),
            false => Server::Tcp(host.to_owned(), port),
        })
    };
    hosts.map(server).collect()
}

/// The pairs of `name = value`, where a value may be in quotes. Source: `conninfo_parse`.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut letters = text.chars().peekable();
    let mut pairs = Vec::new();
    loop {
        while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return Ok(pairs);
        }
        let mut name = String::new();
        while let Some(letter) = letters.next_if(|c| *c != '=' && !c.is_ascii_whitespace()) {
            name.push(letter);
        }
        while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
        if letters.next() != Some('=') {
            return Err(format!("missing \"=\" after \"{name}\" in connection info string"));
        }
        while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
        let is_quoted = letters.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        loop {
            match letters.next() {
                Some('\'') if is_quoted => break,
                Some('\\') => value.extend(letters.next()),
                Some(letter) if !is_quoted && letter.is_ascii_whitespace() => break,
                Some(letter) => value.push(letter),
                None if is_quoted => {
                    return Err("unterminated quoted string in connection info string".to_owned());
                }
                None => break,
            }
        }
        pairs.push((name, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_libpqs() {
        let info = Conninfo::parse(
            "host=/run/pg port = 6000 user='o\\'hara x' password=a\\ b dbname=d connect_timeout=1",
        );
        let info = info.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(info.servers, [Server::Unix("/run/pg/.s.PGSQL.6000".into())]);
        assert_eq!((info.user.as_str(), info.database.as_str()), ("o'hara x", "d"));
        assert_eq!(info.password, b"a b");
        assert_eq!(info.connect_wait, Duration::from_secs(2));
        let info =
            Conninfo::parse("host=a,b port=1,2 user=u").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(info.servers, [Server::Tcp("a".into(), 1), Server::Tcp("b".into(), 2)]);
        assert_eq!(info.database, "u");
        let info = Conninfo::parse("").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(info.servers, [Server::Unix("/var/run/postgresql/.s.PGSQL.5432".into())]);
    }

    #[test]
    fn what_is_not_supported_is_an_error() {
        for (wrong, why) in [
            ("host", "missing \"=\""),
            ("host='a", "unterminated"),
            ("port=x", "invalid port"),
            ("port=70000", "invalid port"),
            ("sslmode=require", "UNIX socket"),
            ("service=x", "'service'"),
            ("postgresql://localhost/x", "URI"),
            ("connect_timeout=x", "no number"),
        ] {
            assert!(Conninfo::parse(wrong).is_err_and(|found| found.contains(why)), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-z=' \\\\,]{0,40}") {
            let _ = Conninfo::parse(&text);
        }
    }
}
