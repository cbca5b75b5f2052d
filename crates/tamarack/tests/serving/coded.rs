//! Compressed content belongs to the file: every URL and thread finds it.

use std::fs;
use std::time::Duration;

use crate::client::Answer;
use crate::site::Site;

const FILES: usize = 40;
/// Long enough that compressing it dominates a request, and that it is sent in chunks.
const FILE_BYTES: usize = 200_000;

/// Text that compresses like prose; every file's is different.
fn text(seed: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut words = String::with_capacity(FILE_BYTES + 16);
    while words.len() < FILE_BYTES {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words.push_str(&format!("{} ", state >> 50));
    }
    words
}

/// CPU time of the site's only child.
fn cpu_time(site: &Site) -> Duration {
    let [child] = site.children()[..] else { panic!("one child") };
    let stat = fs::read_to_string(format!("/proc/{}/stat", child)).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // utime and stime (proc(5)), in ticks of 10 ms.
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn ask(site: &Site, path: &str) -> Answer {
    let mut client = site.client();
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    client.answer().unwrap()
}

#[test]
fn a_file_is_compressed_once_for_all_its_urls_and_threads() {
    let mut site = Site::new("coded");
    let modules = ["mpm_worker", "alias", "deflate", "authz_core"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    site.configure(&format!(
        "{modules}StartServers 1\nServerLimit 1\nThreadsPerChild 4\nMaxRequestWorkers 4\n\
         SetOutputFilter DEFLATE\nDeflateCompressionLevel 9\n\
         AliasMatch \"^/alias/\\d+/(.*)$\" \"{}/htdocs/$1\"\n",
        site.root.display()
    ));
    for number in 0..FILES {
        site.write(&format!("htdocs/{number}.txt"), &text(number));
    }
    site.start();
    // The ETag of a file that has just changed is weak.
    std::thread::sleep(Duration::from_millis(1100));
    let first = ask(&site, "/0.txt");
    assert_eq!(first.field("Content-Encoding"), Some("gzip"));

    let before = cpu_time(&site);
    (1..FILES).for_each(|number| drop(ask(&site, &format!("/{number}.txt"))));
    let of_files = cpu_time(&site) - before;

    let before = cpu_time(&site);
    for number in 1..FILES {
        let alias = ask(&site, &format!("/alias/{number}/0.txt"));
        assert!(alias.body == first.body, "{number}");
        assert_eq!(alias.field("ETag"), first.field("ETag"));
    }
    let of_urls = cpu_time(&site) - before;
    assert!(of_urls < of_files / 2, "{of_urls:?} for other URLs, {of_files:?} for other files");

    // The request after a write sees it, by every URL.
    site.write("htdocs/0.txt", &text(FILES));
    assert!(ask(&site, "/alias/0/0.txt").body != first.body);
    assert!(ask(&site, "/0.txt").body != first.body);
}

#[test]
fn each_client_gets_the_first_coding_that_it_accepts() {
    let mut site = Site::new("codings");
    let modules = ["mpm_event", "zstd", "brotli", "deflate", "authz_core"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    site.configure(&format!("{modules}SetOutputFilter ZSTD;BROTLI_COMPRESS;DEFLATE\n"));
    let content = text(1);
    site.write("htdocs/page.txt", &content);
    site.start();
    for (accepted, coding) in [
        ("gzip, br, zstd", Some("zstd")),
        ("gzip, br, zstd;q=0", Some("br")),
        ("zstd;q=0.1", Some("zstd")),
        ("gzip;q=1, br;q=0", Some("gzip")),
        ("*", None),
    ] {
        for _ in 0..3 {
            let mut client = site.client();
            let head = "GET /page.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding";
            client.send(format!("{head}: {accepted}\r\n\r\n").as_bytes()).unwrap();
            let answer = client.answer().unwrap();
            assert_eq!(answer.field("Content-Encoding"), coding, "{accepted}");
            assert_eq!(answer.field("Vary"), Some("Accept-Encoding"), "{accepted}");
            match coding {
                Some("zstd") => {
                    let plain = zstd::decode_all(answer.body.as_slice()).unwrap();
                    assert!(plain == content.as_bytes());
                    assert!(answer.field("ETag").unwrap().ends_with("-zstd\""));
                }
                None => assert!(answer.body == content.as_bytes()),
                _ => assert!(answer.body.len() < content.len()),
            }
        }
    }
}
