//! The driver `pgsql`: statements are prepared once for a connection, and executed with parameters
//! that the server gets beside them.
//!
//! Source: APR's `apr_dbd_pgsql.c`. Specification:
//! <https://www.postgresql.org/docs/current/protocol.html>.

mod account;
mod conninfo;
mod passfile;
mod security;
mod socket;
mod text;

use std::io;
use std::path::Path;
use std::time::Instant;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message};
use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};

use rustls_pki_types::ServerName;

use self::account::Account;
pub(super) use self::conninfo::Conninfo;
use self::conninfo::Server;
use self::security::SslMode;
use self::socket::Socket;
use super::driver::{Argument, Connection, Outcome, RESULT_BYTES_MAX, Unopened};
use super::statement::{Statement, Type};

/// A connection to a server.
pub(super) struct Pgsql {
    socket: Socket,
    /// The labels of prepared statements, whose names are their places.
    prepared: Vec<String>,
    /// The server and this side are in step.
    is_ready: bool,
}

/// Why there is no outcome.
enum Failure {
    /// The server's message, after which it waits for the next statement.
    Server(String),
    /// The connection is of no use any more.
    Connection(String),
}

impl From<io::Error> for Failure {
    fn from(why: io::Error) -> Failure {
        Failure::Connection(match why.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            _ => why.to_string(),
        })
    }
}

impl Failure {
    fn text(self) -> String {
        match self {
            Failure::Server(text) | Failure::Connection(text) => text,
        }
    }
}

impl Pgsql {
    /// Connects to the first server that accepts, and prepares statements.
    pub fn open(
        info: &Conninfo,
        statements: &[Statement],
        deadline: Instant,
    ) -> Result<Pgsql, Unopened> {
        let mut last = "no server is given".to_owned();
        for server in &info.servers {
            let until = deadline.min(Instant::now() + info.connect_wait);
            match Pgsql::connect(info, server, until) {
                Ok(mut own) => {
                    own.prepare(statements, deadline)
                        .map_err(|why| Unopened::Prepare(why.text()))?;
                    return Ok(own);
                }
                Err(why) => last = why.text(),
            }
        }
        Err(Unopened::Connect(last))
    }

    /// Connects in the ways of `sslmode`, of which UNIX sockets know one.
    fn connect(info: &Conninfo, server: &Server, until: Instant) -> Result<Pgsql, Failure> {
        let account = Account::of(info, server);
        let mode = info.security.mode;
        let ways = if matches!(server, Server::Unix { .. }) { &[false] } else { mode.ways() };
        let mut last = None;
        for asks_for_tls in ways {
            let mut socket = Socket::connect(server, until)?;
            let secured = match asks_for_tls {
                true => secure(&mut socket, info, server, account.home.as_deref(), until),
                false => Ok(false),
            };
            let is_secure = match secured {
                Ok(is_secure) => is_secure,
                Err(why) => {
                    last = Some(why);
                    continue;
                }
            };
            let mut own = Pgsql { socket, prepared: Vec::new(), is_ready: false };
            match own.log_in(info, &account, until) {
                Ok(()) => return Ok(own),
                Err(why) => last = Some(why),
            }
            if *asks_for_tls && !is_secure {
                // The next way has just been gone.
                break;
            }
        }
        Err(last.unwrap_or_else(unknown_way))
    }

