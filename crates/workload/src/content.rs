//! Content of files: bytes that compress as real files do, at the speed of a copy.
//!
//! Each level has a pool of bytes made by its [`Model`]. The content of a file is runs of 1 MiB,
//! each from a seeded place of its level's pool, whose end is followed by its begin. Filesystems
//! compress blocks of up to 1 MiB: a block has what the model made, short and far repetitions.

use crate::content_model::Model;
use serde::Deserialize;
use std::sync::OnceLock;
use whichfs_trial::Content;
use whichfs_units::{KIB, MIB, Rng};

/// Bytes of a pool.
const POOL: u64 = 2 * MIB;

/// Bytes of content that come from one place of a pool.
const RUN: u64 = MIB;

/// Most bytes that are borrowed at once: callers write each piece in one call.
pub(crate) const BLOCK: u64 = 128 * KIB;

/// A compressibility level: which files belong to it, and the model of their content.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressibilityLevel {
    /// Files of this level compress by at most this factor under zstd -3 in blocks of 128 KiB.
    pub zstd_up_to: f64,
    /// What content of this level is made of.
    pub model: Model,
}

/// The content of `workloads/content.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Where the figures come from; for readers of the file.
    #[serde(rename = "source")]
    _source: String,
    level: Vec<CompressibilityLevel>,
}

/// The levels of `workloads/content.toml`, least compressible first.
pub fn levels() -> &'static [CompressibilityLevel] {
    static LEVELS: OnceLock<Vec<CompressibilityLevel>> = OnceLock::new();
    LEVELS.get_or_init(|| {
        let text = include_str!("../../../workloads/content.toml");
        let file: File = toml::from_str(text)
            .unwrap_or_else(|error| unreachable!("content.toml is tested: {error}"));
        file.level
    })
}

/// The bytes from `offset` on of the content (`level`, `seed`): at least one and at most
/// `max`, up to the end of a block of 128 KiB. They are borrowed from the level's pool, so
/// that making content costs nothing.
///
/// # Panics
/// If there is no such level or `max` is 0: a fault of the caller.
pub fn generated_bytes(level: u8, seed: u64, offset: u64, max: u64) -> &'static [u8] {
    assert!(max > 0, "no bytes are wanted");
    let pool = pool(usize::from(level));
    let from = ((start(seed, offset / RUN) + offset % RUN) % POOL) as usize;
    &pool[from..from + max.min(BLOCK - offset % BLOCK) as usize]
}

/// The pool of a level, made when it is first used; the same in every trial. Its first bytes
/// stand behind its last again, so that a block may begin anywhere.
fn pool(level: usize) -> &'static [u8] {
    static POOLS: OnceLock<Vec<OnceLock<Vec<u8>>>> = OnceLock::new();
    let pools = POOLS.get_or_init(|| levels().iter().map(|_| OnceLock::new()).collect());
    pools[level].get_or_init(|| {
        let mut rng = Rng::named(level as u64, "content");
        let mut pool = levels()[level].model.bytes(&mut rng, POOL);
        pool.extend_from_within(..BLOCK as usize);
        pool
    })
}

/// Where in the pool run number `run` of the content `seed` begins.
fn start(seed: u64, run: u64) -> u64 {
    // The finalizer of MurmurHash3: every bit of the input moves every bit of the output.
    let mut mix = seed ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix = (mix ^ (mix >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mix = (mix ^ (mix >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (mix ^ (mix >> 33)) % POOL
}

/// Generated content of `level`.
///
/// # Panics
/// If there is no such level: a fault of the workload.
pub(crate) fn generated(level: u8, seed: u64) -> Content {
    assert!(usize::from(level) < levels().len(), "no level {level}");
    Content::Generated { level, seed }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Order-0 entropy in bits a byte.
    fn entropy(bytes: &[u8]) -> f64 {
        let mut counts = [0_u32; 256];
        for &byte in bytes {
            counts[usize::from(byte)] += 1;
        }
        let share = |count: u32| f64::from(count) / bytes.len() as f64;
        let used = counts.iter().filter(|&&count| count > 0);
        -used
            .map(|&count| share(count) * share(count).log2())
            .sum::<f64>()
    }

    #[test]
    fn the_data_file_is_sane() {
        let levels = levels();
        assert!(levels.len() >= 4);
        for CompressibilityLevel { model, .. } in levels {
            assert!(model.literals >= 1 && (1..=8).contains(&model.octaves));
            assert!(model.near_bytes == 0 || model.near_bytes.min(model.far_bytes) >= 2);
            assert!(model.near + model.middle <= 100);
            let percents = [model.any, model.context, model.resume];
            assert!(percents.iter().all(|percent| *percent <= 100));
        }
        let mut limits = levels.windows(2);
        assert!(limits.all(|two| two[0].zstd_up_to < two[1].zstd_up_to));
    }

    /// `len` bytes from `offset` on.
    fn bytes(level: u8, seed: u64, offset: u64, len: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while (out.len() as u64) < len {
            let done = out.len() as u64;
            out.extend_from_slice(generated_bytes(level, seed, offset + done, len - done));
        }
        out
    }

    #[test]
    fn level_0_is_random() {
        assert!(entropy(&bytes(0, 1, 0, BLOCK)) > 7.99);
    }

    #[test]
    fn a_block_may_go_beyond_the_end_of_the_pool() {
        let near_end = |seed: &u64| start(*seed, 0) > POOL - BLOCK / 2;
        let seed = (0..).find(near_end).unwrap();
        let block = bytes(3, seed, 0, BLOCK);
        let end = (POOL - start(seed, 0)) as usize;
        assert_eq!(block[end..], pool(3)[..block.len() - end]);
        assert_eq!(
            bytes(3, seed, BLOCK, 64),
            pool(3)[block.len() - end..][..64]
        );
    }

    #[test]
    fn content_does_not_depend_on_how_it_is_read() {
        let whole = bytes(2, 9, 0, RUN + 2 * BLOCK);
        for (from, len) in [(0, 1), (5, 4096), (BLOCK - 1, 2), (RUN - 9, 200_000)] {
            let part = bytes(2, 9, from, len);
            assert!(
                part == whole[from as usize..(from + len) as usize],
                "{from}+{len}"
            );
        }
        assert!(bytes(2, 10, 0, 4096) != whole[..4096]);
    }
}
