//! Compressors as filesystems use them: each block of a file by itself.

use liblzma::stream::{Action, Check, Filters, LzmaOptions, Stream};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use whichfs_trial::WorkloadSpec;
use whichfs_units::{KIB, MIB, Rng};
use whichfs_workload::{Content, Listing, find, generated_bytes};

/// A compressor at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compressor {
    /// lz4, as f2fs and squashfs run it.
    Lz4,
    /// zstd at a level: 3 of btrfs and f2fs, 15 of squashfs.
    Zstd(u8),
    /// xz -6, as squashfs runs it.
    Xz,
}

use Compressor::{Lz4, Xz, Zstd};

impl Display for Compressor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Lz4 => f.pad("lz4"),
            Zstd(level) => f.pad(&format!("zstd-{level}")),
            Xz => f.pad("xz"),
        }
    }
}

/// What is measured: compressors, and bytes of a block.
pub const MEASURED: [(Compressor, u64); 14] = [
    (Lz4, 4 * KIB),
    (Lz4, 16 * KIB),
    (Lz4, 128 * KIB),
    (Lz4, MIB),
    (Zstd(3), 4 * KIB),
    (Zstd(3), 16 * KIB),
    (Zstd(3), 128 * KIB),
    (Zstd(3), MIB),
    (Zstd(15), 4 * KIB),
    (Zstd(15), 128 * KIB),
    (Zstd(15), MIB),
    (Xz, 4 * KIB),
    (Xz, 128 * KIB),
    (Xz, MIB),
];

/// Bytes that `block` takes when stored: what the compressor makes of it, if that is less.
pub fn stored(compressor: Compressor, block: &[u8]) -> u64 {
    let bytes = match compressor {
        Lz4 => lz4_flex::block::compress(block).len(),
        Zstd(level) => zstd::bulk::compress(block, level.into()).unwrap().len(),
        Xz => {
            let mut options = LzmaOptions::new_preset(6).unwrap();
            options.dict_size((block.len() as u32).next_power_of_two().max(8 << 10));
            let mut filters = Filters::new();
            let mut stream =
                Stream::new_stream_encoder(filters.lzma2(&options), Check::Crc32).unwrap();
            let mut out = Vec::with_capacity(block.len() + 4096);
            stream.process_vec(block, &mut out, Action::Finish).unwrap();
            out.len()
        }
    };
    bytes.min(block.len()) as u64
}

/// What one compressor made of the files of a level: its name, bytes of a block, and the factor.
#[derive(Clone, Debug, Deserialize)]
pub struct Row(pub String, pub u64, pub f64);

impl Row {
    /// The entry of [`MEASURED`] that has the name of the row.
    pub fn compressor(&self) -> Compressor {
        let mut known = MEASURED.iter().map(|(compressor, _)| *compressor);
        known.find(|one| one.to_string() == self.0).unwrap()
    }
}

/// What was measured of the files of a level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Regular files that are not empty; for readers of the file.
    #[serde(rename = "files")]
    pub _files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// By which factor each compressor shrinks them, block by block.
    pub ratios: Vec<Row>,
}

/// The content of `workloads/compressed.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Where the figures come from; for readers of the file.
    #[serde(rename = "source")]
    pub _source: String,
    /// Each level of `workloads/content.toml`.
    pub level: Vec<Measured>,
}

/// What was measured on real files.
pub fn table() -> Table {
    toml::from_str(include_str!("../../../../workloads/compressed.toml")).unwrap()
}

/// A generated root filesystem as large as the measured one (`workloads/rootfs.toml`).
pub fn generated_tree() -> Listing {
    const DATABASE: u64 = 4096;
    let parameters = [
        ("files", 9_926),
        ("bytes", 249_211_702 + DATABASE),
        ("database_files", 1),
        ("database_bytes", DATABASE),
    ];
    let spec = WorkloadSpec {
        name: "rootfs".to_owned(),
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        tree: None,
        unix: true,
        script: None,
        input: None,
    };
    find("rootfs")
        .unwrap()
        .generated_tree(&spec, 1)
        .unwrap()
        .unwrap()
}

/// Sizes of the files of each level in that tree.
pub fn generated_sizes() -> BTreeMap<u8, Vec<u64>> {
    let mut sizes: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
    for (_, size, content) in generated_tree().files() {
        if let Content::Generated { level, .. } = content {
            sizes.entry(*level).or_default().push(size);
        }
    }
    sizes
}

/// The first `len` bytes of the content (`level`, `seed`).
pub fn bytes(level: u8, seed: u64, len: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(len as usize);
    while (out.len() as u64) < len {
        let done = out.len() as u64;
        out.extend_from_slice(generated_bytes(level, seed, done, len - done));
    }
    out
}

/// Sizes of blocks that stand for all of files of `sizes`, each with its share: those at the
/// middle of `parts` equal parts of their bytes.
pub fn typical_blocks(sizes: &[u64], block: u64, parts: u64) -> BTreeMap<u64, f64> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for size in sizes {
        *counts.entry(block).or_default() += size / block;
        *counts.entry(size % block).or_default() += 1;
    }
    let all: u64 = sizes.iter().sum();
    let mut typical = BTreeMap::new();
    for part in 0..parts {
        let mut left = all * (2 * part + 1) / (2 * parts);
        let at = counts.iter().find(|(size, count)| {
            let bytes = *size * *count;
            let found = left < bytes;
            left = left.saturating_sub(bytes);
            found
        });
        *typical.entry(*at.unwrap().0).or_default() += 1.0 / parts as f64;
    }
    typical
}

/// By which factor `compressor` shrinks files of `sizes` in blocks of `block`, whose content
/// `content` gives: `len` bytes of a seed.
pub fn ratio(
    compressor: Compressor,
    block: u64,
    sizes: &[u64],
    content: &dyn Fn(u64, u64) -> Vec<u8>,
) -> f64 {
    let parts = match block {
        ..=16_384 => 8,
        16_385..=131_072 => 6,
        _ => 4,
    };
    ratio_of(compressor, &typical_blocks(sizes, block, parts), content)
}

/// The same of `blocks`, as [`typical_blocks`] gives them.
pub fn ratio_of(
    compressor: Compressor,
    blocks: &BTreeMap<u64, f64>,
    content: &dyn Fn(u64, u64) -> Vec<u8>,
) -> f64 {
    let mut rng = Rng::named(0, "blocks");
    let shares = blocks.iter().map(|(&size, share)| {
        // Of small ones several: where they begin decides more.
        let samples = (64 * KIB / size.max(1)).clamp(1, 4);
        let mut bytes = || stored(compressor, &content(rng.next_u64(), size));
        share * (0..samples).map(|_| bytes()).sum::<u64>() as f64 / (size * samples) as f64
    });
    1.0 / shares.sum::<f64>()
}
