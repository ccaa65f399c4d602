//! Which options of a fio job file are passed on to fio, and which values they may have.
//!
//! A job file is data from anywhere, and fio can do whatever its user can: open any file or device
//! (`filename=/dev/sda`, `filename_format`, `read_iolog`), run commands (`ioengine=exec`,
//! `exec_prerun`), change the system (`ioscheduler`, `cgroup`), read files as patterns. So options
//! are passed on by an allow-list, and fio reads text that this module wrote, not the user's.
//! Source of the names: `HOWTO.rst` of fio 3.33.

use whichfs_units::nearest;

/// A value that an option may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Nothing, numbers, or words of [`is_plain`].
    Plain,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Names of files in the directory under test, separated by `:`.
    Files,
    /// A direction of reads and writes, without trims.
    Direction,
}

/// Engines that read and write files of a directory.
const ENGINES: &[&str] = &[
    "falloc",
    "filecreate",
    "filedelete",
    "filestat",
    "ftruncate",
    "io_uring",
    "libaio",
    "mmap",
    "posixaio",
    "psync",
    "pvsync",
    "pvsync2",
    "splice",
    "sync",
    "vsync",
];

/// Directions of reads and writes; `rw=randread:8` gives a number of operations as well.
const DIRECTIONS: &[&str] = &[
    "randread",
    "randrw",
    "randwrite",
    "read",
    "readwrite",
    "rw",
    "write",
];

/// Options whose values decide nothing but how much is read and written, when, and how it is told.
const PLAIN: &[&str] = &[
    "allow_file_create",
    "allrandrepeat",
    "atomic",
    "ba",
    "block_error_percentiles",
    "blockalign",
    "blocksize",
    "blocksize_range",
    "blocksize_unaligned",
    "bs",
    "bs_is_seq_rand",
    "bs_unaligned",
    "bsrange",
    "bssplit",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "buffered",
    "clat_percentiles",
    "continue_on_error",
    "create_fsync",
    "create_on_open",
    "create_only",
    "create_serialize",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_percentage",
    "dedupe_working_set_percentage",
    "direct",
    "do_verify",
    "end_fsync",
    "exit_what",
    "exitall",
    "exitall_on_error",
    "experimental_verify",
    "fadvise_hint",
    "fallocate",
    "fdatasync",
    "file_append",
    "file_service_type",
    "filesize",
    "fill_device",
    "fill_fs",
    "fixedbufs",
    "flow",
    "flow_id",
    "flow_sleep",
    "fsync",
    "fsync_on_close",
    "group_reporting",
    "gtod_reduce",
    "hipri",
    "ignore_error",
    "invalidate",
    "io_limit",
    "io_size",
    "io_submit_mode",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_batch_submit",
    "iodepth_low",
    "kb_base",
    "lat_percentiles",
    "latency_percentile",
    "latency_run",
    "latency_target",
    "latency_window",
    "lockfile",
    "loops",
    "max_latency",
    "new_group",
    "nice",
    "nonvectored",
    "norandommap",
    "nrfiles",
    "number_ios",
    "numjobs",
    "offset",
    "offset_align",
    "offset_increment",
    "openfiles",
    "overwrite",
    "percentage_random",
    "percentile_list",
    "pre_read",
    "prio",
    "prioclass",
    "ramp_time",
    "random_distribution",
    "random_generator",
    "randrepeat",
    "randseed",
    "rate",
    "rate_cycle",
    "rate_ignore_thinktime",
    "rate_iops",
    "rate_iops_min",
    "rate_min",
    "rate_process",
    "refill_buffers",
    "registerfiles",
    "runtime",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "scramble_buffers",
    "serialize_overlap",
    "significant_figures",
    "size",
    "softrandommap",
    "startdelay",
    "stats",
    "steadystate",
    "steadystate_check_interval",
    "steadystate_duration",
    "steadystate_ramp_time",
    "stonewall",
    "sync",
    "sync_file_range",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_iotime",
    "thinktime_spin",
    "thread",
    "time_based",
    "timeout",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "unlink_each_loop",
    "use_os_rand",
    "userspace_reap",
    "verify",
    "verify_async",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_fatal",
    "verify_interval",
    "verify_offset",
    "verify_only",
    "verify_pattern",
    "verifysort",
    "verifysort_nr",
    "wait_for",
    "wait_for_previous",
    "write_barrier",
    "write_hint",
    "zero_buffers",
];

