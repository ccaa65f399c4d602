//! What is measured in both places: one program, in the working directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Directories of empty files, and files in each: 100,000.
const DIRECTORIES: usize = 100;
const FILES: usize = 1000;
/// Bytes of the buffered write.
const WRITTEN: usize = 1 << 30;
/// Bytes that are written with compression.
pub const COMPRESSED: usize = 256 << 20;
/// Bytes of one write: no more than a page, lest kernels with large folios have other work.
const BLOCK: usize = 4096;
/// System calls of a kind.
pub const CALLS: u64 = 100_000;
/// Where the lab's kernel shows what its CPU clock counted.
const COUNTS: &str = "/proc/um_cpu";

/// One phase as the program itself saw it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Phase {
    /// Name of the work, for people.
    pub name: String,
    /// Begin and end by the monotonic clock, in ns.
    pub window: (u64, u64),
    /// CPU time of the process, in ns; of use on a real machine only.
    pub cpu_ns: u64,
    /// What the lab's kernel counted; empty on a real machine.
    pub counts: BTreeMap<String, u64>,
}

/// Set for a run outside of memory control groups, which the lab's kernel has not got.
pub const OUTSIDE: &str = "WHICHFS_OUTSIDE_OF_GROUPS";
/// The roots of both kinds of hierarchies.
const ROOTS: [&str; 2] = [
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/cgroup.procs",
];

/// Performs the phases of `case` in the working directory; each is a line on standard output.
pub fn run(case: &str) {
    if std::env::var_os(OUTSIDE).is_some() {
        // Where it is not allowed, the host's kernel does a little more.
        ROOTS.iter().for_each(|root| drop(fs::write(root, "0")));
    }
    match case {
        "files" => files(),
        "mixed" => crate::mixed::run(),
        "calls" => calls(),
        "data" => {
            let block = vec![0x5a; 1 << 20];
            phase("write", || write(&block, WRITTEN));
            phase("reread", || read(Path::new("data")));
        }
        "compress" => {
            let text = typical();
            phase("write", || write(&text, COMPRESSED));
        }
        "image" => phase("read", || read_all(Path::new("."))),
        _ => panic!("no case {case}"),
    }
}

/// The system calls of lmbench's lat_syscall, on its files.
fn calls() {
    fs::create_dir_all("usr/include/sys").unwrap_or_else(|e| panic!("mkdir: {e}"));
    let path = c"usr/include/sys/types.h";
    let file = File::create("usr/include/sys/types.h").unwrap_or_else(|e| panic!("{e}"));
    let zero = File::open("/dev/zero").unwrap_or_else(|e| panic!("/dev/zero: {e}"));
    let null = File::create("/dev/null").unwrap_or_else(|e| panic!("/dev/null: {e}"));
    // SAFETY: a `stat` of zeros is one.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    let mut byte = 0u8;
    let at = (&raw mut byte).cast();
    // SAFETY: all pointers are to what lives until the end of this function.
    unsafe {
        repeat("null", || libc::syscall(libc::SYS_getppid));
        repeat("fstat", || {
            libc::fstat(file.as_raw_fd(), &mut status).into()
        });
        repeat("stat", || libc::stat(path.as_ptr(), &mut status).into());
        repeat("read", || libc::read(zero.as_raw_fd(), at, 1) as i64);
        repeat("write", || libc::write(null.as_raw_fd(), at, 1) as i64);
    }
}

fn repeat(name: &str, mut call: impl FnMut() -> i64) {
    phase(name, || {
        for _ in 0..CALLS {
            assert!(call() >= 0, "{name}");
        }
    });
}

/// What is compressed: the file of a program, machine code and its tables.
pub fn typical() -> Vec<u8> {
    let mut text =
        fs::read(env!("CARGO_BIN_EXE_whichfs")).unwrap_or_else(|e| panic!("the program: {e}"));
    text.truncate(16 << 20);
    text
}

/// Performs and reports a phase.
pub fn phase(name: &str, work: impl FnOnce()) {
    let before = counts();
    let begun = (
        clock(libc::CLOCK_MONOTONIC),
        clock(libc::CLOCK_PROCESS_CPUTIME_ID),
    );
    work();
    let ended = (
        clock(libc::CLOCK_MONOTONIC),
        clock(libc::CLOCK_PROCESS_CPUTIME_ID),
    );
    let counts = counts()
        .into_iter()
        .map(|(kind, count)| (kind.clone(), count - before.get(&kind).unwrap_or(&0)))
        .collect();
    let phase = Phase {
        name: name.to_owned(),
        window: (begun.0, ended.0),
        cpu_ns: ended.1 - begun.1,
        counts,
    };
    println!("{}", serde_json::json!(phase));
}

fn counts() -> BTreeMap<String, u64> {
    let text = fs::read_to_string(COUNTS).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(kind, count)| Some((kind.to_owned(), count.parse().ok()?)))
        .collect()
}

/// Nanoseconds of a clock.
pub fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes the directory of this number.
pub fn directory(at: usize) {
    fs::create_dir(format!("{at:04}")).unwrap_or_else(|e| panic!("mkdir: {e}"));
}

/// Names are made before the first phase, lest it measures how they are made.
fn files() {
    let name = |at: usize| format!("{:04}/{:012}", at / FILES, at % FILES);
    let paths: Vec<String> = (0..DIRECTORIES * FILES).map(name).collect();
    phase("create", || {
        (0..DIRECTORIES).for_each(directory);
        for path in &paths {
            drop(File::create(path).unwrap_or_else(|e| panic!("{path}: {e}")));
        }
        sync();
    });
    phase("stat", || {
        paths.iter().for_each(|path| drop(fs::metadata(path)))
    });
    phase("delete", || {
        for path in &paths {
            fs::remove_file(path).unwrap_or_else(|e| panic!("{path}: {e}"));
        }
        sync();
    });
}

/// Writes `bytes` bytes, those of `data` again and again, to a file and syncs it.
fn write(data: &[u8], bytes: usize) {
    let mut file = File::create("data").unwrap_or_else(|e| panic!("data: {e}"));
    let mut left = bytes;
    for block in data.chunks(BLOCK).cycle() {
        let part = &block[..block.len().min(left)];
        file.write_all(part)
            .unwrap_or_else(|e| panic!("write: {e}"));
        left -= part.len();
        if left == 0 {
            break;
        }
    }
    file.sync_all().unwrap_or_else(|e| panic!("fsync: {e}"));
}

fn read(path: &Path) {
    let mut file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut block = vec![0; 16 * BLOCK];
    while file
        .read(&mut block)
        .unwrap_or_else(|e| panic!("read: {e}"))
        > 0
    {}
}

fn read_all(directory: &Path) {
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("readdir: {e}"));
    for entry in entries.flatten() {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => read_all(&entry.path()),
            false => read(&entry.path()),
        }
    }
}

/// Writes the filesystem of the working directory out.
pub fn sync() {
    let here = File::open(".").unwrap_or_else(|e| panic!("working directory: {e}"));
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::syncfs(here.as_raw_fd()) }, 0, "syncfs");
}
