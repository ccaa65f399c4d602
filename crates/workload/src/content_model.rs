//! The model of content: what a compressor can find in it, and how far back.

use serde::Deserialize;
use whichfs_units::{KIB, MIB, Rng};

/// What content is made of: runs of literals, each followed by a repetition of what came before.
///
/// lz4 gains by near repetitions alone. Entropy coding (zlib, zstd, xz) gains also where symbols
/// differ in frequency, xz also where they follow from the byte before; large blocks gain by far
/// repetitions. Integers alone decide: every machine makes the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Mean length of a run of literals, in bytes; at least 1.
    pub literals: u64,
    /// Literals are drawn from 2 to this power, less 1, symbols: 1 to 8.
    pub octaves: u64,
    /// How much symbols differ in frequency: 0 not at all, 1 as 1 / rank, more the more.
    pub skew: u64,
    /// Percent of literals that are any byte instead.
    pub any: u64,
    /// Percent of other literals whose order of symbols is that of the byte before.
    pub context: u64,
    /// Percent of repetitions from at most 4 KiB before.
    pub near: u64,
    /// Percent of repetitions from 4 to 128 KiB before; the others are from up to 1 MiB.
    pub middle: u64,
    /// Mean length of a near repetition, in bytes, at least 2; 0 for content without repetitions.
    pub near_bytes: u64,
    /// Mean length of other repetitions, in bytes, at least 2.
    pub far_bytes: u64,
    /// Percent of repetitions that go on after one literal.
    pub resume: u64,
}

impl Model {
    /// So many bytes of it.
    pub fn bytes(&self, rng: &mut Rng, count: u64) -> Vec<u8> {
        if self.near_bytes == 0 {
            let mut out = Vec::with_capacity(count as usize);
            (0..count).for_each(|_| self.literal(&mut out, rng));
            return out;
        }
        // The first MiB is there for what comes after it to repeat.
        let all = (MIB + count) as usize;
        let mut out = Vec::with_capacity(all + MIB as usize);
        while out.len() < all {
            let literals = 1 + rng.below(2 * self.literals - 1);
            (0..literals).for_each(|_| self.literal(&mut out, rng));
            self.repetition(&mut out, rng);
        }
        out.truncate(all);
        // In place: a guest's clock charges the kernel's work for new memory.
        out.drain(..MIB as usize);
        out
    }

    fn literal(&self, out: &mut Vec<u8>, rng: &mut Rng) {
        if rng.ratio(self.any, 100) {
            out.push(rng.next_u64() as u8);
            return;
        }
        let symbol = match (0..self.skew).map(|_| rng.below(self.octaves)).min() {
            Some(octave) => (1 << octave) - 1 + rng.below(1 << octave),
            None => rng.below((1 << self.octaves) - 1),
        };
        // xz tells literals apart by the three highest bits of the byte before.
        let order = match rng.ratio(self.context, 100) {
            true => out.last().map_or(0, |byte| byte >> 5),
            false => 0,
        };
        // Odd factors: frequent symbols get bytes, and orders get symbols, far from each other.
        out.push(
            (symbol as u8)
                .wrapping_add(order.wrapping_mul(37))
                .wrapping_mul(167),
        );
    }

    fn repetition(&self, out: &mut Vec<u8>, rng: &mut Rng) {
        let (nearest, octaves, mean) = match rng.below(100) {
            near if near < self.near => (16, 8, self.near_bytes),
            middle if middle < self.near + self.middle => (4 * KIB, 5, self.far_bytes),
            _ => (128 * KIB, 3, self.far_bytes),
        };
        let octave = nearest << rng.below(octaves);
        let distance = (octave + rng.below(octave)).min(out.len() as u64) as usize;
        loop {
            // Many are short, few are long: the mean of the square of a uniform share is a third.
            let share = rng.below(KIB);
            let len = 2 + 3 * (mean - 2) * share * share / (KIB * KIB);
            (0..len).for_each(|_| out.push(out[out.len() - distance]));
            if !rng.ratio(self.resume, 100) {
                return;
            }
            self.literal(out, rng);
        }
    }
}
