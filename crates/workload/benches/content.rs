//! How real and generated content compresses, per compressor and block.
//!
//! - `cargo bench -p whichfs-workload --bench content`: generated content beside the table of
//!   `workloads/compressed.toml`.
//! - `… -- measure DIR`: the table of the files below DIR.
//! - `… -- fit LEVEL SEED STEPS [START]`: searches for the model of a level
//!   (`workloads/content.toml`).
//! - `… -- tree DIR`: writes the generated tree, for mksquashfs and mkfs.erofs.
#![allow(clippy::unwrap_used)]

#[path = "../tests/compressors/mod.rs"]
mod compressors;
#[path = "../src/content_model.rs"]
mod content_model;

use compressors::{Compressor, MEASURED, generated_sizes, ratio, ratio_of, stored, table};
use content_model::Model;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whichfs_units::{MIB, Rng};
use whichfs_workload::{Content, EntryKind, levels};

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => compare(),
        ["measure", tree] => measure(Path::new(tree)),
        ["fit", level, seed, steps, ref start @ ..] => {
            let start: Vec<u64> = start.iter().map(|word| word.parse().unwrap()).collect();
            let start = (!start.is_empty()).then(|| start.try_into().unwrap());
            let number = |word: &str| word.parse().unwrap();
            fit(number(level) as u8, number(seed), number(steps), start);
        }
        ["tree", to] => write_tree(Path::new(to)),
        _ => panic!("no arguments, measure DIR, fit LEVEL SEED STEPS, or tree DIR"),
    }
}

/// Regular files below `directory`, by name.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            files(&path, found);
        } else if meta.is_file() && meta.len() > 0 {
            found.push(path);
        }
    }
}

/// One of how many blocks is measured: slow compressors get a sample.
fn every(compressor: Compressor, block: u64) -> u64 {
    match (compressor, block) {
        (Compressor::Lz4 | Compressor::Zstd(3), _) => 1,
        (_, ..=16_384) => 16,
        (_, ..=131_072) => 5,
        _ => 3,
    }
}

fn measure(tree: &Path) {
    let mut paths = Vec::new();
    files(tree, &mut paths);
    let mut counts = vec![(0_u64, 0_u64); levels().len()];
    let mut sums = vec![vec![(0_u64, 0_u64); MEASURED.len()]; levels().len()];
    let mut blocks = 0;
    for path in paths {
        let bytes = std::fs::read(path).unwrap();
        let len = bytes.len() as u64;
        let whole = bytes
            .chunks(128 << 10)
            .map(|one| stored(Compressor::Zstd(3), one));
        let factor = len as f64 / whole.sum::<u64>() as f64;
        let mut known = levels().iter();
        let level = known.position(|one| factor <= one.zstd_up_to).unwrap();
        counts[level] = (counts[level].0 + 1, counts[level].1 + len);
        for ((compressor, block), sum) in MEASURED.into_iter().zip(&mut sums[level]) {
            for one in bytes.chunks(block as usize) {
                blocks += 1;
                if blocks % every(compressor, block) == 0 {
                    let bytes = stored(compressor, one);
                    *sum = (sum.0 + one.len() as u64, sum.1 + bytes);
                }
            }
        }
    }
    for ((files, bytes), sums) in counts.into_iter().zip(sums) {
        println!("\n[[level]]\nfiles = {files}\nbytes = {bytes}\nratios = [");
        for ((compressor, block), (whole, stored)) in MEASURED.into_iter().zip(sums) {
            let ratio = whole as f64 / stored as f64;
            println!("  [\"{compressor}\", {block}, {ratio:.3}],");
        }
        println!("]");
    }
}

/// The generated content of `level`: `len` bytes of a seed.
fn generated(level: u8) -> impl Fn(u64, u64) -> Vec<u8> {
    move |seed, len| compressors::bytes(level, seed, len)
}

fn compare() {
    let sizes = generated_sizes();
    let mut all = vec![(0.0, 0.0); MEASURED.len()];
    println!("generated (measured) ratio and difference");
    for (level, measured) in table().level.iter().enumerate() {
        println!("level {level}");
        let content = generated(level as u8);
        for (row, all) in measured.ratios.iter().zip(&mut all) {
            let found = ratio(row.compressor(), row.1, &sizes[&(level as u8)], &content);
            tell(row, found);
            *all = (
                all.0 + measured.bytes as f64 / found,
                all.1 + measured.bytes as f64 / row.2,
            );
        }
    }
    println!("all levels: stored bytes, generated / measured");
    for (row, (found, wanted)) in table().level[0].ratios.iter().zip(all) {
        println!(
            "  {:8} {:8} {:+.1} %",
            row.0,
            row.1,
            (found / wanted - 1.0) * 100.0
        );
    }
}

fn tell(row: &compressors::Row, found: f64) {
    let percent = (found / row.2 - 1.0) * 100.0;
    println!(
        "  {:8} {:8} {found:6.3} ({:6.3}) {percent:+5.1} %",
        row.0, row.1, row.2
    );
}