    fn log_in(
        &mut self,
        info: &Conninfo,
        account: &Account,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let mut out = BytesMut::new();
        let own = [("user", account.user.as_str()), ("database", account.database.as_str())];
        let more = info.session.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        frontend::startup_message(own.into_iter().chain(more), &mut out)?;
        self.socket.send(&out, deadline)?;
        let password =
            || account.password.as_deref().map_err(|why| Failure::Connection(why.clone()));
        let mut scram = None;
        loop {
            let mut out = BytesMut::new();
            match self.socket.receive(deadline)? {
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_)
                | Message::NoticeResponse(_) => continue,
                Message::ReadyForQuery(_) => {
                    self.is_ready = true;
                    return Ok(());
                }
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password()?, &mut out)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(account.user.as_bytes(), password()?, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut out)?;
                }
                Message::AuthenticationSasl(body) => {
                    let has_scram = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256))?;
                    if !has_scram {
                        return Err(unknown_way());
                    }
                    let own = ScramSha256::new(password()?, ChannelBinding::unsupported());
                    frontend::sasl_initial_response(SCRAM_SHA_256, own.message(), &mut out)?;
                    scram = Some(own);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let own = scram.as_mut().ok_or_else(unknown_way)?;
                    own.update(body.data())?;
                    frontend::sasl_response(own.message(), &mut out)?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    scram.as_mut().ok_or_else(unknown_way)?.finish(body.data())?;
                    continue;
                }
                Message::ErrorResponse(body) => return Err(refusal(body.fields())),
                _ => return Err(unknown_way()),
            }
            self.socket.send(&out, deadline)?;
        }
    }

    fn prepare(&mut self, statements: &[Statement], deadline: Instant) -> Result<(), Failure> {
        for (place, statement) in statements.iter().enumerate() {
            let mut out = BytesMut::new();
            let types = statement.types.iter().map(|kind| oid(*kind));
            frontend::parse(&name(place), &statement.sql, types, &mut out)?;
            frontend::sync(&mut out);
            self.converse(&out, deadline)?;
            self.prepared.push(statement.label.clone());
        }
        Ok(())
    }

    fn execute(
        &mut self,
        statement: &Statement,
        arguments: &[Argument],
        deadline: Instant,
    ) -> Result<Outcome, Failure> {
        let mut out = BytesMut::new();
        let known = self.prepared.iter().position(|label| *label == statement.label);
        let name = match known {
            Some(place) => name(place),
            None => {
                let types = statement.types.iter().map(|kind| oid(*kind));
                frontend::parse("", &statement.sql, types, &mut out)?;
                String::new()
            }
        };
        let values = (0..statement.types.len()).map(|place| arguments.get(place));
        let write = |value: Option<&Argument>, out: &mut BytesMut| {
            match value {
                Some(Argument::Text(bytes)) => out.extend_from_slice(bytes),
                Some(Argument::Integer(number)) => {
                    out.extend_from_slice(number.to_string().as_bytes());
                }
                None => return Ok(IsNull::Yes),
            }
            Ok(IsNull::No)
        };
        // All parameters and all values are texts.
        frontend::bind("", &name, [0i16], values, write, [0i16], &mut out)
            .map_err(|_| Failure::Server("a parameter is too long".to_owned()))?;
        frontend::describe(b'P', "", &mut out)?;
        frontend::execute("", 0, &mut out)?;
        frontend::sync(&mut out);
        self.converse(&out, deadline)
    }

    /// Sends messages that end with a Sync, and collects what comes until the server is ready.
    fn converse(&mut self, out: &[u8], deadline: Instant) -> Result<Outcome, Failure> {
        self.is_ready = false;
        self.socket.send(out, deadline)?;
        let (mut outcome, mut refused, mut bytes) = (Outcome::default(), None, 0usize);
        loop {
            match self.socket.receive(deadline)? {
                Message::ReadyForQuery(_) => {
                    self.is_ready = true;
                    return refused.map_or(Ok(outcome), |text| Err(Failure::Server(text)));
                }
                Message::RowDescription(body) => {
                    let names = body.fields().map(|field| Ok(field.name().to_owned()));
                    outcome.names = names.collect()?;
                }
                Message::DataRow(body) => {
                    let row = values(&body)?;
                    let size = row.iter().flatten().map(Vec::len).sum::<usize>();
                    bytes = bytes.saturating_add(size + size_of_val(row.as_slice()));
                    if bytes > RESULT_BYTES_MAX {
                        return Err(Failure::Connection("the result is too long".to_owned()));
                    }
                    outcome.rows.push(row);
                }
                Message::CommandComplete(body) => {
                    let last = body.tag()?.rsplit(' ').next().unwrap_or_default().parse();
                    outcome.changed = last.unwrap_or(0);
                }
                Message::ErrorResponse(body) => {
                    refused = Some(refusal(body.fields()).text());
                }
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(Failure::Connection("COPY is not supported".to_owned()));
                }
                _ => {}
            }
        }
    }
}

