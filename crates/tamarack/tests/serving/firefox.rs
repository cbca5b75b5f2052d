//! Firefox without a window, driven by its Marionette protocol.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browser::{PATIENCE, Page};
use crate::metrics::installed;

/// A port of the system's choice, and no connections but the test's.
const PREFERENCES: &str = r#"user_pref("marionette.port", 0);
user_pref("browser.startup.page", 0);
user_pref("browser.newtabpage.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("app.normandy.enabled", false);
user_pref("app.update.auto", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "http://127.0.0.1:9/");
"#;

/// Firefox with one page.
pub struct Firefox {
    child: Child,
    connection: BufReader<TcpStream>,
    calls: u64,
}

/// The program, if it is installed.
pub fn program() -> Option<PathBuf> {
    installed(&["firefox", "firefox-esr"])
}

impl Firefox {
    /// Starts the program, which trusts all certificates; `profile` becomes its folder.
    pub fn start(program: &Path, profile: &Path) -> Firefox {
        fs::create_dir_all(profile).unwrap();
        fs::write(profile.join("user.js"), PREFERENCES).unwrap();
        let child = Command::new(program)
            .args(["--headless", "--marionette", "--no-remote", "--profile"])
            .arg(profile)
            .env("HOME", profile)
            .env("MOZ_CRASHREPORTER_DISABLE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let connection = BufReader::new(connect(&profile.join("MarionetteActivePort")));
        let mut firefox = Firefox { child, connection, calls: 0 };
        let greeting = firefox.receive();
        assert_eq!(greeting["marionetteProtocol"], 3, "{greeting}");
        let trusting = json!({"acceptInsecureCerts": true});
        firefox.call("WebDriver:NewSession", &trusting);
        let waiting = json!({"script": PATIENCE.as_millis() as u64});
        firefox.call("WebDriver:SetTimeouts", &waiting);
        firefox
    }

    fn receive(&mut self) -> Value {
        let mut length = Vec::new();
        self.connection.read_until(b':', &mut length).unwrap();
        length.pop();
        let length: usize = String::from_utf8(length).unwrap().parse().unwrap();
        let mut message = vec![0; length];
        self.connection.read_exact(&mut message).unwrap();
        serde_json::from_slice(&message).unwrap()
    }

    /// What a command returns.
    fn call(&mut self, command: &str, arguments: &Value) -> Value {
        self.calls += 1;
        let message = json!([0, self.calls, command, arguments]).to_string();
        write!(self.connection.get_mut(), "{}:{message}", message.len()).unwrap();
        // The kind, the number of the call, an error, and the result.
        let mut answer = self.receive();
        assert_eq!((&answer[0], &answer[1]), (&json!(1), &json!(self.calls)), "{answer}");
        assert!(answer[2].is_null(), "{command} {arguments}: {answer}");
        answer[3].take()
    }
}

impl Page for Firefox {
    fn go(&mut self, address: &str) {
        self.call("WebDriver:Navigate", &json!({"url": address}));
    }

    fn value(&mut self, expression: &str) -> Value {
        // A script of the protocol has a scope of its own, without the page's constants.
        let script = "return window.eval(arguments[0]);";
        let arguments = json!({"script": script, "args": [expression]});
        self.call("WebDriver:ExecuteScript", &arguments)["value"].take()
    }
}

impl Drop for Firefox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects to the port that the browser writes into a file of its profile.
fn connect(file: &Path) -> TcpStream {
    let end = Instant::now() + PATIENCE;
    loop {
        let port = fs::read_to_string(file).unwrap_or_default().trim().parse::<u16>();
        if let Ok(Ok(stream)) = port.map(|port| TcpStream::connect(("127.0.0.1", port))) {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            return stream;
        }
        assert!(Instant::now() < end, "the browser does not listen");
        sleep(Duration::from_millis(20));
    }
}