/// Options with values of their own kind.
const SPECIAL: &[(&str, Value)] = &[
    ("clocksource", Value::OneOf(&["clock_gettime"])),
    ("filename", Value::Files),
    ("ioengine", Value::OneOf(ENGINES)),
    ("iomem", Value::OneOf(&["malloc", "mmap", "shm"])),
    ("mem", Value::OneOf(&["malloc", "mmap", "shm"])),
    ("readwrite", Value::Direction),
    ("rw", Value::Direction),
];

/// Options that are left out, because whichfs gives them itself or nothing depends on them.
const LEFT_OUT: [&str; 3] = ["description", "directory", "disk_util"];

/// Options that many job files have, and what to do instead.
const REMEDIES: [(&[&str], &str); 8] = [
    (
        &["include"],
        "the job must be whole: put the text of that file here",
    ),
    (
        &["filename_format", "unique_filename", "name"],
        "files are made on the card under test: give filename=NAME, or leave it out",
    ),
    (
        &[
            "opendir",
            "read_iolog",
            "replay_redirect",
            "merge_blktrace_file",
        ],
        "the card under test is empty: let fio make its files (nrfiles, filesize)",
    ),
    (
        &["exec_prerun", "exec_postrun", "program", "arguments"],
        "it runs a command outside of the card under test: leave it out",
    ),
    (
        &["gtod_cpu", "cpus_allowed", "cpumask", "numa_cpu_nodes"],
        "the lab's guest has one CPU: leave it out",
    ),
    (
        &[
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "write_iolog",
        ],
        "logs would go to the card under test: leave it out; latencies are kept as histograms",
    ),
    (
        &["ioscheduler", "cgroup", "cgroup_weight", "lockmem"],
        "it changes the machine, not the work: leave it out",
    ),
    (
        &["uid", "gid", "verify_state_load", "verify_dump", "profile"],
        "whichfs does not pass it on: leave it out",
    ),
];

/// What becomes of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// fio gets it.
    Passed,
    /// It has no meaning here.
    LeftOut,
    /// It is refused: why, and the remedy.
    Refused(String),
}

/// What becomes of the option `key` with `value`.
pub(crate) fn judge(key: &str, value: &str) -> Judgement {
    if LEFT_OUT.contains(&key) {
        return Judgement::LeftOut;
    }
    let special = SPECIAL.iter().find(|(name, _)| *name == key);
    let kind = match (special, PLAIN.contains(&key)) {
        (Some((_, kind)), _) => *kind,
        (None, true) => Value::Plain,
        (None, false) => return Judgement::Refused(unknown(key)),
    };
    match refuse_value(kind, value) {
        Some(why) => Judgement::Refused(why),
        None => Judgement::Passed,
    }
}

/// Why the section `[name]` is refused: fio names the files of a job after it.
pub(crate) fn refuse_section(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-.+".contains(c);
    let ok = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
    (!ok).then(|| {
        "files are named after the section: use letters, digits, blanks and any of _ - . +"
            .to_owned()
    })
}

/// Why an option that is not in the lists is refused.
fn unknown(key: &str) -> String {
    let remedy = REMEDIES.iter().find(|(keys, _)| keys.contains(&key));
    if let Some((_, remedy)) = remedy {
        return (*remedy).to_owned();
    }
    let known = PLAIN.iter().chain(SPECIAL.iter().map(|(name, _)| name));
    let known: Vec<&str> = known.copied().collect();
    match nearest(key, &known).first() {
        Some(name) => format!("no option that whichfs passes on to fio; did you mean '{name}'?"),
        None => "no option that whichfs passes on to fio: leave it out".to_owned(),
    }
}

fn refuse_value(kind: Value, value: &str) -> Option<String> {
    match kind {
        Value::Plain if is_plain(value) => None,
        Value::Plain => Some(
            "a value is made of letters, digits and any of . , : / % + - _ *; variables, \
             arithmetic and quotes are not passed on"
                .to_owned(),
        ),
        Value::OneOf(words) if words.contains(&value) => None,
        Value::OneOf(words) => Some(format!("one of {}", words.join(", "))),
        Value::Files if value.split(':').all(is_file) => None,
        Value::Files => Some(
            "files are made on the card under test: give a name without / or leave it out"
                .to_owned(),
        ),
        Value::Direction => refuse_direction(value),
    }
}

fn refuse_direction(value: &str) -> Option<String> {
    let (direction, count) = value.split_once(':').unwrap_or((value, ""));
    if DIRECTIONS.contains(&direction) && is_plain(count) {
        return None;
    }
    Some(
        match value.contains("trim") {
            true => "fio trims block devices only: use read, write, randread, randwrite or randrw",
            false => "use read, write, randread, randwrite, rw or randrw",
        }
        .to_owned(),
    )
}

