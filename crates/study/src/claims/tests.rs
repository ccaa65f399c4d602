//! What becomes of claims by given figures.
#![allow(clippy::unwrap_used)]
use super::*;

/// A value of each seed, from 1; the one in the middle is their median.
fn repeats(values: &[f64]) -> Option<Repeats> {
    Some(Repeats {
        values: (1..).zip(values.iter().copied()).collect(),
        median: values[values.len() / 2],
        doubt: None,
    })
}

fn tables() -> Vec<Grid> {
    let line = |metric: &str, lower_is_better, values: [f64; 2]| GridLine {
        metric: metric.into(),
        unit: "x".into(),
        lower_is_better,
        variant: "sync".into(),
        load: String::new(),
        ours: values.map(|value| repeats(&[value])).to_vec(),
        published: Vec::new(),
        tau_b: None,
    };
    vec![Grid {
        card: "c".into(),
        board: "b".into(),
        load: "tree".into(),
        candidates: vec!["ext4".into(), "vfat".into()],
        lines: vec![
            line("mount", true, [2.0, 5.0]),
            line("write", false, [9.0, 10.0]),
        ],
        orders: Vec::new(),
    }]
}

fn claim(part: ClaimPart) -> Claim {
    Claim {
        study: "s".into(),
        text: "t".into(),
        source: "x".into(),
        parts: vec![part],
        not_testable: None,
        reason: None,
    }
}

fn part(metric: &str, at_least: Option<f64>, within: Option<f64>) -> ClaimPart {
    ClaimPart {
        workload: "tree".into(),
        metric: metric.into(),
        card: None,
        variant: None,
        better: "ext4".into(),
        than: "vfat".into(),
        than_variant: None,
        than_workload: None,
        than_metric: None,
        than_card: None,
        at_least,
        within,
    }
}

#[test]
fn every_claim_is_a_row_of_the_document() {
    let rows = include_str!("../../../../docs/seeds.md");
    let claims: ClaimsFile = toml::from_str(CLAIMS.1).unwrap();
    for claim in &claims.claim {
        let (text, study) = (claim.text.get_ref(), claim.study.get_ref());
        let row = format!("| {text} | `study run {study}` |");
        assert!(rows.contains(&row), "docs/seeds.md lacks: {row}");
    }
}

#[test]
fn figures_reproduce_or_contradict() {
    let outcome = |part: ClaimPart| judge_claim(&claim(part), &tables()).outcome;
    assert_eq!(outcome(part("mount", None, None)), ClaimOutcome::Reproduced);
    assert_eq!(
        outcome(part("mount", Some(2.5), None)),
        ClaimOutcome::Reproduced
    );
    assert_eq!(
        outcome(part("mount", Some(2.6), None)),
        ClaimOutcome::Contradicted
    );
    assert_eq!(
        outcome(part("write", None, None)),
        ClaimOutcome::Contradicted
    );
    assert_eq!(
        outcome(part("write", None, Some(1.2))),
        ClaimOutcome::Reproduced
    );
    assert_eq!(
        outcome(part("write", None, Some(1.1))),
        ClaimOutcome::Contradicted
    );
    assert_eq!(outcome(part("read", None, None)), ClaimOutcome::NotRun);
    let other = ClaimPart {
        card: Some("other".into()),
        ..part("mount", None, None)
    };
    assert_eq!(outcome(other), ClaimOutcome::NotRun);
    let mounts = |than_variant: &str| ClaimPart {
        than: "ext4".into(),
        than_variant: Some(than_variant.into()),
        ..part("mount", None, Some(1.0))
    };
    assert_eq!(outcome(mounts("sync")), ClaimOutcome::Reproduced);
    assert_eq!(outcome(mounts("async")), ClaimOutcome::NotRun);
    let said = judge_claim(&claim(part("mount", Some(2.0), None)), &tables());
    let expected = "tree, mount: ext4 2.50 × vfat (claimed: at least 2), c, sync, one seed";
    assert_eq!(said.reasons, [expected]);
    assert_eq!((said.hold, said.comparisons, said.seeds), (1, 1, 1));
    let mut two = claim(part("mount", Some(2.0), None));
    two.parts.push(part("mount", Some(2.6), None));
    let said = judge_claim(&two, &tables());
    assert_eq!((said.hold, said.comparisons, said.seeds), (1, 2, 1));
}

