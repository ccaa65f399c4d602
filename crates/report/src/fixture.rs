//! A realistic verdict for tests and pictures: 19 candidates, 8 metrics, 1 to 3 seeds.
//! The figures are of plausible size and measure nothing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::device::{DeviceView, LatencyView, PhaseView, SeriesView, TrialLine};
use crate::files::RunStamp;
use crate::page::{Item, Page};
use std::collections::BTreeMap;
use whichfs_decide::{
    Evidence, Excluded, Failed, FailedTrial, Need, Sample, SeedFigure, Verdict, judge,
};
use whichfs_trial::DeviceFigures;

/// Candidate, then read, fsync, write, rewrite, mount, space, amplification, delete.
const FIGURES: [(&str, [f64; 8]); 15] = [
    ("f2fs", [13.2, 4.1, 21.0, 6.3, 0.41, 221e6, 1.31, 0.9]),
    ("ext4", [12.9, 9.8, 19.6, 6.9, 0.12, 214e6, 2.25, 1.1]),
    ("btrfs", [11.8, 14.1, 24.3, 9.4, 0.33, 205e6, 2.9, 2.2]),
    ("btrfs-zstd", [8.9, 16.4, 20.1, 9.9, 0.34, 118e6, 2.1, 2.3]),
    ("xfs", [13.1, 12.5, 20.9, 8.8, 0.22, 226e6, 3.4, 3.1]),
    ("nilfs2", [15.5, 5.2, 23.3, 5.9, 2.9, 268e6, 1.22, 1.7]),
    ("ext3", [13.9, 11.6, 25.1, 8.2, 0.13, 219e6, 2.6, 6.4]),
    ("jfs", [16.2, 10.9, 33.0, 11.7, 0.09, 217e6, 2.8, 5.5]),
    ("reiserfs", [18.7, 13.3, 29.8, 10.6, 4.8, 203e6, 3.0, 3.9]),
    ("ntfs3", [17.1, 38.0, 61.0, 21.0, 0.15, 231e6, 6.1, 9.9]),
    (
        "ext4-writeback",
        [12.8, 8.1, 18.2, 6.6, 0.12, 213e6, 2.2, 1.0],
    ),
    (
        "jfs-relatime",
        [16.0, 10.4, 32.4, 11.1, 0.09, 217e6, 2.7, 5.4],
    ),
    ("f2fs-lz4", [14.6, 4.6, 23.9, 7.4, 0.42, 181e6, 1.25, 0.9]),
    (
        "ext4-bigalloc",
        [13.4, 10.2, 20.4, 7.7, 0.11, 249e6, 2.31, 1.0],
    ),
    ("xfs-nocrc", [13.0, 12.3, 20.7, 8.7, 0.21, 223e6, 3.3, 3.0]),
];

/// Name, unit, and for rates the amount that was done in the seconds of `FIGURES`.
const METRICS: [(&str, &str, Option<f64>); 8] = [
    ("tree_read", "MB/s", Some(201.0)),
    ("random_update", "operations/s", Some(2000.0)),
    ("tree_write", "MB/s", Some(201.0)),
    ("rewrite", "MB/s", Some(60.0)),
    ("mount", "s", None),
    ("space", "B", None),
    ("sustained_write_amplification", "", None),
    ("delete", "files/s", Some(3000.0)),
];

/// Seeds of a candidate: those near the leader have three.
fn seeds(candidate: &str) -> u64 {
    if matches!(candidate, "f2fs" | "f2fs-lz4" | "ext4-writeback") {
        3
    } else {
        1
    }
}

pub(crate) fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for (candidate, values) in FIGURES {
        for ((metric, unit, amount), value) in METRICS.iter().zip(values) {
            for seed in 1..=seeds(candidate) {
                let spread = 1.0 + 0.03 * ((seed * 7 + value.to_bits() % 5) % 5) as f64;
                samples.push(Sample {
                    candidate: candidate.to_owned(),
                    metric: (*metric).to_owned(),
                    seed,
                    value: amount.map_or(value * spread, |amount| amount / (value * spread)),
                    unit: (*unit).to_owned(),
                    lower_is_better: amount.is_none(),
                });
            }
        }
    }
    samples
}

