//! The server's code, running in this process for requests that no client sends.

use std::cell::OnceCell;
use std::future::poll_fn;
use std::io;
use std::num::NonZeroU32;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::connection::{self, Explained};
use http::service::Service;
use mpm::Scoreboard;
use regular::looks::Looks;
use rt::{Loop, memory};
use server::connection_info::{ConnectionInfo, TlsFacts};
use server::engine::Engine;
use server::explain::{Event, Kind, Recorder};
use server::host::{Host, Server};

use super::cost::{Cost, Run, Samples};
use super::places::Places;
use super::target::Target;
use crate::load::Loaded;

/// TLS_AES_128_GCM_SHA256, and ECDHE-RSA-AES128-GCM-SHA256 for TLS 1.2: the suites of most clients.
const SUITES: [(&str, u16); 2] = [("TLSv1.3", 0x1301), ("TLSv1.2", 0xc02f)];

/// The program's side of a recording.
pub struct Session {
    service: Rc<Service>,
    recorder: Rc<Recorder>,
    /// The places of all directives.
    pub places: Places,
    /// The server.
    pub server: Arc<Server>,
}

/// An answer, and how it came about.
pub struct Answer {
    /// The answer.
    pub explained: Explained,
    /// The recording.
    pub event: Event,
    /// What it asked of the file system.
    pub looks: Looks,
    /// Whether it may depend on something that was not asked.
    pub is_uncertain: bool,
}

/// The time for a response is over.
pub struct Late;

/// Waits for `work`, at most so long if it yields: rules in a loop do.
///
/// # Errors
/// [`Late`]
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Late> {
    let began = Instant::now();
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending if began.elapsed() >= limit => Poll::Ready(Err(Late)),
        Poll::Pending => Poll::Pending,
    })
    .await
}

impl Session {
    /// Runs `work` in a loop that serves `loaded`. If there is a `user`, requests that have to
    /// authenticate count as that user's.
    ///
    /// # Errors
    /// The loop can't start.
    pub fn run<T>(
        loaded: &Loaded,
        server: Arc<Server>,
        user: Option<Vec<u8>>,
        work: impl AsyncFnOnce(Session) -> T,
    ) -> io::Result<T> {
        let (scoreboard, slot) = Scoreboard::of_one_loop()?;
        let texts = u32::try_from(loaded.sources.iter().count()).unwrap_or(u32::MAX);
        let places = Places::new(loaded);
        Loop::new("explain").start(async move |handle| {
            let recorder = Recorder::new(texts, user);
            let engine =
                Engine::recorded(server.clone(), handle, slot, scoreboard, recorder.clone());
            let service = Service::new(engine);
            work(Session { service, recorder, places, server }).await
        })
    }

    /// Requests that follow count as that user's if they have to authenticate.
    pub fn set_user(&self, user: Option<Vec<u8>>) {
        self.recorder.set_user(user);
    }

    /// Makes the answer to a request.
    ///
    /// # Errors
    /// There can be no answer: the head is incomplete, or the address does not speak TLS.
    pub async fn explain(&mut self, target: &Target) -> Result<Answer, String> {
        if target.tls.is_some() && !self.speaks_tls(target) {
            let local = target.local;
            return Err(format!("{local} does not speak TLS (no SSLEngine on): no handshake"));
        }
        if target.http2 && !self.speaks_http2(target) {
            let (local, host) = (target.local, &target.host);
            let name = if target.tls.is_some() { "h2" } else { "h2c" };
            return Err(format!(
                "{local} does not speak HTTP/2 with {host}: Protocols there does not list {name}, \
                 or mod_http2 is off"
            ));
        }
        self.ask(target).await.ok_or_else(|| "the request is not complete".to_owned())
    }

    /// Makes the answer to a request; `None` if its head is incomplete.
    pub async fn ask(&mut self, target: &Target) -> Option<Answer> {
        self.ask_within(Duration::MAX, target).await.ok().flatten()
    }

