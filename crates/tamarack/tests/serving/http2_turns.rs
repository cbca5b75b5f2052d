//! Whose turn it is to send, of many responses on a connection.

use std::time::{Duration, Instant};

use crate::http2::{
    DATA, GET_BIG, HEADERS, Http2, PROTOCOLS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, literal,
};
use crate::programs::{program, site};
use crate::site::Site;

/// The size of the file `big`, and of what the programs write before they wait.
const BYTES: usize = 300_000;

/// `SETTINGS_INITIAL_WINDOW_SIZE`: streams have room for whole responses.
const WINDOWS: &[u8] = &[0, 4, 0, 16, 0, 0];

fn turns(name: &str, configuration: &str) -> Site {
    let http2 = "LoadModule http2_module modules/mod_http2.so";
    let site = site(name, "event", &format!("{http2}\n{PROTOCOLS}{configuration}"));
    let waits = format!(
        "#!/bin/sh\nprintf 'Status: 200\\n\\n'\nhead -c {BYTES} /dev/zero\n\
         while [ ! -e \"$DOCUMENT_ROOT/goes-on\" ]; do sleep 0.1; done\necho end\n"
    );
    program(&site, "waits", &waits);
    site.write("htdocs/big", &"x".repeat(BYTES));
    site
}

/// Makes room on the connection.
fn grant(http2: &mut Http2, bytes: usize) {
    let bytes = u32::try_from(bytes).unwrap().to_be_bytes();
    http2.send(&frame(WINDOW_UPDATE, 0, 0, &bytes)).unwrap();
}

/// The stream of the next data, their bytes, and whether they end it.
fn data(http2: &mut Http2) -> (u32, usize, bool) {
    loop {
        let one = http2.frame().unwrap();
        assert_ne!(one.kind, RST_STREAM, "of {}", one.stream);
        if one.kind == DATA {
            return (one.stream, one.payload.len(), one.flags & 1 == 1);
        }
    }
}

/// While a client takes responses one after another, those whose turn has not come wait.
#[test]
fn responses_wait_for_their_turn() {
    let site = turns("h2-turns-wait", "H2StreamTimeout 2\n");
    let mut http2 = Http2::with_settings(&site, WINDOWS);
    let one_by_one = [GET_BIG, &literal("priority", "u=3")].concat();
    let requested = [1, 3, 5, 7, 9, 11, 13, 15];
    for stream in requested {
        http2.request(stream, &one_by_one).unwrap();
    }
    let (mut ended, mut granted, mut came) = (Vec::new(), 0, 0);
    let began = Instant::now();
    while ended.len() < requested.len() {
        // Longer than a stream waits, in all.
        std::thread::sleep(Duration::from_millis(200));
        grant(&mut http2, 100_000);
        granted += 100_000;
        while came < granted && ended.len() < requested.len() {
            let (stream, bytes, ends) = data(&mut http2);
            came += bytes;
            ended.extend(ends.then_some(stream));
        }
    }
    assert_eq!(ended, requested);
    assert!(began.elapsed() > Duration::from_secs(2));
}

/// Responses of the same priority that may be sent side by side get the same.
#[test]
fn responses_share_the_connection() {
    let site = turns("h2-turns-share", "");
    let mut http2 = Http2::with_settings(&site, &[0, 4, 0, 0, 0, 0]);
    let requested = 32;
    for at in 0..requested {
        http2.request(at * 2 + 1, GET_BIG).unwrap();
    }
    // Each has sent its head and waits for room before any gets some.
    let mut heads = 0;
    while heads < requested {
        heads += u32::from(http2.frame().unwrap().kind == HEADERS);
    }
    grant(&mut http2, requested as usize * BYTES);
    http2.send(&frame(SETTINGS, 0, 0, WINDOWS)).unwrap();
    let mut sent = vec![0; requested as usize];
    loop {
        let (stream, bytes, ends) = data(&mut http2);
        sent[stream as usize / 2] += bytes;
        if ends {
            break;
        }
    }
    // None is far behind the first one to end.
    let least = *sent.iter().min().unwrap();
    assert!(least > BYTES - 64 * 1024, "{sent:?}");
}

/// Responses that come first, and have nothing to send, do not delay others.
#[test]
fn a_response_that_waits_for_a_program_leaves_its_room() {
    let site = turns("h2-turns-program", "");
    for priority in ["u=3", "u=3, i"] {
        let mut http2 = Http2::with_settings(&site, WINDOWS);
        let waits = [
            b"\x82\x86\x01\x09localhost",
            &literal(":path", "/cgi-bin/waits")[..],
            &literal("priority", priority),
        ];
        for stream in [1, 3, 5] {
            http2.request(stream, &waits.concat()).unwrap();
        }
        let big = [GET_BIG, &literal("priority", priority)].concat();
        for stream in [7, 9] {
            http2.request(stream, &big).unwrap();
        }
        // A piece at a time: each is a turn of its own.
        let (mut came, mut ended) = (0, Vec::new());
        let mut granted = 65_535;
        while ended.len() < 2 {
            if came == granted {
                grant(&mut http2, 50_000);
                granted += 50_000;
            }
            let (stream, bytes, ends) = data(&mut http2);
            came += bytes;
            ended.extend(ends.then_some(stream));
        }
        ended.sort_unstable();
        assert_eq!(ended, [7, 9]);
        grant(&mut http2, 1 << 20);
        site.write("htdocs/goes-on", "");
        while ended.len() < 5 {
            let (stream, _, ends) = data(&mut http2);
            ended.extend(ends.then_some(stream));
        }
        std::fs::remove_file(site.path("htdocs/goes-on")).unwrap();
    }
}
