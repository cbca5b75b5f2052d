//! Measures the ways of matching at their limits on this machine, which is how the numbers of
//! `limits.rs` were chosen. `cargo run --release -p pcre --example steps`

use std::time::{Duration, Instant};

use pcre::{Flags, Regex, Watch};

/// Slow patterns and subjects: exponential, quadratic, and a scan at each step.
const SLOW: [(&str, &str, usize, &str); 9] = [
    ("^(a+)+$", "a", 60, "!"),
    ("^(a|a)*$", "a", 300, "!"),
    ("(a|b|ab)*c[de]", "ab", 150, "!"),
    ("(.*)(.*)(.*)(.*)(.*)[xy]$", "a", 500, "!"),
    ("\\w+\\d[xy]", "a", 700, "!"),
    ("a+[bc]", "a", 8000, "!"),
    ("(a+)+[bc]", "a", 8000, "!"),
    ("^(?:(?:a|a)(?=a*+))*c", "a", 8000, "!"),
    ("(?:a|b|c|d)*evil|devil", "a", 8000, "!"),
];

fn main() {
    println!("{:<28} {:>6} {:>12} {:>12}", "pattern", "bytes", "glance", "of the three");
    for (pattern, unit, count, end) in SLOW {
        let Ok(regex) = Regex::new(pattern.as_bytes(), Flags::default()) else { continue };
        let subject = [unit.repeat(count), end.to_owned()].concat().into_bytes();
        let _ = regex.glance(&subject, None);
        let began = Instant::now();
        let glanced = regex.glance(&subject, None);
        let glance = began.elapsed();
        let watch = Watch::until(Instant::now() + Duration::from_secs(10));
        let began = Instant::now();
        let decided = regex.decide(&subject, None, &watch);
        println!(
            "{pattern:<28} {:>6} {glance:>12.1?} {glanced:?} {:>12.1?} {decided:?}",
            subject.len(),
            began.elapsed()
        );
    }
    compile();
    usual();
}

/// The cost of usual patterns, by machine code and interpreted.
fn usual() {
    const ROUNDS: u32 = 100_000;
    println!("\n{:<28} {:>12} {:>12}", "pattern", "machine code", "interpreted");
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let patterns = [
        ("^/index\\.php$", "/blog/2026/11/a-post.html"),
        ("^/blog/(\\d+)/(\\d+)/(.*)$", "/blog/2026/11/a-post.html"),
        ("\\.(?:gif|jpe?g|png|css|js)$", "/blog/2026/11/a-post.html"),
        ("MSIE [2-6]", agent),
        ("(?i)bot|crawler|spider", agent),
        ("^Mozilla/4\\.0[678]", agent),
    ];
    for (pattern, subject) in patterns {
        let time = |interpreted: bool| {
            let flags = Flags { interpreted, ..Flags::default() };
            let Ok(regex) = Regex::new(pattern.as_bytes(), flags) else { return Duration::ZERO };
            let began = Instant::now();
            for _ in 0..ROUNDS {
                let _ = std::hint::black_box(regex.glance(subject.as_bytes(), None));
            }
            began.elapsed() / ROUNDS
        };
        println!("{pattern:<28} {:>12.1?} {:>12.1?}", time(false), time(true));
    }
}

/// The cost of compiling a pattern, by its length.
fn compile() {
    println!("\n{:<28} {:>12}", "pattern", "compiled in");
    let long = |unit: &str, bytes: usize| unit.repeat(bytes / unit.len());
    let patterns = [
        ("^/a(/.*)?$".to_owned(), "a short one"),
        (format!("(?:{})", long("bot[a-z]+|", 1_000)), "1 KB of alternatives"),
        (format!("(?:{})", long("bot[a-z]+|", 8_000)), "8 KB of alternatives"),
        (format!("(?:{})", long("bot[a-z]+|", 30_000)), "30 KB of alternatives"),
        (long("(?:a|b{1,9})*", 6_000), "6 KB of groups"),
        (long("[^a]*[^b]*", 30_000), "30 KB of repeats"),
        (long("(x{1,60}){1,60}", 15), "repeats of repeats"),
        (long("(?=(a{1,90}b){90})", 40), "unrolled repeats"),
    ];
    for (pattern, name) in patterns {
        let began = Instant::now();
        let made = Regex::new(pattern.as_bytes(), Flags::default());
        println!("{name:<28} {:>12.1?} {}", began.elapsed(), made.is_ok());
    }
}
