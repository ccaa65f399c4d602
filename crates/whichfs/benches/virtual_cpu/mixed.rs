//! Work by which the one factor is found: none of it is judged.

use crate::work::{directory, phase, sync};
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;

const DIRECTORIES: usize = 40;
/// Files in each directory.
const FILES: usize = 200;
/// New directories, hard links; symbolic links and changes of a mode are twice as many.
const SOME: usize = 4000;
/// Bytes of the file that is read and overwritten in pieces.
const LARGE: usize = 64 << 20;
const PAGE: usize = 4096;
/// Pieces that are overwritten, and of how many each is followed by an fsync.
const OVERWRITTEN: usize = 40_000;
const SYNCED: usize = 2000;
/// Small writes to the end of one file.
const SMALL: usize = 400_000;
/// Passes over all directories.
const LISTINGS: usize = 50;

/// A generator of places and sizes: the same in each run.
struct Numbers(u32);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = (self.0.wrapping_mul(1_664_525)).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % bound
    }
}

/// Names are made before a phase begins, lest it measures how they are made.
fn names(prefix: &str, count: usize) -> Vec<PathBuf> {
    let name = |at: usize| format!("{:04}/{prefix}{at:08}", at % DIRECTORIES);
    (0..count).map(|at| name(at).into()).collect()
}

/// Performs all phases in the working directory.
pub fn run() {
    let mut numbers = Numbers(1);
    let block = vec![0x5a; 64 << 10];
    trees(&mut numbers, &block);
    entries();
    pieces(&mut numbers, &block);
}

/// Small files: written, read, listed.
fn trees(numbers: &mut Numbers, block: &[u8]) {
    let files = names("f", DIRECTORIES * FILES);
    let sizes: Vec<usize> = files.iter().map(|_| 1000 + numbers.below(16_000)).collect();
    phase("tree", || {
        (0..DIRECTORIES).for_each(directory);
        for (path, size) in files.iter().zip(&sizes) {
            let file = File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            for at in (0..*size).step_by(PAGE) {
                let part = &block[..PAGE.min(size - at)];
                (file.write_all_at(part, at as u64)).unwrap_or_else(|e| panic!("write: {e}"));
            }
        }
        sync();
    });
    let mut buffer = vec![0; 16 * PAGE];
    phase("tree read", || {
        for path in &files {
            let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let _ = file.read_at(&mut buffer, 0);
        }
    });
    phase("list", || {
        for at in 0..LISTINGS * DIRECTORIES {
            let name = format!("{:04}", at % DIRECTORIES);
            let entries = fs::read_dir(&name).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(entries.count() >= FILES);
        }
    });
}

/// Entries of directories: renamed, linked, made, changed.
fn entries() {
    let (old, new) = (names("f", SOME), names("g", SOME));
    let each = |name: &str, act: &dyn Fn(usize) -> std::io::Result<()>| {
        phase(name, || {
            (0..SOME).for_each(|at| act(at).unwrap_or_else(|e| panic!("{name} {at}: {e}")));
            sync();
        });
    };
    let (hard, soft, made) = (names("h", SOME), names("s", SOME), names("d", SOME));
    each("rename", &|at| fs::rename(&old[at], &new[at]));
    each("link", &|at| fs::hard_link(&new[at], &hard[at]));
    each("symlink", &|at| symlink("../0000/target", &soft[at]));
    each("mkdir", &|at| fs::create_dir(&made[at]));
    each("rmdir", &|at| fs::remove_dir(&made[at]));
    each("chmod", &|at| {
        fs::set_permissions(&new[at], Permissions::from_mode(0o600))
    });
    each("truncate", &|at| {
        (OpenOptions::new().write(true).open(&new[at])).and_then(|file| file.set_len(700))
    });
    each("unlink", &|at| fs::remove_file(&new[at]));
}

/// Parts of a large file, and a file that grows by little.
fn pieces(numbers: &mut Numbers, block: &[u8]) {
    let file = (OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open("large"))
    .unwrap_or_else(|e| panic!("large: {e}"));
    for at in (0..LARGE).step_by(block.len()) {
        (file.write_all_at(block, at as u64)).unwrap_or_else(|e| panic!("large: {e}"));
    }
    file.sync_all().unwrap_or_else(|e| panic!("fsync: {e}"));
    let mut buffer = vec![0; PAGE];
    let mut place = || (numbers.below(LARGE / PAGE) * PAGE) as u64;
    let places: Vec<u64> = (0..100_000).map(|_| place()).collect();
    phase("pieces read", || {
        for at in &places {
            (file.read_exact_at(&mut buffer, *at)).unwrap_or_else(|e| panic!("read: {e}"));
        }
    });
    phase("pieces written", || {
        for (count, at) in places[..OVERWRITTEN].iter().enumerate() {
            (file.write_all_at(&buffer, *at)).unwrap_or_else(|e| panic!("write: {e}"));
            if count % SYNCED == SYNCED - 1 {
                file.sync_all().unwrap_or_else(|e| panic!("fsync: {e}"));
            }
        }
    });
    let small = File::create("small").unwrap_or_else(|e| panic!("small: {e}"));
    phase("small writes", || {
        for at in 0..SMALL {
            (small.write_all_at(&block[..100], at as u64 * 100))
                .unwrap_or_else(|e| panic!("write: {e}"));
        }
        small.sync_all().unwrap_or_else(|e| panic!("fsync: {e}"));
    });
}
