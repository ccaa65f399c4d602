//! Every reason against losing a disk's data: told clearly, and the disk untouched. A real loop
//! device, described by a sysfs and proc of our own making.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use whichfs_here::{Doomed, Limits, Roots};

/// Bytes of the device.
const BYTES: u64 = 8 << 20;
const CID: &str = "035344534c333247801c0f9e1a014b00";

/// A loop device, detached when it goes.
struct Loop {
    path: PathBuf,
    number: String,
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn new() -> Option<Loop> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pattern: Vec<u8> = (0..BYTES).map(|at| (at * 31 >> 7) as u8).collect();
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

    fn hash(&self) -> u64 {
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
struct Machine {
    root: TempDir,
    roots: Roots,
    device: PathBuf,
    number: String,
}

impl Machine {
    fn new(device: &Loop) -> Machine {
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
    fn disk(&self, place: &str) {
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
    fn set(&self, name: &str, text: &str) {
        let path = self.roots.sys.join("card").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn proc(&self, name: &str, text: &str) {
        let path = self.roots.proc.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Mounts `number` of `source` at `place`.
    fn mount(&self, number: &str, place: &str, source: &str) {
        let line = format!("1 0 {number} / {place} rw - ext4 {source} rw\n");
        self.proc("self/mountinfo", &line);
    }

    /// A device `name` of number `number` that is made of what is at `below` of the disk.
    fn holder(&self, below: &str, name: &str, number: &str) {
        self.set(&format!("{below}holders/{name}"), "");
        let dir = self.roots.sys.join("devices/virtual").join(name);
        fs::create_dir_all(dir.join("holders")).unwrap();
        fs::write(dir.join("dev"), number).unwrap();
        symlink(&dir, self.roots.sys.join("class/block").join(name)).unwrap();
    }

    fn process(&self, opens: &str) {
        fs::create_dir_all(self.roots.proc.join("17/fd")).unwrap();
        self.proc("17/comm", "dd\n");
        symlink(opens, self.roots.proc.join("17/fd/5")).unwrap();
    }
}

/// A way in which a disk is not to be written to.
struct Case {
    name: &'static str,
    /// What is named; the device if empty.
    path: &'static str,
    limits: Limits,
    /// What is confirmed.
    destroy: Option<&'static str>,
    /// What the system says.
    set: fn(&Machine),
    /// What happens after the disk was judged.
    then: fn(&Machine),
    says: &'static [&'static str],
}

fn case(name: &'static str, set: fn(&Machine), says: &'static [&'static str]) -> Case {
    Case {
        name,
        path: "",
        limits: Limits::default(),
        destroy: Some(CID),
        set,
        then: |_| (),
        says,
    }
}

fn named(name: &'static str, path: &'static str, says: &'static [&'static str]) -> Case {
    Case {
        path,
        ..case(name, |_| (), says)
    }
}

fn confirmed(
    name: &'static str,
    destroy: Option<&'static str>,
    says: &'static [&'static str],
) -> Case {
    Case {
        destroy,
        ..case(name, |_| (), says)
    }
}

/// Nothing speaks against it at first.
fn later(name: &'static str, then: fn(&Machine), says: &'static [&'static str]) -> Case {
    Case {
        then,
        ..case(name, |_| (), says)
    }
}

const SYSTEM: &[&str] = &["of this system", "name another device"];
const REPLACED: &[&str] = &["another device than a moment ago"];

fn paths() -> Vec<Case> {
    vec![
        named(
            "no such path",
            "/dev/no-such-disk",
            &["No such file", "lsblk"],
        ),
        named("a directory", "/tmp", &["a directory", "lsblk"]),
        named(
            "a character device",
            "/dev/null",
            &["a character device", "lsblk"],
        ),
        named("a regular file", "/etc/passwd", &["a regular file"]),
        named(
            "a name without a path",
            "sdz-without-path",
            &["No such file"],
        ),
        case(
            "a device sysfs does not know",
            |m| m.number_gone(),
            &["does not know", "lsblk"],
        ),
        case(
            "a partition",
            |m| {
                m.disk("usb1/sdy/sdy2");
                m.set("partition", "2");
                m.set("../dev", "8:240");
            },
            &["is a partition", "name the disk, /dev/sdy"],
        ),
        case(
            "a partition by its mark",
            |m| m.set("partition", "1"),
            &["is a partition", "name the disk"],
        ),
        case(
            "an eMMC's boot partition",
            |m| m.disk("mmc0/mmcblk0boot0"),
            &["hardware partition", "/dev/mmcblk0"],
        ),
        case(
            "an eMMC's second boot partition",
            |m| m.disk("mmc0/mmcblk1boot1"),
            &["/dev/mmcblk1"],
        ),
        case(
            "an eMMC's keys",
            |m| m.disk("mmc0/mmcblk0rpmb"),
            &["hardware partition"],
        ),
        case(
            "an eMMC's general partition",
            |m| m.disk("mmc0/mmcblk12gp3"),
            &["/dev/mmcblk12"],
        ),
        case(
            "a mapped device",
            |m| m.set("slaves/sda2", ""),
            &["made of sda2", "name the disk itself"],
        ),
        case(
            "an array",
            |m| {
                m.set("slaves/sda2", "");
                m.set("slaves/sdb2", "")
            },
            &["made of sda2, sdb2"],
        ),
    ]
}

fn mounts() -> Vec<Case> {
    vec![
        case(
            "mounted",
            |m| m.mount(&m.number, "/media/card", "/dev/sdz"),
            &["umount /media/card"],
        ),
        case(
            "its partition mounted",
            |m| m.mount("259:77", "/media/card", "/dev/sdz1"),
            &["/dev/sdz1 on /media/card"],
        ),
        case(
            "mounted by its name alone",
            |m| m.mount("0:44", "/media/card", "/dev/sdz1"),
            &["umount /media/card"],
        ),
        case(
            "mounted by another name of it",
            |m| m.mount("0:44", "/x", m.device.to_str().unwrap()),
            &["umount /x"],
        ),
        case(
            "mounted at a place with a blank",
            |m| m.mount("259:77", r"/my\040card", "x"),
            &["/my card"],
        ),
        case(
            "mounted in a container",
            |m| m.proc("17/mountinfo", "1 0 259:77 / /in rw - ext4 x rw\n"),
            &["process 17"],
        ),
        case(
            "mounted read-only",
            |m| m.proc("self/mountinfo", "1 0 259:77 / /ro ro - ext4 x ro\n"),
            &["umount /ro"],
        ),
        case("the root", |m| m.mount("259:77", "/", "/dev/root"), SYSTEM),
        case(
            "the root without partitions",
            |m| m.mount(&m.number, "/", "/dev/root"),
            SYSTEM,
        ),
        case(
            "the boot partition",
            |m| m.mount("259:77", "/boot", "x"),
            SYSTEM,
        ),
        case(
            "the EFI partition",
            |m| m.mount("259:77", "/boot/efi", "x"),
            SYSTEM,
        ),
        case(
            "a Pi's firmware",
            |m| m.mount("259:77", "/boot/firmware", "x"),
            SYSTEM,
        ),
        case(
            "the EFI partition of others",
            |m| m.mount("259:77", "/efi", "x"),
            SYSTEM,
        ),
        case("home", |m| m.mount("259:77", "/home", "x"), SYSTEM),
        case("usr", |m| m.mount("259:77", "/usr", "x"), SYSTEM),
        case("var", |m| m.mount("259:77", "/var", "x"), SYSTEM),
        case(
            "the root under a mapping",
            |m| {
                m.holder("sdz1/", "dm-0", "253:0");
                m.mount("253:0", "/", "x")
            },
            SYSTEM,
        ),
        case(
            "home on an array of the whole disk",
            |m| {
                m.holder("", "md0", "9:0");
                m.mount("9:0", "/home", "x")
            },
            SYSTEM,
        ),
        case(
            "the root under a mapping of an array",
            |m| {
                m.holder("sdz1/", "md0", "9:0");
                fs::write(m.roots.sys.join("devices/virtual/md0/holders/dm-7"), "").unwrap();
                m.holder("x", "dm-7", "253:7");
                m.mount("253:7", "/", "/dev/mapper/root");
            },
            SYSTEM,
        ),
        case(
            "the root's disk by another path",
            |m| m.mount("259:77", "/", "x"),
            SYSTEM,
        ),
    ]
}

fn uses() -> Vec<Case> {
    vec![
        case(
            "swap",
            |m| m.proc("swaps", "Filename\n/dev/sdz partition 1 0 -2\n"),
            &["swapoff /dev/sdz"],
        ),
        case(
            "swap on its partition",
            |m| m.proc("swaps", "Filename\n/dev/sdz1 partition 1 0 -2\n"),
            &["swapoff /dev/sdz1"],
        ),
        case(
            "swap by another name of it",
            |m| m.proc("swaps", &format!("F\n{} partition\n", m.device.display())),
            &["swapoff"],
        ),
        case(
            "an LVM volume",
            |m| m.holder("sdz1/", "dm-3", "253:3"),
            &["part of dm-3", "vgchange"],
        ),
        case(
            "an array",
            |m| m.holder("sdz1/", "md127", "9:127"),
            &["part of md127", "mdadm"],
        ),
        case(
            "an array of the whole disk",
            |m| m.holder("", "md0", "9:0"),
            &["part of md0"],
        ),
        case(
            "an open LUKS volume",
            |m| m.holder("", "dm-1", "253:1"),
            &["cryptsetup close"],
        ),
        case(
            "a cache",
            |m| m.holder("", "bcache0", "252:0"),
            &["part of bcache0"],
        ),
        case(
            "a further device of a btrfs",
            |m| {
                let dir = m.roots.sys.join("fs/btrfs/0-1/devices");
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join("sdz1"), "").unwrap();
            },
            &["devices of a mounted btrfs", "/dev/sdz1"],
        ),
        case(
            "a loop device on it",
            |m| m.loop_on(m.device.to_str().unwrap()),
            &["losetup -d"],
        ),
        case(
            "a loop device on its partition",
            |m| m.loop_on("/dev/sdz1"),
            &["/dev/loop4"],
        ),
        case(
            "open elsewhere",
            |m| m.process(m.device.to_str().unwrap()),
            &["process 17, dd", "end it"],
        ),
        case(
            "its partition open elsewhere",
            |m| m.process("/dev/sdz1"),
            &["process 17, dd"],
        ),
    ]
}

fn kinds() -> Vec<Case> {
    let limited = |name, bytes: &'static str, max_bytes, says| Case {
        limits: Limits {
            max_bytes,
            internal: false,
        },
        set: match bytes {
            "4T" => |m| m.set("size", "8589934592"),
            _ => |_| (),
        },
        ..case(name, |_| (), says)
    };
    vec![
        case(
            "the lock switch",
            |m| m.set("ro", "1\n"),
            &["read-only", "lock switch"],
        ),
        case(
            "an empty reader",
            |m| m.set("size", "0\n"),
            &["no medium", "put the card in"],
        ),
        limited(
            "larger than any card",
            "4T",
            2 << 40,
            &["4 TiB, more than 2 TiB", "--max-size 4096G"],
        ),
        limited(
            "larger than is allowed",
            "",
            1 << 20,
            &["8 MiB, more than 1 MiB", "--max-size"],
        ),
        case(
            "a disk of the machine",
            |m| m.disk("pci0/ata1/sda"),
            &["not removable (the disk sda)", "--internal"],
        ),
        case(
            "an NVMe disk",
            |m| m.disk("pci0/nvme/nvme0/nvme0n1"),
            &["not removable", "nvme0n1"],
        ),
        case(
            "a virtual disk",
            |m| m.disk("pci0/virtio0/vda"),
            &["not removable"],
        ),
        case(
            "an eMMC",
            |m| {
                m.disk("mmc0/mmcblk0");
                m.set("device/type", "MMC\n")
            },
            &["the eMMC mmcblk0", "--internal"],
        ),
        case(
            "a path that only looks like USB",
            |m| m.disk("pci0/usbstick/sda"),
            &["not removable"],
        ),
    ]
}

fn words() -> Vec<Case> {
    vec![
        confirmed(
            "nothing is said",
            None,
            &[
                "loses all its data",
                "--destroy 035344534c333247801c0f9e1a014b00",
            ],
        ),
        confirmed(
            "nothing in it",
            Some(""),
            &["--destroy ''", "another device"],
        ),
        confirmed(
            "another card",
            Some("035344534c333247801c0f9e1a014b01"),
            &["another device", CID],
        ),
        confirmed(
            "the path is no id",
            Some("/dev/sdz"),
            &["another device", CID],
        ),
        confirmed(
            "of another size",
            Some("device/cid 035344534c333247801c0f9e1a014b00, 9 sectors"),
            &["another device"],
        ),
        Case {
            destroy: Some("ffffffffffffffffffffffffffffffff"),
            ..case(
                "a register that nobody filled",
                |m| m.set("device/cid", "ffffffffffffffffffffffffffffffff"),
                &["another device", "called sdz"],
            )
        },
        Case {
            destroy: None,
            ..case(
                "a serial number",
                |m| {
                    fs::remove_file(m.roots.sys.join("card/device/cid")).unwrap();
                    m.set("device/serial", "A7 B")
                },
                &["--destroy 'A7 B'"],
            )
        },
        Case {
            destroy: None,
            ..case(
                "the file behind a loop device",
                |m| {
                    m.disk("virtual/loop9");
                    fs::remove_file(m.roots.sys.join("card/device/cid")).unwrap();
                    m.set("loop/backing_file", "/tmp/card.img\n")
                },
                &["--destroy /tmp/card.img"],
            )
        },
    ]
}

fn changes() -> Vec<Case> {
    vec![
        later(
            "another card in the reader",
            |m| m.set("device/cid", "00aa"),
            REPLACED,
        ),
        later(
            "a card of another size",
            |m| m.set("size", "32768"),
            REPLACED,
        ),
        later(
            "the same card taken out and put in",
            |m| m.set("diskseq", "6"),
            REPLACED,
        ),
        later("taken out", |m| m.number_gone(), REPLACED),
        later("taken out of its reader", |m| m.set("size", "0"), REPLACED),
        later(
            "mounted meanwhile",
            |m| m.mount("259:77", "/media/card", "x"),
            &["umount /media/card"],
        ),
        later(
            "swapped on meanwhile",
            |m| m.proc("swaps", "F\n/dev/sdz1 x\n"),
            &["swapoff"],
        ),
        later("locked meanwhile", |m| m.set("ro", "1"), &["lock switch"]),
        later(
            "in an array meanwhile",
            |m| m.holder("sdz1/", "md0", "9:0"),
            &["part of md0"],
        ),
        later(
            "opened meanwhile",
            |m| m.process("/dev/sdz1"),
            &["process 17"],
        ),
    ]
}

impl Machine {
    /// The kernel no longer has the device.
    fn number_gone(&self) {
        fs::remove_file(self.roots.sys.join("dev/block").join(&self.number)).unwrap();
    }

    fn loop_on(&self, backing: &str) {
        let by = self.roots.sys.join("block/loop4/loop");
        fs::create_dir_all(&by).unwrap();
        fs::write(by.join("backing_file"), backing).unwrap();
    }
}

/// What the guards say; empty if they say nothing.
fn said(case: &Case, machine: &Machine) -> String {
    let path = match case.path {
        "" => machine.device.as_path(),
        path => Path::new(path),
    };
    let judged = Doomed::find(path, &case.limits, &machine.roots).and_then(|doomed| {
        (case.then)(machine);
        doomed.confirm(case.destroy, &machine.roots)
    });
    judged
        .err()
        .map_or(String::new(), |error| error.to_string())
}

#[test]
fn loop_every_reason_is_told_and_the_disk_is_untouched() {
    let Some(device) = Loop::new() else { return };
    let before = device.hash();
    let all = [paths(), mounts(), uses(), kinds(), words(), changes()].concat_cases();
    let names: BTreeSet<&str> = all.iter().map(|case| case.name).collect();
    assert!(names.len() >= 65, "{} cases", names.len());
    for case in &all {
        let machine = Machine::new(&device);
        (case.set)(&machine);
        let told = said(case, &machine);
        for words in case.says {
            assert!(
                told.contains(words),
                "{}: {words:?} is not in {told:?}",
                case.name
            );
        }
        assert!(
            told.contains("; ") || told.contains(": "),
            "{}: no remedy: {told}",
            case.name
        );
        assert_eq!(device.hash(), before, "{}: written to", case.name);
        drop(machine.root);
    }
}

trait Concat {
    fn concat_cases(self) -> Vec<Case>;
}

impl<const N: usize> Concat for [Vec<Case>; N] {
    fn concat_cases(self) -> Vec<Case> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn loop_a_free_card_that_is_confirmed_by_either_name_is_let_go() {
    let Some(device) = Loop::new() else { return };
    for destroy in [CID, &format!("device/cid {CID}, 16384 sectors")] {
        let machine = Machine::new(&device);
        let doomed = Doomed::find(&device.path, &Limits::default(), &machine.roots).unwrap();
        assert_eq!((doomed.bytes, doomed.name()), (BYTES, "sdz"));
        doomed
            .confirm(Some(destroy), &machine.roots)
            .unwrap()
            .check(&machine.roots)
            .unwrap();
    }
    let machine = Machine::new(&device);
    machine.disk("pci0/ata1/sda");
    let limits = Limits {
        internal: true,
        ..Limits::default()
    };
    Doomed::find(&device.path, &limits, &machine.roots).unwrap();
}

#[test]
fn loop_who_claims_or_locks_it_without_a_trace_is_respected() {
    let Some(device) = Loop::new() else { return };
    let before = device.hash();
    let machine = Machine::new(&device);
    let refused = || {
        let doomed = Doomed::find(&device.path, &Limits::default(), &machine.roots).unwrap();
        doomed
            .confirm(Some(CID), &machine.roots)
            .unwrap_err()
            .to_string()
    };
    // A pool, or a mount in a namespace that cannot be seen: neither sysfs nor proc tells.
    let exclusive = open(&device.path, OFlags::RDONLY | OFlags::EXCL, Mode::empty()).unwrap();
    assert!(
        refused().contains("in use by another program"),
        "{}",
        refused()
    );
    drop(exclusive);
    let locked = open(&device.path, OFlags::RDONLY, Mode::empty()).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    assert!(
        refused().contains("in use by another program"),
        "{}",
        refused()
    );
    drop(locked);
    assert_eq!(device.hash(), before);
}

#[test]
fn loop_a_link_to_the_device_is_the_device() {
    let Some(device) = Loop::new() else { return };
    let machine = Machine::new(&device);
    let link = machine.root.path().join("usb-Generic_Card_Reader-0:0");
    symlink(&device.path, &link).unwrap();
    machine.mount("259:77", "/", "/dev/root");
    let refused = Doomed::find(&link, &Limits::default(), &machine.roots).unwrap_err();
    assert!(refused.to_string().contains("of this system"), "{refused}");
}
