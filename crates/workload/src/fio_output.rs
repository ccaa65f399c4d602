//! What fio 3 tells with `--output-format=json+`, read by name. Pure.
//!
//! Figures are fio's own: rates over the time in which a job did I/O (its files are laid out
//! before), percentiles of the completion latency. Names, process numbers and times of day are
//! not read, so the same work gives the same figures.

use crate::program::ProgramFigures;
use serde::Deserialize;
use std::collections::BTreeMap;
use whichfs_trial::{LatencyHistogram, Metric};

/// Bytes in a megabyte, as card makers count it.
const MEGABYTE: f64 = 1e6;

/// Percentiles that become metrics: suffix, and fio's name.
const PERCENTILES: [(&str, &str); 3] = [
    ("p50", "50.000000"),
    ("p99", "99.000000"),
    ("p999", "99.900000"),
];

/// One job, or all jobs of a group that report together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Job {
    /// Name of its section.
    pub(crate) jobname: String,
    /// Jobs with the same number ran side by side.
    #[serde(default)]
    groupid: u64,
    /// Number of the system's error; 0 if there was none.
    #[serde(default)]
    error: i64,
    /// Milliseconds in which it did I/O.
    #[serde(default)]
    job_runtime: u64,
    pub(crate) read: Direction,
    pub(crate) write: Direction,
}

/// What was read, or written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Direction {
    /// Bytes read or written.
    io_bytes: u64,
    /// Bytes in a second.
    bw_bytes: f64,
    /// Operations in a second.
    iops: f64,
    /// Operations in all.
    total_ios: u64,
    /// Completion latencies; some jobs switch them off.
    clat_ns: Option<Clat>,
}

/// Completion latencies in nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Clat {
    /// Percentile → nanoseconds.
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
    /// Nanoseconds → operations.
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
}

/// The jobs in `output`. fio's warnings may stand before the document and after it.
///
/// # Errors
/// In a sentence: there is no document, it lacks something, or a job failed.
pub(crate) fn jobs(output: &str) -> Result<Vec<Job>, String> {
    let begin = output
        .match_indices('{')
        .map(|(at, _)| at)
        .find(|&at| at == 0 || output[..at].ends_with('\n'))
        .ok_or_else(|| {
            let said: String = output.trim().chars().take(200).collect();
            format!("fio told no figures (it said: {said:?}); fio 3 is needed")
        })?;
    let mut documents = serde_json::Deserializer::from_str(&output[begin..]).into_iter::<Output>();
    let document = match documents.next() {
        Some(Ok(document)) => document,
        Some(Err(error)) => return Err(format!("fio's JSON: {error}; fio 3 is needed")),
        None => return Err("fio's JSON ends at its begin; fio 3 is needed".to_owned()),
    };
    match document.jobs.iter().find(|job| job.error != 0) {
        Some(job) => Err(format!(
            "fio's job {} failed: error {}",
            job.jobname, job.error
        )),
        None => Ok(document.jobs),
    }
}

/// The figures of `direction` under names that begin with `name`; none if nothing was done.
pub(crate) fn figures(name: &str, direction: &Direction) -> Vec<Metric> {
    if direction.total_ios == 0 {
        return Vec::new();
    }
    let metric = |metric: String, value: f64, unit: &str, lower_is_better| Metric {
        metric,
        value,
        unit: unit.to_owned(),
        lower_is_better,
    };
    let rate = direction.bw_bytes / MEGABYTE;
    let mut metrics = vec![
        metric(name.to_owned(), rate, "MB/s", false),
        metric(
            format!("{name}_iops"),
            direction.iops,
            "operations/s",
            false,
        ),
    ];
    let clat = direction.clat_ns.iter();
    metrics.extend(clat.flat_map(|clat| {
        PERCENTILES.iter().filter_map(|(suffix, key)| {
            let ns = *clat.percentile.get(*key)?;
            Some(metric(
                format!("{name}_{suffix}"),
                ns as f64 / 1e6,
                "ms",
                true,
            ))
        })
    }));
    metrics
}

/// What `jobs` did, and their latencies. Bytes are those written where any were, so that write
/// amplification is one; else those read.
pub(crate) fn done(jobs: &[Job]) -> ProgramFigures {
    let mut told = ProgramFigures::default();
    let (mut read, mut written) = (0, 0);
    for job in jobs {
        read += job.read.io_bytes;
        written += job.write.io_bytes;
        for direction in [&job.read, &job.write] {
            told.counts.operations += direction.total_ios;
            add_bins(&mut told.latency, direction);
        }
    }
    told.counts.bytes = if written > 0 { written } else { read };
    told
}

fn add_bins(latency: &mut LatencyHistogram, direction: &Direction) {
    let bins = direction.clat_ns.iter().flat_map(|clat| &clat.bins);
    for (ns, &count) in bins {
        if let Ok(ns) = ns.parse() {
            latency.record_many(ns, count);
        }
    }
}

