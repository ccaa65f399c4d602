//! About how long trials take that were never run here: as they took on another machine.

use std::sync::LazyLock;
use std::time::Duration;

/// A trial on the machine of the table.
struct Took {
    workload: &'static str,
    candidate: &'static str,
    /// Bytes of content written; 0 where nobody knows.
    bytes: u64,
    seconds: f64,
}

fn table() -> &'static [Took] {
    static TABLE: LazyLock<Vec<Took>> = LazyLock::new(|| {
        let text = include_str!("../../data/durations.tsv");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(row).collect()
    });
    &TABLE
}

fn row(line: &'static str) -> Option<Took> {
    let mut fields = line.split('\t');
    Some(Took {
        workload: fields.next()?,
        candidate: fields.next()?,
        bytes: fields.next()?.parse().ok()?,
        seconds: fields.next()?.parse().ok()?,
    })
}

/// About how long a trial takes that writes so many `bytes`: by the row of its workload and
/// candidate, or of its workload alone, that writes most nearly as much, in proportion.
pub fn about(workload: &str, candidate: &str, bytes: u64) -> Option<Duration> {
    let rows = || table().iter().filter(|took| took.workload == workload);
    let distance = |took: &&Took| {
        let [here, there] = [bytes, took.bytes].map(|bytes| bytes.max(1) as f64);
        (here / there).ln().abs()
    };
    let nearest = |rows: &mut dyn Iterator<Item = &'static Took>| {
        rows.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    };
    let own = nearest(&mut rows().filter(|took| took.candidate == candidate));
    let took = own.or_else(|| nearest(&mut rows()))?;
    let times = match (bytes, took.bytes) {
        (0, _) | (_, 0) => 1.0,
        (here, there) => here as f64 / there as f64,
    };
    Duration::try_from_secs_f64(took.seconds * times).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_is_whole() {
        let text = include_str!("../../data/durations.tsv");
        let rows = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(table().len(), rows);
        for took in table() {
            whichfs_workload::find(took.workload).unwrap();
            whichfs_fs::find(took.candidate).unwrap();
            assert!(took.seconds > 0.0 && took.seconds < 3600.0);
        }
    }

    /// Prints the table of the store that WHICHFS_STORE names: for each workload, candidate and
    /// amount the median.
    #[test]
    #[ignore = "writes the table from a store"]
    fn table_of_a_store() {
        use std::collections::BTreeMap;
        let path = std::env::var_os("WHICHFS_STORE").unwrap();
        let store = crate::trial_cache::open_store(std::path::Path::new(&path)).unwrap();
        let mut all: BTreeMap<(String, String, u64), Vec<f64>> = BTreeMap::new();
        for stored in store.find(&whichfs_store::Filter::default()).unwrap() {
            let identity = &stored.trial.identity;
            if stored.trial.outcome.status != whichfs_trial::Status::Done {
                continue;
            }
            let candidate = whichfs_fs::find(&identity.candidate).unwrap();
            let read_only = candidate.facts().read_only;
            let of = super::super::operations;
            let bytes = of(&identity.workload, &identity.parameters, read_only).unwrap();
            let given = identity.parameters.get("bytes").copied().unwrap_or(0);
            let key = (
                identity.workload.clone(),
                identity.candidate.clone(),
                bytes.max(given),
            );
            all.entry(key)
                .or_default()
                .push(stored.wall_ns as f64 / 1e9);
        }
        for ((workload, candidate, bytes), mut took) in all {
            took.sort_by(f64::total_cmp);
            let median = took[took.len() / 2];
            println!("{workload}\t{candidate}\t{bytes}\t{median:.2}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_taken_from_the_nearest() {
        let known = &table()[0];
        let own = about(known.workload, known.candidate, known.bytes).unwrap();
        assert!((own.as_secs_f64() - known.seconds).abs() < 1e-6);
        assert!(about(known.workload, "no-such", known.bytes).is_some());
        assert!(about("no-such", known.candidate, 1).is_none());
        let bonnie = |bytes| about("bonnie", "ext4", bytes).unwrap();
        assert!(bonnie(8 << 30) > bonnie(4 << 30));
    }
}
