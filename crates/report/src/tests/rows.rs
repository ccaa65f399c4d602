//! Rows in files: columns, quoting, reading back.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::fixture::{page_with_gaps, verdict};
use crate::{DocumentSchema, Export, ResultRow, TrialTable, csv, json, markdown, result_rows};
use whichfs_decide::FigureRow;
use whichfs_study::{read_csv, read_json};
use whichfs_trial::{Status, Trial};

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

/// A trial of f2fs that failed.
fn failed() -> Trial {
    let mut trial = crate::fixture::trial();
    trial.identity.candidate = "f2fs".into();
    trial.identity.seed = 2;
    trial.outcome.status = Status::Failed {
        reason: "exit status 1, \"no\"\nmore".into(),
        log: Vec::new(),
    };
    trial
}

#[test]
fn csv_has_the_columns_of_the_contract_and_quotes() {
    let rows = [row("ext4 \"x\"", 0.1 + 0.2)];
    let failed = failed();
    let text = csv(&Export {
        rows: &rows,
        trials: &[("aligned", &failed)],
        fit_error: Some(0.062),
    });
    let id = failed.identity.id();
    let expected = format!(
        "card,kernel,clock,candidate,mount_options,workload,metric,value,unit,lower_is_better,\
         seed,trial,origin,fit_error,failed,variant,board,card_state,mkfs,partition_offset,\
         partition_bytes,parameters,version,card_sha256,kernel_sha256,agent_sha256,\
         userland_sha256,schema\n\
         a1-32gb,6.12.57,cpu:generic-1ghz,\"ext4 \"\"x\"\"\",\"noatime,compress=zstd\",rootfs,\
         tree_write,0.30000000000000004,s,true,18446744073709551615,0123456789abcdef,modelled,\
         0.062,,,,,,,,,,,,,,1\n\
         a1-32gb,6.12.57,cpu:generic-1ghz,f2fs,noatime,rootfs,,,,,2,{id},modelled,0.062,\
         \"exit status 1, \"\"no\"\"\",aligned,generic-1ghz,used,mkfs.ext4 -F /dev/vda,4194304,\
         32000000000,mib=192,0.1,,,,,1\n"
    );
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
fn json_rows_can_be_read_back_and_fit_their_schema() {
    let rows = vec![row("a", 1.5), row("b", 2.5)];
    let failed = failed();
    let text = json(&Export {
        rows: &rows,
        trials: &[("", &failed)],
        fit_error: None,
    });
    assert_eq!(read_json(&text).unwrap().0, rows);
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all[0]["origin"], "modelled");
    assert_eq!(all[2]["failed"], "exit status 1, \"no\"");
    assert!(all[2]["value"].is_null() && all[0]["failed"].is_null());
    let schema = DocumentSchema::of_rows::<ResultRow>("results").schema;
    let fits = |value: &serde_json::Value| {
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler
            .add_resource("results.json", schema.clone())
            .unwrap();
        let index = compiler.compile("results.json", &mut schemas).unwrap();
        schemas.validate(value, index).is_ok()
    };
    assert!(fits(&all));
    let mut without = all.clone();
    without[0].as_object_mut().unwrap().remove("schema");
    assert!(!fits(&without), "a row without the number of its schema");
    let plain = serde_json::to_string(&rows).unwrap();
    assert_eq!(read_json(&plain).unwrap().0, rows, "files of before");
    assert!(read_json("[{\"card\": \"x\"}]").is_err());
}

#[test]
fn a_row_has_all_that_decided_its_trial() {
    let done = crate::fixture::trial();
    let failed = failed();
    let rows = FigureRow::of_trial(&done);
    let export = Export {
        rows: &rows,
        trials: &[("aligned", &done), ("", &failed)],
        fit_error: Some(0.062),
    };
    let table = result_rows(&export);
    assert_eq!(table.len(), done.outcome.metrics.len() + 1);
    let first = &table[0];
    assert_eq!((first.variant, first.value), ("aligned", Some(25.1)));
    assert_eq!(first.mkfs.as_deref(), Some("mkfs.ext4 -F /dev/vda"));
    assert_eq!(first.partition_offset, Some(4_194_304));
    assert_eq!(
        (first.card_state, first.board),
        (Some("used"), Some("generic-1ghz"))
    );
    assert_eq!((first.version, first.schema), (Some("0.1"), 1));
    // A figure of a trial that nobody gave, as a series of power cuts is, has none of it.
    let alone = result_rows(&Export {
        rows: &rows,
        ..Export::default()
    });
    assert_eq!((alone[0].mkfs.clone(), alone[0].board), (None, None));
    let none = csv(&Export::default());
    assert_eq!(
        none.lines().collect::<Vec<_>>(),
        csv(&export).lines().take(1).collect::<Vec<_>>()
    );
    assert_eq!(result_rows(&Export::default()), []);
    let both = [&done, &failed];
    let text = TrialTable::Csv.text(both.into_iter());
    assert_eq!(text.lines().count(), 1 + table.len(), "{text}");
    let text = TrialTable::Json.text(both.into_iter());
    assert_eq!(read_json(&text).unwrap().1.len(), 1);
    assert_eq!(TrialTable::of_extension("sqlite"), None);
}

#[test]
fn what_a_device_gave_is_measured_and_not_of_the_model() {
    let mut measured = row("a", 1.5);
    measured.clock = whichfs_trial::REAL.into();
    let text = csv(&Export {
        rows: &[measured],
        trials: &[],
        fit_error: Some(0.1),
    });
    assert!(text.contains(",measured,,,"), "{text}");
}

#[test]
fn markdown_begins_with_the_verdict_and_cells_stay_in_their_cells() {
    let rows = [row("a|b<i>", 239.877_386_203_882_22)];
    let text = markdown(
        &page_with_gaps().verdict,
        &Export {
            rows: &rows,
            trials: &[("", &failed())],
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
        "- f2fs, seed 2, trial ",
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