/// All that `jobs` moved, reads and writes, over the time in which they did I/O: MB/s and
/// operations/s. Groups run one after the other (`stonewall`), the jobs of a group side by side.
pub(crate) fn overall(name: &str, jobs: &[Job]) -> Vec<Metric> {
    let mut groups: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut bytes, mut operations) = (0, 0);
    for job in jobs {
        let runtime = groups.entry(job.groupid).or_insert(0);
        *runtime = job.job_runtime.max(*runtime);
        bytes += job.read.io_bytes + job.write.io_bytes;
        operations += job.read.total_ios + job.write.total_ios;
    }
    let seconds = groups.values().sum::<u64>() as f64 / 1e3;
    if seconds <= 0.0 {
        return Vec::new();
    }
    let metric = |metric: String, amount: f64, unit: &str| Metric {
        metric,
        value: amount / seconds,
        unit: unit.to_owned(),
        lower_is_better: false,
    };
    vec![
        metric(name.to_owned(), bytes as f64 / MEGABYTE, "MB/s"),
        metric(format!("{name}_iops"), operations as f64, "operations/s"),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A direction as fio writes it, whose fields stand in any order and among others.
    fn direction(ios: u64, p99: u64) -> String {
        format!(
            r#"{{"runtime":50,"iops":{iops}.5,"total_ios":{ios},"slat_ns":{{"min":0}},
            "bw_bytes":{bw},"bw":9,"io_bytes":{bytes},"clat_ns":{{"N":{ios},
            "percentile":{{"50.000000":1500,"99.000000":{p99},"99.900000":9000000}},
            "bins":{{"1500":{most},"{p99}":{last}}}}}}}"#,
            iops = ios * 20,
            bw = ios * 4096 * 20,
            bytes = ios * 4096,
            most = ios.max(1) - 1,
            last = ios.min(1),
        )
    }

    /// A document of fio with the jobs `(name, group, reads, writes)`, and noise around it.
    pub(crate) fn document(jobs: &[(&str, u64, u64, u64)]) -> String {
        let jobs: Vec<String> = jobs
            .iter()
            .map(|&(name, group, reads, writes)| {
                format!(
                    r#"{{"jobname":"{name}","groupid":{group},"error":0,"job_runtime":50,
                    "job options":{{"size":"1m","size":"2m"}},"read":{},"write":{},
                    "trim":{{}},"usr_cpu":0.5}}"#,
                    direction(reads, 2_000_000),
                    direction(writes, 4_000_000)
                )
            })
            .collect();
        format!(
            "fio: a note with {{}} in it\n{{\n\"fio version\":\"fio-3.33\",\"time\":\"Sun\",\n\
             \"jobs\":[{}]\n}}\nfio: {{a note after it\n",
            jobs.join(",")
        )
    }

    fn value(metrics: &[Metric], name: &str) -> Option<f64> {
        metrics.iter().find(|m| m.metric == name).map(|m| m.value)
    }

    #[test]
    fn figures_are_found_by_name() {
        let jobs = jobs(&document(&[("a", 0, 0, 100)])).unwrap();
        assert!(figures("x", &jobs[0].read).is_empty(), "nothing was read");
        let metrics = figures("x", &jobs[0].write);
        assert_eq!(value(&metrics, "x"), Some(8.192));
        assert_eq!(value(&metrics, "x_iops"), Some(2000.5));
        assert_eq!(value(&metrics, "x_p50"), Some(0.0015));
        assert_eq!(value(&metrics, "x_p99"), Some(4.0));
        assert_eq!(value(&metrics, "x_p999"), Some(9.0));
        let told = done(&jobs);
        assert_eq!((told.counts.operations, told.counts.bytes), (100, 409_600));
        assert_eq!(told.latency.count(), 100);
    }

    #[test]
    fn groups_follow_each_other_and_their_jobs_do_not() {
        let jobs = jobs(&document(&[
            ("a", 0, 10, 0),
            ("b", 0, 0, 10),
            ("c", 1, 20, 0),
        ]))
        .unwrap();
        let metrics = overall("fio_job", &jobs);
        let bytes = 40.0 * 4096.0;
        assert_eq!(value(&metrics, "fio_job"), Some(bytes / 1e6 / 0.1));
        assert_eq!(value(&metrics, "fio_job_iops"), Some(400.0));
        assert_eq!(done(&jobs).counts.bytes, 40_960, "what was written");
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let whole = document(&[("a", 0, 1, 1)]);
        for bad in ["", "fio: no {", "{\"jobs\":3}", &whole[..whole.len() / 2]] {
            let error = jobs(bad).unwrap_err();
            assert!(error.contains("fio 3 is needed"), "{error}");
        }
        let failed = whole.replace("\"error\":0", "\"error\":28");
        assert!(
            jobs(&failed)
                .unwrap_err()
                .contains("job a failed: error 28")
        );
    }

    #[test]
    fn a_job_without_latencies_has_none() {
        let text = document(&[("a", 0, 0, 9)]).replace("clat_ns", "other");
        let jobs = jobs(&text).unwrap();
        assert_eq!(figures("x", &jobs[0].write).len(), 2);
        assert_eq!(done(&jobs).latency.count(), 0);
    }
}
