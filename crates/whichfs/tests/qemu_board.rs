//! A board of 256 MB played by QEMU, with Debian's kernel, an ssh server and a disk: a study goes
//! on after a real restart and after the board was suspended to memory, and power cuts by sysrq
//! and by the watchdog are judged. Needs qemu-system-x86, linux-image-6.12-cloud-amd64,
//! openssh-server and the agent for boards (`make agents`); skipped without, and unless
//! `WHICHFS_QEMU_BOARD` is set: emulated, since KVM may be there and not work, it takes up to half
//! an hour.
//!
//! The board's whole system is an initramfs of this machine's programs. What reached the disk
//! before a restart is on it afterwards, as on a card that keeps its supply.
#![allow(clippy::unwrap_used)]

use crate::machine;
use crate::skip;
use crate::sshd;

use machine::{Archive, QEMU, TestKernel, program};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Programs of the board: its init's, those that a session needs, ext4's.
const PROGRAMS: [&str; 23] = [
    "sh",
    "mount",
    "mkdir",
    "insmod",
    "ip",
    "id",
    "uname",
    "cat",
    "rm",
    "wc",
    "chmod",
    "sync",
    "sleep",
    "sfdisk",
    "partx",
    "blockdev",
    "mke2fs",
    "mkfs.ext4",
    "e2fsck",
    "fsck.ext4",
    "ls",
    "dmesg",
    "modprobe",
];
/// Drivers that its kernel has as modules, in the order in which they are loaded.
const MODULES: [(&str, &str); 6] = [
    ("kernel/net/core", "failover"),
    ("kernel/drivers/net", "net_failover"),
    ("kernel/drivers/net", "virtio_net"),
    ("kernel/drivers/block", "virtio_blk"),
    ("kernel/drivers/watchdog", "watchdog"),
    ("kernel/drivers/watchdog", "i6300esb"),
];
const INIT: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run; mkdir -p /run/sshd; chmod 600 /etc/host
for one in failover net_failover virtio_net virtio_blk watchdog i6300esb; do
    [ ! -f /$one.ko ] || insmod /$one.ko
done
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0
echo board is up
exec /usr/sbin/sshd -D -e -f /etc/sshd_config
";
const SSHD: &str = "HostKey /etc/host\nPidFile none\nUsePAM no\nStrictModes no\n\
    AuthorizedKeysFile /etc/authorized_keys\nPermitRootLogin prohibit-password\n\
    PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\nUseDNS no\n";
/// At once, with nothing written out.
const RESTART: &str = "echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger";
/// To memory, for eight seconds: its real-time clock wakes it.
const SUSPEND: &str = "cd /sys/power; echo deep > mem_sleep; \
    echo 0 > /sys/class/rtc/rtc0/wakealarm; echo +8 > /sys/class/rtc/rtc0/wakealarm; \
    echo mem > state";
/// Longer than it takes to boot.
const UP_WITHIN: Duration = Duration::from_secs(120);
/// What the disk is called.
pub(crate) const ID: &str = "card-1";
const STUDY: &str = r#"
name = "mini"
kind = "performance"
title = "Small files on a board"
source = "a test"
method = "A small tree, written and read."
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
seeds = 1
candidates = ["ext4"]

[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 8000000, files = 100 }
"#;

/// A running board; it ends with the test.
pub(crate) struct Board {
    home: tempfile::TempDir,
    /// QEMU, while the board has its power.
    qemu: Arc<Mutex<Option<Child>>>,
    kernel: Arc<TestKernel>,
    port: u16,
}

impl Drop for Board {
    fn drop(&mut self) {
        self.switch()(false);
    }
}

