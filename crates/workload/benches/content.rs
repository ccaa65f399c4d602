//! How real and generated content compresses, per compressor and block.
//!
//! - `cargo bench -p whichfs-workload --bench content`: generated content beside the table of
//!   `workloads/compressed.toml`.
//! - `… -- measure DIR`: the table of the files below DIR.
//! - `… -- fit LEVEL [SEED]`: searches for the parameters of a level (`workloads/content.toml`).
//! - `… -- tree DIR`: writes the generated tree, for mksquashfs and mkfs.erofs.
#![allow(clippy::unwrap_used)]

#[path = "../tests/compressors/mod.rs"]
mod compressors;
#[path = "../src/content_model.rs"]
mod content_model;

use compressors::{Compressor, MEASURED, generated_sizes, ratio, stored, table};
use content_model::Model;
use std::path::{Path, PathBuf};
use whichfs_units::{KIB, MIB, Rng};
use whichfs_workload::{Content, EntryKind, levels};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => compare(),
        ["measure", tree] => measure(Path::new(tree)),
        ["fit", level] => fit(level.parse().unwrap(), 1),
        ["fit", level, seed] => fit(level.parse().unwrap(), seed.parse().unwrap()),
        ["tree", to] => write_tree(Path::new(to)),
        _ => panic!("no arguments, measure DIR, fit LEVEL [SEED], or tree DIR"),
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
        let whole = bytes.chunks(128 << 10).map(|one| stored(Compressor::Zstd(3), one));
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
            *all = (all.0 + measured.bytes as f64 / found, all.1 + measured.bytes as f64 / row.2);
        }
    }
    println!("all levels: stored bytes, generated / measured");
    for (row, (found, wanted)) in table().level[0].ratios.iter().zip(all) {
        println!("  {:8} {:8} {:+.1} %", row.0, row.1, (found / wanted - 1.0) * 100.0);
    }
}

fn tell(row: &compressors::Row, found: f64) {
    let percent = (found / row.2 - 1.0) * 100.0;
    println!("  {:8} {:8} {found:6.3} ({:6.3}) {percent:+5.1} %", row.0, row.1, row.2);
}

/// A parameter's least and largest value, and whether it is a percentage.
const LIMITS: [(u64, u64, bool); 9] = [
    (1, 64, false),
    (8, 256, false),
    (1, 12, false),
    (0, 100, true),
    (0, 100, true),
    (0, 100, true),
    (4, 64, false),
    (4, 400, false),
    (0, 80, true),
];

fn model(of: [u64; 9]) -> Model {
    let [literals, alphabet, skew, context, near, middle, near_bytes, far_bytes, resume] = of;
    let middle = middle.min(100 - near);
    Model { literals, alphabet, skew, context, near, middle, near_bytes, far_bytes, resume }
}

/// What `model` gives for the `rows` of the table.
fn tried(model: &Model, rows: &[compressors::Row], sizes: &[u64]) -> Vec<f64> {
    let pool = model.bytes(&mut Rng::named(0, "fit"), 2 * MIB);
    let content = |seed: u64, len: u64| {
        let from = seed % (pool.len() as u64 - len + 1);
        pool[from as usize..(from + len) as usize].to_vec()
    };
    let each = rows.iter().map(|row| ratio(row.compressor(), row.1, sizes, &content));
    each.collect()
}

/// How far `found` is from `rows`: the root mean square of the logarithms, and half the worst.
fn distance(found: &[f64], rows: &[compressors::Row]) -> f64 {
    let off = || found.iter().zip(rows).map(|(found, row)| (found / row.2).ln().abs());
    let square = off().map(|off| off * off).sum::<f64>() / found.len() as f64;
    square.sqrt() + 0.5 * off().fold(0.0, f64::max)
}

fn fit(level: u8, seed: u64) {
    const STARTS: usize = 60;
    const STEPS: usize = 120;
    let sizes = &generated_sizes()[&level];
    let rows = &table().level[usize::from(level)].ratios;
    let quick: Vec<compressors::Row> = rows
        .iter()
        .filter(|row| matches!(row.0.as_str(), "lz4" | "zstd-3") && row.1 <= 128 * KIB)
        .cloned()
        .collect();
    let mut rng = Rng::named(seed, "fit");
    let mut anywhere = || {
        LIMITS.map(|(low, high, percent)| match percent {
            true => low + rng.below(high - low + 1),
            false => (low.max(1) as f64 * (high as f64 / low.max(1) as f64).powf(rng.unit_f64())) as u64,
        })
    };
    let starts = (0..STARTS).map(|_| anywhere()).collect::<Vec<_>>();
    let mut starts: Vec<(f64, [u64; 9])> = starts
        .into_iter()
        .map(|one| (distance(&tried(&model(one), &quick, sizes), &quick), one))
        .collect();
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    starts.truncate(4);
    let mut best = (f64::INFINITY, starts[0].1);
    let mut attempt = |one: [u64; 9], best: &mut (f64, [u64; 9])| {
        let off = distance(&tried(&model(one), rows, sizes), rows);
        if off < best.0 {
            *best = (off, one);
            println!("{off:.4} {one:?}");
        }
    };
    starts.iter().for_each(|(_, one)| attempt(*one, &mut best));
    for step in 0..STEPS {
        let reach = if step < STEPS / 2 { 0.5 } else { 0.2 };
        let mut next = best.1;
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(9) as usize;
            let (low, high, percent) = LIMITS[at];
            let (value, by) = (next[at] as f64, rng.unit_f64() * 2.0 - 1.0);
            let moved = match percent {
                true => value + by * reach * 50.0,
                false => value * (by * reach).exp() + by,
            };
            next[at] = (moved.round().max(0.0) as u64).clamp(low, high);
        }
        attempt(next, &mut best);
    }
    println!("{:#?}", model(best.1));
    for (row, found) in rows.iter().zip(tried(&model(best.1), rows, sizes)) {
        tell(row, found);
    }
}

fn write_tree(to: &Path) {
    for entry in compressors::generated_tree().entries {
        let path = to.join(&entry.path);
        match entry.kind {
            EntryKind::Directory => std::fs::create_dir_all(path).unwrap(),
            EntryKind::File { size, content } => {
                let Content::Generated { level, seed } = content else { unreachable!() };
                std::fs::write(path, compressors::bytes(level, seed, size)).unwrap();
            }
            EntryKind::Symlink { target } => std::os::unix::fs::symlink(target, path).unwrap(),
            EntryKind::HardLink { existing } => {
                std::fs::hard_link(to.join(existing), path).unwrap();
            }
        }
    }
}
