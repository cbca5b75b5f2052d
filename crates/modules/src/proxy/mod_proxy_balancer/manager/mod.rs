//! `balancer-manager`: shows balancers, and changes them.
//!
//! Source: `balancer_handler`. A change needs POST, the balancer's nonce, and a Referer of this
//! host.

mod change;
mod edit;
mod form;
mod html;
mod identity;
mod page;
mod xml;

use std::sync::Arc;

use server::body::Body;
use server::discard::discard_body;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::Request;
use wire::{Method, MethodSet};

use super::ProxyBalancer;
use crate::mpm::numbers::Numbers;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};
use crate::proxy::mod_proxy::{Proxy, Settings};
use crate::proxy::mod_proxy_hcheck::{Condition, ProxyHcheck};
use form::Form;

/// What a page shows.
struct Shown<'r> {
    request: &'r Request,
    settings: &'r Settings,
    /// `None` without mod_proxy_hcheck.
    conditions: Option<&'r [Condition]>,
    /// Whether the method CPING can be chosen.
    has_ajp: bool,
    /// The connections that a worker may have, if `max` does not say it.
    threads: u32,
    balancer: Option<&'r Balancer>,
    worker: Option<&'r Worker>,
}

impl Shown<'_> {
    fn balancers(&self) -> &[Arc<Balancer>] {
        &self.settings.workers.0.balancers
    }
}

pub(super) fn handle<'r>(_: Bound<'r, ProxyBalancer>, request: &'r mut Request) -> Step<'r> {
    let allowed: MethodSet = [Method::GET, Method::POST].into_iter().collect();
    request.response.allowed = allowed;
    match request.head.method {
        Method::GET | Method::POST => Step::Pending(Box::pin(respond(request))),
        _ => Step::DECLINED,
    }
}

async fn respond(request: &mut Request) -> Verdict {
    request.depends.pure = false;
    if request.head.method != Method::POST && request.query().is_some() {
        request.log::<ProxyBalancer>(Level::Debug, 1191, format_args!("parsing r->args"));
    }
    let mut form = match Form::of(request).await {
        Ok(form) => form,
        Err(status) => return Verdict::Status(status),
    };
    if !form::has_own_referer(request) {
        let name = Verbatim::new(request.server_name());
        let referer = request.head.headers_in.get(b"Referer").map_or(&b"(null)"[..], |own| own);
        let referer = Verbatim::new(referer);
        let text = "ignoring params in balancer-manager cross-site access";
        let text = format_args!("{text} {referer}: {name}");
        request.log::<ProxyBalancer>(Level::Error, 10187, text);
        form = Form::default();
    }
    let (kind, text) = match written(request, &form) {
        Ok(written) => written,
        Err(status) => return Verdict::Status(status),
    };
    request.response.content_type = Some(kind.to_vec());
    // The page is flushed, XML is not.
    request.print(Body::from(text));
    request.response.chunked |= kind.starts_with(b"text/html");
    match discard_body(request).await {
        Ok(()) => Verdict::Ok,
        Err(status) => Verdict::Status(status),
    }
}

/// Makes the changes; the type of the response and its text.
fn written(request: &Request, form: &Form) -> Result<(&'static [u8], Vec<u8>), u16> {
    let registry = &request.engine.server.registry;
    let settings = request.server_of::<Proxy>().ok_or(500u16)?;
    let checks = request.server_of::<ProxyHcheck>();
    let workers = settings.workers.0.clone();
    let balancer = form.get("b").and_then(|name| {
        let name = [b"balancer://", name].concat();
        workers.balancer_of(&name)
    });
    let worker = form.get("w").and_then(|url| match balancer {
        Some(balancer) => balancer.member_of(url),
        None => None,
    });
    let shown = Shown {
        request,
        settings,
        conditions: checks.map(|own| own.conditions.0.as_slice()),
        has_ajp: registry.is_active("proxy_ajp_module"),
        threads: threads(request),
        balancer,
        worker: worker.map(|worker| &**worker),
    };
    if let Some(balancer) = balancer {
        let nonce = balancer.state.nonce();
        if !nonce.is_empty() && form.get("nonce") == Some(&nonce) {
            change::apply(request, &shown, balancer, shown.worker, form)?;
        }
    }
    request.log::<ProxyBalancer>(Level::Debug, 1204, format_args!("genning page"));
    Ok(match form.get("xml") {
        Some(_) => (b"text/xml", xml::write(&shown)),
        None => (b"text/html; charset=ISO-8859-1", page::write(&shown)),
    })
}

/// `ThreadsPerChild`
fn threads(request: &Request) -> u32 {
    let numbers = Numbers::of(&request.engine.server);
    numbers.map_or(1, |(_, numbers)| numbers.threads_per_child as u32)
}
