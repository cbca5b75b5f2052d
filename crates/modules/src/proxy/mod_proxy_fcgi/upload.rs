//! The request's body, before there is a connection.
//!
//! Source: `ap_proxy_prefetch_input`.

use server::log::Level;
use server::request::Request;
use server::request_body::BodyError;

use super::ProxyFcgi;

/// Most bytes that are read before a connection is taken (`MAX_MEM_SPOOL`).
const PREFETCH_BYTES: usize = 16 * 1024;

/// The beginning of a request's body.
#[derive(Default)]
pub(super) struct Upload {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether that is all.
    pub is_complete: bool,
    /// The length of a body whose head doesn't have it, once that is known.
    pub length: Option<u64>,
}

impl Upload {
    /// Reads the beginning of the body: as much as tells its length, if the head doesn't.
    pub async fn prefetch(request: &mut Request) -> Result<Upload, u16> {
        let mut upload = Upload::default();
        if request.body_in.is_empty() {
            upload.is_complete = true;
            return Ok(upload);
        }
        let is_announced = request.head.headers_in.contains(b"Content-Length");
        while upload.bytes.len() < PREFETCH_BYTES {
            match request.body_in.next().await {
                Some(Ok(piece)) => upload.bytes.extend_from_slice(&piece),
                Some(Err(error)) => return Err(failed(request, &error)),
                None => {
                    upload.is_complete = true;
                    upload.length = (!is_announced).then_some(upload.bytes.len() as u64);
                    break;
                }
            }
            if is_announced {
                break;
            }
        }
        Ok(upload)
    }
}

fn failed(request: &Request, error: &BodyError) -> u16 {
    let client = request.useragent_addr.ip().to_canonical();
    let text = format_args!("prefetch request body failed from {client}");
    request.log::<ProxyFcgi>(Level::Error, 1095, text);
    error.status(request)
}
