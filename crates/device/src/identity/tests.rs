//! Cards of a fake sysfs.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::machine;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A machine with a card in it.
struct Slot {
    _root: TempDir,
    roots: Roots,
}

/// One whose card has these attributes.
fn slot(attributes: &[(&str, &str)]) -> Slot {
    let (root, roots) = machine();
    let disk = roots.sys.join("devices/sdz");
    let card = roots.sys.join("devices/mmc0:0001");
    fs::create_dir(&card).unwrap();
    symlink(&card, disk.join("device")).unwrap();
    fs::write(disk.join("size"), "62333952\n").unwrap();
    for (name, text) in attributes {
        fs::write(card.join(name), format!("{text}\n")).unwrap();
    }
    Slot { _root: root, roots }
}

impl Slot {
    fn identity(&self) -> DeviceIdentity {
        let block = Block::named(&self.roots.sys, "sdz").unwrap();
        told(&block, 2026, &self.roots)
    }
}

const SD: [(&str, &str); 8] = [
    ("type", "SD"),
    ("cid", "035344534c3332478012345678016500"),
    ("manfid", "0x000003"),
    ("oemid", "0x5344"),
    ("name", "SL32G"),
    ("serial", "0x12345678"),
    ("date", "05/2022"),
    ("preferred_erase_size", "4194304"),
];

/// `SD` with other values.
fn but<'a>(others: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = SD.to_vec();
    all.extend_from_slice(others);
    all
}

#[test]
fn an_sd_card_tells_who_made_it() {
    let identity = slot(&SD).identity();
    assert_eq!(identity.doubts, Vec::<String>::new());
    let register = identity.register.unwrap();
    assert_eq!(register.maker, Some("SanDisk"));
    assert_eq!(
        (register.oem.as_str(), register.made.as_str()),
        ("SD", "05/2022")
    );
    assert_eq!(identity.id, "035344534c3332478012345678016500");
    assert_eq!(identity.bytes, 62_333_952 * 512);
    assert_eq!(identity.preferred_erase_bytes, Some(4 << 20));
    assert_eq!((identity.bus, identity.emmc), (Bus::Sd, None));
}

#[test]
fn what_cannot_be_is_doubted() {
    for (name, text, word) in [
        ("manfid", "0x000000", "manufacturer"),
        ("serial", "0xffffffff", "serial"),
        ("name", "\u{1}\u{2}", "name"),
        ("date", "13/2022", "date"),
        ("date", "01/2127", "date"),
        ("ssr", "ff", "SD Status"),
        ("csd", "ffffffffffffffffffffffffffffffff", "CSD"),
        (
            "csd",
            "400e00325b590000edc77f800a404001",
            "the kernel takes it for",
        ),
    ] {
        let doubts = slot(&but(&[(name, text)])).identity().doubts;
        assert!(doubts.len() == 1 && doubts[0].contains(word), "{doubts:?}");
    }
    for digit in ["0", "f"] {
        let identity = slot(&but(&[("cid", &digit.repeat(32))])).identity();
        assert_eq!(identity.register, None);
        assert_eq!(identity.doubts.len(), 1, "{:?}", identity.doubts);
        assert_eq!(
            identity.id, "0x12345678",
            "the serial number tells it from others"
        );
        let serial = [("cid", &*digit.repeat(32)), ("serial", "0xffffffff")];
        assert_eq!(slot(&but(&serial)).identity().id, "sdz", "nothing does");
    }
}

#[test]
fn the_data_register_tells_capacity_and_locks() {
    // (0x00edc8 + 1) units of 512 KiB are the sectors of `slot`; bit 12 is the temporary lock.
    let text = "400e00325b590000edc87f800a405001";
    let identity = slot(&but(&[("csd", text)])).identity();
    assert_eq!(identity.doubts, Vec::<String>::new());
    let csd = identity.csd.unwrap();
    assert_eq!((csd.bytes, csd.locked), (Some(identity.bytes), true));
    assert_eq!(slot(&SD).identity().csd, None);
}

#[test]
fn the_revision_is_told() {
    let revision = |more: &[(&str, &str)]| slot(&but(more)).identity().register.unwrap().revision;
    assert_eq!(revision(&[]), None);
    let sd = [("hwrev", "0x8"), ("fwrev", "0x1")];
    assert_eq!(revision(&sd).as_deref(), Some("0x8 0x1"));
    let emmc = [("type", "MMC"), ("prv", "0x2"), ("hwrev", "0x0")];
    assert_eq!(revision(&emmc).as_deref(), Some("0x2"));
}

#[test]
fn a_number_that_nobody_knows_has_no_maker() {
    let identity = slot(&but(&[("manfid", "0x00006f"), ("oemid", "0x0303")])).identity();
    let register = identity.register.unwrap();
    assert_eq!((register.maker, register.oem.as_str()), (None, "0x0303"));
}

#[test]
fn an_emmc_tells_its_wear_and_debugfs_its_cache() {
    let slot = slot(&but(&[
        ("type", "MMC"),
        ("life_time", "0x03 0x01"),
        ("rev", "0x8"),
    ]));
    let debug = slot.roots.sys.join("kernel/debug/mmc0/mmc0:0001");
    fs::create_dir_all(&debug).unwrap();
    let mut register = vec!["00"; 512];
    register[250] = "02";
    fs::write(debug.join("ext_csd"), register.concat()).unwrap();
    let emmc = slot.identity().emmc.unwrap();
    assert_eq!(emmc.used().map(|used| used.least), Some(20));
    assert_eq!((emmc.cache_kib, emmc.standard), (Some(512), Some("5.1")));
}

#[test]
fn a_reader_hides_the_card() {
    let (_root, roots) = machine();
    for (name, text) in [
        ("idVendor", "05e3"),
        ("idProduct", "0751"),
        ("product", "USB Storage"),
    ] {
        fs::write(roots.sys.join("devices").join(name), format!("{text}\n")).unwrap();
    }
    let block = Block::named(&roots.sys, "sdz").unwrap();
    let identity = told(&block, 2026, &roots);
    let right = Bus::Usb {
        vendor: "05e3".into(),
        product: "0751".into(),
        name: Some("USB Storage".into()),
    };
    assert_eq!(identity.bus, right);
    assert_eq!(
        (identity.register, identity.sd, identity.emmc),
        (None, None, None)
    );
}

#[test]
fn what_is_no_disk_is_refused() {
    let (_root, roots) = machine();
    let missing = identify(Path::new("/dev/none/such"), 2026, &roots).unwrap_err();
    assert!(missing.to_string().contains("lsblk"), "{missing}");
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(identify(file.path(), 2026, &roots).is_err());
}

#[test]
fn makers_have_numbers_and_sources() {
    for line in MAKERS.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert!(fields.len() == 3 && number(fields[0]).is_some(), "{line}");
    }
}
