//! The same tests by ublk, in a virtual machine with Debian's kernel: this machine's own need
//! not have the driver. Needs qemu-system-x86 and linux-image-6.12-cloud-amd64 (a kernel of 6.5
//! or newer with the module `ublk_drv`); skipped without. Emulated (no KVM): a minute.
//!
//! The machine's whole system is this test program, what it runs, and their libraries, in an
//! initramfs; this program is its init too.

use crate::common::{SLOW, TRANSPORT, skip};
use rustix::mount::{MountFlags, mount};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
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
const QEMU: &str = "qemu-system-x86_64";
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
    let Some(kernel) = Kernel::find() else {
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

/// A kernel image and the directory of its modules.
struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    /// The newest one in `/boot` whose ublk driver has user copy.
    fn find() -> Option<Kernel> {
        let entries = fs::read_dir("/boot").into_iter().flatten().flatten();
        let kernels = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let release = name.strip_prefix("vmlinuz-")?;
            let mut numbers = release.split(['.', '-', '+']);
            let mut number = || numbers.next()?.parse::<u32>().ok();
            let version = (number()?, number()?, number().unwrap_or(0));
            let kernel = Kernel {
                image: entry.path(),
                modules: Path::new("/lib/modules").join(release),
            };
            let (directory, name) = MODULES[0];
            kernel.module(directory, name)?;
            (version >= (6, 5, 0)).then_some((version, kernel))
        });
        let newest = kernels.max_by_key(|(version, _)| *version);
        newest.map(|(_, kernel)| kernel)
    }

    /// A module, unpacked; `None` where it is built in.
    fn module(&self, directory: &str, name: &str) -> Option<Vec<u8>> {
        let plain = self.modules.join(directory).join(format!("{name}.ko"));
        if let Ok(module) = fs::read(&plain) {
            return Some(module);
        }
        let packed = plain.with_extension("ko.xz");
        let output = Command::new("xz").arg("-dc").arg(packed).output().ok()?;
        output.status.success().then_some(output.stdout)
    }
}

/// The path of an installed program.
fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
    let mut paths = places.iter().map(|place| Path::new(place).join(name));
    paths.find(|path| path.is_file())
}

/// The libraries that `program` is linked with, its loader too.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

/// An initramfs with this program as `/init`, what it runs, and the kernel's drivers.
fn initramfs(kernel: &Kernel) -> Vec<u8> {
    let own = std::env::current_exe().unwrap();
    let mut files: BTreeSet<PathBuf> = libraries(&own).into_iter().collect();
    let mut archive = Archive::default();
    for name in PROGRAMS {
        let path = program(name);
        let path = path.unwrap_or_else(|| panic!("{name} is not installed"));
        files.extend(libraries(&path));
        archive.file(&Path::new("/bin").join(name), &fs::read(path).unwrap());
    }
    for file in files {
        archive.file(&file, &fs::read(&file).unwrap());
    }
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

/// A cpio archive of the kind that the kernel reads (`newc`).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<PathBuf>,
    entries: u32,
}

impl Archive {
    fn file(&mut self, path: &Path, content: &[u8]) {
        if let Some(above) = path.parent() {
            self.directory(above);
        }
        self.entry(path, 0o100_755, content);
    }

    fn directory(&mut self, path: &Path) {
        let mut missing: Vec<&Path> = path.ancestors().collect();
        missing.retain(|one| one.parent().is_some() && !self.directories.contains(*one));
        for one in missing.into_iter().rev() {
            self.directories.insert(one.to_owned());
            self.entry(one, 0o040_755, &[]);
        }
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        self.entries += 1;
        let name = path.to_str().unwrap().trim_start_matches('/');
        let (inode, size, length) = (self.entries, content.len(), name.len() + 1);
        // magic, inode, mode, user, group, links, time, size, device, special device, name, sum
        let head = format!(
            "070701{inode:08x}{mode:08x}{0:08x}{0:08x}{1:08x}{0:08x}{size:08x}{0:08x}{0:08x}\
             {0:08x}{0:08x}{length:08x}{0:08x}",
            0, 1
        );
        self.bytes.extend(head.as_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry(Path::new("TRAILER!!!"), 0, &[]);
        self.bytes
    }
}

/// Boots the kernel and returns what the machine printed until it went off.
fn boot(qemu: &Path, kernel: &Kernel, archive: &Path) -> String {
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
