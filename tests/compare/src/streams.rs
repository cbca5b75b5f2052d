//! The same requests over HTTP/2 (`--http2`): in clear, or after ALPN.
//!
//! What HTTP/2 can't express is left out of the cases, and logs are not compared: how many bytes a
//! head takes is up to its encoder.

use blackbox::http2::{self, Http2, Request as Streamed};
use blackbox::keeper::Keeper;
use blackbox::render::Renderer;
use blackbox::stall::Deadline;

use crate::pair::Side;
use crate::site::{Case, Request, Seat};
use crate::talk::{NO_ANSWER, NO_CONNECTION, RESPONSE_LIMIT, TOO_LATE, entries, lines};

/// How often [`RESPONSE_LIMIT`] a server may take.
const LIMITS_MAX: u32 = 5;

/// Leaves what HTTP/2 has of the cases.
pub fn reduce(cases: &mut Vec<Case>) {
    for case in cases.iter_mut() {
        case.requests.retain_mut(make_streamed);
    }
    cases.retain(|case| !case.requests.is_empty());
}

/// Makes a request one of HTTP/2; false if there is no such request.
fn make_streamed(request: &mut Request) -> bool {
    let words: Vec<&str> = request.via.split_whitespace().collect();
    let is_tls = words.contains(&"tls");
    // HTTP in clear to a port of TLS has no HTTP/2.
    if !words.is_empty() && !is_tls {
        return false;
    }
    if is_tls && !words.contains(&"alpn=h2") {
        request.via.push_str(" alpn=h2");
    }
    // What comes back has credentials that only the one server takes.
    let is_of_one =
        |(_, value): &(String, Vec<u8>)| value.windows(7).any(|part| part == b"@DIGEST");
    if request.method == "TRACE" && request.fields.iter().any(is_of_one) {
        return false;
    }
    "HTTP/1.1".clone_into(&mut request.version);
    request.is_pipelined = false;
    Streamed::parse(&request.bytes(Seat::Host(0))).is_some()
}

/// Sends a request, and reads its response as lines; the connection ends without one, and after a
/// reset.
pub fn exchange(
    request: &Request,
    seat: Seat,
    side: &Side,
    renderer: &Renderer,
    (client, keeper): (&mut Option<Http2>, &mut Keeper),
) -> Vec<String> {
    let Some(open) = client else { return vec![NO_CONNECTION.to_owned()] };
    let bytes = keeper.fill(side.place.fill_bytes(&request.bytes(seat)));
    let Some(streamed) = Streamed::parse(&bytes) else { return vec![NO_CONNECTION.to_owned()] };
    let limit = Deadline::after(RESPONSE_LIMIT * LIMITS_MAX);
    let Some(answer) = open.exchange(&streamed, limit) else {
        let what = if open.has_ended() { NO_ANSWER } else { TOO_LATE };
        *client = None;
        return vec![what.to_owned()];
    };
    keeper.learn(&answer);
    let lines = lines(request, &answer, renderer).into_iter();
    let mut lines: Vec<String> = lines.map(|line| keeper.unfill(line)).collect();
    http2::comparable(&mut lines);
    for line in &mut lines {
        // As the rules of allowed differences know it.
        if line.starts_with("< HTTP/1.1 ") {
            line.push(' ');
        }
    }
    lines.extend(entries(&answer).map(|entry| format!("= entry {}", renderer.mask(&entry))));
    if answer.broken.is_some() {
        lines.push("= reset".to_owned());
        *client = None;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::make_streamed;
    use crate::site::Request;

    fn request(via: &str, fields: &[(&str, &str)]) -> Request {
        Request {
            method: "GET".to_owned(),
            target: b"/a".to_vec(),
            version: "HTTP/1.0".to_owned(),
            via: via.to_owned(),
            fields: fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
                .collect(),
            ..Request::default()
        }
    }

    #[test]
    fn what_http_2_has_is_kept() {
        let host = ("Host", "@HOST@");
        let mut plain = request("", &[host]);
        assert!(make_streamed(&mut plain));
        assert_eq!(plain.version, "HTTP/1.1");
        let mut encrypted = request("tls sni=@HOST@ to=127.0.0.1:@PORT2@", &[host]);
        assert!(make_streamed(&mut encrypted) && make_streamed(&mut encrypted));
        assert_eq!(encrypted.via, "tls sni=@HOST@ to=127.0.0.1:@PORT2@ alpn=h2");
        assert!(!make_streamed(&mut request("to=127.0.0.1:@PORT2@", &[host])));
        assert!(!make_streamed(&mut request("", &[])));
        assert!(!make_streamed(&mut request("", &[host, ("TE", "trailers")])));
    }
}
