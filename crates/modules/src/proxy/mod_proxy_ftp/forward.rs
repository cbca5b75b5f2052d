//! Forwards a request, and puts the head of its response into the request.
//!
//! Source: `proxy_ftp_handler`.

use rt::{ConnectError, Stream};
use server::body::Body;
use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use wire::Method;

use super::ProxyFtp;
use super::asked::Asked;
use super::control::Control;
use super::page::Page;
use super::transfer::{Content, Transfer};
use super::wanted::Wanted;
use super::{data, folder, login};
use crate::proxy::mod_proxy::backend::{self, Backend, FailedTells, Options};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::relay::Announced;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{block, fault, unasked};

const OPTIONS: Options<'static> = Options {
    name: "FTP",
    module: <ProxyFtp as Module>::FILE,
    failed: None,
    failed_tells: FailedTells::Scheme,
    unsent: 0,
    may_reuse: false,
    keeps: false,
};

pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    if exchange.remote.is_some() {
        return Ok(Verdict::Declined);
    }
    if exchange.request.head.method != Method::GET {
        return Err(501);
    }
    let asked = Asked::of(exchange)?;
    find(exchange).await?;
    exchange.check_worker()?;
    let busy = Busy::new(&exchange.worker.state);
    let backend = Backend::connect(exchange, OPTIONS).await?;
    let mut control = Control::new(backend, exchange.timeout());
    let readme = login::log_in(exchange.request, &mut control, &asked).await?;
    let name = folder::enter(exchange.request, &mut control, &asked.path).await?;
    let data = data::open(exchange, &mut control).await?;
    let name = folder::plain(exchange.request, name)?;
    let wanted = Wanted::find(exchange.request, &mut control, &asked, name).await?;
    wanted.put_head(exchange.request);
    let body = body(exchange, (control, data, busy), &wanted, &readme);
    exchange.request.response.body = body;
    Ok(Verdict::Ok)
}

/// Looks the server's name up, and refuses those of ProxyBlock.
async fn find(exchange: &mut Exchange<'_>) -> Result<(), u16> {
    let place = backend::place(exchange)?;
    let url = Verbatim::new(exchange.url);
    let line = format_args!("connecting {url} to {place}");
    exchange.request.log::<ProxyFtp>(Level::Debug, 1036, line);
    let host = String::from_utf8_lossy(&place.host);
    let ttl = exchange.worker.parameters.address_ttl;
    let addresses = match unasked::look_up(exchange.request, &host, ttl).await {
        Ok(addresses) => addresses,
        Err(ConnectError::Pool(_)) => return Err(503),
        Err(_) => {
            let why = "Error resolving backend address";
            return Err(fault::answer(exchange.request, 502, why));
        }
    };
    block::check(exchange.request, exchange.bound, &place.host, &addresses)
}

/// The body of the response, and none for HEAD.
fn body(
    exchange: &Exchange<'_>,
    (control, data, busy): (Control, Stream, Busy),
    wanted: &Wanted,
    readme: &[u8],
) -> Body {
    let request = &*exchange.request;
    if request.head.header_only {
        request.engine.handle.spawn_local(control.quit());
        return match wanted.length() {
            Some(length) => Body::Stream(Box::pin(Announced(length))),
            None => Body::Empty,
        };
    }
    let content = match wanted.lists {
        true => Content::listing(Page::new(request, readme, wanted.folder.as_deref())),
        false => Content::file(wanted.length()),
    };
    Transfer::body(exchange, (control, data, busy), content)
}
