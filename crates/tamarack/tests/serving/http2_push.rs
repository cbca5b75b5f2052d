//! HTTP/2: responses that are pushed, and early hints. What Apache sends was compared by hand,
//! since the recordings know no such frames.

use wire::h2::hpack::Decoder;

use crate::http2::{DATA, Frame, GET, HEADERS, Http2, RST_STREAM, WINDOW_UPDATE, frame, literal};
use crate::site::Site;

const PUSH_PROMISE: u8 = 5;

/// A client that decodes the heads that it gets.
struct Reader {
    http2: Http2,
    decoder: Decoder,
}

/// The fields that differ from time to time, and those that a test names.
const LEFT_OUT: [&str; 7] =
    ["date", "server", "last-modified", "etag", "accept-ranges", ":scheme", "content-length"];

impl Reader {
    fn new(http2: Http2) -> Reader {
        Reader { http2, decoder: Decoder::new() }
    }

    fn fields(&mut self, block: &[u8]) -> String {
        let mut shown = Vec::new();
        let take = |name: &[u8], value: &[u8]| {
            let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            if !LEFT_OUT.contains(&&*name) {
                shown.push(format!("{name}={value}"));
            }
            true
        };
        self.decoder.decode(block, take).unwrap();
        shown.join(" ")
    }

    /// Requests a path with more fields; returns what comes until the response, and all that is
    /// pushed with it, is complete: sorted by stream, in order.
    fn get(&mut self, stream: u32, path: &str, more: &[(&str, &str)]) -> Vec<String> {
        self.ask(stream, b"\x82", path, more)
    }

    fn ask(
        &mut self,
        stream: u32,
        method: &[u8],
        path: &str,
        more: &[(&str, &str)],
    ) -> Vec<String> {
        let mut block = [method, b"\x86\x04", &[path.len() as u8], path.as_bytes()].concat();
        block.extend(b"\x01\x09localhost");
        for (name, value) in more {
            block.extend(literal(name, value));
        }
        self.http2.request(stream, &block).unwrap();
        let (mut open, mut events) = (vec![stream], Vec::new());
        while !open.is_empty() {
            let Frame { kind, flags, stream, payload } = self.http2.frame().unwrap();
            match kind {
                PUSH_PROMISE => {
                    let (id, block) = payload.split_first_chunk().unwrap();
                    let id = u32::from_be_bytes(*id);
                    let fields = self.fields(block);
                    events.push((stream, format!("{stream} promise {id}: {fields}")));
                    open.push(id);
                }
                HEADERS => {
                    let fields = self.fields(&payload);
                    events.push((stream, format!("{stream} {fields}")));
                }
                RST_STREAM => events.push((stream, format!("{stream} reset"))),
                _ => {}
            }
            if kind == RST_STREAM || matches!(kind, DATA | HEADERS) && flags & 1 != 0 {
                open.retain(|id| *id != stream);
            }
        }
        events.sort_by_key(|(stream, _)| if *stream % 2 == 1 { 0 } else { *stream });
        events.into_iter().map(|(_, event)| event).collect()
    }
}

/// A site whose page suggests a style sheet.
fn pushing(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    site.configure(&format!(
        "Protocols h2c http/1.1\nAddType text/css css\nAddType text/html html\n{more}\n\
         <Location /index.html>\n  Header add Link \"</a.css>; rel=preload\"\n</Location>\n\
         <Location /off>\n  H2Push off\n  Header add Link \"</a.css>; rel=preload\"\n</Location>\n\
         <Location /hint>\n  H2EarlyHint Link \"</a.js>;rel=preload\"\n  H2EarlyHint X-Hint one\n  \
         H2PushResource /a.css\n</Location>\n\
         CustomLog logs/pushed \"%U %{{H2_PUSHED}}e on=%{{H2_PUSHED_ON}}e %{{H2_PUSH}}e \
         %{{H2_STREAM_ID}}e %>s %I\"\n"
    ));
    for (path, text) in [("a.css", "body{}\n"), ("a.js", "x\n"), ("off", "off\n"), ("hint", "h\n")]
    {
        site.write(&format!("htdocs/{path}"), text);
    }
    site.start();
    site
}

const PROMISE: &str =
    "1 promise 2: :authority=localhost :path=/a.css :method=GET user-agent=u accept-language=de";

#[test]
fn what_a_page_suggests_is_pushed() {
    let site = pushing("h2-push", "");
    // Made by the phases first, then from the cache.
    for _ in 0..3 {
        let mut client = Reader::new(Http2::connect(&site));
        let fields = [("user-agent", "u"), ("cookie", "a=b"), ("accept-language", "de")];
        let events = client.get(1, "/index.html", &fields);
        let response = "1 :status=200 link=</a.css>; rel=preload content-type=text/html \
                        push-policy=default";
        assert_eq!(events, [PROMISE, response, "2 :status=200 content-type=text/css"]);
        // The diary has it.
        assert_eq!(client.get(3, "/index.html", &fields).len(), 1);
    }
    let log = || std::fs::read_to_string(site.path("logs/pushed")).unwrap_or_default();
    site.wait_until("the log", || log().lines().count() == 9);
    let log = log();
    let lines: Vec<_> = log.lines().collect();
    assert!(lines.contains(&"/a.css PUSHED on=1 on 2 200 0"), "{log}");
    assert!(lines.iter().any(|line| line.starts_with("/index.html  on= on 1 200 ")), "{log}");
}

