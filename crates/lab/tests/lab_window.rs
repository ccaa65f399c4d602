//! Reads that the guest answers itself (kernel/patches/0012) give the same bytes as those that the
//! engine answers: at both ends of a disk, across chunks of which one is shared with another
//! content and one is not, where nothing was ever written, and after a write.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{OFFSET, Trial, one_at_a_time, sd, shell, text_of};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use whichfs_card::{CHUNK_BYTES, Contents, Spill};
use whichfs_trial::{Event, Step};

const SECTOR: u64 = 512;
const DISK: u64 = 32 << 20;
/// Where the disk begins on the card: inside a chunk, so that its sectors are not those of a slot.
const BEGIN: u64 = OFFSET + 12 * 1024;
/// Five chunks of the card that were written, from this byte of the card on.
const WRITTEN: u64 = OFFSET + (1 << 20);

/// A file of slots that counts how often the engine reads one.
struct Counting {
    file: File,
    reads: Arc<AtomicU64>,
}

impl Spill for Counting {
    fn write_slot(&self, slot: u64, chunk: &[u8]) -> io::Result<()> {
        self.file.write_all_at(chunk, slot * CHUNK_BYTES)
    }

    fn read_slot(&self, slot: u64, start: usize, out: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, SeqCst);
        let at = slot * CHUNK_BYTES + start as u64;
        self.file.read_exact_at(out, at)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

/// Bytes of which no two sectors have the same.
fn pattern(salt: u64, bytes: u64) -> Vec<u8> {
    let sector = |at: u64| {
        let mut word = (salt << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..SECTOR).map(move |_| {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            word as u8
        })
    };
    (0..bytes / SECTOR).flat_map(sector).collect()
}

/// The card before and after some of it was written anew: the first shares with the second what
/// was not.
fn contents(reads: &Arc<AtomicU64>) -> (Contents, Contents) {
    let spill = Counting {
        file: tempfile::tempfile().unwrap(),
        reads: Arc::clone(reads),
    };
    let capacity = sd().contents().capacity_bytes();
    let mut before = Contents::bounded(capacity, CHUNK_BYTES, Box::new(spill));
    for (salt, at, bytes) in [
        // Before the disk, and behind it: not its own.
        (1, BEGIN - 8 * SECTOR, 8 * SECTOR),
        (2, BEGIN + DISK, 8 * SECTOR),
        (3, BEGIN, 2 * SECTOR),
        (4, BEGIN + DISK - SECTOR, SECTOR),
        (5, WRITTEN, 5 * CHUNK_BYTES),
    ] {
        before.write(at, &pattern(salt, bytes)).unwrap();
    }
    before.put_all_away().unwrap();
    let mut after = before.clone();
    let third = WRITTEN + 2 * CHUNK_BYTES;
    after.write(third, &pattern(6, CHUNK_BYTES)).unwrap();
    let fourth = third + CHUNK_BYTES + 4 * SECTOR;
    after.write(fourth, &pattern(7, SECTOR)).unwrap();
    (before, after)
}

/// Ranges of the disk: first byte and length.
fn ranges() -> Vec<(u64, u64)> {
    let chunk = |number: u64| WRITTEN + number * CHUNK_BYTES - BEGIN;
    let around = |at: u64| (at - 4 * SECTOR, 12 * SECTOR);
    vec![
        (0, SECTOR),
        (0, 16 * SECTOR),
        (DISK - SECTOR, SECTOR),
        (DISK - 8 * SECTOR, 8 * SECTOR),
        // From zeros into what was written, along it, and back into zeros.
        around(chunk(0)),
        around(chunk(1)),
        around(chunk(2)),
        around(chunk(3)),
        around(chunk(5)),
        (chunk(1), 3 * CHUNK_BYTES),
        // Never written.
        (DISK / 2, 8 * SECTOR),
        (chunk(9), 2 * CHUNK_BYTES),
    ]
}

/// A line for each range, and one for all of the disk.
fn read_all() -> Step {
    let mut script = String::new();
    for (at, bytes) in ranges() {
        script += &format!(
            "dd if=/dev/vda bs={bytes} count=1 skip={at} iflag=direct,skip_bytes 2>/dev/null | \
             od -An -v -tx1 | tr -d ' \\n'; echo; "
        );
    }
    script += "dd if=/dev/vda bs=1M iflag=direct 2>/dev/null | sha256sum";
    shell(&script)
}

/// Says that nobody times what follows, as an agent that inspects does.
fn untimed(begins: bool) -> Step {
    shell(&format!(
        "printf '{{\"event\":\"untimed\",\"begins\":{begins}}}' | \
         dd of=/dev/vdb bs=512 seek=2048 conv=sync,notrunc oflag=direct 2>/dev/null"
    ))
}

/// What the ranges hold, in hexadecimal.
fn expected(contents: &mut Contents) -> Vec<String> {
    let hexadecimal = |(at, bytes): (u64, u64)| {
        let mut read = vec![0; bytes as usize];
        contents.read(BEGIN + at, &mut read).unwrap();
        read.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    ranges().into_iter().map(hexadecimal).collect()
}

#[test]
fn lab_reads_by_the_guest_give_the_same_bytes_as_those_by_the_engine() {
    let _one = one_at_a_time();
    let reads = Arc::new(AtomicU64::new(0));
    let (before, after) = contents(&reads);
    let rewritten = WRITTEN + 4 * CHUNK_BYTES - BEGIN;
    let steps = vec![
        read_all(),
        untimed(true),
        shell("echo opened"),
        read_all(),
        shell("echo rewritten"),
        // Half a chunk: the other half is still as it was.
        shell(&format!(
            "dd if=/dev/zero bs=32768 count=1 2>/dev/null | tr '\\000' '\\132' | \
             dd of=/dev/vda bs=32768 count=1 iflag=fullblock oflag=direct,seek_bytes \
             seek={rewritten} conv=notrunc 2>/dev/null"
        )),
        read_all(),
        untimed(false),
        shell("echo shut"),
        read_all(),
    ];
    let Some(mut trial) = Trial::new(31, steps) else {
        return;
    };
    let mut card = after.clone();
    let mut disk = sd().with_contents(after);
    disk.offset = BEGIN;
    disk.geometry.bytes = DISK;
    trial.disks = vec![disk];
    let mut counts = vec![0];
    let life = trial.run_with(&Default::default(), &mut |stamped| {
        let marks = ["opened\n", "rewritten\n", "shut\n"];
        if let Event::Output { text, .. } = &stamped.event
            && marks.contains(&text.as_str())
        {
            counts.push(reads.load(SeqCst));
        }
    });
    life.result.as_ref().unwrap();
    drop(before);

    let said = text_of(&life);
    let lines: Vec<&str> = said.lines().collect();
    let parts: Vec<&[&str]> = lines
        .split(|line| ["opened", "rewritten", "shut"].contains(line))
        .collect();
    let [timed, window, written, shut] = parts[..] else {
        panic!("{} parts", parts.len());
    };
    let right = expected(&mut card);
    assert!(right[0] != right[2] && right[10].bytes().all(|digit| digit == b'0'));
    for (at, right) in right.iter().enumerate() {
        let range = ranges()[at];
        assert!(timed[at] == right, "by the engine, {range:?}");
        assert!(window[at] == right, "by the guest, {range:?}");
    }
    assert_eq!(window, timed, "the sum of the disk too");

    card.write(BEGIN + rewritten, &[b'Z'; 32768]).unwrap();
    let right = expected(&mut card);
    for (at, right) in right.iter().enumerate() {
        let range = ranges()[at];
        assert!(written[at] == right, "after a write, {range:?}");
        assert!(shut[at] == right, "by the engine again, {range:?}");
    }
    assert_eq!(written, shut);
    assert_ne!(written.last(), window.last());

    // The engine read slots while it answered, and none while the guest did.
    let [_, opened, rewritten, shut] = counts[..] else {
        panic!("{counts:?}");
    };
    assert!(opened >= ranges().len() as u64 - 3, "{counts:?}");
    assert_eq!(rewritten, opened, "the window was never used: {counts:?}");
    assert!(reads.load(SeqCst) > shut, "{counts:?}");
}
