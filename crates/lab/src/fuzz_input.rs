//! What the fuzz target and its test do with one input: everything that bytes of a guest
//! reach (messages of both protocols, rings, requests, events). Any input is taken or is an
//! error; a panic is a bug.

use crate::block::{BlockGeometry, BlockRequest};
use crate::calendar::{self, CalendarMessage};
use crate::control::Control;
use crate::disk::Disk;
use crate::memory::GuestMemory;
use crate::ring::{Ring, Segment};
use crate::trace::Trace;
use crate::vhost::{self, GuestRequest, Header, Region, RingAddress};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::cell::RefCell;
use whichfs_card::{Card, Contents, Profile, builtin};
use whichfs_units::Nanos;

/// Bytes of the guest's memory in these cases.
const MEMORY: u64 = 0x4000;
const TABLE: u64 = 0;
const AVAILABLE: u64 = 0x400;
const USED: u64 = 0x600;
const ENTRIES: u32 = 16;

thread_local! {
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

/// What is made once and only copied or cleared for each input.
struct Machine {
    memory: GuestMemory,
    card: Card,
    contents: Contents,
}

impl Machine {
    fn new() -> Option<Machine> {
        let file = memfd_create("whichfs-fuzz", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&file, MEMORY).ok()?;
        let region = Region {
            guest_address: 0,
            bytes: MEMORY,
            file_offset: 0,
        };
        let (name, text) = builtin().first()?;
        let profile = Profile::parse(name, text).ok()?;
        Some(Machine {
            memory: GuestMemory::map(&[region], vec![file]).ok()?,
            card: Card::fresh(&profile),
            contents: Contents::new(profile.capacity_bytes()),
        })
    }

    fn disk(&self) -> Disk {
        let geometry = BlockGeometry {
            bytes: 1 << 20,
            segments_max: 128,
            write_cache: true,
            discard_bytes: Some(4096),
        };
        let (card, contents) = (self.card.clone(), self.contents.clone());
        Disk::new(card, contents, 4 << 20, geometry, Nanos(1))
    }
}

/// Does with `data` what the engine does with bytes of a guest; the number of requests in it
/// that were understood.
pub fn one(data: &[u8]) -> u64 {
    let Some((&kind, rest)) = data.split_first() else {
        return 0;
    };
    match kind % 4 {
        0 => calendar_message(rest),
        1 => vhost_message(rest),
        2 => requests(rest, ring_address(&[])),
        // The ring itself may be anywhere, too.
        _ => {
            let (address, memory) = rest.split_at(rest.len().min(24));
            requests(memory, ring_address(address))
        }
    }
}

fn calendar_message(data: &[u8]) -> u64 {
    let whole = data.chunks_exact(calendar::MESSAGE_BYTES);
    let messages = whole.filter_map(|bytes| CalendarMessage::decode(bytes.try_into().ok()?).ok());
    messages
        .filter(|message| CalendarMessage::decode(&message.ack(message.time).encode()).is_ok())
        .count() as u64
}

fn vhost_message(data: &[u8]) -> u64 {
    let Some((head, payload)) = data.split_first_chunk() else {
        return 0;
    };
    let Ok(header) = Header::decode(head) else {
        return 0;
    };
    let payload = &payload[..payload.len().min(header.size as usize)];
    if let Some(answer) = payload.first_chunk() {
        let _ = vhost::check_call_reply(answer);
    }
    match GuestRequest::decode(&header, payload) {
        Ok(GuestRequest::SetVringNum(_, entries)) => {
            u64::from(Ring::default().set_entries(entries).is_ok())
        }
        Ok(_) => 1,
        Err(_) => 0,
    }
}

/// The usual place of the ring, or one that `data` names.
fn ring_address(data: &[u8]) -> RingAddress {
    let word = |at: usize, usual: u64| {
        let bytes = data.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(usual, u64::from_le_bytes)
    };
    RingAddress {
        descriptors: word(0, TABLE),
        used: word(8, USED),
        available: word(16, AVAILABLE),
    }
}

/// Takes `data` as the guest's memory and serves the requests in it, on a card and on the
/// control disk.
fn requests(data: &[u8], address: RingAddress) -> u64 {
    MACHINE.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Machine::new();
        }
        let Some(machine) = slot else {
            return 0; // the host gives no memory: nothing to try
        };
        let Ok(all) = machine.memory.slice_mut(0, MEMORY as usize) else {
            return 0;
        };
        let (start, rest) = all.split_at_mut(data.len().min(MEMORY as usize));
        start.copy_from_slice(&data[..start.len()]);
        rest.fill(0);
        serve(machine, address)
    })
}