/// Whether `value` names no variable, no file pattern and no calculation.
fn is_plain(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".,:/%+-_*".contains(c);
    // A pattern of a buffer that begins so would be the name of a file.
    value.chars().all(plain) && !value.starts_with(['/', '.'])
}

/// Whether `name` is a file of the directory under test.
fn is_file(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an attacker, or a careless job file, may write; each line is refused.
    const HOSTILE: [(&str, &str); 44] = [
        ("filename", "/dev/sda"),
        ("filename", "/etc/passwd"),
        ("filename", "../../etc/passwd"),
        ("filename", "a:/dev/loop1"),
        ("filename", "a:../b"),
        ("filename", "${HOME}x"),
        ("filename", "$HOME"),
        ("filename", "a\\:b"),
        ("filename", ".."),
        ("filename", "-"),
        ("filename", ""),
        ("filename", "a b"),
        ("filename_format", "/dev/loop1"),
        ("filename_format", "x.$filenum"),
        ("opendir", "/"),
        ("include", "/etc/fio.conf"),
        ("ioengine", "exec"),
        ("ioengine", "external:/tmp/evil.so"),
        ("ioengine", "/tmp/evil.so"),
        ("ioengine", "sg"),
        ("ioengine", "net"),
        ("ioengine", "e4defrag"),
        ("ioengine", "null"),
        ("ioengine", "dev-dax"),
        ("program", "/bin/sh"),
        ("arguments", "-c id"),
        ("exec_prerun", "touch /tmp/x"),
        ("exec_postrun", "touch /tmp/x"),
        ("read_iolog", "/etc/shadow"),
        ("replay_redirect", "/dev/sda"),
        ("merge_blktrace_file", "/etc/x"),
        ("write_iolog", "/etc/x"),
        ("write_lat_log", "/etc/x"),
        ("verify_state_load", "/etc/x"),
        ("buffer_pattern", "'/etc/shadow'"),
        ("buffer_pattern", "/etc/shadow"),
        ("verify_pattern", "\"x\""),
        ("mem", "mmaphuge:/dev/hugepages/x"),
        ("ioscheduler", "none"),
        ("cgroup", "x"),
        ("uid", "0"),
        ("size", "$(reboot)"),
        ("bs", "`id`"),
        ("profile", "act"),
    ];

    #[test]
    fn attack_what_could_leave_the_card_is_refused() {
        for (key, value) in HOSTILE {
            assert!(
                matches!(judge(key, value), Judgement::Refused(_)),
                "{key}={value}"
            );
        }
    }

    #[test]
    fn what_job_files_commonly_say_is_passed_on() {
        for (key, value) in [
            ("rw", "randrw"),
            ("rw", "randread:8"),
            ("bs", "4k,8k"),
            ("bssplit", "4k/50:8k/50"),
            ("size", "10%"),
            ("filename", "one:two.dat"),
            ("ioengine", "libaio"),
            ("random_distribution", "zipf:1.2"),
            ("verify", "crc32c"),
            ("verify_pattern", "0xdeadbeef"),
            ("stonewall", ""),
            ("rate", "1m,500k"),
            ("offset", "-4k"),
        ] {
            assert_eq!(judge(key, value), Judgement::Passed, "{key}={value}");
        }
        assert_eq!(judge("directory", "/mnt/sd"), Judgement::LeftOut);
    }

    #[test]
    fn a_misspelt_option_names_its_neighbour() {
        let Judgement::Refused(why) = judge("numjob", "4") else {
            panic!("numjob is none");
        };
        assert!(why.contains("did you mean 'numjobs'?"), "{why}");
    }

    #[test]
    fn sections_name_files() {
        for bad in ["../x", "a/b", "", "..", "a${HOME}", "x]"] {
            assert!(refuse_section(bad).is_some(), "{bad}");
        }
        for good in ["random-write", "rand read 4k", "job1.2"] {
            assert_eq!(refuse_section(good), None, "{good}");
        }
    }

    #[test]
    fn no_option_stands_in_two_lists() {
        let all = PLAIN.iter().copied();
        let all = all.chain(SPECIAL.iter().map(|(name, _)| *name));
        let mut all: Vec<&str> = all.chain(LEFT_OUT).collect();
        let refused = REMEDIES.iter().flat_map(|(keys, _)| *keys);
        all.extend(refused.copied());
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