fn excluded(candidate: &str, why: &str, rule: &str) -> Excluded {
    Excluded {
        candidate: candidate.to_owned(),
        why: why.to_owned(),
        rule: Some(rule.to_owned()),
        source: Some("Documentation/filesystems/vfat.rst; rule: POSIX.1-2017".to_owned()),
        ..Excluded::default()
    }
}

pub(crate) fn verdict() -> Verdict {
    let no_permissions = "keeps no Unix permissions: a Linux system cannot run without owners, \
                          permission bits and set-uid";
    let evidence = Evidence {
        card: "a1-32gb".to_owned(),
        samples: samples(),
        excluded: vec![
            excluded("vfat", no_permissions, "unix_permissions"),
            excluded("vfat-factory", no_permissions, "unix_permissions"),
            excluded("exfat", no_permissions, "unix_permissions"),
            excluded(
                "squashfs-zstd",
                "can only be read: it is written while it runs",
                "read_only",
            ),
        ],
        commands: BTreeMap::from([(
            "f2fs".to_owned(),
            vec![
                "mkfs.f2fs -f -s 2 -O extra_attr,inode_checksum,sb_checksum /dev/mmcblk0p2".into(),
                "mount -t f2fs -o noatime,compress_algorithm=none /dev/mmcblk0p2 /mnt".into(),
                "/dev/mmcblk0p2  /  f2fs  noatime  0  1".into(),
            ],
        )]),
        card_uncertainty: 0.3,
        fit_error: Some(whichfs_decide::ModelError {
            median: 0.062,
            p90: 0.194,
        }),
        trials: 23,
        virtual_s: 1834.0,
        wall_s: 71.3,
        ..Evidence::default()
    };
    let need = Need::named("rootfs").unwrap();
    judge(&need, &evidence).unwrap()
}

/// A trial for each sample.
fn trials() -> Vec<TrialLine> {
    let lines = FIGURES.iter().flat_map(|(name, _)| {
        (1..=seeds(name)).map(|seed| TrialLine {
            candidate: (*name).to_owned(),
            seed,
            id: format!("{:064x}", seed * 7_919 + name.len() as u64),
            ..TrialLine::default()
        })
    });
    lines.collect()
}

/// Forty slots over a trial with the phases of [`device`].
fn series(values: &[f64; 8]) -> SeriesView {
    let slots = 40_u64;
    let written = |at: u64| if at % 4 == 3 { 0 } else { 5_000_000 };
    let amplified = |at: u64| written(at) / 10 * ((values[6] * 10.0) as u64 + at % 7);
    SeriesView {
        begin_s: 0.0,
        slot_s: (values[0] + values[1] + values[2]) / slots as f64,
        open_limit: Some(5),
        open_aus: (0..slots).map(|at| (at * at % 6) as u32).collect(),
        writes: (0..slots).map(|at| written(at) / 65_536).collect(),
        write_bytes: (0..slots).map(written).collect(),
        programmed_bytes: (0..slots).map(amplified).collect(),
        au_copies: (0..slots).map(|at| at % 3 * (at % 5)).collect(),
    }
}

