//! Chromium without a window, driven over a pipe (DevTools protocol): only for tests.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    number: u64,
    /// Errors of the console, exceptions and refused loads so far.
    pub faults: Vec<String>,
    _home: tempfile::TempDir,
}

impl Browser {
    /// Starts it; `None`, with a line that says so, if this machine has none.
    pub fn start() -> Option<Browser> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = names.iter().find(|name| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        });
        let Some(name) = found else {
            println!("skipped: no chromium (apt-get install chromium)");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        // The pipe is descriptor 3 in and 4 out.
        let line = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args([
                "-c",
                line,
                name,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
            ])
            .args([
                "--remote-debugging-pipe",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
            ])
            .args(["--disable-dev-shm-usage", "--no-first-run", "about:blank"])
            .arg(format!("--user-data-dir={}", home.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut browser = Browser {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            session: String::new(),
            number: 0,
            faults: Vec::new(),
            _home: home,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls `method` and returns its result; what arrives meanwhile is looked at for faults.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let number = self.number;
        let mut message = json!({"id": number, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input
            .write_all(message.to_string().as_bytes())
            .unwrap();
        self.input.write_all(&[0]).unwrap();
        self.input.flush().unwrap();
        loop {
            let message = self.hear();
            if message["id"] == number {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn hear(&mut self) -> Value {
        let mut bytes = Vec::new();
        let count = self.output.read_until(0, &mut bytes).unwrap();
        assert!(count > 0, "the browser ended");
        bytes.pop();
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let text = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.faults.push(text.to_string()),
            Some("Log.entryAdded") if text["entry"]["level"] == "error" => {
                self.faults.push(text.to_string());
            }
            Some("Runtime.consoleAPICalled") if text["type"] != "log" => {
                self.faults.push(text.to_string());
            }
            _ => {}
        }
        message
    }

    /// Opens `path` with `hash` and waits until it is loaded; milliseconds from the beginning of
    /// the navigation to the end of loading.
    pub fn open(&mut self, path: &Path, hash: &str) -> f64 {
        self.call("Page.navigate", json!({"url": "about:blank"}));
        let url = format!("file://{}{hash}", path.display());
        self.call("Page.navigate", json!({"url": url}));
        loop {
            let ready = self.text("document.readyState + location.protocol");
            if ready == "completefile:" {
                break;
            }
        }
        self.painted();
        self.number("performance.getEntriesByType('navigation')[0].loadEventEnd")
    }

    /// Waits until what happened so far has been laid out and painted: two frames.
    fn painted(&mut self) {
        let frames = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))";
        let given = json!({"expression": frames, "awaitPromise": true});
        self.call("Runtime.evaluate", given);
    }

    /// The value of a JavaScript expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let given = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", given);
        let thrown = answer.get("exceptionDetails");
        assert!(thrown.is_none(), "{expression}: {thrown:?}");
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression)
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or(f64::NAN)
    }

    /// Width in pixels and colours.
    pub fn look(&mut self, width: u32, dark: bool, media: &str) {
        let phone = width < 500;
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let colours = if dark { "dark" } else { "light" };
        let feature = json!([{"name": "prefers-color-scheme", "value": colours}]);
        let emulated = json!({"media": media, "features": feature});
        self.call("Emulation.setEmulatedMedia", emulated);
    }

    /// Clicks the middle of the first element that `selector` finds, as a mouse does.
    pub fn click(&mut self, selector: &str) {
        let quoted = json!(selector).to_string();
        let place = self.value(&format!(
            "(() => {{ const e = document.querySelector({quoted}); e.scrollIntoView({{block: \
             'center'}}); const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top \
             + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let at = json!({"type": kind, "x": place[0], "y": place[1], "button": "left",
                            "clickCount": 1});
            self.call("Input.dispatchMouseEvent", at);
        }
        self.painted();
    }

    /// Presses a key: `Tab`, `Enter`, or text.
    pub fn key(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            other => (0, other),
        };
        let down = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        for kind in [down, "keyUp"] {
            let mut given = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" {
                given["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", given);
        }
    }

    /// A picture of the whole page, or of its first screen, as PNG.
    pub fn picture(&mut self, path: &Path, whole: bool) {
        let given = json!({"format": "png", "captureBeyondViewport": whole});
        let mut given = given;
        if whole {
            let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
            given["clip"] = json!({"x": 0, "y": 0, "width": size["width"],
                                   "height": size["height"], "scale": 1});
        }
        let shot = self.call("Page.captureScreenshot", given);
        std::fs::write(path, decoded(shot["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of base64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes().filter(|c| *c != b'=') {
        bits = bits << 6 | u32::from(value(c));
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
