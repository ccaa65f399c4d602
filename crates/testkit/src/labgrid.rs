//! A labgrid lab on this machine: labgrid's own coordinator, exporter and client as processes, and
//! a switched socket that is a small HTTP server of the test's own.

use crate::skip;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The version that is installed from PyPI.
const LABGRID: &str = "labgrid==26.0.1";

/// A lab; its processes end with it.
pub struct Lab {
    home: tempfile::TempDir,
    bin: PathBuf,
    address: String,
    coordinator: Child,
    exporter: Child,
    /// How often the socket took the power.
    pub cuts: Arc<AtomicUsize>,
}

/// What switches the power of a board: on or off.
pub type Switch = Box<dyn Fn(bool) + Send>;

/// A place: its name, the exporter's lines for its board, what switches its power.
pub type Place<'a> = (&'a str, String, Option<Switch>);

/// The programs of labgrid below the directory `target`, installed there if they are not.
fn installed(target: &Path) -> Option<PathBuf> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap();
    let venv = target.join(LABGRID.replace("==", "-"));
    let bin = venv.join("bin");
    if bin.join("whichfs-complete").exists() {
        return Some(bin);
    }
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let path = venv.display().to_string();
    let made = run(Path::new("python3"), &["-m", "venv", "--clear", &path])
        && run(&bin.join("pip"), &["install", "-q", LABGRID]);
    if !made {
        skip::skip(format!(
            "{LABGRID} cannot be installed from PyPI (python3-venv, pip)"
        ));
        return None;
    }
    std::fs::write(bin.join("whichfs-complete"), "").unwrap();
    Some(bin)
}

/// An address of this machine that nobody has.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

impl Lab {
    /// A lab with `places`, whose programs are installed below `target`; `None`, and said why,
    /// where there can be none.
    pub fn new(target: &Path, places: Vec<Place<'_>>) -> Option<Lab> {
        let bin = installed(target)?;
        let home = tempfile::Builder::new().prefix("lab").tempdir().unwrap();
        let (address, cuts) = (free(), Arc::new(AtomicUsize::new(0)));
        let names: Vec<&str> = places.iter().map(|(name, ..)| *name).collect();
        let mut exported = String::new();
        for (name, board, switch) in &places {
            exported += &format!("{name}:\n{board}");
            if switch.is_some() {
                exported += &format!(
                    "  NetworkPowerPort:\n    model: rest\n    index: 1\n    \
                     host: http://PDU/{name}/{{index}}\n"
                );
            }
        }
        let switches = places
            .into_iter()
            .map(|(name, _, switch)| (name.to_owned(), switch));
        let pdu = serve(switches.collect(), Arc::clone(&cuts));
        let file = home.path().join("exporter.yaml");
        std::fs::write(&file, exported.replace("PDU", &pdu)).unwrap();
        let start = |program: &str, arguments: &[&str]| {
            let log = std::fs::File::create(home.path().join(format!("{program}.log"))).unwrap();
            let mut command = Command::new(bin.join(program));
            command
                .args(arguments)
                .current_dir(home.path())
                .stdin(Stdio::null());
            command
                .stderr(log.try_clone().unwrap())
                .stdout(log)
                .spawn()
                .unwrap()
        };
        let coordinator = start("labgrid-coordinator", &["-l", &address]);
        let file = file.display().to_string();
        until("the coordinator listens", || {
            TcpStream::connect(&address).is_ok()
        });
        let exporter = start("labgrid-exporter", &["-c", &address, "-n", "lab", &file]);
        let lab = Lab {
            home,
            bin,
            address,
            coordinator,
            exporter,
            cuts,
        };
        for name in names {
            let matches = format!("lab/{name}/*");
            assert!(lab.client("ada", &["-p", name, "create"]).0);
            assert!(lab.client("ada", &["-p", name, "add-match", &matches]).0);
            let resource = format!("{name}/Network");
            until("the exporter is there", || {
                lab.client("ada", &["resources"]).1.contains(&resource)
            });
        }
        Some(lab)
    }

    /// Lets `command` find the lab as the user called `user`, with the programs in `first` before
    /// all others.
    pub fn known_to(&self, command: &mut Command, user: &str, first: &Path) {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", first.display(), self.bin.display());
        command
            .env("PATH", path)
            .env("LG_COORDINATOR", &self.address)
            .env("LG_HOSTNAME", "lab7")
            .env("LG_USERNAME", user);
    }

    /// Runs labgrid's client as `user`: whether it did that, and what it said.
    pub fn client(&self, user: &str, arguments: &[&str]) -> (bool, String) {
        let mut client = Command::new(self.bin.join("labgrid-client"));
        self.known_to(&mut client, user, self.home.path());
        let output = client
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.success(), said)
    }

    /// Who holds `place`, as HOST/USER.
    pub fn holder(&self, place: &str) -> Option<String> {
        let (_, said) = self.client("ada", &["-p", place, "show"]);
        let mut lines = said.lines().map(str::trim);
        let held = lines.find_map(|line| line.strip_prefix("acquired: "))?;
        (held != "None").then(|| held.to_owned())
    }

    /// Waits until nobody holds `place`.
    pub fn is_released(&self, place: &str) {
        until("the place is released", || self.holder(place).is_none());
    }

    /// Ends the exporter: its resources are gone.
    pub fn lose_exporter(&mut self) {
        let _ = self.exporter.kill();
        let _ = self.exporter.wait();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for one in [&mut self.exporter, &mut self.coordinator] {
            let _ = one.kill();
            let _ = one.wait();
        }
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A socket for each of `switches`, as labgrid's model `rest` takes them; where it listens. It
/// counts in `cuts` how often the power went.
fn serve(switches: Vec<(String, Option<Switch>)>, cuts: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut is_on = vec![true; switches.len()];
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            let _ = reader.read_line(&mut head);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                line.clear();
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let found = switches
                .iter()
                .position(|(name, _)| head.contains(&format!("/{name}/")));
            let Some(at) = found else { continue };
            let wanted = body.first() == Some(&b'1');
            if head.starts_with("PUT") && is_on[at] != wanted {
                is_on[at] = wanted;
                cuts.fetch_add(usize::from(!wanted), Ordering::Relaxed);
                switches[at].1.iter().for_each(|switch| switch(wanted));
            }
            let said = if is_on[at] { "1" } else { "0" };
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n{said}");
            let _ = reader.get_mut().write_all(answer.as_bytes());
        }
    });
    address
}
