//! A real loop device, described by a sysfs and proc of our own making.
#![allow(clippy::unwrap_used)]

use crate::skip;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use whichfs_device::Roots;

/// Bytes of the device.
pub const BYTES: u64 = 8 << 20;
pub const CID: &str = "035344534c333247801c0f9e1a014b00";

/// A loop device, detached when it goes.
pub struct Loop {
    pub path: PathBuf,
    pub number: String,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    pub fn new() -> Option<Loop> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pattern: Vec<u8> = (0..BYTES).map(|at| ((at * 31) >> 7) as u8).collect();
        fs::write(file.path(), pattern).unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(file.path())
            .output();
        let output = losetup.ok().filter(|output| output.status.success());
        let Some(output) = output else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let name = path.file_name().unwrap().to_string_lossy();
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
        Some(Loop {
            number: number.trim().to_owned(),
            path,
            _file: file,
        })
    }

    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&fs::read(&self.path).unwrap());
        hasher.finish()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// What the system says of the device: a card in a reader, `sdz` with the partition `sdz1`.
pub struct Machine {
    pub root: TempDir,
    pub roots: Roots,
    pub device: PathBuf,
    pub number: String,
}

impl Machine {
    pub fn new(device: &Loop) -> Machine {
        let root = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: root.path().join("proc"),
            sys: root.path().join("sys"),
        };
        let machine = Machine {
            root,
            roots,
            device: device.path.clone(),
            number: device.number.clone(),
        };
        machine.disk("pci0/usb1/1-1/sdz");
        machine.proc("self/mountinfo", "");
        machine.proc("swaps", "Filename\n");
        machine
    }

    /// Describes the device as the disk at `place` of sysfs's devices.
    pub fn disk(&self, place: &str) {
        let _ = fs::remove_dir_all(&self.roots.sys);
        let dir = self.roots.sys.join("devices").join(place);
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let write = |path: String, text: &str| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("dev".into(), &self.number);
        write("ro".into(), "0\n");
        write("size".into(), "16384\n");
        write("removable".into(), "0\n");
        write("diskseq".into(), "5\n");
        write("device/cid".into(), CID);
        write(format!("{name}1/dev"), "259:77\n");
        write(format!("{name}1/partition"), "1\n");
        for holders in ["holders", "slaves", &format!("{name}1/holders")] {
            fs::create_dir_all(dir.join(holders)).unwrap();
        }
        let links = [
            (format!("dev/block/{}", self.number), dir.clone()),
            ("dev/block/259:77".to_owned(), dir.join(format!("{name}1"))),
            (format!("block/{name}"), dir.clone()),
            (format!("class/block/{name}"), dir.clone()),
            ("card".to_owned(), dir.clone()),
        ];
        for (link, to) in links {
            let link = self.roots.sys.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(to, link).unwrap();
        }
    }

    /// Writes an attribute of the disk.
    pub fn set(&self, name: &str, text: &str) {
        let path = self.roots.sys.join("card").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn proc(&self, name: &str, text: &str) {
        let path = self.roots.proc.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Mounts `number` of `source` at `place`.
    pub fn mount(&self, number: &str, place: &str, source: &str) {
        let line = format!("1 0 {number} / {place} rw - ext4 {source} rw\n");
        self.proc("self/mountinfo", &line);
    }

    /// A device `name` of number `number` that is made of what is at `below` of the disk.
    pub fn holder(&self, below: &str, name: &str, number: &str) {
        self.set(&format!("{below}holders/{name}"), "");
        let dir = self.roots.sys.join("devices/virtual").join(name);
        fs::create_dir_all(dir.join("holders")).unwrap();
        fs::write(dir.join("dev"), number).unwrap();
        symlink(&dir, self.roots.sys.join("class/block").join(name)).unwrap();
    }

    pub fn process(&self, opens: &str) {
        fs::create_dir_all(self.roots.proc.join("17/fd")).unwrap();
        self.proc("17/comm", "dd\n");
        symlink(opens, self.roots.proc.join("17/fd/5")).unwrap();
    }
}

impl Machine {
    /// The kernel no longer has the device.
    pub fn number_gone(&self) {
        fs::remove_file(self.roots.sys.join("dev/block").join(&self.number)).unwrap();
    }

    pub fn loop_on(&self, backing: &str) {
        let by = self.roots.sys.join("block/loop4/loop");
        fs::create_dir_all(&by).unwrap();
        fs::write(by.join("backing_file"), backing).unwrap();
    }
}