    /// The same, unless it takes longer than `limit`.
    ///
    /// # Errors
    /// [`Late`]
    pub async fn ask_within(
        &mut self,
        limit: Duration,
        target: &Target,
    ) -> Result<Option<Answer>, Late> {
        let client = self.client(target);
        let begun = self.recorder.begin(Event::new(Kind::Request, target.url.clone()));
        let before = Looks::so_far();
        let explained = connection::explain(&self.service, client, &target.sent);
        let explained = within(limit, explained).await?;
        let looks = before.since();
        let Some((explained, mut event)) = explained.zip(begun.into_event()) else {
            return Ok(None);
        };
        event.outcome = explained.request.response.status.to_string();
        let left_out = self.recorder.left_out();
        if left_out > 0 {
            let text = format!("{left_out} further steps are not shown");
            event.events.push(Event::new(Kind::Note, text));
        }
        self.places.learn(&self.recorder.files());
        Ok(Some(Answer { explained, event, looks, is_uncertain: self.recorder.is_uncertain() }))
    }

    /// Measures the response to a request. `None` if its head is incomplete.
    pub async fn measure(&self, target: &Target) -> Option<Cost> {
        let mut samples = Samples::new();
        while samples.wants_more() {
            let client = self.client(target);
            self.recorder.begin_to_measure();
            let before = memory::allocations();
            let began = Instant::now();
            let made = connection::explain(&self.service, client, &target.sent).await;
            let response = began.elapsed();
            let allocations = memory::allocations() - before;
            let phases = self.recorder.end_measuring();
            drop(made?);
            samples.add(Run { response, phases, allocations });
        }
        Some(samples.medians())
    }

    /// The sections that the configuration of the answer was merged from.
    pub fn parts_of(&self, answer: &Answer) -> Vec<u64> {
        self.recorder.parts_of(answer.explained.request.layer.id)
    }

    /// The host that the handshake of a client names.
    fn host_of<'h>(&'h self, target: &Target, client: &'h ConnectionInfo) -> &'h Host {
        let name = target.host.to_ascii_lowercase();
        self.server.vhosts.named(client.local, name.as_bytes()).unwrap_or(&client.base_host)
    }

    fn speaks_http2(&self, target: &Target) -> bool {
        let client = connection::info_of(&self.service, target.peer, target.local);
        match target.tls {
            Some(_) => connection::speaks_http2(self.host_of(target, &client), true),
            None => connection::speaks_http2(&client.base_host, false),
        }
    }

    fn client(&self, target: &Target) -> ConnectionInfo {
        let client = connection::info_of(&self.service, target.peer, target.local);
        let stream = if target.http2 { NonZeroU32::new(1) } else { None };
        let client = ConnectionInfo { stream, ..client };
        let hook = self.server.registry.hooks.tls();
        let speaks_tls = hook.is_some_and(|hook| (hook.is_on)(&client, &self.server));
        let Some(protocol) = target.tls.filter(|_| speaks_tls) else { return client };
        let name = target.host.to_ascii_lowercase();
        let is_name =
            !name.is_empty() && name.parse::<std::net::IpAddr>().is_err() && !name.starts_with('[');
        let host = self.host_of(target, &client).id;
        let suite = SUITES.iter().find(|(known, _)| *known == protocol);
        let tls = TlsFacts {
            protocol,
            cipher_suite: suite.map_or(0, |(_, suite)| *suite),
            host,
            server_name: is_name.then(|| name.into()),
            alpn: target.http2.then(|| b"h2"[..].into()),
            session_id: OnceCell::new(),
            ..TlsFacts::default()
        };
        ConnectionInfo { tls: Some(Rc::new(tls)), ..client }
    }

    fn speaks_tls(&self, target: &Target) -> bool {
        let client = connection::info_of(&self.service, target.peer, target.local);
        let hook = self.server.registry.hooks.tls();
        hook.is_some_and(|hook| (hook.is_on)(&client, &self.server))
    }
}
