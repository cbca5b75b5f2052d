//! A question to an authorizer (FastCGI specification, section 6.3). Each has a connection of its
//! own.
//!
//! Source: `req_rsp`, `setupenv`, `handle_response`

use std::io;
use std::time::Duration;

use rt::{ConnectError, ConnectOptions, Stream};
use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::fastcgi::{Event, Fault, RecordDecoder, Role, begin_request, write_params};
use wire::script_head::{ScriptHead, ScriptHeadParser, ScriptProgress};

use super::{AuthnzFcgi, Provider};
use crate::proxy::mod_proxy::backend::ADDRESSES;
use crate::proxy::mod_proxy::unasked;
use crate::util_script::head::{put, refuse};
use crate::util_script::variables::{add_cgi, add_common};

/// The most bytes of a text for the client (`NON200_RESPONSE_BUF_LEN`).
pub(super) const BODY_BYTES: usize = 8192;

/// The longest wait for a connection, for room, and for each piece (`FCGI_IO_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;

/// Variables that an authorizer does not get.
const WITHHELD: [&[u8]; 9] = [
    b"CONTENT_LENGTH",
    b"PATH_INFO",
    b"PATH_TRANSLATED",
    b"SCRIPT_NAME",
    b"HTTP_KEEP_ALIVE",
    b"HTTP_TE",
    b"HTTP_TRAILER",
    b"HTTP_TRANSFER_ENCODING",
    b"HTTP_UPGRADE",
];

/// A failure, which has been logged.
struct Failed;

/// Asks an authorizer. Its answer is the status of the response: 500 if there is none. With 200 it
/// sets variables of the request; otherwise returns its text for the client.
pub(super) async fn ask(
    request: &mut Request,
    provider: &Provider,
    password: Option<&[u8]>,
    role: Option<&str>,
) -> Vec<u8> {
    request.depends.pure = false;
    let own = request.env.clone();
    add_variables(request, password, role).await;
    let outcome = converse(request, provider).await;
    request.env = own;
    let body = match outcome {
        Ok(body) => {
            let status = request.response.status;
            let text = format_args!("req_rsp: Received HTTP status {status}");
            request.log::<AuthnzFcgi>(Level::Debug, 2515, text);
            body
        }
        Err(Failed) => {
            request.response.status = 500;
            Vec::new()
        }
    };
    if request.response.status == 200 {
        take_variables(request);
    }
    body
}

async fn add_variables(request: &mut Request, password: Option<&[u8]>, role: Option<&str>) {
    add_common::<AuthnzFcgi>(request).await;
    add_cgi(request).await;
    let env = &mut request.env;
    env.set(b"FCGI_ROLE", b"AUTHORIZER");
    if let Some(role) = role {
        env.set(b"FCGI_APACHE_ROLE", role.as_bytes());
    }
    if let Some(password) = password {
        env.set(b"REMOTE_PASSWD", password);
    }
    for name in WITHHELD {
        env.unset(name);
    }
    env.set(b"HTTP_CONNECTION", b"close");
}

/// Turns the fields `Variable-NAME` into variables. The client does not get them.
fn take_variables(request: &mut Request) {
    const PREFIX: &[u8] = b"Variable-";
    let fields = &mut request.response.err_headers_out;
    let is_one = |name: &[u8]| {
        name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    };
    let found: Vec<(Vec<u8>, Vec<u8>)> = fields
        .iter()
        .filter(|(name, _)| is_one(name))
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect();
    for (field, value) in found {
        request.response.err_headers_out.unset(&field);
        request.env.set(field.get(PREFIX.len()..).unwrap_or_default(), &value);
    }
}

/// Sends the question, and reads the answer into the response.
async fn converse(request: &mut Request, provider: &Provider) -> Result<Vec<u8>, Failed> {
    let mut records = begin_request(Role::Authorizer, false).to_vec();
    if let Err(error) = write_params(&mut records, request.env.iter()) {
        request.log::<AuthnzFcgi>(Level::Error, 2512, format_args!("req_rsp: {error}"));
        return Err(Failed);
    }
    let mut stream = connect(request, provider).await?;
    if let Err(error) = stream.write_all(&records, TIMEOUT).await {
        let backend = &provider.backend;
        let text = format_args!("Sending data to {backend} failed");
        request.log_error::<AuthnzFcgi>(Level::Error, 2498, errno(&error), text);
        let text = format_args!("req_rsp: Failed writing environment to {backend}");
        request.log_error::<AuthnzFcgi>(Level::Error, 2512, errno(&error), text);
        return Err(Failed);
    }
    let answer = read(request, provider, &mut stream).await;
    answer.inspect_err(|Failed| {
        let backend = &provider.backend;
        let text = format_args!("req_rsp: Failed handling response from {backend}");
        request.log::<AuthnzFcgi>(Level::Error, 2514, text);
    })
}

async fn connect(request: &mut Request, provider: &Provider) -> Result<Stream, Failed> {
    let Provider { host, port, backend, .. } = provider;
    if unasked::is_unasked(request, format_args!("{backend}")) {
        return Err(Failed);
    }
    let options = ConnectOptions::default();
    let connected = ADDRESSES.connect((host, *port), None, &options, TIMEOUT).await;
    connected.map_err(|error| {
        let text = format_args!("attempt to connect to {host}:{port} ({backend}) failed");
        match error {
            ConnectError::Io(error) => {
                request.log_error::<AuthnzFcgi>(Level::Error, 2495, errno(&error), text);
            }
            error => {
                let text = format_args!("{text}: {error}");
                request.log::<AuthnzFcgi>(Level::Error, 2495, text);
            }
        }
        Failed
    })
}

