//! The ways in which a disk is not to be written to, and what is said of each.
#![allow(clippy::unwrap_used)]

use crate::machine::{CID, Machine};
use std::fs;
use whichfs_device::DestroyLimits;

/// A way in which a disk is not to be written to.
pub struct Case {
    pub name: &'static str,
    /// What is named; the device if empty.
    pub path: &'static str,
    pub limits: DestroyLimits,
    /// What is confirmed.
    pub destroy: Option<&'static str>,
    /// What the system says.
    pub set: fn(&Machine),
    /// What happens after the disk was judged.
    pub then: fn(&Machine),
    pub says: &'static [&'static str],
}

pub fn case(name: &'static str, set: fn(&Machine), says: &'static [&'static str]) -> Case {
    Case {
        name,
        path: "",
        limits: DestroyLimits::default(),
        destroy: Some(CID),
        set,
        then: |_| (),
        says,
    }
}

pub fn named(name: &'static str, path: &'static str, says: &'static [&'static str]) -> Case {
    Case {
        path,
        ..case(name, |_| (), says)
    }
}

pub fn confirmed(
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
pub fn later(name: &'static str, then: fn(&Machine), says: &'static [&'static str]) -> Case {
    Case {
        then,
        ..case(name, |_| (), says)
    }
}

pub const SYSTEM: &[&str] = &["of this system", "name another device"];
pub const REPLACED: &[&str] = &["another device than a moment ago"];

pub fn paths() -> Vec<Case> {
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

pub fn mounts() -> Vec<Case> {
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
            &["process 17", "nsenter -t 17 -m umount /in, then"],
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

pub fn uses() -> Vec<Case> {
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
            "a loop device whose file another one shows",
            |m| {
                m.disk("virtual/loop9");
                m.set("loop/backing_file", "/etc/passwd");
                m.loop_on("/etc/passwd")
            },
            &["part of /dev/loop4 (/etc/passwd)", "losetup -d"],
        ),
        case(
            "a loop device whose file is swap",
            |m| {
                m.disk("virtual/loop9");
                m.set("loop/backing_file", "/etc/passwd");
                m.proc("swaps", "Filename\n/etc/passwd file 1 0 -2\n")
            },
            &["swapoff /etc/passwd"],
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

pub fn kinds() -> Vec<Case> {
    let limited = |name, bytes: &'static str, max_bytes, says| Case {
        limits: DestroyLimits {
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

pub fn words() -> Vec<Case> {
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

pub fn changes() -> Vec<Case> {
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
