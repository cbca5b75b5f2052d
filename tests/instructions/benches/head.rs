//! A request's head: parsed, checked and framed, followed by its host and path, as in the server.
#![allow(missing_docs)]

use std::hint::black_box;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use instructions::counts::{
    HEAD_BROWSER, HEAD_BROWSER_AGAIN, HEAD_WRK, HEAD_WRK_AGAIN, parser_limit,
};
use wire::uri::{Normalize, Slashes, normalize_path, unescape_path};
use wire::{
    HeadLimits, HeadOptions, HeadParser, MethodRegistry, Progress, RequestHead, RequestHost,
};

const WRK: &[u8] = b"GET /small.txt HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const BROWSER: &[u8] = b"GET /articles/2024/larch%20roots/index.html?page=2&sort=date HTTP/1.1\r\n\
Host: www.example.org\r\n\
Connection: keep-alive\r\n\
Cache-Control: max-age=0\r\n\
sec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n\
sec-ch-ua-mobile: ?0\r\n\
sec-ch-ua-platform: \"Linux\"\r\n\
Upgrade-Insecure-Requests: 1\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
Chrome/130.0.0.0 Safari/537.36\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
Sec-Fetch-Site: same-origin\r\n\
Sec-Fetch-Mode: navigate\r\n\
Referer: https://www.example.org/articles/2024/\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
\r\n";

/// The place of the head on its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    /// It follows one that is the same.
    Next,
}

/// The state that a connection keeps between requests, warm after two.
struct Warm {
    bytes: &'static [u8],
    place: Place,
    parser: HeadParser,
    head: RequestHead,
    host: RequestHost,
    path: Vec<u8>,
    methods: MethodRegistry,
    limits: HeadLimits,
}

fn warm(bytes: &'static [u8], place: Place) -> Warm {
    let mut warm = Warm {
        bytes,
        place,
        parser: HeadParser::new(),
        head: RequestHead::new(),
        host: RequestHost::new(),
        path: Vec::new(),
        methods: MethodRegistry::new(),
        limits: HeadLimits::default(),
    };
    for _ in 0..2 {
        assert!(take(&mut warm), "the head is valid");
    }
    warm
}

/// Processes the head as the server does; returns whether it is valid.
fn take(warm: &mut Warm) -> bool {
    warm.head.clear();
    match warm.place {
        Place::First => {
            warm.parser.reset();
            warm.host.clear();
        }
        Place::Next => warm.parser.reset_for_next(),
    }
    warm.path.clear();
    let options = HeadOptions {
        strict: true,
        registered_methods: false,
        allow_http09: true,
        methods: &warm.methods,
    };
    let bytes = black_box(warm.bytes);
    let progress = warm.parser.parse(&mut warm.head, bytes, &warm.limits, &options);
    warm.path.extend_from_slice(warm.head.path());
    progress == Progress::Done { consumed: bytes.len() }
        && warm.host.resolve(&mut warm.head, b"http", true).is_ok()
        && warm.host.check_presence(&warm.head).is_ok()
        && normalize_path(&mut warm.path, Normalize::request(true))
        && unescape_path(&mut warm.path, Slashes::Forbid, true).is_ok()
}

fn at_most(stored: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.hard_limits([(EventKind::Ir, parser_limit(stored))]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

#[library_benchmark(setup = warm)]
#[bench::wrk(args = (WRK, Place::First), config = at_most(HEAD_WRK))]
#[bench::wrk_again(args = (WRK, Place::Next), config = at_most(HEAD_WRK_AGAIN))]
#[bench::browser(args = (BROWSER, Place::First), config = at_most(HEAD_BROWSER))]
#[bench::browser_again(args = (BROWSER, Place::Next), config = at_most(HEAD_BROWSER_AGAIN))]
fn head(mut warm: Warm) -> (bool, Warm) {
    (take(&mut warm), warm)
}

library_benchmark_group!(name = heads, benchmarks = head);
main!(library_benchmark_groups = heads);
