//! The system's `ssh`, with the user's keys and configuration; it never asks. A board without a
//! network has a serial console instead, by labgrid's Python package.

use crate::address::Address;
use crate::refusal::Refusal;
use crate::script::Kit;
use crate::wire::{Call, Reply, line};
use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::{Duration, Instant};
use whichfs_units::{Bytes, MIB};

/// Status of ssh where it is the connection that fails.
const CONNECTION: i32 = 255;
/// Nobody is asked for a password; what answers no more is given up after 15 s.
const OPTIONS: [&str; 5] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "EscapeChar=none",
];
/// Does by a serial console what ssh does.
const CONSOLE: &str = include_str!("console.py");
/// Bytes of what ssh says on standard error that are kept.
const SAID_BYTES: usize = 2000;
/// Bytes of an answer, or of one line, that are heard.
const MOST_BYTES: u64 = 16 * MIB;
/// Replies that wait to be heard.
const REPLIES: usize = 1024;
/// How often the other side hears that somebody is there.
const BEAT: Duration = Duration::from_secs(5);
/// How long the last words of a program that has ended may take to come.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a command on a board failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no connection, for this reason.
    Lost(String),
    /// The command ended so, and said this.
    Ended(i32, String),
}

/// The way to a board.
#[derive(Debug)]
pub(crate) struct Ssh {
    program: PathBuf,
    host: String,
    port: Option<u16>,
    /// Whether `program` is a Python with labgrid, and `host` a place with a serial console.
    console: bool,
}

impl Ssh {
    /// The way to the board of `address` by the programs of `kit`.
    pub fn to(address: &Address, kit: &Kit) -> Ssh {
        let program = if address.console {
            &kit.python
        } else {
            &kit.ssh
        };
        Ssh {
            program: program.clone(),
            host: address.host.clone(),
            port: address.port,
            console: address.console,
        }
    }

    /// A console has no end of its input, so `feed` tells what is sent: `bytes` or `lines`.
    fn command(&self, command: &str, feed: &str) -> Command {
        let mut ssh = Command::new(&self.program);
        if self.console {
            ssh.args(["-c", CONSOLE, &self.host, feed, command]);
        } else {
            ssh.arg("-T");
            for option in OPTIONS {
                ssh.args(["-o", option]);
            }
            if let Some(port) = self.port {
                ssh.args(["-p", &port.to_string()]);
            }
            ssh.args(["--", &self.host, command]);
        }
        ssh.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C is for this program, which then ends what is on the board.
            .process_group(0);
        ssh
    }

    fn start(&self, command: &str, feed: &str) -> Result<Child, Trouble> {
        self.command(command, feed).spawn().map_err(|error| {
            let program = self.program.display();
            let remedy = "apt-get install openssh-client";
            Trouble::Lost(format!("{program} cannot be started: {error}; {remedy}"))
        })
    }

    /// Runs `command` with `stdin`; what it wrote to its standard output.
    pub fn run(&self, command: &str, stdin: &[u8]) -> Result<String, Trouble> {
        let mut child = self.start(command, "bytes")?;
        let said = Said::of(&mut child);
        let mut input = child.stdin.take();
        let output = child.stdout.take();
        let text = std::thread::scope(|scope| {
            scope.spawn(move || {
                // One that reads nothing says itself why.
                let _ = input.as_mut().map(|input| input.write_all(stdin));
            });
            let mut text = String::new();
            // Then its end is closed, and a board that answers without end is not heard further.
            let _ = output.map(|output| output.take(MOST_BYTES).read_to_string(&mut text));
            text
        });
        if text.len() as u64 == MOST_BYTES {
            let _ = child.kill();
            let _ = ended(&mut child);
            let most = Bytes(MOST_BYTES);
            let text = format!("it answers more than {most}: is that a board with a shell?");
            return Err(Trouble::Lost(text));
        }
        match ended(&mut child) {
            Some(0) => Ok(text),
            status => Err(said.trouble(status)),
        }
    }

    /// Joins `command`'s standard input and output to lines.
    pub fn join(&self, command: &str) -> Result<Link, Trouble> {
        Ok(Link::new(self.start(command, "lines")?))
    }
}

/// The lines of `from`, up to one that has no end.
fn lines(mut from: impl BufRead) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = from.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line);
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < MOST_BYTES;
        let is_line = read.is_ok_and(|count| count > 0) && is_whole;
        is_line.then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    })
}

/// Status of `child`, once it has ended.
fn ended(child: &mut Child) -> Option<i32> {
    child.wait().ok().and_then(|status| status.code())
}

