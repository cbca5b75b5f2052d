//! The server's own reports: metrics that outlive processes, the page in a browser, old generations
//! on the status page.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use crate::client::{Client, PATIENCE};
use crate::load::wait_for_their_end;
use crate::site::Site;

/// Locations of the server's reports.
const PLACES: &str = "StartServers 2\n\
    <Location /metrics>\n  SetHandler tamarack-metrics\n</Location>\n\
    <Location /live>\n  SetHandler tamarack-status\n</Location>\n\
    <Location /status>\n  SetHandler server-status\n</Location>\n\
    <Location /closed>\n  SetHandler tamarack-metrics\n  Require ip 192.0.2.1\n</Location>\n";

/// The longest time for a browser on a busy machine.
const BROWSER_PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn counters_never_go_back_when_children_die_and_generations_change() {
    let mut site = Site::new("metrics");
    site.configure(PLACES);
    site.start();
    (0..20).for_each(|_| assert_eq!(site.get("/").status, 200));
    assert_eq!(site.get("/none").status, 404);
    // A response is counted after it has been sent, so its client may be quicker.
    let of = |class: &str| {
        let key = format!("tamarack_host_requests_total{{host=\"localhost\",class=\"{class}\"}}");
        metrics(&site)[&key]
    };
    site.wait_until("all are counted", || of("2xx") >= 20.0 && of("4xx") >= 1.0);
    assert_eq!(of("4xx"), 1.0);
    let first = metrics(&site);
    assert_eq!(first["tamarack_processes{state=\"serving\"}"], site.children().len() as f64);

    let victims = site.children();
    kill(victims[0], Signal::SIGKILL).unwrap();
    site.wait_until("another child", || {
        let now = site.children();
        now.len() == victims.len() && !now.contains(&victims[0])
    });
    site.wait_until("the crash is counted", || {
        metrics(&site)["tamarack_events_total{event=\"crashed\"}"] == 1.0
    });
    let second = metrics(&site);
    assert_not_less(&first, &second);

    // A host before the existing one: its counters are its own.
    let other = "<VirtualHost *>\n  ServerName other.example:80\n</VirtualHost>\n\
                 <VirtualHost *>\n  ServerName localhost\n</VirtualHost>\n";
    site.configure(&format!("{PLACES}{other}"));
    let old = site.children();
    site.restart_gracefully();
    wait_for_their_end(&site, &old);
    let third = metrics(&site);
    assert_not_less(&second, &third);
    assert_eq!(third["tamarack_generation"], 2.0);
    assert_eq!(third["tamarack_host_requests_total{host=\"other.example:80\",class=\"2xx\"}"], 0.0);
}