#[test]
fn a_client_decides_what_it_gets() {
    let site = pushing("h2-policy", "");
    let policies: [(&str, &[&str]); 4] =
        [("none", &[]), ("head", &["GET=>HEAD"]), ("fast-load", &["GET"]), ("other", &["GET"])];
    for (policy, pushed) in policies {
        let mut client = Reader::new(Http2::connect(&site));
        let events = client.get(1, "/index.html", &[("accept-push-policy", policy)]);
        assert_eq!(events.len(), 1 + 2 * pushed.len(), "{events:?}");
        let method = if policy == "head" { ":method=HEAD" } else { ":method=GET" };
        assert!(pushed.is_empty() || events[0].contains(method), "{events:?}");
        let named = format!("push-policy={policy}").replace("other", "default");
        assert_eq!(events.iter().any(|event| event.contains(&named)), policy != "none");
    }
    // By its settings, and by its limit of streams.
    for settings in [[0, 2, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0]] {
        let mut client = Reader::new(Http2::with_settings(&site, &settings));
        assert_eq!(client.get(1, "/index.html", &[]).len(), 1);
        assert_eq!(client.get(3, "/hint", &[]).len(), 1);
    }
    let mut client = Reader::new(Http2::with_settings(&site, &[0, 3, 0, 0, 0, 1]));
    let events = client.get(1, "/hint", &[]);
    assert_eq!(events.iter().filter(|event| event.contains("promise")).count(), 1);
    // Neither for these responses, nor in a directory that declines it.
    let mut client = Reader::new(Http2::connect(&site));
    assert_eq!(client.ask(1, b"\x02\x04HEAD", "/index.html", &[]).len(), 1);
    assert_eq!(client.get(3, "/index.html", &[("if-none-match", "*")]).len(), 1);
    let events = client.get(5, "/off", &[]);
    assert_eq!(events, ["5 :status=200 link=</a.css>; rel=preload"]);
}

#[test]
fn nothing_is_pushed_where_that_is_off() {
    let site = pushing("h2-nopush", "H2Push off");
    let mut client = Reader::new(Http2::connect(&site));
    assert_eq!(client.get(1, "/index.html", &[]).len(), 1);
    let site = pushing("h2-nodiary", "H2PushDiarySize 0");
    let mut client = Reader::new(Http2::connect(&site));
    assert_eq!(client.get(1, "/index.html", &[]).len(), 3);
    assert_eq!(client.get(3, "/index.html", &[]).len(), 3);
}

#[test]
fn early_hints_precede_a_response() {
    let site = pushing("h2-hints", "H2EarlyHints on");
    for _ in 0..3 {
        let mut client = Reader::new(Http2::connect(&site));
        let events = client.get(1, "/hint", &[]);
        let expected = [
            "1 promise 2: :authority=localhost :path=/a.css :method=GET",
            "1 promise 4: :authority=localhost :path=/a.js :method=GET",
            "1 :status=103 link=</a.css>; rel=preload, </a.js>;rel=preload x-hint=one \
             push-policy=default",
            "1 :status=200",
        ];
        assert_eq!(events[..4], expected);
        // Without pushes the hints stay.
        let mut client = Reader::new(Http2::with_settings(&site, &[0, 2, 0, 0, 0, 0]));
        let events = client.get(1, "/hint", &[]);
        let hint = "1 :status=103 link=</a.css>; rel=preload, </a.js>;rel=preload x-hint=one";
        assert_eq!(events, [hint, "1 :status=200"]);
    }
    // Not over HTTP/1.1, and not where there are none.
    let answer = site.get("/hint");
    assert_eq!((answer.status, answer.field("X-Hint")), (200, None));
    let mut client = Reader::new(Http2::connect(&site));
    assert_eq!(client.get(1, "/a.js", &[]), ["1 :status=200"]);
}

#[test]
fn hints_that_are_not_sent_still_push() {
    let site = pushing("h2-nohints", "");
    let mut client = Reader::new(Http2::connect(&site));
    let events = client.get(1, "/hint", &[]);
    assert_eq!(events.iter().filter(|event| event.contains("promise")).count(), 2);
    assert!(!events.iter().any(|event| event.contains("=103")), "{events:?}");
}

#[test]
fn a_pushed_response_waits_for_the_window() {
    let site = pushing("h2-pushwindow", "");
    let mut client = Reader::new(Http2::with_settings(&site, &[0, 4, 0, 0, 0, 0]));
    let block = [&GET[..2], b"\x04\x0b/index.html\x01\x09localhost"].concat();
    client.http2.request(1, &block).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let frame = client.http2.frame().unwrap();
        if matches!(frame.kind, PUSH_PROMISE | HEADERS | DATA) {
            seen.push((frame.kind, frame.stream));
        }
    }
    assert_eq!(seen, [(PUSH_PROMISE, 1), (HEADERS, 1), (HEADERS, 2)]);
    client.http2.send(&frame(WINDOW_UPDATE, 0, 2, &100_u32.to_be_bytes())).unwrap();
    loop {
        let frame = client.http2.frame().unwrap();
        if frame.kind == DATA {
            assert_eq!((frame.stream, &frame.payload[..]), (2, &b"body{}\n"[..]));
            break;
        }
    }
}
