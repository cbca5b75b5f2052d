//! Request heads: parsing in pieces equals parsing at once; later checks never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::uri::{Normalize, Slashes, normalize_path, unescape_path};
use wire::{
    HeadLimits, HeadOptions, HeadParser, MethodRegistry, Progress, RequestHead, RequestHost,
};

static METHODS: MethodRegistry = MethodRegistry::new();

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else { return };
    let limits = match choice & 8 {
        0 => HeadLimits::default(),
        _ => HeadLimits { line_bytes: 40, field_bytes: 30, fields: 3 },
    };
    let options = HeadOptions {
        strict: choice & 1 == 0,
        registered_methods: choice & 2 != 0,
        allow_http09: choice & 4 == 0,
        methods: &METHODS,
    };
    let (mut whole, mut parser) = (RequestHead::new(), HeadParser::new());
    let progress = parser.parse(&mut whole, bytes, &limits, &options);

    // The parser compares the next head's lines with those of this one.
    if !matches!(bytes.first(), Some(b'\r' | b'\n')) {
        let mut again = RequestHead::new();
        parser.reset_for_next();
        assert_eq!(progress, parser.parse(&mut again, bytes, &limits, &options));
        assert_eq!(whole.headers, again.headers);
        assert_eq!(whole.flags, again.flags);
    }

    let (mut pieced, mut parser) = (RequestHead::new(), HeadParser::new());
    let mut pieced_progress = Progress::NeedMore;
    let step = usize::from(*step).max(1);
    for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
        pieced_progress = parser.parse(&mut pieced, &bytes[..end], &limits, &options);
        if pieced_progress != Progress::NeedMore {
            break;
        }
    }
    assert_eq!(progress, pieced_progress);
    if progress == Progress::NeedMore {
        return;
    }
    assert_eq!(whole.line(), pieced.line());
    assert_eq!(whole.headers, pieced.headers);
    assert_eq!(whole.flags, pieced.flags);
    assert_eq!(whole.body, pieced.body);
    let mut host = RequestHost::new();
    let _ = host.resolve(&mut whole, b"http", options.strict);
    let _ = host.check_presence(&whole);
    let _ = whole.check_expect();
    whole.has_known_scheme();
    let mut path = whole.path().to_vec();
    if normalize_path(&mut path, Normalize::request(true)) {
        let slashes = if choice & 16 == 0 { Slashes::Forbid } else { Slashes::Decode };
        if unescape_path(&mut path, slashes, true).is_ok() {
            assert!(!path.split(|byte| *byte == b'/').any(|segment| segment == b".."));
        }
    }
});