fn errno(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::TimedOut => Errno::TIMEDOUT,
        _ => Errno::from_io_error(error).unwrap_or(Errno::IO),
    }
}

/// What has come of an answer.
#[derive(Default)]
struct Answer {
    /// The program's output, up to the end of its head.
    output: Vec<u8>,
    parser: ScriptHeadParser,
    head: ScriptHead,
    has_head: bool,
    /// What follows the head.
    body: Vec<u8>,
}

async fn read(
    request: &mut Request,
    provider: &Provider,
    stream: &mut Stream,
) -> Result<Vec<u8>, Failed> {
    let mut decoder = RecordDecoder::new(false);
    let (mut received, mut at) = (Vec::new(), 0);
    let mut answer = Answer::default();
    loop {
        let event = decoder.decode(received.get(at..).unwrap_or_default());
        let event = event.map_err(|fault| fail(request, &fault))?;
        let piece = |consumed: usize, len: usize| at + consumed - len..at + consumed;
        match event {
            Event::NeedMore { consumed } => {
                received.drain(..at + consumed);
                at = 0;
                received.reserve(READ_BYTES);
                let deadline = request.engine.handle.deadline(TIMEOUT);
                if !matches!(stream.read(&mut received, deadline).await, Ok(1..)) {
                    let text = format_args!("Couldn't read from backend {}", provider.backend);
                    request.log::<AuthnzFcgi>(Level::Error, 2497, text);
                    return Err(fail(request, &decoder.end_of_input()));
                }
            }
            Event::Stdout { consumed, len } => {
                let output = received.get(piece(consumed, len)).unwrap_or_default();
                take_output(request, provider, &mut answer, output)?;
                at += consumed;
            }
            Event::Stderr { consumed, len } => {
                let message = Verbatim::new(received.get(piece(consumed, len)).unwrap_or_default());
                let backend = &provider.backend;
                let text = format_args!("handle_response: Logged from {backend}: '{message}'");
                request.log::<AuthnzFcgi>(Level::Warn, 2507, text);
                at += consumed;
            }
            Event::Ignored { consumed, kind } => {
                let text = format_args!("handle_response: Got bogus FastCGI record type {kind}");
                request.log::<AuthnzFcgi>(Level::Error, 2508, text);
                at += consumed;
            }
            Event::EndOfStdout { consumed } | Event::Values { consumed, .. } => at += consumed,
            Event::End { .. } => break,
        }
    }
    if !answer.has_head {
        return Err(no_head(request));
    }
    Ok(answer.body)
}

fn no_head(request: &Request) -> Failed {
    let text = format_args!("handle_response: Never reached end of script headers");
    request.log::<AuthnzFcgi>(Level::Error, 2510, text);
    Failed
}

/// Takes a piece of the program's output. The head is put into the response once it is complete.
fn take_output(
    request: &mut Request,
    provider: &Provider,
    answer: &mut Answer,
    output: &[u8],
) -> Result<(), Failed> {
    let mut rest = output;
    if !answer.has_head {
        answer.output.extend_from_slice(output);
        match answer.parser.parse(&mut answer.head, &answer.output) {
            ScriptProgress::NeedMore => return Ok(()),
            // An empty line alone is no permission.
            ScriptProgress::Done { consumed } if consumed <= b"\r\n".len() => {
                return Err(no_head(request));
            }
            ScriptProgress::Done { consumed } => {
                put::<AuthnzFcgi>(request, &answer.head, true);
                answer.has_head = true;
                let behind = answer.output.len() - consumed;
                rest = output.get(output.len() - behind.min(output.len())..).unwrap_or_default();
                let status = request.response.status;
                let text = format_args!("handle_response: script header parsing -> 0/{status}");
                request.log::<AuthnzFcgi>(Level::Debug, 2504, text);
            }
            ScriptProgress::Refused(fault) => {
                refuse::<AuthnzFcgi>(request, &fault);
                let backend = &provider.backend;
                let text =
                    format_args!("handle_response: Error parsing script headers from {backend}");
                request.log::<AuthnzFcgi>(Level::Error, 2506, text);
                return Err(Failed);
            }
        }
    }
    let room = BODY_BYTES - answer.body.len();
    answer.body.extend_from_slice(rest.get(..room.min(rest.len())).unwrap_or_default());
    Ok(())
}

/// Logs what is wrong with a record.
fn fail(request: &Request, fault: &Fault) -> Failed {
    let number = match fault {
        Fault::Header => 2501,
        Fault::Version(_) => 2502,
        Fault::RequestId(_) => 2503,
        Fault::Padding => 2509,
        // The failure to read it has been logged.
        Fault::Content => return Failed,
    };
    let text = match fault {
        Fault::Header => "Error occurred before reading entire header".to_owned(),
        Fault::Version(version) => format!("Got bogus FastCGI header version {version}"),
        Fault::RequestId(id) => format!("Got bogus FastCGI header request id {id}, expected 1"),
        fault => fault.to_string(),
    };
    request.log::<AuthnzFcgi>(Level::Error, number, format_args!("handle_response: {text}"));
    Failed
}
