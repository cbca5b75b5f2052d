//! A check of a worker. Source: `hc_check_tcp`, `hc_check_http`, `hc_check_cping`,
//! `create_hcheck_req`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use conf::expr::Expr;
use rt::tls::{ClientConfig, TlsError};
use rt::{Deadline, Stream};
use rustls_pki_types::ServerName;
use wire::chunked::Step;
use wire::request::HeadLimits;
use wire::response::{Framing, ResponseBody};

use super::response::Response;
use crate::proxy::mod_proxy::backend;
use crate::proxy::mod_proxy::checks::Method;
use crate::proxy::mod_proxy::workers::Worker;
use crate::proxy::mod_proxy_ajp::ping::{self, Broken};

/// The longest head of a response, bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// Room for one read, bytes.
const READ_BYTES: usize = 8 * 1024;
/// How much of a body is read, bytes.
const BODY_BYTES: usize = 1024 * 1024;

/// What is asked of a worker.
pub(super) struct Check<'w> {
    pub worker: &'w Worker,
    pub method: Method,
    pub condition: Option<&'w Expr>,
    pub timeout: Duration,
    /// For workers with TLS; `None` without `SSLProxyEngine on`.
    pub tls: Option<Arc<ClientConfig>>,
    /// Logs the status line of a response.
    pub log_line: &'w dyn Fn(&[u8]),
}

/// Why a worker is not well.
pub(super) enum Failed {
    /// It needs TLS, which the configuration does not have.
    Tls,
    /// There is no TLS with it.
    Handshake(ServerName<'static>, TlsError),
    /// The condition can't be evaluated.
    Condition(String),
    /// It can't be reached.
    Unreachable(io::Error),
    /// Its response can't be read.
    Io(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

impl Check<'_> {
    /// Whether the worker is well. An error is that it is not.
    pub async fn passes(&self) -> Result<bool, Failed> {
        let needs_tls = self.worker.target.scheme == b"https" && self.method != Method::Tcp;
        if needs_tls && self.tls.is_none() {
            return Err(Failed::Tls);
        }
        let stream = backend::connect_to(self.worker, self.timeout).await;
        let mut stream = stream.map_err(Failed::Unreachable)?;
        if let Some(config) = self.tls.clone().filter(|_| needs_tls) {
            stream = self.secured(stream, config).await?;
        }
        match self.method {
            Method::Tcp => Ok(true),
            Method::Cping => Ok(self.pings(&mut stream).await?),
            _ => self.responds(&mut stream).await,
        }
    }

    async fn secured(&self, stream: Stream, config: Arc<ClientConfig>) -> Result<Stream, Failed> {
        let name = String::from_utf8_lossy(&self.worker.target.host).into_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let end = stream.handle().deadline(self.timeout);
        let secured = rt::tls::connect(stream, config, name.clone(), end).await;
        secured.map_err(|error| Failed::Handshake(name, error))
    }

    async fn pings(&self, stream: &mut Stream) -> io::Result<bool> {
        match ping::ping(stream, self.timeout).await {
            Ok(()) => Ok(true),
            Err(Broken::Io(error, _)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            Err(_) => Ok(false),
        }
    }

    async fn responds(&self, stream: &mut Stream) -> Result<bool, Failed> {
        let Some((method, request)) = request(self.worker, self.method) else { return Ok(false) };
        self.write(stream, &request).await?;
        // One time for the whole response: one that drips would occupy the check forever.
        let by = stream.handle().deadline(self.timeout);
        let mut received = Vec::new();
        let end = loop {
            if let Some(end) = bstr::ByteSlice::find(&received[..], b"\r\n\r\n") {
                break end;
            }
            if received.len() > HEAD_BYTES || !read(stream, &mut received, by).await? {
                return Ok(false);
            }
        };
        let (head, rest) = received.split_at(end);
        (self.log_line)(
            head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end(),
        );
        let Some(mut response) = Response::parse(method, head) else { return Ok(false) };
        let rest = rest.get(4..).unwrap_or_default().to_vec();
        if method == "GET" && self.condition.is_some() {
            response.body = body(stream, &response, rest, by).await?;
        }
        response.passes(self.condition).map_err(Failed::Condition)
    }

    async fn write(&self, stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes, self.timeout).await
    }
}

/// Reads the body of a response.
async fn body(
    stream: &mut Stream,
    response: &Response,
    mut received: Vec<u8>,
    by: Deadline,
) -> io::Result<Vec<u8>> {
    let length = response.field(b"Content-Length");
    let length = length.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let framing = match (response.field(b"Transfer-Encoding"), length) {
        (Some(_), _) => Framing::Chunked,
        (None, Some(length)) => Framing::Length(length),
        (None, None) => Framing::UntilClose,
    };
    let mut reader = ResponseBody::new(HeadLimits::default(), false);
    reader.start(framing);
    let mut body = Vec::new();
    while body.len() < BODY_BYTES {
        let (consumed, len) = match reader.read(&received).map_err(io::Error::other)? {
            Step::Done { .. } => break,
            Step::Data { consumed, len } => (consumed, len),
            Step::NeedMore { consumed } => {
                received.drain(..consumed.min(received.len()));
                if !read(stream, &mut received, by).await? {
                    reader.end_of_input().map_err(io::Error::other)?;
                    break;
                }
                continue;
            }
        };
        let data = received.get(consumed - len..consumed).unwrap_or_default();
        body.extend_from_slice(data);
        received.drain(..consumed.min(received.len()));
    }
    Ok(body)
}

/// Reads some bytes; false at the end.
async fn read(stream: &mut Stream, to: &mut Vec<u8>, by: Deadline) -> io::Result<bool> {
    to.reserve(READ_BYTES);
    Ok(stream.read(to, by).await? > 0)
}

/// The request and its method; `None` if the method has none.
fn request(worker: &Worker, method: Method) -> Option<(&'static str, Vec<u8>)> {
    let (name, protocol) = match method {
        Method::Options => ("OPTIONS", "HTTP/1.0"),
        Method::Head => ("HEAD", "HTTP/1.0"),
        Method::Get => ("GET", "HTTP/1.0"),
        Method::Options11 => ("OPTIONS", "HTTP/1.1"),
        Method::Head11 => ("HEAD", "HTTP/1.1"),
        Method::Get11 => ("GET", "HTTP/1.1"),
        _ => return None,
    };
    let mut text = format!("{name} ").into_bytes();
    if name == "OPTIONS" {
        text.push(b'*');
    } else {
        let path = worker.target.path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let uri = worker.state.check_uri();
        text.extend_from_slice(path);
        if !path.is_empty() && !uri.is_empty() {
            text.push(b'/');
        }
        text.extend_from_slice(&uri);
    }
    text.extend_from_slice(format!(" {protocol}\r\nHost: ").as_bytes());
    text.extend_from_slice(&worker.target.host);
    text.extend_from_slice(format!(":{}\r\n\r\n", worker.target.port_number()).as_bytes());
    Some((name, text))
}
