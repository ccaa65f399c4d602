//! The same tests by ublk, in a virtual machine with Debian's kernel: this machine's own need
//! not have the driver. Needs qemu-system-x86 and linux-image-6.12-cloud-amd64 (a kernel of 6.5
//! or newer with the module `ublk_drv`); skipped without. Emulated (no KVM): a minute.
//!
//! The machine's whole system is this test program, what it runs, and their libraries, in an
//! initramfs; this program is its init too.

use crate::common::{SLOW, TRANSPORT, skip};
use crate::machine::{Archive, QEMU, TestKernel, program};
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Programs that the tests run.
const PROGRAMS: [&str; 17] = [
    "sh",
    "mkfs.ext4",
    "e2fsck",
    "mount",
    "umount",
    "blkdiscard",
    "sfdisk",
    "cmp",
    "cp",
    "sync",
    "head",
    "tail",
    "touch",
    "sleep",
    "findmnt",
    "env",
    "test",
];
/// Drivers that its kernel has as modules: where they are, and their names.
const MODULES: [(&str, &str); 2] = [
    ("kernel/drivers/block", "ublk_drv"),
    ("kernel/block", "mq-deadline"),
];
/// What init prints at the end, before the tests' exit status.
const VERDICT: &str = "vm-tests-ended:";
/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn vm_ublk_does_all_that_fuse_does() {
    let Some(kernel) = TestKernel::with(MODULES[0]) else {
        return skip::skip("no kernel in /boot with the module ublk_drv (of 6.5 or newer)");
    };
    let Some(qemu) = program(QEMU) else {
        return skip::skip(format!("{QEMU} is not installed"));
    };
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("initramfs");
    fs::write(&archive, initramfs(&kernel)).unwrap();
    let output = boot(&qemu, &kernel, &archive);
    println!("{output}");
    let ended = output.lines().find_map(|line| line.split_once(VERDICT));
    assert_eq!(ended.map(|(_, status)| status.trim()), Some("0"));
    // Had they been skipped, they would have passed too.
    for ran in [
        "alive::loop_flush_and_discard",
        "killed::loop_killed_under",
        "ublk::ublk_forced",
    ] {
        let lines: Vec<&str> = output.lines().filter(|line| line.contains(ran)).collect();
        assert!(!lines.is_empty(), "{ran}");
        assert!(
            !lines.iter().any(|line| line.contains("skipped")),
            "{lines:?}"
        );
    }
}

/// Not a test: init of the virtual machine.
#[test]
#[ignore = "a part of the other test"]
fn init() {
    if std::process::id() != 1 {
        return;
    }
    for (kind, at) in [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys")] {
        mount(kind, at, kind, MountFlags::empty(), None).unwrap();
    }
    for (_, name) in MODULES {
        // What the kernel has built in is not there.
        if let Ok(module) = fs::read(format!("/{name}.ko")) {
            rustix::system::init_module(&module, c"").unwrap();
        }
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--test-threads=1", "--skip=vm::", "--show-output"])
        .env(TRANSPORT, "ublk")
        .env(SLOW, "1")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .status();
    println!("{VERDICT} {}", status.unwrap().code().unwrap_or(255));
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
}

/// An initramfs with this program as `/init`, what it runs, and the kernel's drivers.
fn initramfs(kernel: &TestKernel) -> Vec<u8> {
    let own = std::env::current_exe().unwrap();
    let mut archive = Archive::default();
    archive.libraries_of(&own);
    PROGRAMS.iter().for_each(|name| archive.program(name));
    archive.file(Path::new("/init"), &fs::read(own).unwrap());
    for (directory, name) in MODULES {
        if let Some(module) = kernel.module(directory, name) {
            archive.file(&Path::new("/").join(format!("{name}.ko")), &module);
        }
    }
    archive.file(Path::new("/etc/hostname"), b"vm\n");
    for directory in ["/dev", "/proc", "/sys", "/run", "/tmp"] {
        archive.directory(Path::new(directory));
    }
    archive.end()
}

/// Boots the kernel and returns what the machine printed until it went off.
fn boot(qemu: &Path, kernel: &TestKernel, archive: &Path) -> String {
    let mut child = Command::new(qemu)
        .args(
            "-accel tcg,thread=multi -cpu max -smp 2 -m 1024 -nodefaults -no-user-config"
                .split(' '),
        )
        .args("-display none -serial stdio -no-reboot".split(' '))
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(archive)
        .args([
            "-append",
            "console=ttyS0 loglevel=1 panic=-1 -- --exact vm::init --ignored --nocapture",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let begun = Instant::now();
    // Each line with the seconds since the start.
    let reader = std::thread::spawn(move || {
        let lines = stdout.split(b'\n').map_while(Result::ok);
        let lines = lines.map(|line| {
            let seconds = begun.elapsed().as_secs_f32();
            format!(
                "{seconds:5.1} {}\n",
                String::from_utf8_lossy(&line).trim_end()
            )
        });
        lines.collect::<String>()
    });
    while child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    child.wait().unwrap();
    reader.join().unwrap()
}
