//! Comparisons in a terminal, in Markdown and as test cases.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::comparison_properties;
use whichfs_decide::FigureRow;
use whichfs_study::{RegressionRun, compare_runs};

fn run(name: &str, factor: f64) -> RegressionRun {
    let row = |candidate: &str, metric: &str, lower_is_better, value| FigureRow {
        card: "a1-32gb".into(),
        kernel: "6.12".into(),
        clock: "cpu:b".into(),
        candidate: candidate.into(),
        mount_options: String::new(),
        workload: "rootfs".into(),
        metric: metric.into(),
        value,
        unit: if lower_is_better { "s" } else { "MB/s" }.into(),
        lower_is_better,
        seed: 1,
        trial: "t".into(),
    };
    RegressionRun {
        name: name.into(),
        rows: vec![
            row("ext4", "mount", true, 2.0 * factor),
            row("ext4|<x>", "tree_read", false, 10.0 * factor),
            row("f2fs", "mount", true, 0.004),
        ],
        ..RegressionRun::default()
    }
}

#[test]
fn what_changed_is_told_and_what_did_not_is_counted() {
    let both = compare_runs(&[run("before", 1.0), run("after", 3.0)]).unwrap();
    let text = comparison_text(&both, 80, false);
    assert!(
        text.contains("3.0 × worse") && text.contains("3.0 × better"),
        "{text}"
    );
    assert!(
        text.contains("1 more figure: the same") && !text.contains("f2fs"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let alone = |line: &str| matches!(line.trim(), "↓" | "↑");
    for width in 40..80 {
        let text = comparison_text(&both, width, true);
        assert!(!text.lines().any(alone), "{width}: {text}");
    }
    let all = comparison_text(&both, 80, true);
    assert!(
        all.contains("f2fs") && !all.contains("more figure"),
        "{all}"
    );
    let markdown = comparison_markdown(&both, false);
    assert!(markdown.contains("| ext4 | mount ↓ | 2.00 s | 6.00 s | 3.0 × worse |"));
    assert!(markdown.contains("ext4\\|<x>"), "{markdown}");
    let same = compare_runs(&[run("a", 1.0), run("b", 1.0)]).unwrap();
    assert!(comparison_text(&same, 80, false).contains("Nothing changed beyond noise."));
}

#[test]
fn figures_stay_whole_however_many_runs_there_are() {
    let runs = [1.0, 3.0, 0.2, 1.3].map(|factor| run("run", factor));
    for count in 2..=4 {
        let all = compare_runs(&runs[..count]).unwrap();
        for width in [40, 80, 120] {
            let text = comparison_text(&all, width, true);
            let heads = text.matches("beside 1").count();
            let numbers = text.lines().filter(|line| line.starts_with("filesystem"));
            let wanted = match (width, count) {
                (40, 3..) | (80, 4..) => 0,
                _ => count - 1,
            };
            assert_eq!((numbers.count(), heads), (1, wanted), "{width}: {text}");
            let fits = text.lines().all(|line| line.chars().count() <= width);
            assert!(fits, "{width}: {text}");
            let words = ["2.00 s", "6.00 s", "3.0 × worse", "400 ms", "5.0 × better"];
            for word in &words[..(2 * count - 1).min(words.len())] {
                assert!(text.contains(word), "{width}: no {word} in {text}");
            }
        }
    }
}

#[test]
fn in_a_narrow_terminal_the_runs_and_what_changed_share_a_line() {
    let mut runs = [run("before", 1.0), run("after", 3.0)];
    for row in runs.iter_mut().flat_map(|run| &mut run.rows) {
        row.candidate = format!("{}-with-a-long-name-of-its-own", row.candidate);
    }
    let text = comparison_text(&compare_runs(&runs).unwrap(), 60, true);
    let lines: Vec<&str> = text.lines().collect();
    let at = |start: &str| {
        lines
            .iter()
            .position(|line| line.starts_with(start))
            .unwrap()
    };
    let head = at("filesystem: metric");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[head + 1]), "1 2 2 beside 1", "{text}");
    let row = at("ext4-with-a-long-name-of-its-own: mount ↓");
    assert_eq!(words(lines[row + 1]), "2.00 s 6.00 s 3.0 × worse", "{text}");
    let end = |line: &str| line.chars().count();
    assert_eq!(end(lines[head + 1]), end(lines[row + 1]), "columns: {text}");
}

