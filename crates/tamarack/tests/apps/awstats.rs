//! AWStats: a program in Perl that shows the statistics of a log, and updates them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::browser::Browser;
use crate::compared::{FRAMING, Mask};
use crate::packages::{below, correct};
use crate::services::folder;
use crate::stack::{Application, Runs};
use crate::{APACHE, compare};

const AWSTATS: Application = Application {
    name: "AWStats",
    needs: &[APACHE, "/usr/lib/cgi-bin/awstats.pl", CONFIGURATION, EXAMPLE],
    folders: &["/usr/share/awstats", "/usr/lib/cgi-bin/awstats.pl", "/var/lib/awstats", EXAMPLE],
    naming: (&[EXAMPLE], &["/usr/share/awstats", "/usr/share/java", "/usr/lib/cgi-bin"]),
    writable: &["/var/lib/awstats"],
    has_database: false,
    runs: Runs::Programs,
    // The order of Perl's hashes is that of their seed.
    configuration: "DocumentRoot @ROOT@/htdocs\nSetEnv PERL_HASH_SEED 0\n\
                    SetEnv PERL_PERTURB_KEYS 0\n\
                    Include @ROOT@/usr/share/doc/awstats/examples/apache.conf\n",
    prepare,
};

const CONFIGURATION: &str = "/etc/awstats/awstats.conf";
/// What Debian gives for Apache.
const EXAMPLE: &str = "/usr/share/doc/awstats/examples/apache.conf";

const MASKS: &[Mask] = &[
    FRAMING,
    ("Expires: [A-Za-z0-9: ]{24}", "Expires: DATE"),
    ("[0-9]{2} [A-Z][a-z]{2} 20[0-9]{2} - [0-9]{2}:[0-9]{2}", "DATE"),
    ("[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} 20[0-9]{2} [0-9:]{8} GMT", "DATE"),
];

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:68.0) Gecko/20100101 Firefox/68.0";
const ROBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// A log of three visits.
fn log() -> String {
    let line = |visitor: &str, time: &str, path: &str, result: &str, referer: &str, agent: &str| {
        format!(
            "{visitor} [{time} +0000] \"GET {path} HTTP/1.1\" {result} \"{referer}\" \"{agent}\"\n"
        )
    };
    let (one, two) = ("192.0.2.1 - -", "192.0.2.2 - author");
    let (page, search) = ("http://apps.test/page.html", "https://www.google.com/search?q=tama");
    [
        line(one, "05/Mar/2020:10:00:00", "/", "200 1234", "-", FIREFOX),
        line(one, "05/Mar/2020:10:00:03", "/style.css", "200 99", "http://apps.test/", FIREFOX),
        line(two, "06/Mar/2020:11:00:00", "/page.html?q=%C3%A4", "200 5000", search, "curl/7.88.1"),
        line(two, "06/Mar/2020:11:00:09", "/none", "404 300", page, "curl/7.88.1"),
        line("192.0.2.3 - -", "07/Mar/2020:12:00:00", "/robots.txt", "200 30", "-", ROBOT),
    ]
    .concat()
}

#[test]
fn awstats() {
    compare(&AWSTATS, script, MASKS);
}

/// Configures a site, for which the program looks beside itself first, and reads its log.
fn prepare(root: &Path) {
    fs::write(root.join("logs/visits.log"), log()).unwrap();
    folder(root, "usr/share/java/awstats", 0o755);
    let text = fs::read_to_string(CONFIGURATION).unwrap();
    let own = format!(
        "{text}\nLogFile=\"{}\"\nLogFormat=1\nSiteDomain=\"apps.test\"\nDNSLookup=0\n\
         DirData=\"{}\"\nAllowToUpdateStatsFromBrowser=1\n",
        root.join("logs/visits.log").display(),
        below(root, "/var/lib/awstats").display()
    );
    let own = own.replace("Include \"/etc/awstats/awstats.conf.local\"", "");
    fs::write(root.join("usr/lib/cgi-bin/awstats.apps.test.conf"), own).unwrap();
    correct(root, "/etc/apache2/conf-available/serve-cgi-bin.conf", &["/usr/lib/cgi-bin"]);
    let program = below(root, "/usr/lib/cgi-bin/awstats.pl");
    let said = Command::new(program).args(["-config=apps.test", "-update"]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}

fn script(browser: &mut Browser) {
    let program = "/cgi-bin/awstats.pl";
    for query in [
        "",
        "?config=apps.test&month=03&year=2020",
        "?config=apps.test&month=all&year=2020",
        "?config=apps.test&month=03&year=2020&framename=mainleft",
        "?config=apps.test&month=03&year=2020&framename=mainright",
        "?config=apps.test&month=03&year=2020&output=urldetail",
        "?config=apps.test&month=03&year=2020&output=allhosts&lang=de",
        "?config=apps.test&month=03&year=2020&output=errors404",
        "?config=apps.test&output=none",
        "?config=none",
        "?config=../../etc/passwd",
        "?-config=apps.test",
        "?config=apps.test&month=03&year=2020&output=alldomains%3Cscript%3E",
    ] {
        let path = format!("{program}{query}");
        browser.get(&path);
        browser.send("HEAD", &path, "", b"");
    }
    let page = format!("{program}?config=apps.test&month=03&year=2020&framename=mainright");
    browser.get_with(&page, "Accept-Encoding: gzip\r\n");
    browser.get_with(&page, "Range: bytes=0-99\r\n");
    browser.get(&format!("{program}?config=apps.test&update=1"));
    browser.post(program, &[("config", "apps.test"), ("month", "03"), ("year", "2020")]);
    for path in [
        "/awstats-icon/other/awstats_logo6.png",
        "/awstats-icon/",
        "/awstats-icon/none",
        "/awstatsclasses/",
        "/cgi-bin/",
        "/cgi-bin/none.pl",
        "/cgi-bin/awstats.pl/path",
    ] {
        browser.get(path);
    }
}
