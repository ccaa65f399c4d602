//! The verdict's properties, and needs that are wrong.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod advice;
mod needs;
mod plans;
mod rules;
mod verdicts;

use crate::{
    Can, CandidateFacts, Care, CrashClass, Evidence, Matter, Need, Sample, SeenMemory, Sourced,
};
use std::collections::BTreeMap;

/// A candidate that can do everything.
pub(crate) fn able(name: &str) -> CandidateFacts {
    let flag = |value| Sourced::new(value, "catalogue");
    CandidateFacts {
        name: name.to_owned(),
        title: name.to_owned(),
        unix_permissions: flag(true),
        symlinks: flag(true),
        hard_links: flag(true),
        xattrs: flag(true),
        case_sensitive: flag(true),
        windows: flag(true),
        macos: flag(true),
        read_only: flag(false),
        max_file_bytes: Sourced::new(1 << 44, "catalogue"),
        min_bytes: Sourced::new(1 << 20, "catalogue"),
        last_year: Sourced::new(2446, "catalogue"),
        compression: flag(false),
        snapshots: flag(false),
        crash_class: Sourced::new(CrashClass::Journaled, "catalogue"),
        mounts_after_cut: Sourced::new(true, "catalogue"),
        in_current_linux: Sourced::new(true, "catalogue"),
        kernel_options: Sourced::new(vec!["CONFIG_X_FS".into()], "catalogue"),
        xattr_options: vec!["CONFIG_X_FS_XATTR".into()],
        memory: Sourced::new(
            SeenMemory {
                works: 32 << 20,
                fails: Some(16 << 20),
            },
            "catalogue",
        ),
        licences: Sourced::new(vec!["GPL-2.0".to_owned()], "COPYING"),
        care: BTreeMap::from([(Matter::Grow, can(Can::Offline, "resize(8)"))]),
    }
}

/// A line of care.
pub(crate) fn can(can: Can, source: &str) -> Care {
    Care {
        can,
        how: String::new(),
        source: source.to_owned(),
    }
}

/// A need with two equal metrics, `a` (required) and `b`.
pub(crate) fn two_metrics() -> Need {
    let text = "name = \"test\"\ntitle = \"Test\"\nworkload = \"rootfs\"\nrequires = [\"a\"]\n\
                [weights.a]\nweight = 1\nbecause = \"x\"\n\
                [weights.b]\nweight = 1\nbecause = \"x\"\n";
    Need::parse("test.toml", text).unwrap()
}

pub(crate) fn sample(candidate: &str, metric: &str, seed: u64, value: f64) -> Sample {
    Sample {
        candidate: candidate.to_owned(),
        metric: metric.to_owned(),
        seed,
        value,
        unit: "s".to_owned(),
        lower_is_better: true,
    }
}

pub(crate) fn evidence(samples: Vec<Sample>) -> Evidence {
    Evidence {
        card: "card".into(),
        samples,
        card_uncertainty: 0.1,
        ..Evidence::default()
    }
}
