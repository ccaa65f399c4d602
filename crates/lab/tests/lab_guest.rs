//! A guest that does what it should, and the queues and disks it sees.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Trial, command, disk, mount, one_at_a_time, queue, shell, shown, text_of, unmount};
use whichfs_lab::{CpuPrices, Disk, GuestRun};
use whichfs_trial::{BlockQueue, Step};

/// Attributes that decide what filesystems and the block layer do.
const ATTRIBUTES: [&str; 10] = [
    "rotational",
    "max_sectors_kb",
    "nr_requests",
    "scheduler",
    "discard_granularity",
    "discard_max_bytes",
    "write_cache",
    "read_ahead_kb",
    "max_segments",
    "logical_block_size",
];

fn attribute(name: &str) -> String {
    format!("/sys/block/vda/queue/{name}")
}

/// What sysfs says about `disk` after the agent has set `queue`.
fn seen(seed: u64, disk: Disk, queue: BlockQueue) -> Option<GuestRun> {
    let paths = ATTRIBUTES.iter().map(|name| Step::ShowFile {
        path: attribute(name),
    });
    let mut trial = Trial::new(seed, paths.collect())?;
    trial.disks = vec![disk];
    trial.queues = vec![queue];
    let life = trial.run();
    life.result.as_ref().unwrap();
    Some(life)
}

fn check(life: &GuestRun, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(shown(life, &attribute(name)), *value, "{name}");
    }
}

#[test]
fn lab_ext4_is_made_mounted_and_written() {
    let _one = one_at_a_time();
    let steps = vec![
        command(&["mkfs.ext4", "-q", "-F", "-b", "4096", "/dev/vda"]),
        mount("ext4", "noatime"),
        command(&[
            "dd",
            "if=/dev/zero",
            "of=/mnt/test/x",
            "bs=1M",
            "count=64",
            "conv=fsync",
        ]),
        unmount(),
    ];
    let Some(mut trial) = Trial::new(1, steps) else {
        return;
    };
    trial.cpu = CpuPrices::of_instructions(10_000);
    let life = trial.run();
    life.result.as_ref().unwrap();
    assert!(text_of(&life).contains("64+0 records out"));
    assert!(life.disks[0].figures().write_bytes > 64 << 20);
}

/// Requests that the kernel may have in a disk of `queue_depth`, and the virtual time of random
/// reads of which 16 are wanted at once.
fn in_flight(seed: u64, queue_depth: Option<u32>) -> Option<(String, u64)> {
    let tags = "/sys/block/vda/mq/0/nr_tags";
    let readers = "for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do \
                   dd if=/dev/vda of=/dev/null bs=4k count=20 skip=$((i*1000)) iflag=direct & \
                   done; wait";
    let mut trial = Trial::new(
        seed,
        vec![shell(readers), Step::ShowFile { path: tags.into() }],
    )?;
    trial.queue_depth = queue_depth;
    let life = trial.run();
    life.result.as_ref().unwrap();
    Some((shown(&life, tags).to_owned(), life.time.0))
}

#[test]
fn lab_the_queue_depth_bounds_what_the_device_has_at_once() {
    let _one = one_at_a_time();
    let Some((tags, one_by_one)) = in_flight(9, Some(1)) else {
        return;
    };
    assert_eq!(tags, "1");
    let (tags, several) = in_flight(9, Some(16)).unwrap();
    assert_eq!(tags, "16");
    // The host's cost of each request is paid one after the other only where the queue is 1 deep.
    assert!(several < one_by_one, "{several} < {one_by_one} ns");
    let (tags, _) = in_flight(9, None).unwrap();
    assert!(tags.parse::<u32>().unwrap() > 16, "the ring's own: {tags}");
}

#[test]
fn lab_an_sd_card_looks_like_one() {
    let _one = one_at_a_time();
    let Some(life) = seen(2, disk("a1-32gb", 1 << 30), queue("vda")) else {
        return;
    };
    let expected = [
        ("rotational", "0"),
        ("max_sectors_kb", "512"),
        ("nr_requests", "64"),
        ("scheduler", "none [mq-deadline] kyber bfq"),
        ("discard_granularity", "0"),
        ("discard_max_bytes", "0"),
        ("write_cache", "write through"),
        ("read_ahead_kb", "128"),
        ("max_segments", "128"),
        ("logical_block_size", "512"),
    ];
    check(&life, &expected);
}

