//! The bytes on a card against a plain array, with a spill in memory and with one that fails.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use whichfs_card::{CHUNK_BYTES, Contents, ContentsError, Spill};
use whichfs_units::{GIB, KIB};

#[derive(Clone, Default)]
struct Memory {
    slots: Arc<Mutex<Vec<Vec<u8>>>>,
    writes: Arc<AtomicU64>,
    broken: Arc<AtomicBool>,
}

impl Memory {
    fn fail(&self) -> std::io::Result<()> {
        match self.broken.load(Ordering::SeqCst) {
            true => Err(std::io::Error::other("the host's disk is full")),
            false => Ok(()),
        }
    }
}

impl Spill for Memory {
    fn write_slot(&self, slot: u64, chunk: &[u8]) -> std::io::Result<()> {
        self.fail()?;
        self.writes.fetch_add(1, Ordering::SeqCst);
        let mut slots = self.slots.lock().unwrap();
        let slot = slot as usize;
        if slots.len() <= slot {
            slots.resize(slot + 1, Vec::new());
        }
        slots[slot] = chunk.to_vec();
        Ok(())
    }

    fn read_slot(&self, slot: u64, start: usize, out: &mut [u8]) -> std::io::Result<()> {
        self.fail()?;
        out.copy_from_slice(&self.slots.lock().unwrap()[slot as usize][start..][..out.len()]);
        Ok(())
    }
}

const CHUNKS: u64 = 9;
const SECTORS: u64 = CHUNKS * CHUNK_BYTES / 512;

fn steps() -> impl Strategy<Value = Vec<(u8, u64, u64, u8)>> {
    let size = prop_oneof![1..9_u64, 100..300_u64];
    prop::collection::vec((0..6_u8, 0..SECTORS, size, 0..4_u8), 1..60)
}

/// Plays one step on contents and on a plain array, comparing reads.
fn play(contents: &mut Contents, plain: &mut [u8], (op, at, sectors, byte): (u8, u64, u64, u8)) {
    let sectors = sectors.min(SECTORS - at);
    let (offset, bytes) = (at * 512, sectors * 512);
    let range = offset as usize..(offset + bytes) as usize;
    match op {
        0 => {
            contents.discard(offset, bytes).unwrap();
            plain[range].fill(0);
        }
        1..=3 => {
            let data = vec![byte; bytes as usize];
            contents.write(offset, &data).unwrap();
            plain[range].copy_from_slice(&data);
        }
        _ => {
            let mut out = vec![9; bytes as usize];
            contents.read(offset, &mut out).unwrap();
            assert!(out == plain[range], "{bytes} bytes at {offset}");
        }
    }
}

proptest! {
    #[test]
    fn contents_are_what_was_written_also_through_a_spill_and_in_clones(
        before in steps(), one in steps(), two in steps(), resident in 1..5_u64,
    ) {
        let spill = Box::new(Memory::default());
        let bytes = CHUNKS * CHUNK_BYTES;
        let mut contents = Contents::bounded(bytes, resident * CHUNK_BYTES, spill);
        let mut plain = vec![0; bytes as usize];
        before.into_iter().for_each(|step| play(&mut contents, &mut plain, step));
        let (mut clone, mut plain_clone) = (contents.clone(), plain.clone());
        one.into_iter().for_each(|step| play(&mut contents, &mut plain, step));
        two.into_iter().for_each(|step| play(&mut clone, &mut plain_clone, step));
        prop_assert!(contents.resident_bytes() <= resident * CHUNK_BYTES);
        for (contents, plain) in [(&mut contents, &plain), (&mut clone, &plain_clone)] {
            let mut all = vec![1; bytes as usize];
            contents.read(0, &mut all).unwrap();
            prop_assert!(&all == plain);
        }
    }
}

#[test]
fn slots_are_used_again_when_all_clones_let_go() {
    let spill = Memory::default();
    let mut contents = Contents::bounded(GIB, CHUNK_BYTES, Box::new(spill.clone()));
    for round in 0..10 {
        for chunk in 0..20 {
            contents
                .write(chunk * CHUNK_BYTES, &[round + 1; 512])
                .unwrap();
        }
        let clone = contents.clone();
        drop(clone);
        contents.discard(0, GIB).unwrap();
    }
    assert_eq!(contents.resident_bytes(), 0);
    assert!(spill.writes.load(Ordering::SeqCst) >= 190);
    assert!(spill.slots.lock().unwrap().len() <= 20, "slots leak");
}

#[test]
fn a_failing_spill_is_an_error_and_loses_nothing() {
    let spill = Memory::default();
    let mut contents = Contents::bounded(GIB, 2 * CHUNK_BYTES, Box::new(spill.clone()));
    for chunk in 0..4 {
        contents
            .write(chunk * CHUNK_BYTES, &[chunk as u8 + 1; 512])
            .unwrap();
    }
    spill.broken.store(true, Ordering::SeqCst);
    let full = contents.write(8 * CHUNK_BYTES, &[9; 512]).unwrap_err();
    assert!(matches!(full, ContentsError::Spill { .. }), "{full}");
    assert!(full.to_string().contains("disk is full"));
    let mut sector = [0; 512];
    assert!(contents.read(0, &mut sector).is_err());
    spill.broken.store(false, Ordering::SeqCst);
    for chunk in 0..4 {
        contents.read(chunk * CHUNK_BYTES, &mut sector).unwrap();
        assert_eq!(sector, [chunk as u8 + 1; 512]);
    }
    contents.read(8 * CHUNK_BYTES, &mut sector).unwrap();
    assert_eq!(sector, [0; 512], "the write that failed left nothing");
}

#[test]
fn zeros_take_no_memory_and_ranges_are_checked() {
    let mut contents = Contents::new(128 * GIB);
    contents.write(100 * GIB, &[0; 4096]).unwrap();
    assert_eq!(contents.resident_bytes(), 0);
    contents.write(128 * GIB - 512, &[1; 512]).unwrap();
    assert_eq!(contents.resident_bytes(), 64 * KIB);
    assert!(contents.write(128 * GIB, &[1; 512]).is_err());
    assert!(contents.read(0, &mut [0; 100]).is_err());
    assert!(contents.discard(256, 512).is_err());
    assert!(contents.read(u64::MAX - 511, &mut [0; 512]).is_err());
}
