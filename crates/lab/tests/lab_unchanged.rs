//! The second inspection of a guest does not read what cannot have changed since the first, and
//! sees every change: by a write to the device, mounted or not, and by one through the filesystem.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{OFFSET, Trial, mount, one_at_a_time, sd, shell, skip, unmount};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use whichfs_blockdev::Defects;
use whichfs_card::{CHUNK_BYTES, Contents, Spill};
use whichfs_lab::{Disk, GuestRun};
use whichfs_trial::{Event, Node, Step, content_digest};

const DISK: u64 = 512 << 20;

struct Slots(File);

impl Spill for Slots {
    fn write_slot(&self, slot: u64, chunk: &[u8]) -> io::Result<()> {
        self.0.write_all_at(chunk, slot * CHUNK_BYTES)
    }

    fn read_slot(&self, slot: u64, start: usize, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, slot * CHUNK_BYTES + start as u64)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// An empty card whose bytes lie in a file.
fn card() -> Disk {
    let spill = Box::new(Slots(tempfile::tempfile().unwrap()));
    let capacity = sd().contents().capacity_bytes();
    let mut disk = sd().with_contents(Contents::bounded(capacity, 8 << 20, spill));
    disk.geometry.bytes = DISK;
    disk
}

/// Runs `steps` with `disk`.
fn run(steps: Vec<Step>, disk: Disk) -> Option<GuestRun> {
    let mut trial = Trial::new(7, steps)?;
    trial.disks = vec![disk];
    let life = trial.run();
    life.result.as_ref().unwrap();
    Some(life)
}

/// Names and contents of the files: small ones, one that is read in one piece and a large one.
/// None is so small that a filesystem would keep it with its inode.
fn files() -> BTreeMap<String, Vec<u8>> {
    let numbers = |from: u64, bytes: usize| {
        let lines = (from..).map(|n| format!("{n}\n"));
        let text: String = lines.take(bytes / 7 + 1).collect();
        text.into_bytes()[..bytes].to_vec()
    };
    let small = (0..30_u64).map(|n| {
        (
            format!("s{n}"),
            numbers(100_000 + n * 7, 5000 + 311 * n as usize),
        )
    });
    let more = [
        ("middle".to_owned(), numbers(200_000, 60_000)),
        ("large".to_owned(), numbers(300_000, 3_000_001)),
    ];
    small.chain(more).collect()
}

/// Makes the files, by the same rule.
fn make() -> Step {
    shell(
        "cd /mnt/test; n=0; \
         while [ $n -lt 30 ]; do \
           seq $((100000+n*7)) 999999 | head -c $((5000+311*n)) > s$n; n=$((n+1)); \
         done; \
         seq 200000 999999 | head -c 60000 > middle; \
         seq 300000 999999 | head -c 3000001 > large; sync",
    )
}

/// Where in the disk the block of 4 KiB at `at` of this content lies.
fn place(disk: &mut Disk, content: &[u8], at: usize) -> u64 {
    let wanted = &content[at..at + 4096];
    let mut block = vec![0; 4096];
    let mut blocks = (0..DISK).step_by(4096);
    let found = blocks.find(|place| {
        disk.contents_mut()
            .read(OFFSET + place, &mut block)
            .unwrap();
        block == wanted
    });
    found.unwrap()
}

fn inspect() -> Step {
    Step::Inspect {
        dir: "/mnt/test".into(),
        sectors: vec!["middle".into()],
    }
}

/// What was found by the last inspection of a life: size and digest of each file, none if it could
/// not be read; and the bytes that were not read for it.
fn found(life: &GuestRun) -> (BTreeMap<String, Option<(u64, u64)>>, u64) {
    let (mut before, mut told, mut unread) = (Vec::new(), Vec::new(), 0);
    for stamped in &life.events {
        match &stamped.event {
            Event::Untimed { begins: true } => before = std::mem::take(&mut told),
            Event::Again { first, count } => {
                let same = before.iter().skip(*first as usize).take(*count as usize);
                told.extend(same.cloned());
            }
            Event::Found { entries } => told.push(entries.clone()),
            Event::Metric { name, value, .. } if name == "unread" => unread = *value as u64,
            _ => {}
        }
    }
    let entries = told.into_iter().flatten();
    let files = entries.filter_map(|found| match found.node {
        // nilfs2's own, empty.
        Node::File { .. } if found.path == ".nilfs" => None,
        Node::File { size, digest } => Some((found.path, Some((size, digest)))),
        Node::Unreadable { .. } => Some((found.path, None)),
        _ => None,
    });
    (files.collect(), unread)
}

fn right(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Option<(u64, u64)>> {
    let of = |bytes: &Vec<u8>| Some((bytes.len() as u64, content_digest(bytes)));
    files
        .iter()
        .map(|(name, bytes)| (name.clone(), of(bytes)))
        .collect()
}

/// Two inspections, with `use_it` before the unmount between them and `edit` after it.
fn looks(kernel_fs: &str, use_it: &str, edit: &str) -> Vec<Step> {
    let exercise = Step::Exercise {
        dir: "/mnt/test".into(),
    };
    vec![
        mount(kernel_fs, ""),
        inspect(),
        exercise,
        shell(use_it),
        unmount(),
        shell(edit),
        mount(kernel_fs, ""),
        inspect(),
        unmount(),
    ]
}

/// A shell's line that writes `XX` to the device at `at`.
fn write_at(at: u64) -> String {
    format!(
        "dd if=/dev/vda bs=4096 count=1 iflag=direct,skip_bytes skip={block} of=/tmp/b \
         2>/dev/null; \
         printf XX | dd of=/tmp/b bs=1 seek={rest} conv=notrunc 2>/dev/null; \
         dd if=/tmp/b of=/dev/vda bs=4096 oflag=direct,seek_bytes seek={block} conv=notrunc \
         2>/dev/null",
        block = at / 4096 * 4096,
        rest = at % 4096
    )
}

fn has(program: &str) -> bool {
    let found = ["/sbin", "/usr/sbin", "/usr/bin"].map(|dir| format!("{dir}/{program}"));
    let is_there = found.iter().any(|path| std::path::Path::new(path).exists());
    if !is_there {
        skip::skip(format!("{program} is not installed"));
    }
    is_there
}

/// A filesystem with the files: its disk.
fn made(kernel_fs: &str, mkfs: &str) -> Option<Disk> {
    let name = mkfs.split(' ').next().unwrap();
    let steps = vec![shell(mkfs), mount(kernel_fs, ""), make(), unmount()];
    let life = has(name).then(|| run(steps, card()))??;
    life.disks.into_iter().next()
}

/// The disk with the same content, and otherwise as new.
fn copy(disk: &Disk) -> Disk {
    card().with_contents(disk.contents().clone())
}

#[test]
fn lab_what_nobody_wrote_is_not_read_again_and_every_write_is_seen() {
    let _one = one_at_a_time();
    for (kernel_fs, mkfs) in [
        ("ext4", "mkfs.ext4 -q -b 4096 /dev/vda"),
        ("ext2", "mkfs.ext2 -q -b 4096 /dev/vda"),
        ("xfs", "mkfs.xfs -q /dev/vda"),
        ("f2fs", "mkfs.f2fs -q /dev/vda"),
        ("nilfs2", "mkfs.nilfs2 -q /dev/vda"),
    ] {
        let Some(mut disk) = made(kernel_fs, mkfs) else {
            continue;
        };
        let files = files();
        let all: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
        let life = run(looks(kernel_fs, "true", "true"), copy(&disk)).unwrap();
        let (seen, unread) = found(&life);
        assert!(seen == right(&files), "{kernel_fs}: nothing was written");
        assert_eq!(unread, all, "{kernel_fs}: nothing was written");

        // In the middle of a file, as a use or a checker gone wrong.
        for (name, block) in [("large", 1 << 20), ("middle", 53_248), ("s20", 4_096)] {
            let place = place(&mut disk, &files[name], block);
            let at = block + 700;
            let mut changed = files.clone();
            changed.get_mut(name).unwrap()[at..at + 2].copy_from_slice(b"XX");
            let write = write_at(place + 700);
            for (use_it, edit) in [(write.as_str(), "true"), ("true", write.as_str())] {
                let life = run(looks(kernel_fs, use_it, edit), copy(&disk)).unwrap();
                let (seen, unread) = found(&life);
                assert!(seen == right(&changed), "{kernel_fs}: {name} {use_it}");
                let read = files[name].len() as u64;
                assert!((1..=all - read).contains(&unread), "{kernel_fs}: {unread}");
            }
        }

        // Through the filesystem: in place, and in another file of that name and size.
        let mut changed = files.clone();
        changed.get_mut("large").unwrap()[2_000_000..2_000_002].copy_from_slice(b"XX");
        changed.get_mut("s3").unwrap()[10..12].copy_from_slice(b"XX");
        let through = "cd /mnt/test; cp s3 t; \
             printf XX | dd of=t bs=1 seek=10 conv=notrunc 2>/dev/null; mv t s3; \
             printf XX | dd of=large bs=1 seek=2000000 conv=notrunc 2>/dev/null";
        let life = run(looks(kernel_fs, through, "true"), copy(&disk)).unwrap();
        let (seen, unread) = found(&life);
        assert!(seen == right(&changed), "{kernel_fs}: through it");
        assert!(
            unread > 0 && unread < all - 3_000_000,
            "{kernel_fs}: {unread}"
        );
    }
}

/// Where addresses are none of the device, or the card may change what it holds, all is read.
#[test]
fn lab_what_may_have_changed_is_read_again() {
    let _one = one_at_a_time();
    let files = files();
    for (kernel_fs, mkfs) in [
        ("vfat", "mkfs.vfat -F 32 /dev/vda >/dev/null"),
        ("btrfs", "mkfs.btrfs -q /dev/vda"),
    ] {
        let Some(disk) = made(kernel_fs, mkfs) else {
            continue;
        };
        let life = run(looks(kernel_fs, "true", "true"), disk).unwrap();
        assert!(found(&life) == (right(&files), 0), "{kernel_fs}");
    }
    let Some(disk) = made("ext4", "mkfs.ext4 -q -b 4096 /dev/vda") else {
        return;
    };
    let defective = copy(&disk).with_defects(Some(Defects::default()));
    let life = run(looks("ext4", "true", "true"), defective).unwrap();
    assert!(found(&life) == (right(&files), 0), "a card with defects");
    let mut contents = sd().into_contents();
    let (mut from, mut chunk) = (disk.into_contents(), vec![0; CHUNK_BYTES as usize]);
    for at in (OFFSET..OFFSET + DISK).step_by(chunk.len()) {
        from.read(at, &mut chunk).unwrap();
        contents.write(at, &chunk).unwrap();
    }
    let resident = card().with_contents(contents);
    let life = run(looks("ext4", "true", "true"), resident).unwrap();
    assert!(found(&life) == (right(&files), 0), "nobody noted writes");
}