fn serve(machine: &mut Machine, address: RingAddress) -> u64 {
    let mut disk = machine.disk();
    let control = Control::new(b"{}");
    let mut trace = Trace::default();
    let mut ring = Ring::default();
    ring.address = address;
    if ring.set_entries(ENTRIES).is_err() {
        return 0;
    }
    let mut segments: Vec<Segment> = Vec::new();
    let mut understood = 0;
    while let Ok(Some(head)) = ring.pop(&machine.memory, &mut segments) {
        let Ok(request) = BlockRequest::parse(&machine.memory, &segments) else {
            break;
        };
        let status_at = request.status_at;
        let _ = control.serve(&request, &mut machine.memory);
        let served = disk.serve(Nanos(understood), &request, &mut machine.memory, &mut trace);
        let Ok(served) = served else {
            break;
        };
        if let Ok(status) = machine.memory.slice_mut(status_at, 1) {
            status[0] = served.status as u8;
        }
        let _ = ring.push(&mut machine.memory, head, served.written.saturating_add(1));
        understood += 1;
    }
    understood
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_units::Rng;

    /// One request: header, data, status, with `change` applied to the memory.
    fn plausible(rng: &mut Rng) -> Vec<u8> {
        let mut data = vec![0; 0x2000];
        let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
        let operation = [0_u32, 1, 4, 8, 11][rng.below(5) as usize];
        let reads = matches!(operation, 0 | 8);
        put(0x1000, &operation.to_le_bytes());
        put(0x1008, &rng.below(3000).to_le_bytes());
        let descriptors = [
            (0x1000_u64, 16_u32, 1_u16, 1_u16),
            (0x1200, 512, if reads { 3 } else { 1 }, 2),
            (0x1100, 1, 2, 0),
        ];
        for (i, (address, bytes, flags, next)) in descriptors.into_iter().enumerate() {
            put(16 * i, &address.to_le_bytes());
            put(16 * i + 8, &bytes.to_le_bytes());
            put(16 * i + 12, &flags.to_le_bytes());
            put(16 * i + 14, &next.to_le_bytes());
        }
        put(
            AVAILABLE as usize + 2,
            &(1 + rng.below(3) as u16).to_le_bytes(),
        );
        data
    }

    /// Noise behind words that get past the header.
    fn noise(rng: &mut Rng, kind: u8) -> Vec<u8> {
        let mut data = vec![0; 24 + rng.below(600) as usize];
        rng.fill(&mut data);
        let operations = if kind == 0 { 10 } else { 40 };
        data[..4].copy_from_slice(&(rng.below(operations) as u32).to_ne_bytes());
        if kind == 1 {
            data[4..8].copy_from_slice(&1_u32.to_ne_bytes());
            data[8..12].copy_from_slice(&(rng.below(1100) as u32).to_ne_bytes());
        }
        data
    }

    /// What the fuzz target has found worth keeping (`fuzz/run`).
    #[test]
    fn attack_kept_inputs_are_taken_or_refused() {
        let kept = include_str!("../../../fuzz/corpus/guest_bytes.hex");
        let byte = |pair: &[u8]| {
            let digits = pair.iter().map(|digit| (*digit as char).to_digit(16));
            digits.fold(0, |value, digit| value * 16 + digit.expect("hex") as u8)
        };
        for line in kept.lines() {
            let input: Vec<u8> = line.as_bytes().chunks(2).map(byte).collect();
            let _requests = one(&input);
        }
        assert!(kept.lines().count() > 50, "the corpus is gone");
    }

    #[test]
    fn a_quarter_million_inputs_are_taken_or_refused() {
        let mut rng = Rng::named(1, "fuzz inputs");
        let mut understood = [0_u64; 4];
        for case in 0..250_000_u64 {
            let kind = (case % 4) as u8;
            let mut data = match kind {
                2 | 3 => plausible(&mut rng),
                _ => noise(&mut rng, kind),
            };
            if kind >= 2 {
                for _ in 0..rng.below(4) {
                    // Most of what decides lies in the descriptors and the header.
                    let places = [0, AVAILABLE as usize, 0x1000];
                    let at = places[rng.below(3) as usize] + rng.below(48) as usize;
                    data[at] ^= 1 << rng.below(8);
                }
            }
            if kind == 3 {
                let usual = [TABLE, USED, AVAILABLE].map(u64::to_le_bytes).concat();
                data.splice(..0, usual);
                data[rng.below(24) as usize] ^= 1 << rng.below(8);
            }
            understood[usize::from(kind)] += one(&[&[kind], &data[..]].concat());
        }
        // Inputs that are all refused would prove little.
        assert!(
            understood.iter().all(|&n| n > 1000),
            "understood: {understood:?}"
        );
    }
}
