//! What fio prints for people (version 2 and 3), its lines of `--minimal`, and what Raspberry Pi
//! Diagnostics (agnostics) prints of those.

use crate::draft::Drafts;
use crate::fio::{self, Job, JobOptions, Side};
use crate::units::number;
use crate::{Remark, command};
use serde_json::Value;
use std::collections::BTreeMap;

/// The tests of Raspberry Pi Diagnostics: name, access, what its summary calls it. It creates its
/// file by another, whose rate is also that of the filesystem.
const DIAGNOSTICS: [(&str, &str, &str); 4] = [
    ("seq-write", "write", "Sequential write speed "),
    ("seq-read", "read", "Sequential read speed "),
    ("rand-4k-write", "randwrite", "Random write speed "),
    ("rand-4k-read", "randread", "Random read speed "),
];

/// Jobs among which one of the same name is looked for.
const RUN_JOBS: usize = 64;

/// What fio printed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Options of the command line; of several without results in between, those that are equal.
    command: JobOptions,
    /// Options that fio repeats, by the job's name.
    jobs: BTreeMap<String, JobOptions>,
    /// Jobs with their lines, not yet taken.
    done: Vec<(usize, Job)>,
    /// A job had a result since the command.
    ran: bool,
    /// Runs of fio that ended: each counts its groups from 0.
    runs: u64,
    /// Raspberry Pi Diagnostics printed the figures before their summary.
    rows: bool,
}

impl State {
    /// Takes a command line.
    pub fn command(&mut self, text: &str) -> bool {
        let words = command::command(text, "fio").unwrap_or_default();
        let mut found = JobOptions::new();
        for option in words.iter().filter_map(|word| word.strip_prefix('-')) {
            let option = option.trim_start_matches('-');
            let (name, value) = option.split_once('=').unwrap_or((option, "1"));
            found.insert(name.replace("readwrite", "rw"), Value::from(value));
        }
        if !["rw", "bs", "filename"]
            .iter()
            .any(|name| found.contains_key(*name))
        {
            return false;
        }
        if !self.command.is_empty() && !std::mem::take(&mut self.ran) {
            found.retain(|name, value| self.command.get(name) == Some(value));
        }
        self.command = found;
        self.runs += 1;
        true
    }

    /// Gives the jobs that are done to the run at hand.
    pub fn flush(&mut self, drafts: &mut Drafts, skipped: &mut Vec<Remark>) {
        let jobs = std::mem::take(&mut self.done);
        fio::take(&jobs, &JobOptions::new(), drafts, skipped);
    }

    /// Takes a line of output.
    pub fn take(&mut self, line: usize, text: &str) -> bool {
        let job = self
            .begun(text)
            .or_else(|| self.terse(text))
            .or_else(|| self.diagnostics(text));
        if let Some(mut job) = job {
            let mut before = self.done.iter().rev().take(RUN_JOBS);
            let again = before.any(|(_, other)| other.jobname == job.jobname);
            self.runs += u64::from(again && !self.command.contains_key("numjobs"));
            job.groupid = job.groupid.map(|group| (self.runs << 32) + group);
            self.ran = true;
            self.done.push((line, job));
            return true;
        }
        let (head, rest) = text.split_once(": ").unwrap_or(("", ""));
        let of_last = self.done.last_mut().map(|(_, job)| job);
        if let Some(options) = rest.strip_prefix("(g=").and_then(header) {
            self.jobs.insert(head.to_owned(), options);
        } else if let (Some(job), Some(side)) = (of_last, side(rest)) {
            match head.trim() {
                "read" => job.read = Some(side),
                "write" => job.write = Some(side),
                _ => job.trim = Some(side),
            }
        } else if rest.starts_with("ios=") && !head.starts_with("dm-") {
            // Those since the last such line.
            for (_, job) in self.done.iter_mut().rev() {
                let file = job.options.entry("filename".to_owned()).or_default();
                if file.as_str().is_some_and(|file| file.starts_with("/dev/")) {
                    break;
                }
                *file = Value::from(format!("/dev/{}", head.trim()));
            }
        } else if text.starts_with("Run status group") {
            self.runs += 1;
        } else {
            return false;
        }
        true
    }

    /// The job `name`, of which the command line and fio say its options.
    fn job(&self, name: &str, group: &str, error: &str) -> Job {
        let mut options = self.command.clone();
        options.extend(self.jobs.get(name).cloned().unwrap_or_default());
        Job {
            jobname: name.to_owned(),
            groupid: group.parse().ok(),
            error: number(error.trim()).map_or(0, |(error, _)| error as i64),
            untold: self.command.is_empty() || !options.contains_key("rw"),
            options,
            ..Job::default()
        }
    }