impl Connection for Pgsql {
    fn run(
        &mut self,
        statement: &Statement,
        arguments: &[Argument],
        deadline: Instant,
    ) -> Result<Outcome, String> {
        self.execute(statement, arguments, deadline).map_err(Failure::text)
    }

    fn is_usable(&mut self) -> bool {
        self.is_ready && self.socket.is_quiet()
    }
}

impl Drop for Pgsql {
    /// Tells the server, which otherwise logs a lost connection.
    fn drop(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        if self.is_ready {
            let _ = self.socket.send(&out, Instant::now() + FAREWELL);
        }
    }
}

/// Speaks TLS with a server; false if it has none and need not have it.
fn secure(
    socket: &mut Socket,
    info: &Conninfo,
    server: &Server,
    home: Option<&Path>,
    deadline: Instant,
) -> Result<bool, Failure> {
    let Server::Tcp { host, address, .. } = server else { return Ok(false) };
    let failure = |why: String| Failure::Connection(why);
    let mode = info.security.mode;
    if host.is_empty() && mode == SslMode::VerifyFull {
        let why = "host name must be specified for a verified SSL connection";
        return Err(failure(why.to_owned()));
    }
    let name = if host.is_empty() { address.as_ref().unwrap_or(host) } else { host };
    let name = ServerName::try_from(name.clone());
    let name = name.map_err(|_| failure(format!("\"{host}\" is no name of a host")))?;
    let config = info.security.config(home).map_err(failure)?;
    let is_secure = socket.secure(config, name, deadline).map_err(|why| match why.kind() {
        io::ErrorKind::InvalidData => failure(format!("SSL error: {why}")),
        _ => why.into(),
    })?;
    if !is_secure && mode != SslMode::Prefer {
        return Err(failure("server does not support SSL, but SSL was required".to_owned()));
    }
    Ok(is_secure)
}

/// The longest wait for room to say that a connection ends.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(10);

fn name(place: usize) -> String {
    format!("s{place}")
}

fn unknown_way() -> Failure {
    Failure::Connection("the server asks for an authentication that is not supported".to_owned())
}

/// The server's message.
fn refusal(mut fields: ErrorFields<'_>) -> Failure {
    let mut text = String::new();
    while let Ok(Some(field)) = fields.next() {
        match field.type_() {
            b'S' => text = format!("{}:  {text}", String::from_utf8_lossy(field.value_bytes())),
            b'M' => text.push_str(&String::from_utf8_lossy(field.value_bytes())),
            _ => {}
        }
    }
    Failure::Server(text)
}

/// The values of a row. A NULL is an empty text, as the driver of APR returns it: a NULL password
/// is a wrong one, not the absence of a user, about whom the next provider would be asked.
fn values(body: &DataRowBody) -> io::Result<Vec<Option<Vec<u8>>>> {
    let buffer = body.buffer();
    let value = |range: Option<std::ops::Range<usize>>| {
        let text = range.and_then(|range| buffer.get(range)).unwrap_or_default();
        Ok(Some(text.to_vec()))
    };
    body.ranges().map(value).collect()
}

/// PostgreSQL's type of a parameter. Source: `dbd_pgsql_prepare`.
fn oid(kind: Type) -> Oid {
    match kind {
        Type::String => 1043,
        Type::Short => 21,
        Type::Int => 23,
        Type::Long => 20,
        Type::Float => 700,
        Type::Double => 701,
        Type::Text => 25,
        Type::Time => 1083,
        Type::Date => 1082,
        Type::Timestamp => 1114,
        Type::ZonedTimestamp => 1184,
        Type::Blob => 17,
        Type::Null => 0,
    }
}
