//! The login. Source: part III of `proxy_ftp_handler`, `ftp_unauthorized`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::{Proxied, Request};

use super::ProxyFtp;
use super::asked::Asked;
use super::client;
use super::control::Control;
use super::data::refused;
use crate::proxy::mod_proxy::fault;

/// Logs in; returns what the server says then.
pub(super) async fn log_in(
    request: &mut Request,
    control: &mut Control,
    asked: &Asked,
) -> Result<Vec<u8>, u16> {
    let reply = control.greeting(request).await?;
    match reply.code {
        220 => {}
        120 => {
            return Err(fault::answer(request, 503, &reply.text));
        }
        _ => return Err(refused(request, &reply.text)),
    }
    let reply = control.ask(request, "USER", &asked.user).await?;
    match reply.code {
        230 => return Ok(reply.text),
        331 => {}
        530 => return Err(unauthorized(request)),
        _ => return Err(refused(request, &reply.text)),
    }
    let reply = control.ask(request, "PASS", &asked.password).await?;
    match reply.code {
        230 | 202 => Ok(reply.text),
        332 => {
            let why = [b"Need account for login: ", &reply.text[..]].concat();
            Err(fault::answer(request, 401, why))
        }
        530 => Err(unauthorized(request)),
        _ => Err(refused(request, &reply.text)),
    }
}

/// Asks the client for another login (`ftp_unauthorized`).
fn unauthorized(request: &mut Request) -> u16 {
    let site = client::site(request).unwrap_or_else(|| client::user(request));
    request.resource.proxied = Proxied::No;
    let line = format_args!("missing or failed auth to {}", Verbatim::new(&site));
    request.log::<ProxyFtp>(Level::Info, 1035, line);
    let realm = [b"Basic realm=\"", &site[..], b"\""].concat();
    request.response.err_headers_out.set(b"WWW-Authenticate", &realm);
    401
}