impl Board {
    fn new() -> Option<Board> {
        let Some(kernel) = TestKernel::with(MODULES[5]) else {
            skip::skip(
                "no kernel in /boot with the module i6300esb (linux-image-6.12-cloud-amd64)",
            );
            return None;
        };
        for (name, package) in [
            (QEMU, "qemu-system-x86"),
            ("sshd", "openssh-server"),
            ("ssh", "openssh-client"),
            ("ip", "iproute2"),
            ("insmod", "kmod"),
        ] {
            if program(name).is_none() {
                skip::skip(format!("{name} is missing (apt-get install {package})"));
                return None;
            }
        }
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        sshd::write_keys(home.path());
        sshd::write_client(home.path(), port);
        fs::write(
            home.path().join("initramfs"),
            initramfs(&kernel, home.path()),
        )
        .unwrap();
        let card = fs::File::create(home.path().join("card.img")).unwrap();
        card.set_len(160 << 20).unwrap();
        fs::write(home.path().join("mini.toml"), STUDY).unwrap();
        let board = Board {
            home,
            qemu: Arc::default(),
            kernel: Arc::new(kernel),
            port,
        };
        board.switch()(true);
        let begun = Instant::now();
        while !board.ssh("true") {
            let console = fs::read_to_string(board.path("console")).unwrap_or_default();
            let fails = console.contains("Kernel panic") || begun.elapsed() > UP_WITHIN;
            assert!(!fails, "it is not up: {console}");
            std::thread::sleep(Duration::from_millis(500));
        }
        Some(board)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What takes its power, which ends QEMU at once, and gives it, which starts it.
    pub(crate) fn switch(&self) -> impl Fn(bool) + Send + use<> {
        let (qemu, kernel) = (Arc::clone(&self.qemu), Arc::clone(&self.kernel));
        let (home, port) = (self.home.path().to_owned(), self.port);
        move |is_on| {
            let mut qemu = qemu.lock().unwrap();
            if let Some(mut running) = qemu.take() {
                let _ = running.kill();
                let _ = running.wait();
            }
            *qemu = is_on.then(|| boot(&kernel, &home, port));
        }
    }

    fn ssh(&self, command: &str) -> bool {
        let mut ssh = Command::new(self.path("bin/ssh"));
        // Connections of a board that has restarted are not closed.
        let ssh = ssh.args([
            "-o",
            "ConnectTimeout=5",
            "-o",
            "ServerAliveInterval=2",
            "board",
        ]);
        let ssh = ssh.arg(command);
        ssh.output().unwrap().status.success()
    }

    fn whichfs(&self, arguments: &[&str]) -> Command {
        self.whichfs_on("ssh://board/dev/vda", arguments)
    }

    /// Runs whichfs on its disk, which is called `on`.
    pub(crate) fn whichfs_on(&self, on: &str, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args(arguments)
            .args(["--on", on, "--internal", "--au", "4M", "--settle", "0"])
            .current_dir(self.home.path())
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("XDG_DATA_HOME", self.home.path())
            .env("XDG_CACHE_HOME", self.home.path())
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `command` on it when the first trial has written 2 MiB.
    fn once_it_writes(&self, command: &str) {
        let blocks = || {
            let meta = self.path("card.img").metadata().unwrap();
            std::os::unix::fs::MetadataExt::blocks(&meta)
        };
        let begun = Instant::now();
        while blocks() < 4096 && begun.elapsed() < UP_WITHIN {
            std::thread::sleep(Duration::from_millis(100));
        }
        // A command that restarts the board ends with it.
        self.ssh(command);
    }

    /// How often it has booted.
    pub(crate) fn boots(&self) -> usize {
        let console = fs::read_to_string(self.path("console")).unwrap_or_default();
        console.matches("board is up").count()
    }
}

fn initramfs(kernel: &TestKernel, home: &Path) -> Vec<u8> {
    let mut archive = Archive::default();
    PROGRAMS.iter().for_each(|name| archive.program(name));
    let server = program("sshd").unwrap();
    archive.libraries_of(&server);
    archive.file(Path::new("/usr/sbin/sshd"), &fs::read(server).unwrap());
    archive.file(Path::new("/init"), INIT.as_bytes());
    for (directory, name) in MODULES {
        if let Some(module) = kernel.module(directory, name) {
            archive.file(&Path::new("/").join(format!("{name}.ko")), &module);
        }
    }
    let mut file = |path: &str, text: &[u8]| archive.file(Path::new(path), text);
    file(
        "/etc/passwd",
        b"root:x:0:0::/root:/bin/sh\nsshd:x:105:105::/run/sshd:/bin/false\n",
    );
    file("/etc/group", b"root:x:0:\nsshd:x:105:\n");
    file(
        "/etc/shadow",
        b"root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n",
    );
    file("/etc/sshd_config", SSHD.as_bytes());
    file("/etc/host", &fs::read(home.join("host")).unwrap());
    file(
        "/etc/authorized_keys",
        &fs::read(home.join("authorized_keys")).unwrap(),
    );
    if let Ok(text) = fs::read("/etc/mke2fs.conf") {
        file("/etc/mke2fs.conf", &text);
    }
    for directory in ["/dev", "/proc", "/sys", "/run", "/tmp", "/root", "/var/tmp"] {
        archive.directory(Path::new(directory));
    }
    archive.end()
}

/// Boots it; a restart of the board restarts the machine, which goes on.
fn boot(kernel: &TestKernel, home: &Path, port: u16) -> Child {
    let forward = format!("user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22");
    let file = |name: &str| home.join(name).display().to_string();
    Command::new(program(QEMU).unwrap())
        .args("-accel tcg,thread=multi -cpu max -smp 1 -m 256 -nodefaults".split(' '))
        .args("-no-user-config -display none -action watchdog=reset".split(' '))
        .args(["-global", "PIIX4_PM.disable_s3=0"])
        .args(["-serial", "chardev:console", "-chardev"])
        .arg(format!(
            "file,id=console,append=on,path={}",
            file("console")
        ))
        .args([
            "-kernel".into(),
            kernel.image.clone(),
            "-initrd".into(),
            home.join("initramfs"),
        ])
        .args(["-append", "console=ttyS0 loglevel=4 panic=1 rdinit=/init"])
        .args([
            "-netdev",
            &forward,
            "-device",
            "virtio-net-pci,netdev=n,romfile=",
        ])
        .args([
            "-drive",
            &format!("file={},format=raw,if=none,id=c", file("card.img")),
        ])
        .args(["-device", &format!("virtio-blk-pci,drive=c,serial={ID}")])
        .args(["-device", "i6300esb"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Runs `command` to its end: its status, standard output and standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

/// The board, if it is wanted and can be made, and an agent for it.
pub(crate) fn ready() -> Option<Board> {
    if std::env::var_os("WHICHFS_QEMU_BOARD").is_none() {
        skip::skip("WHICHFS_QEMU_BOARD is not set: emulated, it takes up to half an hour");
        return None;
    }
    let board = Board::new()?;
    let dry = ["study", "run", "./mini.toml", "--dry-run"];
    let (code, out, err) = run(&mut board.whichfs(&dry));
    // Without a build of the agent nothing can be done.
    if code == 3 && err.contains("make agents") {
        skip::skip(err.trim());
        return None;
    }
    assert!(code == 0 && out.contains(ID), "{out}{err}");
    Some(board)
}

#[test]
fn qemu_board_a_trial_in_which_it_was_suspended_is_made_anew() {
    let Some(board) = ready() else { return };
    let study = ["study", "run", "./mini.toml", "--json", "--destroy", ID];
    let (code, out, err) = std::thread::scope(|scope| {
        scope.spawn(|| board.once_it_writes(SUSPEND));
        run(&mut board.whichfs(&study))
    });
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("the machine was suspended for"), "{err}");
    assert!(err.contains("it is run again"), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["done"].as_u64(), Some(1), "{told}");
    assert_eq!(board.boots(), 1, "it slept and did not restart");
}

#[test]
fn qemu_board_a_study_survives_a_restart_and_power_cuts_are_judged() {
    let Some(board) = ready() else { return };
    let study = ["study", "run", "./mini.toml", "--json", "--destroy", ID];
    let (code, out, err) = std::thread::scope(|scope| {
        scope.spawn(|| board.once_it_writes(RESTART));
        run(&mut board.whichfs(&study))
    });
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("it has restarted"), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["done"].as_u64(), Some(1), "{told}");
    let before = board.boots();
    assert!(before >= 2, "{before}");

    for (power, cuts) in [("sysrq", "2"), ("watchdog", "1")] {
        let mut command = board.whichfs(&["crash", "run", "--fs", "ext4", "--workload", "atomic"]);
        command.args([
            "--size",
            "16M",
            "--partition",
            "64M",
            "--json",
            "--destroy",
            ID,
        ]);
        let (code, out, err) = run(command.args(["--power", power, "--cuts", cuts]));
        assert_eq!(code, 0, "{power}: {err}");
        let document: Value = serde_json::from_str(&out).unwrap();
        let all = document["filesystems"][0]["cuts"].as_array().unwrap();
        assert_eq!(all.len().to_string(), cuts, "{power}");
        for cut in all {
            let condition = cut["condition"].as_str().unwrap();
            assert!(["clean", "recovered"].contains(&condition), "{cut:#}");
            assert!(cut["outcomes"]["right"].as_u64().unwrap() > 0, "{cut:#}");
        }
    }
    assert_eq!(board.boots(), before + 3, "one for each cut");
}