/// A parameter's least and largest value, and whether it is a percentage.
const LIMITS: [(u64, u64, bool); 10] = [
    (1, 64, false),
    (3, 8, false),
    (0, 6, false),
    (0, 100, true),
    (0, 100, true),
    (0, 100, true),
    (0, 100, true),
    (3, 64, false),
    (3, 400, false),
    (0, 90, true),
];

fn model(of: [u64; 10]) -> Model {
    let [
        literals,
        octaves,
        skew,
        any,
        context,
        near,
        middle,
        near_bytes,
        far_bytes,
        resume,
    ] = of;
    Model {
        literals,
        octaves,
        skew,
        any,
        context,
        near,
        middle: middle.min(100 - near),
        near_bytes,
        far_bytes,
        resume,
    }
}

/// A row of the table, and blocks that stand for its files.
struct Goal {
    row: compressors::Row,
    blocks: BTreeMap<u64, f64>,
}

/// Content of `model`: `len` bytes of a seed.
fn content(model: &Model) -> impl Fn(u64, u64) -> Vec<u8> + use<> {
    let pool = model.bytes(&mut Rng::named(0, "content"), 2 * MIB);
    move |seed, len| {
        let from = seed % (pool.len() as u64 - len + 1);
        pool[from as usize..(from + len) as usize].to_vec()
    }
}

/// How far `model` is from `goals`: the root mean square of the logarithms, and half the worst;
/// infinite as soon as it is known to be more than `limit`.
fn distance(model: &Model, goals: &[Goal], limit: f64) -> f64 {
    let content = content(model);
    let (mut squares, mut worst) = (0.0, 0.0_f64);
    let mut total = 0.0;
    for Goal { row, blocks } in goals {
        let off = (ratio_of(row.compressor(), blocks, &content) / row.2)
            .ln()
            .abs();
        squares += off * off;
        worst = worst.max(off);
        total = (squares / goals.len() as f64).sqrt() + 0.5 * worst;
        if total > limit {
            return f64::INFINITY;
        }
    }
    total
}

/// Searches at random for the model of `level`: `steps` steps from `start`, or from the best of
/// some random places.
fn fit(level: u8, seed: u64, steps: u64, start: Option<[u64; 10]>) {
    let sizes = &generated_sizes()[&level];
    let rows = &table().level[usize::from(level)].ratios;
    let mut goals: Vec<Goal> = rows
        .iter()
        .map(|row| {
            let parts = match row.1 {
                ..=16_384 => 4,
                16_385..=131_072 => 3,
                _ => 1,
            };
            let blocks = compressors::typical_blocks(sizes, row.1, parts);
            Goal {
                row: row.clone(),
                blocks,
            }
        })
        .collect();
    // The quickest first: most attempts are given up after those.
    goals.sort_by_key(|goal| match goal.row.compressor() {
        Compressor::Lz4 => goal.row.1,
        Compressor::Zstd(3) => 2 * goal.row.1,
        Compressor::Zstd(_) => 20 * goal.row.1,
        Compressor::Xz => 40 * goal.row.1,
    });
    let mut rng = Rng::named(seed, "fit");
    let anywhere = |rng: &mut Rng| {
        LIMITS.map(|(low, high, percent)| match percent {
            true => low + rng.below(high - low + 1),
            false => {
                let times = high as f64 / low.max(1) as f64;
                (low.max(1) as f64 * times.powf(rng.unit_f64())) as u64
            }
        })
    };
    let mut best = (f64::INFINITY, [0; 10]);
    for step in 0..steps {
        let reach = if step < steps / 2 { 0.5 } else { 0.2 };
        let mut next = best.1;
        match start {
            Some(start) if step == 0 => next = start,
            None if step < steps / 4 => next = anywhere(&mut rng),
            _ => {
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(10) as usize;
                    let (low, high, percent) = LIMITS[at];
                    let (value, by) = (next[at] as f64, rng.unit_f64() * 2.0 - 1.0);
                    let moved = match percent {
                        true => value + by * reach * 50.0,
                        false => value * (by * reach).exp() + by,
                    };
                    next[at] = (moved.round().max(0.0) as u64).clamp(low, high);
                }
            }
        }
        let off = distance(&model(next), &goals, best.0);
        if off < best.0 {
            best = (off, next);
            println!("{step} {off:.4} {next:?}");
        }
    }
    println!("{:?}", model(best.1));
    let content = content(&model(best.1));
    for row in rows {
        tell(row, ratio(row.compressor(), row.1, sizes, &content));
    }
}

fn write_tree(to: &Path) {
    for entry in compressors::generated_tree().entries {
        let path = to.join(&entry.path);
        match entry.kind {
            EntryKind::Directory => std::fs::create_dir_all(path).unwrap(),
            EntryKind::File { size, content } => {
                let Content::Generated { level, seed } = content else {
                    unreachable!()
                };
                std::fs::write(path, compressors::bytes(level, seed, size)).unwrap();
            }
            EntryKind::Symlink { target } => std::os::unix::fs::symlink(target, path).unwrap(),
            EntryKind::HardLink { existing } => {
                std::fs::hard_link(to.join(existing), path).unwrap();
            }
        }
    }
}
