//! mod_logio: transferred bytes and the time to the first byte, for the access log.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_logio.html>

use server::body::Body;
use server::context::{Override, Places};
use server::directive::{Row, Takes};
use server::filter::{OutputFilter, Stage};
use server::hooks::{Bound, Hooks, Phase, Rank, Step};
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::mod_log_config::LogItem;

/// `mod_logio.c`
pub struct Logio;

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `LogIOTrackTTFB`
        pub track_first_byte: Setting<bool>,
    }
}

impl Module for Logio {
    const NAME: &'static str = "logio_module";
    const FILE: &'static str = "mod_logio.c";
    type Server = ();
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Logio>] = &[Row::<Logio>::new(
        "LogIOTrackTTFB",
        Takes::Flag(|cx, on| {
            cx.dir().track_first_byte.set(on);
            Ok(())
        }),
        "On|Off",
        "Measures the time to the first byte of a response, for %^FB of LogFormat.",
    )
    .standing(Places::ALL, Override::ALL)
    .default("Off")];

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        let tracks = |bound: Bound<'_, Self>| bound.dir.track_first_byte.or(false);
        hooks.on(Phase::InsertFilter, Rank::LAST, tracks, track).pure();
        let of_traffic = |write| LogItem { write, reads_head_alone: true };
        hooks.provider("log_item", "I", of_traffic(received));
        hooks.provider("log_item", "O", of_traffic(sent));
        hooks.provider("log_item", "S", of_traffic(both));
        let of_response = LogItem { write: first_byte, reads_head_alone: false };
        hooks.provider("log_item", "^FB", of_response);
    }
}

/// `%I`: bytes received for the request, including its head and encryption.
fn received(request: &Request, _: &[u8], out: &mut Vec<u8>) -> bool {
    number(request.traffic.bytes_in, out)
}

/// `%O`: bytes sent for the response, including its head and encryption.
fn sent(request: &Request, _: &[u8], out: &mut Vec<u8>) -> bool {
    number(request.traffic.bytes_out, out)
}

/// `%S`: the sum of both.
fn both(request: &Request, _: &[u8], out: &mut Vec<u8>) -> bool {
    number(request.traffic.bytes_in + request.traffic.bytes_out, out)
}

/// Marks a response whose first byte counts: that of a handler, not of an error.
struct Track;

/// Present if the current response is marked.
struct Tracked;

impl OutputFilter for Track {
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        request.keep(Tracked);
        body
    }
}

fn track<'r>(_: Bound<'r, Logio>, request: &'r mut Request) -> Step<'r> {
    request.add_filter("LOGIO_TTFB_OUT", Stage::PROTOCOL, Box::new(Track));
    Step::OK
}

/// `%^FB`: microseconds from the request's arrival to the response's first byte.
fn first_byte(request: &Request, _: &[u8], out: &mut Vec<u8>) -> bool {
    let tracked = request.kept::<Tracked>().is_some();
    let at = request.traffic.first_byte_us;
    tracked && at > 0 && number(at.saturating_sub(request.time_us), out)
}

fn number(number: u64, out: &mut Vec<u8>) -> bool {
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(number).as_bytes());
    true
}
