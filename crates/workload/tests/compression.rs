//! Generated content compresses as real files do (`workloads/compressed.toml`), per level,
//! compressor and block.

use crate::compressors::{bytes, generated_sizes, ratio, table};

/// How far a ratio of a level may be from the measured one.
const LEVEL_SLACK: f64 = 0.10;
/// The same in blocks of 4 KiB, and of a level that has few of the bytes.
const WIDE_SLACK: f64 = 0.155;
/// Bytes of a small level: a thirtieth of the tree.
const SMALL_LEVEL: u64 = 8_000_000;
/// How far the stored bytes of a whole tree may be from the measured ones.
const TREE_SLACK: f64 = 0.035;
/// The same in blocks of 4 KiB.
const WIDE_TREE_SLACK: f64 = 0.07;

/// Compares the content `made` of a level, seed and length with what was measured.
fn check(made: &dyn Fn(u8, u64, u64) -> Vec<u8>) -> Result<(), String> {
    let sizes = generated_sizes();
    let table = table();
    let rows = table.level[0].ratios.len();
    let (mut found_bytes, mut measured_bytes) = (vec![0.0; rows], vec![0.0; rows]);
    for (level, measured) in (0..).zip(&table.level) {
        let content = |seed, len| made(level, seed, len);
        for (at, row) in measured.ratios.iter().enumerate() {
            let found = ratio(row.compressor(), row.1, &sizes[&level], &content);
            let slack = match measured.bytes < SMALL_LEVEL || row.1 == 4096 {
                true => WIDE_SLACK,
                false => LEVEL_SLACK,
            };
            if (found / row.2 - 1.0).abs() > slack {
                return Err(format!("level {level}, {row:?}: {found:.3}"));
            }
            found_bytes[at] += measured.bytes as f64 / found;
            measured_bytes[at] += measured.bytes as f64 / row.2;
        }
    }
    for (at, row) in table.level[0].ratios.iter().enumerate() {
        let off = found_bytes[at] / measured_bytes[at] - 1.0;
        let slack = if row.1 == 4096 {
            WIDE_TREE_SLACK
        } else {
            TREE_SLACK
        };
        if off.abs() > slack {
            return Err(format!("all levels, {} in {} B: {off:+.3}", row.0, row.1));
        }
    }
    Ok(())
}

#[test]
fn generated_content_compresses_as_real_files_do() {
    check(&bytes).unwrap();
}

#[test]
fn planted_wrong_content_is_found() {
    let refused = |made: &dyn Fn(u8, u64, u64) -> Vec<u8>, expected: &str| {
        let error = check(made).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    // Nothing repeats from beyond 4 KiB: large blocks gain nothing.
    let near = |level, seed, len: u64| match level {
        6 => {
            let pieces = (0..len.div_ceil(4096)).map(|at| bytes(6, seed ^ at, 4096));
            let all: Vec<u8> = pieces.flatten().collect();
            all[..len as usize].to_vec()
        }
        _ => bytes(level, seed, len),
    };
    refused(&near, "level 6, Row(\"lz4\", 1");
    let neighbour = |level, seed, len| bytes(if level == 3 { 4 } else { level }, seed, len);
    refused(&neighbour, "level 3, ");
}
