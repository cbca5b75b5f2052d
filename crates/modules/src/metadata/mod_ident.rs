//! mod_ident: asks the client's host for the user of a connection (RFC 1413).
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_ident.html>

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use conf::Arg;
use rt::{ConnectOptions, Remote, Stream};
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use crate::atoi::atol;

/// `mod_ident.c`
pub struct Ident;

impl Module for Ident {
    const NAME: &'static str = "ident_module";
    const FILE: &'static str = "mod_ident.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Ident>] = &[
        Row::<Ident>::new(
            "IdentityCheck",
            Takes::Flag(|cx, on| {
                cx.dir().check.set(on);
                if on {
                    cx.build().registry.asks_user_of_host.set();
                }
                Ok(())
            }),
            "On|Off",
            "Asks the client's host for the user of a connection, for logs and programs.",
        )
        .standing(Places::NOT_HTACCESS, Override::NONE)
        .default("Off"),
        Row::<Ident>::new(
            "IdentityCheckTimeout",
            Takes::One(timeout),
            "seconds",
            "Sets how long the answer is waited for.",
        )
        .standing(Places::NOT_HTACCESS, Override::NONE)
        .default("30"),
    ];

    fn hooks(hooks: &mut Hooks<'_, Ident>) {
        let first = Rank::REALLY_FIRST;
        hooks.on(Phase::PostReadRequest, first, is_on, look_up);
        hooks.on(Phase::AccessChecker, first, is_on, look_up).pure();
        hooks.on(Phase::LogTransaction, first, is_on, look_up).pure();
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `IdentityCheck`
        pub check: Setting<bool>,
        /// `IdentityCheckTimeout`
        pub timeout: Setting<Duration>,
    }
}

/// Source: `set_idcheck_timeout`.
fn timeout(cx: &mut Cx<'_, '_, Ident>, arg: &Arg) -> Set {
    let seconds = u64::try_from(atol(&arg.text)).ok().filter(|seconds| *seconds > 0);
    // Zero stands for the default, and Apache would wait forever for a negative time.
    cx.dir().timeout.set(seconds.map_or(TIMEOUT, Duration::from_secs));
    Ok(())
}

/// The default of `IdentityCheckTimeout`.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The port of identity servers (RFC 1413).
const PORT: u16 = 113;

/// Bytes of an answer (`RFC1413_MAXDATA`).
const ANSWER_BYTES: usize = 1000;

/// Bytes of a user's name (`RFC1413_USERLEN`).
const USER_BYTES: usize = 512;

/// What stands for the user if the answer names none.
const UNKNOWN: &[u8] = b"unknown";

fn is_on(ident: Bound<'_, Ident>) -> bool {
    ident.dir.check.or(false)
}

/// Asks the client's host if an expression may use its answer, since expressions can't wait.
fn look_up<'r>(_: Bound<'r, Ident>, request: &'r mut Request) -> Step<'r> {
    let is_named = request.engine.server.registry.names_user_of_host.get();
    if !is_named || !is_unasked(request) {
        return Step::DECLINED;
    }
    Step::Pending(Box::pin(async move {
        ask(request).await;
        Verdict::Declined
    }))
}

/// Whether the client's host is to be asked, and has not been asked about this connection.
pub(crate) fn is_unasked(request: &Request) -> bool {
    request.engine.server.registry.asks_user_of_host.get()
        && request.connection.logname.get().is_none()
        && request.dir_of::<Ident>().is_some_and(|dir| dir.check.or(false))
}

/// Asks the client's host, once for each connection. Source: `ap_ident_lookup`.
pub(crate) async fn ask(request: &Request) {
    let timeout = request.dir_of::<Ident>().map_or(TIMEOUT, |dir| dir.timeout.or(TIMEOUT));
    let (client, own) = (request.connection.peer, request.connection.local);
    if let Some(recorder) = &request.engine.recorder {
        recorder.not_asked(&format!("the identity server of {}", client.ip()));
        return;
    }
    let user = user_of(request, timeout, client, own).await;
    let user = user.unwrap_or_else(|_| UNKNOWN.to_vec());
    let _ = request.connection.logname.set(Box::new(user.into()));
}

