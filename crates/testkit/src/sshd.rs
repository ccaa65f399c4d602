//! An ssh server of a test's own on a free port, with keys, home and configuration of its own (the
//! user's login files are none of the test's business), and a
//! program `ssh` that knows the way to it as the host `board`.

use crate::skip;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A server; it and its connections end with it.
pub struct Sshd {
    home: tempfile::TempDir,
    port: u16,
    server: Child,
}

/// Where the program `name` is on this machine; `None` if it is not installed.
pub fn program(name: &str) -> Option<PathBuf> {
    let dirs = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let mut all = dirs.iter().map(|dir| Path::new(dir).join(name));
    all.find(|path| path.is_file())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

impl Sshd {
    /// A server whose user is root; `None`, and said why, where there cannot be one.
    pub fn new() -> Option<Sshd> {
        let own = std::fs::metadata("/proc/self").unwrap();
        if std::os::unix::fs::MetadataExt::uid(&own) != 0 {
            skip::skip("root is needed");
            return None;
        }
        for (name, package) in [("sshd", "openssh-server"), ("ssh", "openssh-client")] {
            if program(name).is_none() {
                skip::skip(format!("{name} is missing (apt-get install {package})"));
                return None;
            }
        }
        let home = tempfile::Builder::new().prefix("sshd").tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        write_keys(home.path());
        write_client(home.path(), port);
        let server = start(home.path(), port);
        let sshd = Sshd { home, port, server };
        sshd.is_up();
        Some(sshd)
    }

    /// The program `ssh` that connects to it.
    pub fn ssh(&self) -> PathBuf {
        self.home.path().join("bin/ssh")
    }

    /// The port that it listens at, and the file of the key with which the user logs in.
    pub fn port_and_key(&self) -> (u16, PathBuf) {
        (self.port, self.home.path().join("user"))
    }

    /// Forgets the key with which the user logs in.
    pub fn forget_key(&self) {
        std::fs::write(self.home.path().join("authorized_keys"), "").unwrap();
    }

    /// Knows it again.
    pub fn know_key(&self) {
        let home = self.home.path();
        std::fs::copy(home.join("user.pub"), home.join("authorized_keys")).unwrap();
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        children(self.server.id()).into_iter().for_each(kill);
    }

    /// Ends it with all connections.
    pub fn stop(&mut self) {
        let all = descendants(self.server.id());
        let _ = self.server.kill();
        let _ = self.server.wait();
        all.into_iter().for_each(kill);
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        self.server = start(self.home.path(), self.port);
        self.is_up();
    }

    fn is_up(&self) {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "it does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Keys and configuration of a server in `home`.
pub fn write_keys(home: &Path) {
    let keygen = |file: &str| {
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(home.join(file));
        run(&mut command);
    };
    keygen("user");
    std::fs::copy(home.join("user.pub"), home.join("authorized_keys")).unwrap();
    keygen("host");
    let config = format!(
        "ListenAddress 127.0.0.1\nHostKey {home}/host\nPidFile none\nUsePAM no\nStrictModes no\n\
         AuthorizedKeysFile {home}/authorized_keys\nPermitRootLogin prohibit-password\n\
         SetEnv HOME={home}\nPermitUserRC no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n\
         Subsystem sftp internal-sftp\n",
        home = home.display()
    );
    std::fs::write(home.join("sshd_config"), config).unwrap();
}

/// A program `bin/ssh` in `home` that knows the server at `port` as the host `board`.
pub fn write_client(home: &Path, port: u16) {
    let config = format!(
        "Host board\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {home}/user\n \
         IdentitiesOnly yes\n UserKnownHostsFile {home}/known\n StrictHostKeyChecking no\n \
         LogLevel ERROR\n",
        home = home.display()
    );
    std::fs::write(home.join("config"), config).unwrap();
    std::fs::create_dir(home.join("bin")).unwrap();
    let ssh = program("ssh").unwrap();
    let script = format!(
        "#!/bin/sh\nexec {} -F {}/config \"$@\"\n",
        ssh.display(),
        home.display()
    );
    std::fs::write(home.join("bin/ssh"), script).unwrap();
    run(Command::new("chmod").arg("755").arg(home.join("bin/ssh")));
}

fn start(home: &Path, port: u16) -> Child {
    // What Debian's service makes before it starts: where sshd has no rights.
    let _ = std::fs::create_dir("/run/sshd");
    let mut command = Command::new(program("sshd").unwrap());
    command
        .args(["-D", "-e", "-p", &port.to_string(), "-f"])
        .arg(home.join("sshd_config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Processes that `pid` started.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Processes that `pid` started, and those that they started.
fn descendants(pid: u32) -> Vec<u32> {
    let own = children(pid);
    let below = own.iter().flat_map(|child| descendants(*child));
    below.chain(own.iter().copied()).collect()
}

/// Ends the process `pid` at once.
pub fn kill(pid: u32) {
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
}

/// Directories of sessions on this machine.
pub fn sessions() -> Vec<String> {
    let all = ["/run", "/dev/shm", "/tmp", "/var/tmp"].into_iter();
    let entries = all.flat_map(|base| std::fs::read_dir(base).into_iter().flatten().flatten());
    let paths = entries.map(|entry| entry.path());
    let is_session = |path: &PathBuf| {
        path.join("whichfs-agent").exists() && path.to_string_lossy().contains("/whichfs-")
    };
    paths
        .filter(is_session)
        .map(|path| path.display().to_string())
        .collect()
}

/// Processes of agents for boards, and whatever has `device` mounted.
pub fn users(device: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        if line.contains("/whichfs-agent ") && line.contains("/whichfs-") {
            found.push(line);
        }
        let mounts = String::from_utf8_lossy(&read("mountinfo")).into_owned();
        if mounts.contains(&format!("{device}p1 ")) {
            found.push(format!("{} has it mounted", entry.path().display()));
        }
    }
    found
}

/// Held by each test that measures on a board: [`attendant`] finds the agent of any, and a cut
/// frees loop devices, which the next board would take.
pub static BOARD: Mutex<()> = Mutex::new(());

/// The process that attends to a session.
pub fn attendant() -> Option<u32> {
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.find_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_it = String::from_utf8_lossy(&line).contains("--attend-here");
        is_it.then(|| entry.file_name().to_string_lossy().parse().ok())?
    })
}
