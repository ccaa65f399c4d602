//! Rows in files: columns, quoting, reading back.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::fixture::{page_with_gaps, verdict};
use crate::{Export, FailedRow, csv, json, markdown};
use whichfs_decide::FigureRow;
use whichfs_study::{read_csv, read_json};

fn row(candidate: &str, value: f64) -> FigureRow {
    FigureRow {
        card: "a1-32gb".into(),
        kernel: "6.12.57".into(),
        clock: "cpu:generic-1ghz".into(),
        candidate: candidate.into(),
        mount_options: "noatime,compress=zstd".into(),
        workload: "rootfs".into(),
        metric: "tree_write".into(),
        value,
        unit: "s".into(),
        lower_is_better: true,
        seed: u64::MAX,
        trial: "0123456789abcdef".into(),
    }
}

fn failed() -> FailedRow {
    FailedRow {
        card: "a1-32gb".into(),
        kernel: "6.12.57".into(),
        clock: "cpu:generic-1ghz".into(),
        candidate: "f2fs".into(),
        mount_options: "noatime".into(),
        workload: "rootfs".into(),
        seed: 2,
        trial: "fedcba9876543210".into(),
        why: "exit status 1, \"no\"".into(),
    }
}

#[test]
fn csv_has_the_columns_of_the_contract_and_quotes() {
    let rows = [row("ext4 \"x\"", 0.1 + 0.2)];
    let text = csv(&Export {
        rows: &rows,
        failed: &[failed()],
        fit_error: Some(0.062),
    });
    let expected = "card,kernel,clock,candidate,mount_options,workload,metric,value,unit,\
                    lower_is_better,seed,trial,origin,fit_error,failed\n\
                    a1-32gb,6.12.57,cpu:generic-1ghz,\"ext4 \"\"x\"\"\",\"noatime,compress=zstd\",\
                    rootfs,tree_write,0.30000000000000004,s,true,18446744073709551615,\
                    0123456789abcdef,modelled,0.062,\n\
                    a1-32gb,6.12.57,cpu:generic-1ghz,f2fs,noatime,rootfs,,,,,2,\
                    fedcba9876543210,modelled,0.062,\"exit status 1, \"\"no\"\"\"\n";
    assert_eq!(text, expected);
    let (figures, told) = read_csv(&text).unwrap();
    assert_eq!(figures, rows, "what failed is no figure");
    assert_eq!(told.len(), 1, "and is told");
    let old = "card,kernel,clock,candidate,mount_options,workload,metric,value,unit,\
               lower_is_better,seed,trial\na,k,device,ext4,,w,m,1.5,s,true,1,t\n";
    assert_eq!(read_csv(old).unwrap().0.len(), 1, "files of before");
    assert!(read_csv(&old.replace("1.5", "")).is_err());
}

#[test]
fn json_rows_can_be_read_back() {
    let rows = vec![row("a", 1.5), row("b", 2.5)];
    let text = json(&Export {
        rows: &rows,
        failed: &[failed()],
        fit_error: None,
    });
    assert_eq!(read_json(&text).unwrap().0, rows);
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all[0]["origin"], "modelled");
    assert_eq!(all[2]["failed"], "exit status 1, \"no\"");
    assert!(all[2]["value"].is_null() && all[0]["failed"].is_null());
    let keys = all[0].as_object().unwrap().len();
    assert_eq!(keys, FigureRow::COLUMNS.len() + 3);
    let plain = serde_json::to_string(&rows).unwrap();
    assert_eq!(read_json(&plain).unwrap().0, rows, "files of before");
    assert!(read_json("[{\"card\": \"x\"}]").is_err());
}

#[test]
fn what_a_device_gave_is_measured_and_not_of_the_model() {
    let mut measured = row("a", 1.5);
    measured.clock = whichfs_trial::REAL.into();
    let text = csv(&Export {
        rows: &[measured],
        failed: &[],
        fit_error: Some(0.1),
    });
    assert!(text.ends_with(",measured,,\n"), "{text}");
}

#[test]
fn markdown_begins_with_the_verdict_and_cells_stay_in_their_cells() {
    let rows = [row("a|b<i>", 239.877_386_203_882_22)];
    let text = markdown(
        &page_with_gaps().verdict,
        &Export {
            rows: &rows,
            failed: &[failed()],
            fit_error: None,
        },
    );
    assert!(text.starts_with("# Use f2fs"), "{text}");
    for said in [
        "Best with a probability of",
        "- F2fs wins",
        "never-done 1 of 1, ntfs3 1 of 2",
        "Figures are modelled",
        "the model is off by 6.2",
        "| 240 s | lower |",
        "- f2fs, seed 2, trial fedcba987654: exit status 1",
        "a\\|b&lt;i>",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut table = text.lines().filter(|line| line.starts_with('|'));
    assert!(table.all(|line| bars(line) == 13), "{text}");
    let whole = markdown(&verdict(), &Export::default());
    assert!(!whole.contains("failed"), "{whole}");
}
