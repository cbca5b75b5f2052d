//! HTTP/2 as h2spec checks it.

use std::process::Command;

use crate::http2::PROTOCOLS;
use crate::programs::{program, site};
use crate::tls::Tls;

/// Reads the request to its end. A response that does not wait for it would close the stream that
/// h2spec goes on with.
const READS: &str = "#!/bin/sh
cat >/dev/null
printf 'Content-Type: text/plain\\n\\nread\\n'
";

fn assert_outcome(name: &str, configuration: &str, options: &[&str], outcome: &str) {
    let Ok(output) = Command::new("h2spec").arg("--version").output() else {
        println!("skipped: h2spec is not installed");
        return;
    };
    assert!(output.status.success());
    let http2 = "LoadModule http2_module modules/mod_http2.so";
    let site = site(name, "event", &format!("{http2}\n{configuration}"));
    program(&site, "reads", READS);
    let port = site.port.to_string();
    let mut h2spec = Command::new("h2spec");
    h2spec.args(["-p", &port, "-P", "/cgi-bin/reads", "-o", "20"]).args(options);
    let text = String::from_utf8_lossy(&h2spec.output().unwrap().stdout).into_owned();
    assert!(text.contains(outcome), "{text}");
}

#[test]
fn over_tls() {
    let configuration = format!(
        "LoadModule ssl_module modules/mod_ssl.so\n\
         LoadModule socache_shmcb_module modules/mod_socache_shmcb.so\n\
         {}Protocols h2 http/1.1\n",
        Tls::configuration("server.key")
    );
    let outcome = "145 tests, 145 passed, 0 skipped, 0 failed";
    assert_outcome("h2spec-tls", &configuration, &["-t", "-k"], outcome);
}

#[test]
fn in_clear() {
    // What is no preface is a request of HTTP/1.
    let outcome = "145 tests, 144 passed, 0 skipped, 1 failed";
    assert_outcome("h2spec", PROTOCOLS, &[], outcome);
}
