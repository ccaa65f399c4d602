//! Attached cards as the kernel sees them.

use crate::common::{Direct, installed, options, ready, scaled, sh, skip};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use whichfs_attach::{
    AttachError, Attached, Speed, User, attach, list, request_detach, statistics,
};
use whichfs_units::{MIB, Rng, SECTOR};

/// Random writes, reads and discards on the device and on a copy in memory.
fn shadowed(attached: &Attached, seed: u64, operations: u32) {
    let mut rng = Rng::named(seed, "shadow");
    let mut shadow = vec![0; attached.statistics().capacity_bytes as usize];
    let sectors = shadow.len() as u64 / SECTOR;
    let mut device = Direct::open(&attached.device());
    for _ in 0..operations {
        let most = [8, 128, 2048][rng.below(3) as usize];
        let first = rng.below(sectors);
        let count = (1 + rng.below(most)).min(sectors - first);
        let offset = first * SECTOR;
        let range = offset as usize..(offset + count * SECTOR) as usize;
        match rng.below(10) {
            0 => {
                device.discard(offset, count * SECTOR).unwrap();
                discard_shadow(&mut shadow, range);
            }
            1 => device.sync(),
            2..6 => {
                rng.fill(&mut shadow[range.clone()]);
                device.write(offset, &shadow[range]);
            }
            _ => assert!(
                device.read(offset, range.len()) == &shadow[range],
                "{offset}"
            ),
        }
    }
    for offset in (0..shadow.len()).step_by(MIB as usize) {
        let expected = &shadow[offset..offset + MIB as usize];
        assert!(
            device.read(offset as u64, MIB as usize) == expected,
            "{offset}"
        );
    }
}

/// The model forgets all that a discard names; the kernel may pass on only whole granules of
/// it, and does so from a sector, so what it passes on is the range itself.
fn discard_shadow(shadow: &mut [u8], range: std::ops::Range<usize>) {
    shadow[range].fill(0);
}

#[test]
fn loop_data_is_kept_in_memory_and_in_the_spill() {
    let Some(_lock) = ready("loop_data_is_kept") else {
        return;
    };
    for memory_mib in [64, 4] {
        let options = whichfs_attach::AttachOptions {
            memory_bytes: memory_mib * MIB,
            ..options("a1-32gb", 64, Speed::Max)
        };
        let attached = attach(options).unwrap();
        shadowed(&attached, memory_mib, scaled(3000));
        let figures = attached.detach().unwrap();
        let (writes, discards) = (figures.figures.writes, figures.figures.discards);
        assert!(writes > scaled(1000).into() && discards > scaled(100).into());
        assert_eq!(figures.figures.errors, 0);
        assert_eq!(figures.failure, None);
    }
}

#[test]
fn loop_the_shadow_test_finds_a_wrong_byte() {
    let Some(_lock) = ready("loop_the_shadow_test_finds_a_wrong_byte") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    // A byte that the shadow does not know of.
    Direct::open(&attached.device()).write(63 * MIB, &[1; 512]);
    let check = || shadowed(&attached, 1, 0);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err());
    attached.detach().unwrap();
}

#[test]
fn loop_two_at_once_share_nothing() {
    let Some(_lock) = ready("loop_two_at_once_share_nothing") else {
        return;
    };
    let one = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let two = attach(options("class4-4gb", 64, Speed::Max)).unwrap();
    assert_ne!(one.device(), two.device());
    std::thread::scope(|scope| {
        scope.spawn(|| shadowed(&one, 11, scaled(1500)));
        scope.spawn(|| shadowed(&two, 12, scaled(1500)));
    });
    let ours = std::process::id();
    let listed = list().unwrap();
    assert!(listed.iter().filter(|record| record.pid == ours).count() >= 2);
    let gone = one.device();
    one.detach().unwrap();
    assert!(
        !gone.exists(),
        "the loop device that was made goes with the card"
    );
    shadowed_tail(&two);
    two.detach().unwrap();
}

