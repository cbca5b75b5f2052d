//! A browser without a window, driven by the DevTools protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the browser may take for anything, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Has the browser read descriptor 3 and write to 4.
const PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

const OPTIONS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1200,900",
    "--remote-debugging-pipe",
];

/// The page of a browser.
pub trait Page {
    /// Goes to an address and waits for its page.
    fn go(&mut self, address: &str);

    /// The value of an expression, or of its promise.
    fn value(&mut self, expression: &str) -> Value;
}

/// A browser with one page.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// The connection to the page.
    session: Option<String>,
    calls: u64,
    troubles: Vec<String>,
}

impl Browser {
    /// Starts the program; `profile` becomes its folder.
    pub fn start(program: &Path, profile: &Path) -> Browser {
        Browser::start_with(program, profile, &[])
    }

    /// Starts the program with more options.
    pub fn start_with(program: &Path, profile: &Path, options: &[&str]) -> Browser {
        let mut child = Command::new("sh")
            .args(["-c", PIPES, "sh"])
            .arg(program)
            .args(OPTIONS)
            .args(options)
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let message = serde_json::from_slice(&message.unwrap()).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, troubles) = (None, Vec::new());
        let mut browser = Browser { child, input, messages, session, calls: 0, troubles };
        let page = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let page = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &page);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for part in ["Page", "Runtime", "Network", "Log", "DOM"] {
            browser.call(&format!("{part}.enable"), &json!({}));
        }
        browser
    }

    /// What a method returns.
    fn call(&mut self, method: &str, arguments: &Value) -> Value {
        let answer = self.try_call(method, arguments);
        answer.unwrap_or_else(|error| panic!("{method} {arguments}: {error}"))
    }

    fn try_call(&mut self, method: &str, arguments: &Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": arguments});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.input, "{message}\0").unwrap();
        loop {
            let mut message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("{method} {arguments}: {error}");
            });
            if message["id"] != self.calls {
                self.note(&message);
            } else if message["error"].is_object() {
                return Err(message["error"].take());
            } else {
                return Ok(message["result"].take());
            }
        }
    }

    /// Remembers what should not happen.
    fn note(&mut self, event: &Value) {
        let about = &event["params"];
        let is_trouble = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" | "Inspector.targetCrashed" => true,
            "Runtime.consoleAPICalled" => {
                matches!(about["type"].as_str(), Some("error" | "assert"))
            }
            "Log.entryAdded" => about["entry"]["level"] == "error",
            "Network.loadingFailed" => about["canceled"] != true,
            "Network.responseReceived" => about["response"]["status"].as_u64() >= Some(400),
            _ => false,
        };
        if is_trouble {
            self.troubles.push(event.to_string());
        }
    }

    /// Errors of the console and requests that failed, up to now.
    pub fn troubles(&mut self) -> &[String] {
        // What has been sent is read.
        self.call("Runtime.evaluate", &json!({"expression": "0"}));
        &self.troubles
    }

    fn evaluated(&mut self, expression: &str) -> Result<Value, Value> {
        let arguments =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.try_call("Runtime.evaluate", &arguments)?;
        match answer["exceptionDetails"].is_object() {
            true => Err(answer["exceptionDetails"].take()),
            false => Ok(answer["result"]["value"].take()),
        }
    }

    /// Waits until the page is complete and a condition is true. Meanwhile it may be another page.
    pub fn wait(&mut self, condition: &str) {
        let expression = format!("document.readyState === 'complete' && !!({condition})");
        let end = Instant::now() + PATIENCE;
        while self.evaluated(&expression) != Ok(Value::Bool(true)) {
            assert!(Instant::now() < end, "waited in vain: {condition}\n{}", self.shown());
            sleep(Duration::from_millis(20));
        }
    }

    /// The address and the text of the page, and what went wrong.
    pub fn shown(&mut self) -> String {
        let shown = "document.location.href + '\\n' + document.body.innerText";
        format!("{:?}\n{:#?}", self.evaluated(shown), self.troubles)
    }

    /// Clicks into the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(() => {{ const found = document.querySelector({selector:?}); \
             found.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const box = found.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for (kind, button) in
            [("mouseMoved", "none"), ("mousePressed", "left"), ("mouseReleased", "left")]
        {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Clicks at a field and types.
    pub fn enter(&mut self, selector: &str, text: &str) {
        self.click(selector);
        self.wait(&format!("document.activeElement === document.querySelector({selector:?})"));
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Chooses a file for a field.
    pub fn choose(&mut self, selector: &str, file: &Path) {
        let expression = format!("document.querySelector({selector:?})");
        let field = self.call("Runtime.evaluate", &json!({"expression": expression}));
        let arguments = json!({"files": [file], "objectId": field["result"]["objectId"]});
        self.call("DOM.setFileInputFiles", &arguments);
    }
}

impl Page for Browser {
    fn go(&mut self, address: &str) {
        let answer = self.call("Page.navigate", &json!({"url": address}));
        assert!(answer["errorText"].is_null(), "{address}: {answer}");
        self.wait("true");
    }

    fn value(&mut self, expression: &str) -> Value {
        self.evaluated(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}\n{}", self.shown()))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let _ = write!(self.input, "{}\0", json!({"id": 0, "method": "Browser.close"}));
        let end = Instant::now() + Duration::from_secs(10);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
