//! What jobs of fio measured, and its JSON (`fio --output-format=json`), version 2 and 3, with
//! whatever fio or a shell printed around it, and several documents in one file.

use crate::draft::Drafts;
use crate::remarks::{UNUSABLE, push};
use crate::units;
use crate::{
    Caveat, CompletionLatency, Form, LogError, LogOptions, LogReading, Operation, Order, Problem,
    Rate, Remark, SYNC_EACH, UNSYNCED,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// By this a document is known.
const MARK: &str = "\"fio version\"";

/// Engines that have one request in flight whatever `iodepth` says (fio's HOWTO).
const ONE_AT_A_TIME: [&str; 7] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice",
];

pub(super) type JobOptions = BTreeMap<String, Value>;

const BESIDE: Caveat =
    Caveat::at_least("other requests at the same time: not the card's rate of these alone");
const UNTOLD: Caveat =
    Caveat::unknown("fio without its command: nothing tells whether it used O_DIRECT");

#[derive(Deserialize)]
struct Document {
    #[serde(default, rename = "global options")]
    global: JobOptions,
    #[serde(default)]
    jobs: Vec<Job>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Job {
    #[serde(default)]
    pub jobname: String,
    /// Jobs of one group run at the same time.
    pub groupid: Option<u64>,
    #[serde(default)]
    pub error: i64,
    #[serde(default, rename = "job options")]
    pub options: JobOptions,
    pub read: Option<Side>,
    pub write: Option<Side>,
    pub trim: Option<Side>,
    /// Its command is not in the log.
    #[serde(skip)]
    pub untold: bool,
}

/// One direction of a job.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Side {
    #[serde(default)]
    pub io_bytes: u64,
    /// KiB a second, in all versions.
    #[serde(default)]
    pub bw: f64,
    /// Bytes a second, since version 3.
    pub bw_bytes: Option<f64>,
    #[serde(default)]
    pub iops: f64,
    #[serde(default)]
    total_ios: u64,
    /// Nanoseconds, since version 3.
    clat_ns: Option<Clat>,
    /// Microseconds, in version 2.
    clat: Option<Clat>,
}

impl Side {
    /// A direction without latencies.
    pub fn plain(kib_per_s: f64, iops: f64) -> Side {
        Side {
            io_bytes: u64::from(kib_per_s > 0.0),
            bw_bytes: Some(1024.0 * kib_per_s),
            iops,
            ..Side::default()
        }
    }

