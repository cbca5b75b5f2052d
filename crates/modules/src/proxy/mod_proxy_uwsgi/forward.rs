//! Forwards a request. Source: `uwsgi_handler`.

use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use wire::uwsgi::{Modifiers, TooLarge, write_request};

use super::{ProxyUwsgi, response, variables};
use crate::proxy::mod_proxy::backend::{FailedTells, Options};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::single::Single;

/// The number of the message that the request's body can't be read.
const UNREAD: u32 = 10099;

const OPTIONS: Options<'static> = Options {
    name: "UWSGI",
    module: <ProxyUwsgi as Module>::FILE,
    failed: Some(10101),
    failed_tells: FailedTells::Port,
    unsent: 10098,
    may_reuse: false,
    keeps: false,
};

pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    variables::add_path_info(exchange)?;
    let mut single = Single::connect(exchange, OPTIONS).await?;
    let body = single.body(exchange.request, UNREAD).await?;
    variables::add(exchange.request).await;
    let mut head = Vec::with_capacity(2048);
    if let Err(why) = write_request(&mut head, Modifiers::default(), exchange.request.env.iter()) {
        let place = exchange.shown_place();
        let text = format_args!("can't send headers to {place}: {why}");
        exchange.request.log::<ProxyUwsgi>(Level::Error, TooLarge::LOG_NUMBER, text);
        return Err(TooLarge::STATUS);
    }
    single.send(exchange, head, body, UNREAD).await?;
    let received = response::read_head(exchange, &mut single).await?;
    let replaced = exchange.bound.dir.error_override.get();
    let response = &mut exchange.request.response;
    if replaced.is_some_and(|replaced| replaced.has(response.status)) {
        response.status_line = None;
        return Err(std::mem::replace(&mut response.status, 200));
    }
    response.keeps_origin = true;
    let body = single.into_body(exchange, received).await;
    exchange.request.response.body = body;
    Ok(Verdict::Ok)
}