#[test]
fn lab_an_emmc_has_a_cache_and_discards() {
    let _one = one_at_a_time();
    let mut emmc = disk("emmc-8gb", 1 << 30);
    emmc.geometry.write_cache = true;
    emmc.geometry.discard_bytes = Some(4 << 20);
    let wanted = BlockQueue {
        scheduler: "bfq".into(),
        max_request_kib: 256,
        requests: 128,
        ..queue("vda")
    };
    let Some(life) = seen(3, emmc, wanted) else {
        return;
    };
    let expected = [
        ("rotational", "0"),
        ("max_sectors_kb", "256"),
        ("nr_requests", "128"),
        ("scheduler", "none mq-deadline kyber [bfq]"),
        ("discard_granularity", "4194304"),
        ("discard_max_bytes", "536870912"),
        ("write_cache", "write back"),
    ];
    check(&life, &expected);
}

#[test]
fn lab_a_usb_reader_looks_like_a_hard_disk() {
    let _one = one_at_a_time();
    let wanted = BlockQueue {
        rotational: true,
        max_request_kib: 120,
        scheduler: "none".into(),
        read_ahead_kib: 4096,
        ..queue("vda")
    };
    let Some(life) = seen(4, disk("usb-32gb", 1 << 30), wanted) else {
        return;
    };
    let expected = [
        ("rotational", "1"),
        ("max_sectors_kb", "120"),
        ("scheduler", "[none] mq-deadline kyber bfq"),
        ("discard_max_bytes", "0"),
        ("write_cache", "write through"),
        ("read_ahead_kb", "4096"),
    ];
    check(&life, &expected);
}

#[test]
fn lab_a_journal_lies_on_a_second_card() {
    let _one = one_at_a_time();
    let steps = vec![
        command(&[
            "mke2fs",
            "-q",
            "-F",
            "-b",
            "4096",
            "-O",
            "journal_dev",
            "/dev/vdb",
        ]),
        command(&[
            "mkfs.ext4",
            "-q",
            "-F",
            "-b",
            "4096",
            "-J",
            "device=/dev/vdb",
            "/dev/vda",
        ]),
        mount("ext4", "data=journal"),
        command(&[
            "dd",
            "if=/dev/zero",
            "of=/mnt/test/x",
            "bs=1M",
            "count=8",
            "conv=fsync",
        ]),
        unmount(),
        command(&["e2fsck", "-fn", "/dev/vda"]),
    ];
    let Some(mut trial) = Trial::new(5, steps) else {
        return;
    };
    trial.disks = vec![disk("a1-32gb", 1 << 30), disk("emmc-8gb", 64 << 20)];
    trial.queues = vec![queue("vda"), queue("vdb")];
    let mut life = trial.run();
    life.result.as_ref().unwrap();
    for (index, incompatible) in [(0, None), (1, Some(8))] {
        let mut superblock = [0; 1024];
        let disk = &mut life.disks[index];
        let at = disk.offset + 1024;
        disk.contents_mut().read(at, &mut superblock).unwrap();
        assert_eq!(
            superblock[56..58],
            [0x53, 0xef],
            "disk {index} has an ext superblock"
        );
        if let Some(flag) = incompatible {
            assert_eq!(superblock[96] & flag, flag, "disk {index} is a journal");
        }
    }
    let journal = life.disks[1].figures().write_bytes;
    assert!(
        journal > 8 << 20,
        "data=journal: all data pass through the journal: {journal}"
    );
}

#[test]
fn lab_four_disks_keep_their_own_bytes() {
    let _one = one_at_a_time();
    let write = |disk: char, byte: char| {
        shell(&format!(
            "tr '\\0' {byte} </dev/zero | dd of=/dev/vd{disk} bs=64k count=16 iflag=fullblock \
             oflag=direct"
        ))
    };
    let steps = vec![
        write('a', 'A'),
        write('b', 'B'),
        write('c', 'C'),
        write('d', 'D'),
    ];
    let Some(mut trial) = Trial::new(6, steps) else {
        return;
    };
    trial.disks = (0..4_u64)
        .map(|i| disk("class4-4gb", (64 + i) << 20))
        .collect();
    trial.queues = ["vda", "vdb", "vdc", "vdd"].map(queue).to_vec();
    let mut life = trial.run();
    life.result.as_ref().unwrap();
    for (disk, byte) in life.disks.iter_mut().zip(b'A'..) {
        let mut bytes = vec![0; (1 << 20) + 512];
        let at = disk.offset;
        disk.contents_mut().read(at, &mut bytes).unwrap();
        assert!(bytes[..1 << 20].iter().all(|&b| b == byte));
        assert!(bytes[1 << 20..].iter().all(|&b| b == 0));
        assert_eq!(disk.figures().write_bytes, 1 << 20);
    }
}