#[test]
fn a_figure_that_is_off_says_what_the_ratio_would_be() {
    let mut tables = tables();
    let of = |tables: &[Grid]| judge_claim(&claim(part("write", Some(2.0), None)), tables);
    assert!(!of(&tables).reasons[0].contains("real kernel"));
    for ours in tables[0].lines[1].ours.iter_mut().flatten().take(1) {
        ours.doubt = Some([1.25, 2.0]);
    }
    let said = of(&tables);
    assert!(
        said.reasons[0].ends_with("; with a real kernel's CPU time 0.45 to 0.72"),
        "{said:?}"
    );
}

#[test]
fn workloads_of_one_table_can_be_compared() {
    let mut tables = tables();
    tables[0].lines[1].load = "4K".into();
    let mut slower = tables[0].lines[1].clone();
    slower.load = "256K".into();
    slower.ours[0] = repeats(&[3.0]);
    tables[0].lines.push(slower);
    let than = |workload: &str| ClaimPart {
        workload: "4K".into(),
        than: "ext4".into(),
        than_workload: Some(workload.into()),
        ..part("write", Some(3.0), None)
    };
    let said = judge_claim(&claim(than("256K")), &tables);
    assert_eq!(said.outcome, ClaimOutcome::Reproduced);
    assert!(
        said.reasons[0].contains("ext4 3.00 × ext4, 256K"),
        "{:?}",
        said.reasons
    );
    assert_eq!(
        judge_claim(&claim(than("1M")), &tables).outcome,
        ClaimOutcome::NotRun
    );
}

#[test]
fn seeds_that_disagree_decide_nothing() {
    let outcome = |ext4: &[f64], vfat: &[f64]| {
        let mut tables = super::tests::tables();
        tables[0].lines[1].ours = vec![repeats(ext4), repeats(vfat)];
        judge_claim(&claim(part("write", None, None)), &tables)
    };
    let sure = outcome(&[2.0, 3.0, 4.0], &[1.0, 1.0, 1.0]);
    assert_eq!(sure.outcome, ClaimOutcome::Reproduced);
    assert!(
        sure.reasons[0].ends_with("sync, 2.00 to 4.00 over 3 seeds"),
        "{sure:?}"
    );
    let unsure = outcome(&[0.5, 3.0, 4.0], &[1.0, 1.0, 1.0]);
    assert_eq!(unsure.outcome, ClaimOutcome::NotDecided);
    let against = outcome(&[0.5, 0.6, 0.7], &[1.0, 1.0, 1.0]);
    assert_eq!(against.outcome, ClaimOutcome::Contradicted);
}

#[test]
fn metrics_and_cards_can_be_compared_and_a_contradiction_has_its_reason() {
    let mut tables = tables();
    tables.extend(super::tests::tables());
    tables[1].card = "d".into();
    tables[1].lines[1].ours[0] = repeats(&[3.0]);
    let other_card = ClaimPart {
        card: Some("c".into()),
        than: "ext4".into(),
        than_card: Some("d".into()),
        ..part("write", Some(3.0), None)
    };
    let said = judge_claim(&claim(other_card), &tables);
    assert_eq!(said.outcome, ClaimOutcome::Reproduced, "{said:?}");
    let other_metric = ClaimPart {
        than: "ext4".into(),
        than_metric: Some("mount".into()),
        ..part("write", Some(9.0), None)
    };
    let mut told = claim(other_metric);
    told.reason = Some("a cache".into());
    let said = judge_claim(&told, &tables);
    assert_eq!(said.outcome, ClaimOutcome::Contradicted);
    assert!(
        said.reasons[0].contains("ext4 4.50 × ext4, mount"),
        "{said:?}"
    );
    assert_eq!(said.reasons.last().unwrap(), "likeliest reason: a cache");
}

#[test]
fn what_cannot_be_tested_says_why() {
    let text = "[[claim]]\nstudy = \"s\"\ntext = \"t\"\nsource = \"x\"\n";
    let why = format!("{text}not_testable = \"because\"\n");
    let read = claims("c.toml", &why, &[]).unwrap();
    let said = judge_claim(&read[0], &tables());
    assert_eq!(
        (said.outcome, said.reasons),
        (ClaimOutcome::NotTestable, vec!["because".into()])
    );
    let error = claims("c.toml", text, &[]).unwrap_err().to_string();
    assert!(
        error.contains("c.toml:3") && error.contains("parts"),
        "{error}"
    );
}