/// The other device still works.
fn shadowed_tail(attached: &Attached) {
    let mut device = Direct::open(&attached.device());
    device.write(0, &[5; 4096]);
    assert_eq!(device.read(0, 4096), [5; 4096]);
}

#[test]
fn loop_flush_and_discard_reach_those_cards_that_know_them() {
    let Some(_lock) = ready("loop_flush_and_discard") else {
        return;
    };
    for (name, flushes, discards) in [
        ("emmc-8gb", true, true),
        ("a1-32gb", false, true),
        ("usb-32gb", false, false),
    ] {
        let attached = attach(options(name, 64, Speed::Max)).unwrap();
        let mut device = Direct::open(&attached.device());
        device.write(0, &vec![1; 256 * 1024]);
        device.sync();
        assert_eq!(device.discard(0, 8 * MIB).is_ok(), discards, "{name}");
        drop(device);
        let figures = attached.detach().unwrap().figures;
        assert_eq!(figures.flushes > 0, flushes, "{name}: {figures:?}");
        assert_eq!(figures.discards > 0, discards, "{name}: {figures:?}");
        // In one request: below the host's 512 KiB and 128 segments.
        assert_eq!(
            (figures.writes, figures.write_bytes),
            (1, 256 * 1024),
            "{name}"
        );
    }
}

#[test]
fn loop_nothing_is_cached_in_between() {
    let Some(_lock) = ready("loop_nothing_is_cached_in_between") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let mut device = Direct::open(&attached.device());
    for _ in 0..10 {
        device.read(0, 4096);
    }
    drop(device);
    // At least: a program of this machine that looks at all disks reads too.
    assert!(attached.detach().unwrap().figures.reads >= 10);
}

#[test]
fn loop_zeros_are_written_as_no_card_can_do_it_alone() {
    let Some(_lock) = ready("loop_zeros_are_written") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let before = attached.statistics().figures;
    assert_eq!(
        (before.writes, before.reads),
        (0, 0),
        "setting up costs nothing"
    );
    sh(&format!(
        "blkdiscard --zeroout -l 1048576 {}",
        attached.device().display()
    ));
    let figures = attached.detach().unwrap().figures;
    assert_eq!((figures.write_bytes, figures.discards), (MIB, 0));
}

#[test]
fn loop_completions_are_never_early() {
    let Some(_lock) = ready("loop_completions_are_never_early") else {
        return;
    };
    let attached = attach(options("class4-4gb", 64, Speed::Thousandths(4000))).unwrap();
    let mut device = Direct::open(&attached.device());
    for n in 0..20 {
        device.write(n * 5 % 20 * 65536, &[1; 4096]);
        // One at a time: what has completed is all that the card was busy with.
        let now = attached.statistics();
        assert!(now.card_time >= now.figures.busy, "{now:?}");
    }
    drop(device);
    let figures = attached.detach().unwrap();
    // At least: a program of this machine that looks at all disks reads too.
    assert!(figures.delivery.count >= 20);
    let counted: u64 = figures.delivery.histogram.iter().map(|(_, n)| n).sum();
    assert_eq!(counted, figures.delivery.count);
    assert_eq!(figures.speed, "4.0");
}

#[test]
fn loop_a_filesystem_lives_on_it_and_keeps_it_from_being_detached() {
    let test = "loop_a_filesystem_lives_on_it";
    let Some(_lock) = ready(test).filter(|_| installed(test, "mkfs.ext4")) else {
        return;
    };
    let attached = attach(options("a1-32gb", 128, Speed::Max)).unwrap();
    let device = attached.device().display().to_string();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display().to_string();
    sh(&format!("mkfs.ext4 -q -F {device} && mount {device} {at}"));
    sh(&format!(
        "cp -L /bin/sh /etc/hostname {at}/ && sync {at}/sh"
    ));
    let refused = attached.detach().unwrap_err();
    match &refused.error {
        AttachError::Busy { holders, .. } => {
            let mount = User::Mount {
                device: device.clone(),
                place: at.clone(),
                process: None,
            };
            assert_eq!(holders, &[mount]);
        }
        other => panic!("{other}"),
    }
    let text = refused.error.to_string();
    assert!(text.contains(&at) && text.contains("umount"), "{text}");
    let asked = request_detach(&device).unwrap_err().to_string();
    assert!(asked.contains(&at), "{asked}");
    sh(&format!(
        "cmp /bin/sh {at}/sh && umount {at} && e2fsck -fn {device}"
    ));
    refused.attached.detach().unwrap();
}

