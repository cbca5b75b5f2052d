//! Responses at a limited rate hold nothing up.

use std::time::{Duration, Instant};

use crate::site::Site;

#[test]
fn a_limited_response_takes_its_time_and_others_do_not_wait() {
    let mut site = Site::new("slowed");
    let modules = ["mpm_loop", "ratelimit", "env", "authz_core"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    site.configure(&format!(
        "{modules}<Location /slow>\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 100\n\
         </Location>\n"
    ));
    site.write("htdocs/slow", &"x".repeat(100 * 1024));
    site.write("htdocs/fast", "fast");
    site.start();
    let mut slow = site.client();
    let begun = Instant::now();
    slow.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    for _ in 0..3 {
        let asked = Instant::now();
        let mut fast = site.client();
        fast.send(b"GET /fast HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(fast.answer().unwrap().body, b"fast");
        assert!(asked.elapsed() < Duration::from_millis(700), "{:?}", asked.elapsed());
    }
    let answer = slow.answer().unwrap();
    assert_eq!(answer.body.len(), 100 * 1024);
    // Five pieces of 20 KiB, with a pause between each.
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(790), "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