/// A run that decided: what wins, and whether f2fs failed.
fn decided(run: RegressionRun, best: &str, f2fs: Option<&str>) -> RegressionRun {
    let place = |candidate: &str, score| {
        format!("{{\"candidate\":\"{candidate}\",\"score\":{score},\"p_best\":0.5}}")
    };
    let (ranked, excluded) = match f2fs {
        None => (format!(",{}", place("f2fs", 0.5)), String::new()),
        Some(error) => {
            let why = format!("its trial with seed 1 failed: {error}");
            let one = "\"candidate\":\"f2fs\",\"rule\":\"failed\",\"source\":null";
            (String::new(), format!("{{{one},\"why\":\"{why}\"}}"))
        }
    };
    let text = format!(
        "{{\"needs\":\"rootfs\",\"ranking\":[{}{ranked}],\"excluded\":[{excluded}],\
         \"trials_of\":[{{\"candidate\":\"f2fs\",\"seed\":1,\"id\":\"abcdef012345678\"}}]}}",
        place(best, 1.0)
    );
    let mut run = run;
    if f2fs.is_some() {
        run.rows.retain(|row| row.candidate != "f2fs");
    }
    RegressionRun {
        answer: Some(serde_json::from_str(&text).unwrap()),
        show: "whichfs trial show TRIAL --store s.sqlite".into(),
        ..run
    }
}

#[test]
fn what_stopped_working_comes_first_with_its_error_and_its_trial() {
    let runs = [
        decided(run("before", 1.0), "ext4", None),
        decided(run("after", 3.0), "xfs", Some("mount: bad <superblock>")),
    ];
    let both = compare_runs(&runs).unwrap();
    let text = comparison_text(&both, 80, false);
    let first = "f2fs fails now (1 of 1 trial): mount: bad <superblock>\n   whichfs trial show \
                 abcdef012345 --store s.sqlite\n   1 figure gone with it\n";
    assert!(text.starts_with(first), "{text}");
    for said in [
        "Run 2: xfs wins; in run 1 it was ext4.",
        "f2fs: score 0.50 → none; probability of being the best 50% → none",
    ] {
        assert!(text.contains(said), "no {said}: {text}");
    }
    assert!(!text.contains("gone\n"), "no line of its own: {text}");
    let markdown = comparison_markdown(&both, false);
    let bold = "**f2fs fails now (1 of 1 trial): mount: bad &lt;superblock>**";
    assert!(markdown.starts_with(bold), "{markdown}");
    let cases = comparison_cases(&both, 0.1);
    let first = &cases[0];
    assert_eq!(
        (first.class.as_str(), first.name.as_str()),
        ("rootfs.f2fs", "works")
    );
    let CaseResult::Failed(why) = &first.told else {
        panic!("{first:?}")
    };
    assert!(why.contains("mount: bad <superblock>"), "{why}");
    assert!(first.output.contains("whichfs trial show abcdef012345"));
    let gone = cases
        .iter()
        .find(|case| case.class == "rootfs.f2fs" && case.name == "mount");
    let told = &gone.unwrap().told;
    assert!(
        matches!(told, CaseResult::Failed(why) if why.contains("bad <superblock>")),
        "{told:?}"
    );
    let works = |name| {
        cases
            .iter()
            .find(|case| case.class == name && case.name == "works")
    };
    assert_eq!(works("rootfs.ext4").unwrap().told, CaseResult::Passed);
    let properties = comparison_properties(&both);
    let winner = ("run 2: winner".to_owned(), "ext4 → xfs".to_owned());
    assert_eq!(properties[0], winner);
}

#[test]
fn regressions_are_failed_test_cases() {
    let both = compare_runs(&[run("before", 1.0), run("after", 3.0)]).unwrap();
    let cases = comparison_cases(&both, 0.1);
    let failed: Vec<&str> = (cases.iter())
        .filter(|case| matches!(case.told, CaseResult::Failed(_)))
        .map(|case| case.name.as_str())
        .collect();
    assert_eq!(failed, ["mount"]);
    assert_eq!(cases.len(), 3 + 3, "figures, and each filesystem works");
    assert!(
        comparison_cases(&both, 2.5)
            .iter()
            .all(|case| case.told == CaseResult::Passed)
    );
}