#[test]
fn loop_an_open_descriptor_keeps_it_from_being_detached() {
    let Some(_lock) = ready("loop_an_open_descriptor") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let open = Direct::open(&attached.device());
    let refused = attached.detach().unwrap_err();
    let text = refused.error.to_string();
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    drop(open);
    refused.attached.detach().unwrap();
}

#[test]
fn loop_statistics_and_detach_come_by_the_socket() {
    let Some(_lock) = ready("loop_statistics_and_detach") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let device = attached.device().display().to_string();
    Direct::open(&attached.device()).write(0, &[1; 4096]);
    let heard = statistics(&device).unwrap();
    assert_eq!(heard, attached.statistics());
    assert_eq!((heard.figures.writes, heard.device.as_str()), (1, &*device));
    let asks = device.clone();
    let asked = std::thread::spawn(move || {
        let asked = request_detach(&asks);
        (asked, Path::new(&asks).exists())
    });
    // Returns because of the request: nobody interrupts.
    attached.wait(&AtomicBool::new(false));
    assert!(!asked.is_finished(), "it answers when the device is gone");
    attached.detach().unwrap();
    let (asked, there) = asked.join().unwrap();
    asked.unwrap();
    assert!(!there);
    let error = statistics(&device).unwrap_err().to_string();
    assert!(error.contains("no attached card"), "{error}");
    assert!(!Path::new(&device).exists());
}

#[test]
fn loop_a_card_that_lies_about_its_size_wraps() {
    let Some(_lock) = ready("loop_a_card_that_lies") else {
        return;
    };
    let (name, text) = whichfs_card::builtin()[0];
    let figure = format!(
        "real_bytes = {{ value = {}, source = \"planted\" }}",
        32 * MIB
    );
    let text = text.replacen("[geometry]", &format!("[geometry]\n{figure}"), 1);
    let whole = whichfs_card::Profile::parse(name, &text).unwrap();
    let options = whichfs_attach::AttachOptions {
        profile: whole.with_capacity(64 * MIB).unwrap(),
        ..options(name, 64, Speed::Max)
    };
    let attached = attach(options).unwrap();
    let mut device = Direct::open(&attached.device());
    device.write(0, &[1; 4096]);
    device.write(32 * MIB, &[2; 4096]);
    assert_eq!(device.read(0, 4096), [2; 4096]);
    drop(device);
    attached.detach().unwrap();
}

#[test]
fn loop_a_dropped_card_is_detached() {
    let Some(_lock) = ready("loop_a_dropped_card_is_detached") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let device = attached.device();
    Direct::open(&device).write(0, &[1; 4096]);
    drop(attached);
    assert!(!device.exists());
}

#[test]
fn loop_the_speed_can_change_while_attached() {
    let Some(_lock) = ready("loop_the_speed_can_change") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let mut device = Direct::open(&attached.device());
    device.write(0, &[1; 4096]);
    let fast = attached.statistics();
    assert_eq!((fast.delivery.count, fast.speed.as_str()), (0, "max"));
    attached.set_speed(Speed::Thousandths(8000));
    device.write(0, &[2; 4096]);
    let timed = attached.statistics();
    assert_eq!((timed.delivery.count, timed.speed.as_str()), (1, "8.0"));
    assert!(timed.card_time >= timed.figures.busy && timed.card_time > fast.card_time);
    assert_eq!(device.read(0, 4096), [2; 4096]);
    drop(device);
    attached.detach().unwrap();
}

