//! How true the virtual CPU is: the same program on this machine's own kernel (native, a loop
//! device over memory) and in the lab, CPU time against charged time, filesystem by filesystem.
//!
//! The board stands for this machine: what small measurements tell (`machine.rs`), and one
//! factor, the price of an instruction, by which lab and native agree on average over work that is
//! not judged (`mixed.rs`). What is left is the error of the charge.
//!
//! Needs root, loop devices, perf and mksquashfs; a filesystem that the
//! host's kernel lacks is left out by name. `cargo bench -p whichfs --bench virtual_cpu [-- CASE]`.

mod board;
mod lab;
mod machine;
mod mixed;
mod native;
mod report;
mod work;

use report::Row;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Native runs of each case; the least counts: what runs beside a program only adds to its time.
const RUNS: usize = 3;
const EXT4: &str = "mkfs.ext4 -F -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 {device}";
const XFS: &str = "mkfs.xfs -f -q {device}";
const BTRFS: &str = "mkfs.btrfs -f -q -m single -d single {device}";

/// What is done on which filesystem.
pub struct Case {
    /// Name of the work (`work.rs`).
    pub work: &'static str,
    /// What tells it from others of the same work.
    pub name: &'static str,
    /// Name in the catalogue.
    fs: &'static str,
    /// Name in the kernel.
    kernel_fs: &'static str,
    mkfs: String,
    options: String,
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench");
    if let [mode, case] = &arguments[..]
        && mode == "work"
    {
        return work::run(case);
    }
    let wanted = arguments.first().map_or("", String::as_str);
    let machine = machine::measure();
    println!("{machine}");
    let board = board::write(&scratch(), &machine);
    let mut rows = Vec::new();
    for case in cases() {
        if !format!("{} {}", case.work, case.name).contains(wanted) {
            continue;
        }
        match measure(&case, &board) {
            Ok(found) => rows.extend(found),
            Err(why) => println!("left out: {} {}: {why}", case.work, case.name),
        }
    }
    report::print(&rows, &machine);
}

/// All cases, after the images that some read are made.
fn cases() -> Vec<Case> {
    let case = |work, name, fs, kernel_fs, mkfs: &str, options: &str| Case {
        work,
        name,
        fs,
        kernel_fs,
        mkfs: mkfs.to_owned(),
        options: options.to_owned(),
    };
    let mut cases = vec![case("calls", "ext4", "ext4", "ext4", EXT4, "noatime")];
    for work in ["mixed", "files", "data"] {
        cases.push(case(work, "ext4", "ext4", "ext4", EXT4, "noatime"));
        cases.push(case(work, "xfs", "xfs", "xfs", XFS, "noatime"));
        cases.push(case(work, "btrfs", "btrfs", "btrfs", BTRFS, "noatime"));
    }
    for name in ["zstd", "zlib"] {
        let options = format!("noatime,compress={name}");
        cases.push(case("compress", name, "btrfs", "btrfs", BTRFS, &options));
    }
    for name in ["xz", "gzip", "zstd", "lzo", "lz4"] {
        let copy = format!("dd of={{device}} bs=1M if={}", image(name).display());
        cases.push(case("image", name, "squashfs-xz", "squashfs", &copy, "ro"));
    }
    cases
}

/// Phases of a case in both places.
fn measure(case: &Case, board: &Path) -> Result<Vec<Row>, String> {
    let mut native: Vec<Vec<u64>> = Vec::new();
    let mut names = Vec::new();
    for _ in 0..RUNS {
        let place = native::mount(&case.mkfs, case.kernel_fs, &case.options)?;
        let phases = native::measure(&place, case.work)?;
        native.resize(phases.len(), Vec::new());
        names = phases.iter().map(|(phase, _)| phase.name.clone()).collect();
        for (times, (phase, threads)) in native.iter_mut().zip(&phases) {
            times.push(phase.cpu_ns + threads);
        }
    }
    let lab = lab::measure(case.work, case.fs, &case.mkfs, &case.options, board)?;
    Ok(lab
        .into_iter()
        .filter_map(|phase| {
            let at = names.iter().position(|name| *name == phase.name)?;
            let mut times = native[at].clone();
            times.sort_unstable();
            Some(Row {
                work: format!("{} {}", case.work, phase.name),
                name: case.name.to_owned(),
                native_ns: times[0] as f64,
                spread: times[times.len() - 1] as f64 / times[0] as f64,
                counts: phase.counts,
            })
        })
        .collect())
}

/// A squashfs of 64 MiB by this compressor, made once.
fn image(compressor: &str) -> PathBuf {
    const FILES: usize = 1024;
    const BYTES: usize = 65_536;
    let tree = scratch().join("tree");
    let image = scratch().join(format!("{compressor}.image"));
    if image.exists() {
        return image;
    }
    std::fs::create_dir_all(&tree).unwrap_or_else(|e| panic!("{}: {e}", tree.display()));
    let text = work::typical();
    for file in 0..FILES {
        // Not a multiple of the block: no two files are the same.
        let at = file * (3 * BYTES + 3) % (text.len() - BYTES);
        let path = tree.join(format!("{file:05}"));
        std::fs::write(path, &text[at..at + BYTES]).unwrap_or_else(|e| panic!("tree: {e}"));
    }
    let made = Command::new("mksquashfs")
        .args([&tree, &image])
        .args(["-comp", compressor, "-noappend", "-no-progress", "-quiet"])
        .status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "mksquashfs -comp {compressor}"
    );
    image
}

/// Where things are kept that the guest must see: it has a /tmp of its own.
fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}