    /// `NAME: (groupid=0, jobs=1): err= 0: pid=…`.
    fn begun(&self, text: &str) -> Option<Job> {
        let (name, rest) = text.split_once(": (groupid=")?;
        let (group, rest) = rest.split_once(", jobs=")?;
        let (count, error) = rest.split_once("): err=")?;
        let mut job = self.job(name, group, error);
        job.options.insert("numjobs".to_owned(), Value::from(count));
        Some(job)
    }

    /// `3;fio-3.12;NAME;0;0;…`: KiB and requests a second of reads, and 41 fields on of writes.
    fn terse(&self, text: &str) -> Option<Job> {
        let fields: Vec<&str> = text.split(';').collect();
        let [_, version, name, group, error, _, read, reads, ..] = fields[..] else {
            return None;
        };
        let mut job = self.job(name, group, error);
        job.read = terse_side(read, reads);
        job.write = terse_side(fields.get(47)?, fields.get(48)?);
        version.starts_with("fio-").then_some(job)
    }

    /// `rand-4k-write;0;0;3844;961`, fields of the same; and what is made of them,
    /// `Random write speed 961 IOPS (target 500) - PASS`.
    fn diagnostics(&mut self, text: &str) -> Option<Job> {
        let fields: Vec<&str> = text.split(';').collect();
        let row = fields.len() == 5;
        let test = |test: &&(&str, &str, &str)| match row {
            true => fields[0] == test.0,
            false => text.starts_with(test.2),
        };
        let (name, access, summary) = DIAGNOSTICS.iter().find(test)?;
        let [read, write] = match fields[..] {
            [_, read, reads, write, writes] => {
                [terse_side(read, reads)?, terse_side(write, writes)?]
            }
            _ if self.rows => return None,
            _ => {
                let (said, unit) = number(text.strip_prefix(summary)?)?;
                let scale = if unit.starts_with(" IOPS") { 4.0 } else { 1.0 };
                [
                    Side::plain(scale * said, 0.0),
                    Side::plain(scale * said, 0.0),
                ]
            }
        };
        self.rows |= row;
        // Its first version wrote 512 KiB in order, a later one 4 MiB.
        let large = read.mean_bytes().max(write.mean_bytes()) > f64::from(1 << 20);
        let block = match access.starts_with("rand") {
            true => "4k",
            false if large => "4m",
            false => "512k",
        };
        let options = [("rw", *access), ("bs", block), ("direct", "1")];
        let options = options.map(|(name, value)| (name.to_owned(), Value::from(value)));
        Some(Job {
            jobname: (*name).to_owned(),
            options: options.into(),
            read: Some(read),
            write: Some(write),
            ..Job::default()
        })
    }
}

/// KiB and requests a second.
fn terse_side(kib: &str, iops: &str) -> Option<Side> {
    Some(Side::plain(kib.parse().ok()?, iops.parse().ok()?))
}

/// `IOPS=85, BW=85.1MiB/s (89.3MB/s)(1024MiB/12026msec)` of version 3,
/// `io=48920KB, bw=2443.5KB/s, iops=610, runt= 20021msec` of version 2, whose KB is 1024 bytes.
fn side(text: &str) -> Option<Side> {
    let value = |key: &str| {
        number(text.to_lowercase().split_once(key)?.1.trim_start())
            .map(|(figure, unit)| (figure, unit.to_owned()))
    };
    let ((rate, unit), (iops, thousands)) = (value("bw=")?, value("iops=")?);
    let kib = match unit.split_once("/s")?.0.trim().trim_end_matches(['b', 'i']) {
        "" => rate / 1024.0,
        "k" => rate,
        "m" => rate * 1024.0,
        "g" => rate * 1_048_576.0,
        _ => return None,
    };
    let scale = if thousands.starts_with('k') { 1e3 } else { 1.0 };
    Some(Side::plain(kib, iops * scale))
}

/// The options in `0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, …, ioengine=sync, iodepth=1`,
/// where version 2 has `bs=4K-4K/4K-4K/4K-4K`.
fn header(text: &str) -> Option<JobOptions> {
    let (before, sizes) = text.split_once("bs=")?;
    let (sizes, after) = sizes.split_once(", ioengine=")?;
    let sizes = sizes.split(['/', ',']).map(|size| {
        size.trim_matches(['(', ')', 'R', 'W', 'T', ' '])
            .split_once('-')
    });
    let sizes: Vec<(&str, &str)> = sizes.collect::<Option<_>>()?;
    let least: Vec<&str> = sizes.iter().map(|(least, _)| *least).collect();
    let block = if sizes.iter().all(|(least, most)| least == most) {
        "bs"
    } else {
        "bsrange"
    };
    let all = format!(
        "{}{block}={}, ioengine={after}",
        before.split_once("): ")?.1,
        least.join("/")
    );
    let options = all.split(", ").filter_map(|option| option.split_once('='));
    Some(
        options
            .map(|(name, value)| (name.to_owned(), Value::from(value.replace('/', ","))))
            .collect(),
    )
}