#[test]
fn loop_run_gives_the_device_and_returns_the_status() {
    let Some(_lock) = ready("loop_run") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let command = "test -b \"$dev\" && test \"$dev\" = \"$WHICHFS_DEVICE\" || exit 9; exit 7";
    let never = AtomicBool::new(false);
    let run = |command: &str| attached.run(command, Stdio::inherit(), &never).unwrap();
    assert_eq!(run(command).code(), Some(7));
    assert_eq!(run("kill -9 $$").signal(), Some(9));
    attached.detach().unwrap();
}

#[test]
fn loop_a_command_keeps_its_card_and_ends_when_asked() {
    let Some(_lock) = ready("loop_a_command_keeps_its_card") else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let device = attached.device().display().to_string();
    let stop = AtomicBool::new(false);
    let directory = tempfile::tempdir().unwrap();
    let begun = directory.path().join("begun").display().to_string();
    let (attached_ref, stop_ref) = (&attached, &stop);
    std::thread::scope(|scope| {
        let command = format!("touch {begun}; exec sleep 100");
        let run = scope.spawn(move || attached_ref.run(&command, Stdio::inherit(), stop_ref));
        while !Path::new(&begun).exists() {
            std::thread::yield_now();
        }
        // The number of the process is noted right after it is there.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let refused = request_detach(&device).unwrap_err();
        assert!(matches!(refused, AttachError::Running { .. }), "{refused}");
        assert!(refused.to_string().contains("kill "), "{refused}");
        stop.store(true, Ordering::Release);
        let status = run.join().unwrap().unwrap();
        assert_eq!(status.signal(), Some(15));
    });
    attached.detach().unwrap();
}

#[test]
fn loop_a_device_that_the_user_took_is_left_alone() {
    let test = "loop_a_device_that_the_user_took";
    let Some(_lock) = ready(test).filter(|_| installed(test, "losetup")) else {
        return;
    };
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let device = attached.device().display().to_string();
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(MIB).unwrap();
    let image = image.path().display().to_string();
    sh(&format!("losetup -d {device} && losetup {device} {image}"));
    // The server notices by itself.
    attached.wait(&AtomicBool::new(false));
    let cache = device.replace("/dev/", "/sys/block/") + "/queue/write_cache";
    let flushes = || std::fs::read_to_string(&cache).unwrap();
    // What is set of a loop device outlives what it is bound to.
    assert_eq!(flushes().trim(), "write through", "as the card has it");
    attached.detach().unwrap();
    assert_eq!(flushes().trim(), "write back", "as its user wants it");
    let shown = sh(&format!("losetup -n -O BACK-FILE {device}"));
    let _ = sh(&format!("losetup -d {device}"));
    assert_eq!(shown.trim(), image);
    assert!(
        list()
            .unwrap()
            .iter()
            .all(|record| record.device() != Path::new(&device))
    );
}

/// Whether a partition of a plain loop device appears (CONFIG_MSDOS_PARTITION).
fn reads_partition_tables() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let script = "truncate -s 64M $0 && echo 4MiB, | sfdisk -q $0 && d=$(losetup -Pf --show $0) && \
                  { test -b ${d}p1; found=$?; losetup -d $d; exit $found; }";
    let mut command = std::process::Command::new("sh");
    let status = command.args(["-c", script]).arg(image).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn loop_partitions_appear() {
    let test = "loop_partitions_appear";
    let Some(_lock) = ready(test).filter(|_| installed(test, "sfdisk")) else {
        return;
    };
    if !reads_partition_tables() {
        skip::skip(format!("{test}: this kernel reads no MBR partition tables"));
        return;
    }
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let device = attached.device().display().to_string();
    sh(&format!(
        "echo 4MiB, | sfdisk -q {device} && test -b {device}p1"
    ));
    attached.detach().unwrap();
}

#[test]
fn loop_a_card_without_room_is_refused_before_anything_is_made() {
    let Some(_lock) = ready("loop_a_card_without_room") else {
        return;
    };
    let name = "a1-32gb";
    let options = whichfs_attach::AttachOptions {
        memory_bytes: MIB,
        directory: "/proc/self".into(),
        ..options(name, 64, Speed::Max)
    };
    let error = attach(options).err().unwrap().to_string();
    assert!(error.contains("/proc/self"), "{error}");
}