/// The end of what a program says on standard error.
#[derive(Clone)]
struct Said(Arc<Mutex<(Vec<u8>, bool)>>);

impl Said {
    fn of(child: &mut Child) -> Said {
        let said = Said(Arc::new(Mutex::new((Vec::new(), false))));
        let (kept, from) = (said.clone(), child.stderr.take());
        std::thread::spawn(move || {
            let mut part = [0; 512];
            let mut from = from;
            while let Some(Ok(count @ 1..)) = from.as_mut().map(|from| from.read(&mut part)) {
                let mut kept = kept.lock();
                kept.0.extend_from_slice(&part[..count]);
                let extra = kept.0.len().saturating_sub(SAID_BYTES);
                kept.0.drain(..extra);
            }
            kept.lock().1 = true;
        });
        said
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, (Vec<u8>, bool)> {
        self.0.lock()
    }

    /// What the program that has ended with `status` said. A master connection that ssh leaves
    /// may keep standard error open: its end is not waited for long.
    fn trouble(&self, status: Option<i32>) -> Trouble {
        let begun = Instant::now();
        while !self.lock().1 && begun.elapsed() < LAST_WORDS {
            std::thread::sleep(LAST_WORDS / 50);
        }
        let text = String::from_utf8_lossy(&self.lock().0).trim().to_owned();
        match status {
            Some(CONNECTION) | None => Trouble::Lost(match text.is_empty() {
                true => "the connection has ended".to_owned(),
                false => text.replace(['\r', '\n'], " "),
            }),
            Some(status) => Trouble::Ended(status, text),
        }
    }
}

/// A connection to a session.
pub(crate) struct Link {
    child: Child,
    said: Said,
    input: Arc<Mutex<Option<ChildStdin>>>,
    replies: Receiver<Reply>,
    /// Dropped with the link, which ends the beat.
    _beat: Sender<()>,
}

/// What came by a connection.
pub(crate) enum Heard {
    /// A line of the board, parsed.
    Reply(Reply),
    /// Nothing yet.
    Nothing,
    /// The connection is closed.
    End,
}

impl Link {
    fn new(mut child: Child) -> Link {
        let said = Said::of(&mut child);
        let input = Arc::new(Mutex::new(child.stdin.take()));
        // Whoever says more than is heard waits.
        let (sender, replies) = sync_channel(REPLIES);
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                // A login file may say something that is no reply.
                let all =
                    lines(BufReader::new(out)).filter_map(|text| serde_json::from_str(&text).ok());
                for reply in all {
                    if sender.send(reply).is_err() {
                        return;
                    }
                }
            });
        }
        let (beat, over) = channel::<()>();
        let beaten = Arc::clone(&input);
        std::thread::spawn(move || {
            while over.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                if write(&beaten, &Call::Here).is_err() {
                    return;
                }
            }
        });
        Link {
            child,
            said,
            input,
            replies,
            _beat: beat,
        }
    }

    /// Says `call`; one that is not heard is seen by the end of the connection.
    pub fn say(&self, call: &Call) {
        let _ = write(&self.input, call);
    }

    /// What comes within `time`.
    pub fn hear(&self, time: Duration) -> Heard {
        match self.replies.recv_timeout(time) {
            Ok(reply) => Heard::Reply(reply),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// Why it has ended.
    pub fn trouble(mut self) -> Trouble {
        self.hang_up();
        let status = ended(&mut self.child);
        self.said.trouble(status)
    }

    fn hang_up(&self) {
        *self.input.lock() = None;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.hang_up();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(input: &Mutex<Option<ChildStdin>>, call: &Call) -> std::io::Result<()> {
    let mut input = input.lock();
    match input.as_mut() {
        Some(input) => input.write_all(&line(call)?).and_then(|()| input.flush()),
        None => Err(std::io::ErrorKind::BrokenPipe.into()),
    }
}

/// Whether a board of which ssh `said` so may be one that starts: it has not refused the user, and
/// its name is known.
pub(crate) fn may_boot(said: &str) -> bool {
    let lasting = ["Permission denied", "verification failed", "resolve"];
    !lasting.iter().any(|words| said.contains(words))
}

/// That there is no connection to the board at `address`, with the remedy for what ssh `said`.
pub(crate) fn unreachable(address: &Address, said: &str) -> Refusal {
    let host = &address.host;
    let port = address
        .port
        .map_or(String::new(), |port| format!("-p {port} "));
    let by_hand = match address.console {
        true => format!("labgrid-client -p {host} console"),
        false => format!("ssh {port}{host} true"),
    };
    let remedy = match () {
        () if said.contains("Permission denied") => format!(
            "whichfs asks for no password: put a key there (ssh-copy-id {port}{host}), load it \
             into ssh-agent if it has a passphrase, and try {by_hand}"
        ),
        () if said.contains("Host key verification failed") => {
            format!("check the board's key and accept it once by hand: {by_hand}")
        }
        () if said.contains("resolve") => {
            "say its address, or give it a Host entry in ~/.ssh/config".to_owned()
        }
        () if address.console => format!(
            "does the board start, and is there a shell or a login as root without a password? \
             {by_hand} shows it; for another login name a file with a ShellDriver in LG_ENV"
        ),
        () => match &address.place {
            Some(place) => format!(
                "does the board start? labgrid-client -p {place} acquire, then power cycle and \
                 console show it; {by_hand} tries its sshd"
            ),
            None => format!("is it on, and does its sshd run at that port? try {by_hand}"),
        },
    };
    let board = match &address.place {
        Some(place) if address.console => format!("the console of the labgrid place {place}"),
        Some(place) => format!("{host} (labgrid place {place})"),
        None => host.clone(),
    };
    Refusal::environment(format!("no connection to {board}: {said}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn attack_a_board_that_answers_without_end_is_left() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let program = home.path().join("ssh");
        std::fs::write(&program, "#!/bin/sh\nexec cat /dev/zero\n").expect("a script");
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, all).expect("ours");
        let ssh = Ssh {
            program,
            host: "root@board".into(),
            port: None,
            console: false,
        };
        match ssh.run("uname -m", b"") {
            Err(Trouble::Lost(why)) => assert!(why.contains("answers more than"), "{why}"),
            other => panic!("{:?} of an endless answer", other.map(|text| text.len())),
        }
        let link = ssh.join("session").expect("it starts");
        let heard = link.hear(Duration::from_secs(60));
        assert!(matches!(heard, Heard::End), "a line without end ends it");
    }

    #[test]
    fn attack_lines_are_heard_up_to_one_without_end() {
        let text = "one\r\ntwo\nthree";
        assert_eq!(
            lines(text.as_bytes()).collect::<Vec<_>>(),
            ["one", "two", "three"]
        );
        let endless = BufReader::new(std::io::repeat(b'x'));
        assert_eq!(lines(endless).count(), 0);
    }

    #[test]
    fn ssh_never_asks_and_takes_the_host_for_no_option() {
        let ssh = Ssh {
            program: "ssh".into(),
            host: "root@board".into(),
            port: Some(2222),
            console: false,
        };
        let command = ssh.command("uname -m", "bytes");
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        assert!(words.windows(2).any(|two| two == ["-o", "BatchMode=yes"]));
        assert!(words.windows(2).any(|two| two == ["-p", "2222"]));
        assert_eq!(words[words.len() - 3..], ["--", "root@board", "uname -m"]);
    }

    #[test]
    fn what_ssh_says_has_a_remedy() {
        for (said, remedy) in [
            ("root@b: Permission denied (publickey).", "ssh-copy-id"),
            ("Host key verification failed.", "accept it once"),
            ("Could not resolve hostname b", "~/.ssh/config"),
            ("connect to host b port 22: Connection refused", "is it on"),
        ] {
            let mut address = Address {
                host: "root@b".into(),
                port: None,
                path: "/dev/x".into(),
                place: None,
                console: false,
            };
            assert_eq!(may_boot(said), said.contains("refused"), "{said}");
            let error = unreachable(&address, said).message;
            assert!(error.contains(said) && error.contains(remedy), "{error}");
            address.port = Some(2222);
            let error = unreachable(&address, said).message;
            let by_hand = error.contains("ssh -p 2222 root@b true") || said.contains("resolve");
            assert!(by_hand, "{error}");
            address.place = Some("rpi4-2".into());
            let error = unreachable(&address, said).message;
            assert!(error.contains("labgrid place rpi4-2"), "{error}");
            let starts = error.contains("labgrid-client -p rpi4-2");
            assert_eq!(starts, may_boot(said), "{error}");
            (address.host, address.console) = ("rpi4-2".into(), true);
            let error = unreachable(&address, said).message;
            assert!(
                error.contains("the console of the labgrid place"),
                "{error}"
            );
            assert_eq!(error.contains("LG_ENV"), may_boot(said), "{error}");
        }
    }
}