/// A device under `candidate` whose figures are of plausible size.
fn device(candidate: &str, values: &[f64; 8]) -> DeviceView {
    let written = 201_000_000_u64;
    let programmed = (values[6] * written as f64) as u64;
    let sizes = [
        (4096, 900),
        (16_384, 300),
        (65_536, 200),
        (262_144, 500),
        (524_288, 100),
    ];
    let total = DeviceFigures {
        reads: 4_100,
        writes: 2_000,
        flushes: 310,
        read_bytes: written,
        write_bytes: written,
        programmed_bytes: programmed,
        erases: programmed / 4_194_304,
        au_copies: programmed / 40_000_000,
        write_sizes: sizes.into(),
        ..DeviceFigures::default()
    };
    let phase = |name: &str, begin: f64, seconds: f64, share: u64| PhaseView {
        phase: name.to_owned(),
        begin_s: begin,
        end_s: begin + seconds,
        write_bytes: written / 8 * share,
        programmed_bytes: programmed / 8 * share * (share % 3 + 1),
        au_copies: share,
        erases: 3 * share,
    };
    let ms = |ms: f64| (ms * 1e6) as u64;
    DeviceView {
        candidate: candidate.to_owned(),
        trials: seeds(candidate),
        total,
        phases: vec![
            phase("tree_write", 0.0, values[2], 4),
            phase("tree_read", values[2], values[0], 0),
            phase("random_update", values[2] + values[0], values[1], 2),
        ],
        series: Some(series(values)),
        latencies: vec![LatencyView {
            phase: "random_update".to_owned(),
            operations: 2_000,
            p50_ns: ms(values[1] / 3.0),
            p90_ns: ms(values[1]),
            p99_ns: ms(values[1] * 8.0),
            p999_ns: ms(values[1] * 30.0),
            max_ns: ms(values[1] * 95.0),
        }],
    }
}

/// The page with one candidate that failed half its trials and one caveat, and without power cuts.
pub(crate) fn page_with_gaps() -> Page {
    let mut page = page();
    let failed = page.verdict.ranking.pop().unwrap();
    let trial = |reason: &str| FailedTrial {
        seed: 2,
        reason: reason.to_owned(),
    };
    page.verdict.failed = vec![
        Failed {
            candidate: "never-done".to_owned(),
            failed: vec![trial("no space left on device")],
            trials: 1,
        },
        Failed {
            candidate: failed.candidate.clone(),
            failed: vec![trial("the guest panicked")],
            trials: 2,
        },
    ];
    page.verdict.excluded.push(Excluded {
        candidate: "never-done".to_owned(),
        why: "its trial with seed 2 failed: no space left on device".into(),
        rule: Some("failed".into()),
        ..Excluded::default()
    });
    page.verdict.excluded.push(Excluded {
        candidate: failed.candidate,
        grades: failed.grades,
        why: "1 of its 2 trials failed, that with seed 2: the guest panicked".into(),
        rule: Some("failed".into()),
        figures: failed.figures,
        ..Excluded::default()
    });
    let last = page.verdict.ranking.len() - 1;
    page.verdict.ranking[last].figures.remove("delete");
    let caveat = "measured without nilfs_cleanerd: space is never reclaimed";
    page.verdict.ranking[0].caveats = vec![caveat.into()];
    page
}

/// A page with 17 metrics.
pub(crate) fn page_of_many_metrics() -> Page {
    let mut page = page_with_gaps();
    let metrics = page.verdict.metrics.clone();
    for at in metrics.len()..17 {
        let mut more = metrics[at % metrics.len()].clone();
        let like = more.metric.clone();
        more.metric = format!("{like}_{at}");
        more.label = format!("{} number {at}", more.label);
        for ranked in &mut page.verdict.ranking {
            if let Some(figure) = ranked.figures.get(&like).cloned() {
                ranked.figures.insert(more.metric.clone(), figure);
            }
        }
        page.verdict.metrics.push(more);
    }
    page
}

/// A page with `seeds` trials of each of the candidates.
pub(crate) fn large_page(seeds: u64) -> Page {
    let mut page = page();
    page.trials_of.clear();
    for ranked in &mut page.verdict.ranking {
        for figure in ranked.figures.values_mut() {
            let value = figure.value;
            figure.samples = (1..=seeds)
                .map(|seed| SeedFigure {
                    seed,
                    value: value * (0.9 + 0.2 * ((seed * 2_654_435_761 % 1_000) as f64) / 1e3),
                })
                .collect();
        }
        page.trials_of.extend((1..=seeds).map(|seed| TrialLine {
            candidate: ranked.candidate.clone(),
            seed,
            id: format!("{:064x}", u128::from(seed) * 0x9e37_79b9_7f4a_7c15_f39c),
            ..TrialLine::default()
        }));
    }
    page
}