    /// Of a request, where both rates are known.
    pub fn mean_bytes(&self) -> f64 {
        let rate = self.bw_bytes.filter(|_| self.iops > 0.0);
        rate.map_or(0.0, |rate| rate / self.iops)
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Clat {
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    max: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

/// Where the first document of fio begins in `text`.
pub(super) fn document(text: &str) -> Option<usize> {
    text[..text.find(MARK)?].rfind('{')
}

/// Reads the documents of the file `name`, the first of which begins at byte `at`.
pub(super) fn read(name: &str, text: &str, at: usize) -> Result<LogReading, LogError> {
    let mut drafts = Drafts::new();
    let mut skipped = Vec::new();
    let mut begin = Some(at);
    let mut end = 0;
    let mut end_line = 1;
    while let Some(at) = begin {
        let line = end_line + lines_in(&text[end..at]);
        if let Some(around) = text[end..at].lines().find(|line| !line.trim().is_empty()) {
            push(&mut skipped, end_line, "text around fio's JSON", around);
        }
        let mut documents = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Document>();
        let document = match documents.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(syntax(text, line, &error)),
            None => break,
        };
        end = at + documents.byte_offset();
        end_line = line + lines_in(&text[at..end]);
        let lines = job_lines(&text[at..end], line);
        let jobs = document.jobs.into_iter().enumerate();
        let jobs: Vec<(usize, Job)> = jobs
            .map(|(i, job)| (lines.get(i).copied().unwrap_or(line), job))
            .collect();
        take(&jobs, &document.global, &mut drafts, &mut skipped);
        begin = self::document(&text[end..]).map(|next| end + next);
    }
    let mut mended = Vec::new();
    let runs = drafts.finish(name, &LogOptions::default(), &mut mended)?;
    Ok(LogReading {
        form: Form::Fio,
        runs,
        skipped,
        mended,
    })
}

fn syntax(text: &str, first_line: usize, error: &serde_json::Error) -> LogError {
    let line = first_line + error.line().saturating_sub(1);
    let found = text.lines().nth(line - 1).unwrap_or("");
    let problem = if error.is_eof() {
        Problem::Truncated
    } else {
        Problem::Malformed
    };
    LogError::new(problem, Some(line), found)
        .expected(format!("JSON as fio prints it ({error})"))
        .remedy("keep the whole output of fio --output-format=json")
}

fn lines_in(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Lines on which the jobs of a document begin, by their names.
fn job_lines(document: &str, first: usize) -> Vec<usize> {
    let lines = document.lines().enumerate();
    let named = lines.filter(|(_, line)| line.trim_start().starts_with("\"jobname\""));
    named.map(|(i, _)| first + i).collect()
}

/// Gives the rates of the jobs that one fio ran, each at its line, to the runs of the log.
pub(super) fn take(
    jobs: &[(usize, Job)],
    global: &JobOptions,
    drafts: &mut Drafts,
    skipped: &mut Vec<Remark>,
) {
    let mut members: BTreeMap<u64, u32> = BTreeMap::new();
    for group in jobs.iter().filter_map(|(_, job)| job.groupid) {
        *members.entry(group).or_default() += 1;
    }
    for (line, job) in jobs {
        let alone = job
            .groupid
            .is_none_or(|group| members.get(&group) == Some(&1));
        if let Err(error) = job_rates(job, global, alone, *line, drafts, skipped) {
            let why = format!("{UNUSABLE}{}", error.reason());
            push(skipped, *line, &why, &job.jobname);
        }
    }
}

/// Why the rate may not be the card's.
fn caveat(
    option: &impl Fn(&[&str]) -> Option<String>,
    (operation, order, direct): (Operation, Order, bool),
    alone: bool,
) -> Option<Caveat> {
    let number = |names: &[&str]| option(names).and_then(|text| text.parse::<u32>().ok());
    let set = |name: &str| option(&[name]).is_some_and(|value| value != "0" && value != "none");
    let any = |names: &[&str]| names.iter().any(|name| set(name));
    let after_each = any(&["fsync", "fdatasync", "sync"]);
    let synced = any(&["end_fsync", "fsync_on_close"]);
    match operation {
        Operation::Write if after_each => Some(SYNC_EACH),
        Operation::Write if !direct && !synced => Some(UNSYNCED),
        _ if !alone || (order == Order::Sequential && number(&["numjobs"]) > Some(1)) => {
            Some(Caveat {
                at_least: direct,
                ..BESIDE
            })
        }
        _ => None,
    }
}

fn job_rates(
    job: &Job,
    global: &JobOptions,
    alone: bool,
    line: usize,
    drafts: &mut Drafts,
    skipped: &mut Vec<Remark>,
) -> Result<(), LogError> {
    if job.error != 0 {
        push(
            skipped,
            line,
            &format!("a job that failed with error {}", job.error),
            &job.jobname,
        );
        return Ok(());
    }
    let option = |names: &[&str]| -> Option<String> {
        let of = |from: &JobOptions| {
            let value = names.iter().find_map(|&name| from.get(name))?;
            Some(
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        };
        of(&job.options).or_else(|| of(global))
    };
    if job.untold && option(&["rw"]).is_none() {
        push(skipped, line, UNTOLD.why, &job.jobname);
        return Ok(());
    }
    let rw = option(&["rw", "readwrite"]).unwrap_or_else(|| "read".to_owned());
    let rw = rw.split(':').next().unwrap_or("").to_owned();
    let (order, kinds) = access(&rw).ok_or_else(|| {
        LogError::new(Problem::Malformed, Some(line), &rw)
            .expected("fio's rw: read, write, trim, randread, randwrite, randtrim, rw, randrw")
            .remedy("restore the job's options")
    })?;
    if let Some(device) = option(&["filename"]).filter(|path| path.starts_with("/dev/")) {
        drafts.command_device(line, &device);
    }
    let alone = alone && kinds.len() == 1;
    let sides = [
        (Operation::Read, &job.read),
        (Operation::Write, &job.write),
        (Operation::Discard, &job.trim),
    ];
    for (i, (operation, side)) in sides.into_iter().enumerate() {
        let Some(side) = side.as_ref().filter(|_| kinds.contains(&operation)) else {
            continue;
        };
        if side.io_bytes == 0 {
            push(
                skipped,
                line,
                "a direction of a job without any I/O",
                &job.jobname,
            );
            continue;
        }
        let (block, why) = block_bytes(&option, i, side);
        if let Some(why) = why {
            push(skipped, line, why, &job.jobname);
        }
        let direct = option(&["direct"]).is_some_and(|value| value == "1")
            || option(&["buffered"]).is_some_and(|value| value == "0");
        // What is discarded does not go over the bus.
        let over_bus = direct && operation != Operation::Discard;
        let rate = Rate {
            order,
            caveat: match job.untold {
                true => Some(UNTOLD),
                false => caveat(&option, (operation, order, direct), alone),
            },
            block_bytes: block,
            direct,
            queue_depth: queue_depth(&option),
            iops: Some(side.iops).filter(|&iops| iops > 0.0),
            latency: latency(side),
            ..Rate::plain(
                operation,
                bytes_per_s(side, over_bus, line, job)?,
                &job.jobname,
                line,
            )
        };
        let draft = drafts.current();
        draft.rates.push(rate);
        draft.extend(line);
    }
    Ok(())
}

fn access(rw: &str) -> Option<(Order, Vec<Operation>)> {
    use Operation::{Discard, Read, Write};
    let (order, kind) = match rw.strip_prefix("rand") {
        Some(kind) => (Order::Random, kind),
        None => (Order::Sequential, rw),
    };
    let kinds = match kind {
        "read" => vec![Read],
        "write" => vec![Write],
        "trim" => vec![Discard],
        "rw" | "readwrite" => vec![Read, Write],
        "trimwrite" => vec![Discard, Write],
        _ => return None,
    };
    Some((order, kinds))
}

fn bytes_per_s(side: &Side, direct: bool, line: usize, job: &Job) -> Result<f64, LogError> {
    let kib = side.bw * 1024.0;
    let rate = side.bw_bytes.unwrap_or(kib);
    let error = |problem| LogError::new(problem, Some(line), &job.jobname);
    units::possible(rate, direct).map_err(|expected| {
        error(Problem::Absurd)
            .found(format!("{rate} B/s in job `{}`", job.jobname))
            .expected(expected)
            .remedy("repeat the job, or delete it from the file")
    })?;
    // fio rounds bw down to whole KiB a second.
    if side.bw > 0.0 && (rate - kib).abs() > 0.01 * rate + 2048.0 {
        return Err(error(Problem::MixedUnits)
            .found(format!(
                "bw {} and bw_bytes {rate} in job `{}`",
                side.bw, job.jobname
            ))
            .expected("bw in KiB/s and bw_bytes in B/s, of the same rate")
            .remedy("use fio's own output; do not convert its figures"));
    }
    Ok(rate)
}

/// The size of requests that was asked for, unless what was done differs.
fn block_bytes(
    option: &impl Fn(&[&str]) -> Option<String>,
    direction: usize,
    side: &Side,
) -> (Option<u64>, Option<&'static str>) {
    const MIXED: &str = "a job of several block sizes: its block size is left open";
    if option(&["bsrange", "blocksize_range", "bssplit", "bs_unaligned"]).is_some() {
        return (None, Some(MIXED));
    }
    let base = if option(&["kb_base"]).is_some_and(|base| base == "1000") {
        1000
    } else {
        1024
    };
    let asked = match option(&["bs", "blocksize"]) {
        None => Some(4096), // fio's default
        Some(text) => {
            let of: Vec<&str> = text.split(',').collect();
            let own = of.get(direction).or(of.last()).copied().unwrap_or("");
            fio_number(own, base)
        }
    };
    let Some(asked) = asked else {
        return (None, Some("a block size that is no number: left open"));
    };
    let done = side.io_bytes as f64 / side.total_ios.max(1) as f64;
    let differs = side.total_ios > 0 && (done / asked as f64 - 1.0).abs() > 0.02;
    // Version 2 counted io_bytes in KiB.
    if differs && side.bw_bytes.is_some() {
        return (None, Some(MIXED));
    }
    (Some(asked), None)
}

/// fio's numbers: `4k`, `4ki`, `4kb`, `1M`; decimal only with `kb_base=1000`.
fn fio_number(text: &str, base: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace(".0", "");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let value: u64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim_end_matches('b');
    // With kb_base=1000 the binary units keep their i; else both are binary.
    let (unit, base) = match unit.strip_suffix('i') {
        Some(unit) => (unit, 1024),
        None => (unit, base),
    };
    let power = match unit {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        _ => return None,
    };
    let bytes = value.checked_mul(base.pow(power))?;
    (bytes > 0).then_some(bytes)
}

fn queue_depth(option: &impl Fn(&[&str]) -> Option<String>) -> u32 {
    let number = |name: &str| option(&[name]).and_then(|text| text.parse::<u32>().ok());
    let engine = option(&["ioengine"]).unwrap_or_else(|| "psync".to_owned());
    let depth = if ONE_AT_A_TIME.contains(&engine.as_str()) {
        1
    } else {
        number("iodepth").unwrap_or(1)
    };
    depth.saturating_mul(number("numjobs").unwrap_or(1)).max(1)
}

fn latency(side: &Side) -> Option<CompletionLatency> {
    let (clat, scale) = match (&side.clat_ns, &side.clat) {
        (Some(clat), _) => (clat, 1e-3),
        (None, Some(clat)) => (clat, 1.0),
        (None, None) => return None,
    };
    let at = |name: &str| clat.percentile.get(name).map(|value| value * scale);
    (clat.mean > 0.0).then(|| CompletionLatency {
        mean_us: clat.mean * scale,
        median_us: at("50.000000"),
        p99_us: at("99.000000"),
        max_us: clat.max * scale,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(rw: &str, bs: &str, side: &str) -> String {
        format!(
            "note: something\n{{\"fio version\": \"fio-3.33\",\n\"global options\": \
             {{\"direct\": \"1\", \"ioengine\": \"libaio\", \"iodepth\": \"4\"}},\n\"jobs\": [\n\
             {{\n\"jobname\": \"j\", \"job options\": {{\"rw\": \"{rw}\", \"bs\": \"{bs}\"}},\n\
             \"read\": {side}, \"write\": {side}}}]}}\nDisk stats: none\n"
        )
    }

    fn rates(text: &str) -> Result<Vec<Rate>, LogError> {
        let reading = read("f.json", text, document(text).unwrap())?;
        Ok(reading.runs.into_iter().flat_map(|run| run.rates).collect())
    }

    const SIDE: &str = "{\"io_bytes\": 4096000, \"total_ios\": 1000, \"bw\": 4000, \
                        \"bw_bytes\": 4096000, \"iops\": 1000.0, \"clat_ns\": {\"mean\": 5000, \
                        \"max\": 9000, \"percentile\": {\"99.000000\": 8000}}}";

    #[test]
    fn options_of_job_and_globals_are_joined() {
        let rates = rates(&text("randwrite:2", "4k", SIDE)).unwrap();
        assert_eq!(rates.len(), 1, "read was not asked for");
        let rate = &rates[0];
        assert_eq!(
            (rate.operation, rate.order),
            (Operation::Write, Order::Random)
        );
        assert_eq!((rate.block_bytes, rate.direct), (Some(4096), true));
        assert_eq!((rate.queue_depth, rate.bytes_per_s), (4, 4_096_000.0));
        assert_eq!(rate.line, 6);
        let latency = rate.latency.unwrap();
        assert_eq!((latency.mean_us, latency.p99_us), (5.0, Some(8.0)));
    }

    #[test]
    fn mixed_reads_and_writes_are_two_rates_with_own_block_sizes() {
        let mixed = rates(&text("randrw", "4k,16k", SIDE)).unwrap();
        assert_eq!(mixed.len(), 2);
        assert_eq!(mixed[0].block_bytes, Some(4096));
        // What was done was 4 KiB a request, so 16k is not what the rate is of.
        assert_eq!(mixed[1].block_bytes, None);
        assert_eq!(fio_number("4kb", 1000), Some(4000));
        assert_eq!(fio_number("4ki", 1000), Some(4096));
        assert_eq!(fio_number("1M", 1024), Some(1 << 20));
        assert_eq!(fio_number("$bs", 1024), None);
    }

    #[test]
    fn version_2_counts_in_kib_and_microseconds() {
        let side = "{\"io_bytes\": 4000, \"bw\": 4000, \"iops\": 1000.0, \"total_ios\": 1000, \
                    \"clat\": {\"mean\": 5.0, \"max\": 9}}";
        let rates = rates(&text("read", "4k", side)).unwrap();
        assert_eq!(rates[0].bytes_per_s, 4_096_000.0);
        assert_eq!(rates[0].block_bytes, Some(4096));
        assert_eq!(rates[0].latency.unwrap().mean_us, 5.0);
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let good = text("read", "4k", SIDE);
        let cut = rates(&good[..good.len() - 60]).unwrap_err();
        assert_eq!(cut.problem, Problem::Truncated);
        let absurd = SIDE.replace("\"bw_bytes\": 4096000", "\"bw_bytes\": 1e15");
        let mixed = SIDE.replace("\"bw\": 4000", "\"bw\": 4");
        for (rw, side, why) in [
            ("read", absurd.as_str(), "absurd"),
            ("read", &mixed, "units are mixed"),
            ("reda", SIDE, "fio's rw"),
        ] {
            // A job that cannot be used costs no other one.
            let text = text(rw, "4k", side);
            let found = read("fio.json", &text, document(&text).unwrap()).unwrap();
            assert!(found.runs.is_empty());
            let unusable = |remark: &&Remark| remark.why.starts_with(UNUSABLE);
            let remark = found.skipped.iter().find(unusable).unwrap();
            assert!(remark.why.contains(why), "{remark:?}");
            assert_eq!(remark.lines, (6, 6));
        }
    }

    #[test]
    fn several_documents_and_devices_are_told_apart() {
        let one = text("read", "4k", SIDE);
        assert_eq!(rates(&format!("{one}{one}")).unwrap().len(), 2);
        let on = |device: &str| {
            one.replace(
                "\"direct\"",
                &format!("\"filename\": \"{device}\", \"direct\""),
            )
        };
        let both = format!("{}{}", on("/dev/sda"), on("/dev/sdb"));
        assert_eq!(rates(&both).unwrap_err().problem, Problem::MixedCards);
    }
}