#[test]
fn metrics_are_off_until_a_place_has_them_and_keep_to_require() {
    let mut site = Site::new("metrics-off");
    site.start();
    assert_eq!(site.get("/metrics").status, 404);
    site.configure(PLACES);
    let old = site.children();
    site.restart_gracefully();
    wait_for_their_end(&site, &old);
    assert_eq!(site.get("/metrics").status, 200);
    assert_eq!(site.get("/closed").status, 403);
    let answer = site.get("/metrics");
    assert_eq!(answer.field("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let mut client = site.client();
    let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\
                Accept: application/openmetrics-text\r\n\r\n";
    client.send(head.as_bytes()).unwrap();
    let answer = client.answer().unwrap();
    assert!(answer.field("Content-Type").unwrap().starts_with("application/openmetrics-text;"));
    assert!(answer.text().ends_with("# EOF\n"));
}

#[test]
fn slow_old_generations_show_and_never_block_new_ones() {
    const GENERATIONS: usize = 8;
    let mut site = Site::new("slow-generations");
    site.configure(PLACES);
    site.start();
    let mut slow: Vec<Client> = Vec::new();
    for _ in 0..GENERATIONS {
        let mut client = kept_client(&site);
        client.send(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
        slow.push(client);
        site.restart_gracefully();
    }
    let line = |text: &str, name: &str| -> String {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} in {text}")).trim().to_owned()
    };
    // Two of them may be in the same process, which makes fewer.
    site.wait_until("the slow requests are reported alike", || {
        let numbers = site.get("/status?auto").text();
        let page = site.get("/status").text();
        let stopping: usize = line(&numbers, "Stopping:").parse().unwrap();
        let letters = line(&numbers, "Scoreboard:").matches('G').count();
        let told = page.matches("yes (old gen)").count();
        (2..=GENERATIONS).contains(&stopping) && stopping == told && letters >= stopping
    });
    let numbers = site.get("/status?auto").text();
    assert_eq!(line(&numbers, "ParentServerMPMGeneration:"), GENERATIONS.to_string());
    for mut client in slow {
        client.send(b"alhost\r\n\r\n").unwrap();
        assert_eq!(client.answer().unwrap().status, 200);
    }
}

#[test]
fn the_page_comes_alive_in_a_browser() {
    let Some(browser) = browser() else {
        eprintln!("skipped: the live page is not tested, because chromium is not installed");
        return;
    };
    let mut site = Site::new("live");
    site.configure(PLACES);
    site.start();
    (0..5).for_each(|_| assert_eq!(site.get("/").status, 200));
    let head = site.get("/live").head;
    assert!(head.contains("Content-Security-Policy: default-src 'none'; script-src 'self'"));
    let dom = dom(&browser, &site, &format!("http://localhost:{}/live", site.port));
    for part in [
        "data-state=\"live\"",
        "id=\"server\">localhost<",
        "generation 1",
        "id=\"trouble\" class=\"notice\" role=\"alert\" hidden",
        "<canvas",
        "keep-alive <b>",
        "class=\"loop\"",
        "Generation 1",
        "<td>localhost</td>",
        "log lines dropped",
    ] {
        assert!(dom.contains(part), "{part} is not in\n{dom}");
    }
    assert!(!dom.contains("id=\"rate\">–<"), "no rate after several samples:\n{dom}");
}

/// A connection that has had a response and stays open. The previous generation accepts early
/// connections, and closes them.
fn kept_client(site: &Site) -> Client {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut client = site.client();
        if client.get("/").is_ok_and(|answer| !answer.closes()) {
            return client;
        }
        assert!(Instant::now() < end, "every connection is closed");
    }
}

/// All samples of a scrape, by name and labels.
pub fn metrics(site: &Site) -> BTreeMap<String, f64> {
    let answer = site.get("/metrics");
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.filter_map(|line| line.rsplit_once(' '));
    samples.map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect()
}

/// Asserts that every counter, except those of single loops, is at least what it was.
fn assert_not_less(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) {
    let is_counter = |key: &str| {
        let name = key.split('{').next().unwrap_or_default();
        let kinds = ["_total", "_bucket", "_sum", "_count"];
        kinds.iter().any(|kind| name.ends_with(kind)) && !name.starts_with("tamarack_loop_")
    };
    let counters: Vec<_> = before.iter().filter(|(key, _)| is_counter(key)).collect();
    assert!(counters.len() > 40, "{before:?}");
    for (key, value) in counters {
        assert!(after[key] >= *value, "{key}: {value}, then {}", after[key]);
    }
}

/// Chromium, if it is installed.
pub fn browser() -> Option<PathBuf> {
    installed(&["chromium", "chromium-browser", "google-chrome"])
}

/// The first of these programs that is installed.
pub fn installed(names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// The page after some seconds of its own time.
pub fn dom(browser: &PathBuf, site: &Site, address: &str) -> String {
    let said = site.path("dom");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--virtual-time-budget=4000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", site.path("browser").display()))
        .arg(address)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&said).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + BROWSER_PATIENCE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the browser takes too long");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::read_to_string(said).unwrap()
}