pub(crate) fn page() -> Page {
    let item = |label: &str, value: &str, source: &str| Item {
        label: label.to_owned(),
        value: value.to_owned(),
        source: source.to_owned(),
        ..Item::default()
    };
    Page {
        run: RunStamp {
            made_unix: 1_764_087_745,
            labels: vec![("operator".into(), "J. Doe".into())],
        },
        verdict: verdict(),
        card_figures: vec![
            item("Capacity", "29.8 GiB", "CSD register of the card"),
            item(
                "Allocation unit",
                "4 MiB",
                "flashbench --open-au, LWN 428584 (2011)",
            ),
            item("Open AUs, random", "5", "flashbench --open-au --random"),
            item(
                "Sequential write",
                "17.3 MB/s",
                "flashbench, data/flashbench.json",
            ),
        ],
        environment: vec![
            item("Board", "generic-1ghz", "boards/generic-1ghz.toml"),
            item("Clock", "cpu:generic-1ghz", ""),
            item("Kernel", "6.12.57", "Debian linux-source-6.12"),
            item("mkfs.f2fs", "1.15.0", "f2fs-tools"),
            item("whichfs", "0.1.0", ""),
        ],
        reproduce: vec!["whichfs choose --card a1-32gb --for rootfs --board generic-1ghz".into()],
        repeat: "whichfs choose --for rootfs --card a1-32gb --fs CANDIDATE --first-seed SEED \
                 --seeds 1 --fresh --out repeat-CANDIDATE-SEED"
            .into(),
        show: "whichfs trial show TRIAL".into(),
        cuts: Vec::new(),
        trials_of: trials(),
        devices: FIGURES
            .iter()
            .map(|(name, values)| device(name, values))
            .collect(),
    }
}

/// A trial of ext4 that was done.
const TRIAL: &str = r#"{"identity":{"card":"a1-32gb","card_sha256":"","card_state":"used",
    "board":"generic-1ghz","board_sha256":"","clock":"cpu:generic-1ghz","kernel":"6.12.57",
    "kernel_sha256":"","candidate":"ext4","mkfs":[["mkfs.ext4","-F","/dev/vda"]],
    "mount_options":"noatime","workload":"rootfs","parameters":{"mib":192},"tree_sha256":"",
    "partition_offset":4194304,"partition_bytes":32000000000,"memory_mib":512,"version":"0.1",
    "agent_sha256":"","tools":{"e2fsprogs":"1.47"},"cpu_features_sha256":"","seed":3},
    "outcome":{"status":{"status":"done"},"phases":[{"phase":"tree_write","begin":0,
    "end":8000000000,"counts":{"operations":6000,"files":6000,"bytes":201000000},"latency":[],
    "device":{"reads":1,"writes":2000,"discards":0,"flushes":3,"read_bytes":4096,
    "write_bytes":201000000,"discard_bytes":0,"busy":1,"programmed_bytes":402000000,
    "erases":40,"au_copies":7,"write_sizes":{}}}],
    "metrics":[{"metric":"tree_write","value":25.1,"unit":"MB/s","lower_is_better":false},
    {"metric":"mount_cpu","value":61.3,"unit":"%","lower_is_better":true}],
    "trace_sha256":"","virtual_time":41300000000,
    "series":{"slot":512000000,"open_limit":5,"slots":[[1,1,4096,8192,0],[5,1,8192,8192,3],
    [0,0,0,0,0]]}}}"#;

/// [`TRIAL`].
pub(crate) fn trial() -> whichfs_trial::Trial {
    serde_json::from_str(TRIAL).unwrap_or_else(|error| unreachable!("{error}"))
}
