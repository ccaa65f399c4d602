//! The study that measures what tuning a partition would gain.

use crate::{cards, places};
use std::collections::BTreeMap;
use whichfs_layout::PartitionVerdict;
use whichfs_study::{Base, Compare, Offset, PerformanceStudy, StudyWorkload, Tuning, Variant};
use whichfs_units::Bytes;

/// Names of the two variants.
const FOUND: &str = "as found";
const TUNED: &str = "tuned";
/// Repeats of the measurement.
const SEEDS: u64 = 5;
/// The least partition that the workload has room in.
const LEAST_BYTES: u64 = 64 << 20;

/// The study of a partition of `bytes` from `start` on, of which `verdict` says how it was found:
/// as it is against as it would be, on the model `card`.
///
/// # Errors
/// Why it cannot be measured.
pub fn tuning_study(
    card: &str,
    start: u64,
    bytes: u64,
    verdict: &PartitionVerdict,
) -> Result<PerformanceStudy, String> {
    let name = verdict.candidate.ok_or("no filesystem is known in it")?;
    let candidate = whichfs_fs::find(name).map_err(|error| error.to_string())?;
    if candidate.facts().read_only {
        return Err(format!("{name} is read-only"));
    }
    if bytes < LEAST_BYTES {
        return Err(format!(
            "the workload needs a partition of {}",
            Bytes(LEAST_BYTES)
        ));
    }
    places::kernel().map_err(|failure| failure.message)?;
    let profile = cards::open(card)
        .map_err(|failure| failure.message)?
        .profile;
    let unit = profile.au_bytes();
    let begin = cards::partition_offset(&profile);
    let room = profile.capacity_bytes().saturating_sub(begin + unit);
    let offset = begin + start % unit;
    let bytes = bytes.min(room / unit * unit);
    Ok(study_of(card, name, verdict, offset, bytes))
}

fn study_of(
    card: &str,
    name: &str,
    verdict: &PartitionVerdict,
    offset: u64,
    bytes: u64,
) -> PerformanceStudy {
    let remedy = &verdict.as_found;
    let found = Variant {
        name: FOUND.into(),
        mkfs: remedy.mkfs.clone(),
        set: remedy.set.clone(),
        offset: Some(Offset::Bytes(offset)),
        tuning: match remedy.untuned {
            true => Tuning::Nothing,
            false => Tuning::ThisCard,
        },
        ..Variant::default()
    };
    let tuned = Variant {
        name: TUNED.into(),
        ..Variant::default()
    };
    let metrics = ["tree_write", "tree_read", "rewrite", "random_update"];
    PerformanceStudy {
        name: "check".into(),
        title: "What would tuning gain?".into(),
        source: String::new(),
        method: String::new(),
        cards: vec![card.to_owned()],
        boards: vec!["generic-1ghz".to_owned()],
        clock: "cpu".into(),
        kernels: Vec::new(),
        modules: None,
        seeds: SEEDS,
        quick_seeds: SEEDS,
        same_data: false,
        candidates: vec![name.to_owned()],
        variants: vec![found, tuned],
        workloads: vec![StudyWorkload {
            name: "root filesystem".into(),
            workload: "rootfs".into(),
            parameters: BTreeMap::from([("bytes".into(), 12_000_000), ("files".into(), 300)]),
            quick: BTreeMap::new(),
            only_variants: Vec::new(),
            partition_bytes: Some(bytes),
            table: String::new(),
            at: String::new(),
            cpu: false,
            on_devices: false,
        }],
        compare: Some(Compare {
            with: Base::Variant(FOUND.into()),
            metrics: metrics.map(str::to_owned).to_vec(),
            series: false,
        }),
        smallest: None,
        published: Vec::new(),
    }
}
