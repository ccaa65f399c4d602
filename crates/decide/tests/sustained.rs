//! What a sustained trial shows, and which of its figures count.

use whichfs_decide::FigureRow;
use whichfs_decide::sustained::Lasting;
use whichfs_trial::Trial;

/// A phase: bytes written into files, bytes that reach the card, bytes programmed, blocks erased.
fn phase(name: &str, [files, card, programmed, erases]: [u64; 4]) -> String {
    format!(
        r#"{{"phase":"{name}","begin":0,"end":1000000000,
            "counts":{{"operations":1,"files":1,"bytes":{files},"read_bytes":0}},"latency":[],
            "device":{{"reads":0,"writes":1,"discards":0,"flushes":0,"read_bytes":0,
            "write_bytes":{card},"discard_bytes":0,"busy":0,"programmed_bytes":{programmed},
            "erases":{erases},"au_copies":0,"write_sizes":{{}}}}}}"#
    )
}

/// A trial with rounds of 1 MB on a spare area of 2 MB.
fn trial(state: &str, age: [u64; 4], before: [u64; 4], last: [u64; 4]) -> Trial {
    let phases = [
        phase("sustained_fill", [9_000_000; 4]),
        phase("sustained_first", [1_000_000, 1_000_000, 1_000_000, 1]),
        phase("sustained_age", age),
        phase("sustained_before", before),
        phase("sustained_last", last),
    ];
    let metric = |name: &str| {
        format!(r#"{{"metric":"{name}","value":2.5,"unit":"1","lower_is_better":true}}"#)
    };
    let metrics = [
        "mount",
        "write_amplification",
        "sustained_write_amplification",
    ]
    .map(metric);
    let text = format!(
        r#"{{"identity":{{"card":"c","card_sha256":"","card_state":"{state}","board":"b",
            "board_sha256":"","clock":"cpu:b","kernel":"6.12","kernel_sha256":"",
            "candidate":"ext4","mkfs":[],"mount_options":"","workload":"sustained",
            "parameters":{{"round_bytes":1000000,"rounds":12}},"tree_sha256":"",
            "partition_offset":0,"partition_bytes":0,"memory_mib":64,"version":"0",
            "agent_sha256":"","tools":{{}},"cpu_features_sha256":"","seed":1}},
            "outcome":{{"status":{{"status":"done"}},"phases":[{}],"metrics":[{}],
            "trace_sha256":"","virtual_time":0}}}}"#,
        phases.join(","),
        metrics.join(",")
    );
    serde_json::from_str(&text).unwrap()
}

const AGE: [u64; 4] = [3_000_000, 3_000_000, 6_000_000, 3];
const LAST: [u64; 4] = [1_000_000, 1_200_000, 2_500_000, 2];

fn metrics(trial: &Trial) -> Vec<String> {
    let rows = FigureRow::of_trial(trial);
    rows.into_iter().map(|row| row.metric).collect()
}

#[test]
fn two_rounds_that_agree_last_and_count_without_twins_of_other_trials() {
    let stable = trial("sustained", AGE, LAST, LAST);
    let shown = Lasting::of(&stable).unwrap();
    assert!(shown.exercised && shown.is_stable());
    assert_eq!(shown.amplification, [2.5, 2.5]);
    assert_eq!((shown.caveat(), shown.rate), (None, [1.0, 1.0]));
    assert_eq!(metrics(&stable), ["sustained_write_amplification"]);
    // The same workload by itself, in a study: all its figures are shown.
    assert_eq!(metrics(&trial("used", AGE, LAST, LAST)).len(), 3);
}

#[test]
fn rounds_that_differ_by_more_than_a_twentieth_are_not_stable_and_it_is_said() {
    let growing = [1_000_000, 1_200_000, 2_640_000, 2];
    let shown = Lasting::of(&trial("sustained", AGE, LAST, growing)).unwrap();
    assert!(!shown.is_stable());
    let said = shown.caveat().unwrap();
    assert!(
        said.contains("not stable after 12 rounds: 2.50, then 2.64"),
        "{said}"
    );
    // Told, and no more: nobody notices less than the noise floor.
    assert!(!shown.leaves_out());
    let doubled = [1_000_000, 1_200_000, 5_000_000, 2];
    assert!(
        Lasting::of(&trial("sustained", AGE, LAST, doubled))
            .unwrap()
            .leaves_out()
    );
    let near = [1_000_000, 1_200_000, 2_600_000, 2];
    assert!(
        Lasting::of(&trial("sustained", AGE, LAST, near))
            .unwrap()
            .is_stable()
    );
}

#[test]
fn where_collection_was_not_exercised_nothing_counts_and_it_is_said() {
    // Too little reached the card, or no block had to be erased.
    let little = [3_000_000, 900_000, 900_000, 3];
    let unerased = [1_000_000, 1_200_000, 2_500_000, 0];
    for fault in [
        trial("sustained", little, LAST, LAST),
        trial("sustained", AGE, unerased, unerased),
    ] {
        let shown = Lasting::of(&fault).unwrap();
        assert!(!shown.exercised && shown.leaves_out());
        assert!(shown.caveat().unwrap().contains("was not exercised"));
        assert!(metrics(&fault).is_empty());
    }
}
