//! Process groups of mod_wsgi in the metrics, and on the pages of mod_status.

use nix::sys::signal::{Signal, kill};

use crate::site::Site;
use crate::wsgi::{SCRIPT, configuration, process};

const PAGES: &str = "LoadModule status_module modules/mod_status.so
    <Location /metrics>
        SetHandler tamarack-metrics
    </Location>
    <Location /live>
        SetHandler tamarack-status
    </Location>
    <Location /server-status>
        SetHandler server-status
    </Location>\n";

/// Waits until the metrics have these lines.
fn wait_for(site: &Site, lines: &[&str]) {
    let mut page = String::new();
    site.wait_until(&format!("{lines:?}"), || {
        page = site.get("/metrics").text();
        lines.iter().all(|line| page.lines().any(|found| found == *line))
    });
}

#[test]
fn pages_show_what_process_groups_do() {
    let mut site = Site::new("wsgi-shown");
    site.write("app.wsgi", SCRIPT);
    let options = "processes=2 threads=3";
    site.configure(&configuration("event", options, PAGES));
    site.start();
    let (pid, _) = process(&mut site.client(), "/d/");
    wait_for(
        &site,
        &[
            "tamarack_wsgi_processes{group=\"site\"} 2",
            "tamarack_wsgi_threads{group=\"site\"} 6",
            "tamarack_wsgi_requests_total{group=\"site\"} 1",
        ],
    );
    // What has not been used is not shown.
    assert!(!site.get("/metrics").text().contains("embedded"));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(site.get("/d/sleep/4").status, 200));
        }
        wait_for(
            &site,
            &[
                "tamarack_wsgi_busy_threads{group=\"site\"} 6",
                "tamarack_wsgi_waiting_requests{group=\"site\"} 2",
            ],
        );
        let auto = site.get("/server-status?auto").text();
        for line in ["Name: site", "Processes: 2", "Busy: 6", "Waiting: 2"] {
            assert!(auto.contains(&format!("WSGIGroup[0]{line}\n")), "{auto}");
        }
    });
    wait_for(
        &site,
        &[
            "tamarack_wsgi_busy_threads{group=\"site\"} 0",
            "tamarack_wsgi_requests_total{group=\"site\"} 9",
            "tamarack_wsgi_refused_total{group=\"site\"} 0",
        ],
    );
    let metrics = site.get("/metrics").text();
    let seconds = metrics
        .lines()
        .find_map(|line| line.strip_prefix("tamarack_wsgi_request_seconds_total{group=\"site\"} "));
    assert!(seconds.unwrap().parse::<f64>().unwrap() >= 32.0, "{metrics}");
    kill(pid, Signal::SIGKILL).unwrap();
    wait_for(&site, &["tamarack_wsgi_replaced_total{group=\"site\",reason=\"death\"} 1"]);
    // Embedded mode is shown once it has been used.
    process(&mut site.client(), "/e/");
    let live = site.get("/live?json").text();
    for part in ["\"python\":[", "\"name\":\"embedded mode\"", "\"name\":\"site\"", "\"death\":1"] {
        assert!(live.contains(part), "{part}: {live}");
    }
    let page = site.get("/server-status").text();
    assert!(page.contains("<h2>Python applications</h2>"), "{page}");
    assert!(page.contains("<td>death 1</td>"), "{page}");
}

#[test]
fn a_new_script_is_a_reason() {
    let mut site = Site::new("wsgi-shown-script");
    site.write("app.wsgi", SCRIPT);
    site.configure(&configuration("event", "threads=2 maximum-requests=3", PAGES));
    site.start();
    process(&mut site.client(), "/d/");
    site.write("app.wsgi", &SCRIPT.replace("'one'", "'second'"));
    site.wait_until("the new script", || process(&mut site.client(), "/d/").1 == "second");
    wait_for(&site, &["tamarack_wsgi_replaced_total{group=\"site\",reason=\"script\"} 1"]);
    for _ in 0..4 {
        process(&mut site.client(), "/d/");
    }
    let text = "tamarack_wsgi_replaced_total{group=\"site\",reason=\"requests\"}";
    site.wait_until("a replacement", || {
        let page = site.get("/metrics").text();
        let line = page.lines().find_map(|line| line.strip_prefix(text).map(str::to_owned));
        line.is_some_and(|count| count.trim() != "0")
    });
}