async fn user_of(
    request: &Request,
    timeout: Duration,
    client: SocketAddr,
    own: SocketAddr,
) -> io::Result<Vec<u8>> {
    let deadline = request.engine.handle.deadline(timeout);
    let address = Remote::Tcp(SocketAddr::new(client.ip().to_canonical(), PORT));
    let source = Some(own.ip().to_canonical());
    let options = ConnectOptions { source, ..ConnectOptions::default() };
    let mut stream = Stream::connect(&address, &options, deadline).await?;
    let question = format!("{}, {}\r\n", client.port(), own.port());
    stream.write_all(question.as_bytes(), timeout).await?;
    let mut answer = Vec::with_capacity(ANSWER_BYTES);
    while !answer.contains(&b'\n') && answer.len() < ANSWER_BYTES {
        if stream.read(&mut answer, deadline).await? == 0 {
            break;
        }
    }
    answer.truncate(ANSWER_BYTES);
    Ok(user_in(&answer, client.port(), own.port()).unwrap_or(UNKNOWN).to_vec())
}

/// The user in an answer such as `6193, 23 : USERID : UNIX : stjohns`; `None` if it is about other
/// ports, or an error. Source: `rfc1413_query`, whose format of sscanf(3) takes blanks almost
/// everywhere.
fn user_in(answer: &[u8], client_port: u16, own_port: u16) -> Option<&[u8]> {
    let (client, rest) = number(answer)?;
    let (own, rest) = number(literal(rest, b",")?)?;
    let rest = literal(literal(literal(rest, b":")?, b"USERID")?, b":")?;
    let system = rest.iter().position(|byte| *byte == b':').filter(|end| *end > 0)?;
    let user = rest.get(system + 1..)?.trim_ascii_start();
    let end = user.iter().position(u8::is_ascii_whitespace).unwrap_or(user.len());
    let user = user.get(..end.min(USER_BYTES)).filter(|user| !user.is_empty())?;
    let is_it = client == u64::from(client_port) && own == u64::from(own_port);
    let user = user.split(|byte| *byte == 0).next()?;
    is_it.then_some(user)
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let digits = std::str::from_utf8(digits).ok()?;
    Some((digits.parse().ok()?, rest))
}

/// What follows a word, with blanks before and after it.
fn literal<'t>(text: &'t [u8], word: &[u8]) -> Option<&'t [u8]> {
    Some(text.trim_ascii_start().strip_prefix(word)?.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::user_in;

    #[test]
    fn answers_name_users() {
        let user = |answer: &str| user_in(answer.as_bytes(), 6193, 23).map(<[u8]>::to_vec);
        let stjohns = Some(b"stjohns".to_vec());
        assert_eq!(user("6193, 23 : USERID : UNIX : stjohns\r\n"), stjohns);
        assert_eq!(user("6193,23:USERID:UNIX,UTF-8:stjohns more"), stjohns);
        assert_eq!(user(" 6193 , 23\t: USERID :UNIX\n: stjohns"), stjohns);
        for none in [
            "",
            "6193, 23 : ERROR : NO-USER",
            "6193, 24 : USERID : UNIX : stjohns",
            "6194, 23 : USERID : UNIX : stjohns",
            "6193, 23 : USERID :: stjohns",
            "6193, 23 : USERID : UNIX : \r\n",
            "6193 23 : USERID : UNIX : stjohns",
            "99999999999999999999999, 23 : USERID : UNIX : x",
        ] {
            assert_eq!(user(none), None, "{none}");
        }
        let long = format!("6193,23:USERID:X:{}", "u".repeat(600));
        assert_eq!(user(&long).map(|user| user.len()), Some(512));
    }
}
