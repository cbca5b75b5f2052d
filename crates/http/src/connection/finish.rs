//! The end of a response: its effects on the connection, the counters and the log.

use std::io;

use super::Connection;
use server::connection_info::KeepAlive;
use server::hooks::Phase;
use server::process;
use server::request::Request;

/// A response that was sent, or failed.
pub(super) struct Sent {
    /// The position in the connection's stream where it began.
    pub began: u64,
    /// Whether its head said that the connection stays open.
    pub says_keep: bool,
    /// Whether it could be sent.
    pub outcome: io::Result<()>,
}

impl Connection {
    /// Counts a response, and runs the hooks of the log if the plan has any.
    pub(super) async fn finish(&mut self, request: &mut Request, sent: &Sent, has_log: bool) {
        self.responses += 1;
        // A request that MaxKeepAliveRequests alone makes the last one counts as well.
        let is_last = request.keep_alive_limit() == Some(self.info.keepalives.get())
            && !wire::status::drops_connection(request.response.status);
        if sent.says_keep || is_last {
            self.info.keepalives.set(self.responses);
        }
        let total = self.stream.as_ref().map_or(sent.began, rt::Stream::sent);
        self.info.bytes_sent.set(total);
        request.traffic.bytes_out = total - sent.began;
        self.info.aborted.set(sent.outcome.is_err());
        self.info.keepalive.set(if sent.says_keep { KeepAlive::Open } else { KeepAlive::Close });
        request.response.take_late_trailers();
        if has_log {
            process::run_all(request, Phase::LogTransaction).await;
        }
        self.engine.count(request);
    }
}
