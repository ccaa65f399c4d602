//! What a store must survive.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod checking;
mod damage;
mod keeping;
mod migration;

use std::collections::BTreeMap;
use whichfs_trial::{Identity, Metric, Status, Trial, TrialOutcome};
use whichfs_units::Nanos;

/// A finished trial of `candidate` with one metric of `value`.
pub(crate) fn trial(candidate: &str, seed: u64, value: f64) -> Trial {
    let text = |text: &str| text.to_owned();
    Trial {
        identity: Identity {
            card: text("a1-32gb"),
            card_sha256: text("00"),
            card_state: text("used"),
            board: text("generic-1ghz"),
            board_sha256: text("01"),
            clock: text("cpu:generic-1ghz"),
            kernel: text("6.12.57"),
            kernel_sha256: text("02"),
            candidate: text(candidate),
            mkfs: vec![vec![text("mkfs"), text("/dev/vda")]],
            mount_options: text("noatime"),
            workload: text("rootfs"),
            parameters: BTreeMap::from([(text("bytes"), 1)]),
            tree_sha256: String::new(),
            input: None,
            partition_offset: 4 << 20,
            partition_bytes: 1 << 30,
            memory_mib: 256,
            version: text("0.1.0"),
            agent_sha256: text("03"),
            tools: BTreeMap::new(),
            userland_sha256: None,
            cpu_features_sha256: text("04"),
            seed,
            data_seed: None,
            measured: None,
            second_card: None,
        },
        outcome: TrialOutcome {
            status: Status::Done,
            phases: Vec::new(),
            metrics: vec![Metric {
                metric: text("mount"),
                value,
                unit: text("s"),
                lower_is_better: true,
            }],
            trace_sha256: text("05"),
            virtual_time: Nanos::from_secs(1),
            series: None,
            erase_spread: None,
            conditions: None,
        },
    }
}

/// The same trial, failed.
pub(crate) fn failed(candidate: &str, seed: u64) -> Trial {
    let mut trial = trial(candidate, seed, 1.0);
    trial.outcome.status = Status::Failed {
        reason: "panic".into(),
        log: Vec::new(),
    };
    trial
}
