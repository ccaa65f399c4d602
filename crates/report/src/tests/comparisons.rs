//! The page of several runs side by side, as text and as a browser shows it.

use super::browser::Browser;
use super::pages::{OVERLAPS, TOO_WIDE, UNLABELLED};
use crate::{ComparisonPage, comparison_html};
use std::path::PathBuf;
use whichfs_decide::FigureRow;
use whichfs_study::{
    Comparison, RankedPlace, RegressionRun, RunVerdict, TrialFailure, compare_runs,
};

/// A run of `candidates` whose figures are `factor` times as bad, but for xfs.
fn run(name: &str, candidates: &[&str], factor: f64) -> RegressionRun {
    let metrics = [
        ("mount", "s", true),
        ("tree_read", "MB/s", false),
        ("random_update", "operations/s", false),
        ("mount_cpu", "%", true),
    ];
    let each = candidates.iter().enumerate().flat_map(|(at, candidate)| {
        metrics.map(|(metric, unit, lower_is_better)| {
            let worse = match (*candidate, metric) {
                ("xfs", _) => 1.0,
                (_, "tree_read") => 1.0 / factor,
                _ => factor,
            };
            FigureRow {
                card: "a1-32gb".into(),
                kernel: format!("6.12-{name}"),
                clock: "cpu:generic-1ghz".into(),
                candidate: (*candidate).into(),
                mount_options: "noatime".into(),
                workload: "rootfs".into(),
                metric: metric.into(),
                value: 10.0 * (at + 1) as f64 * if lower_is_better { worse } else { 1.0 / worse },
                unit: unit.into(),
                lower_is_better,
                seed: 1,
                trial: "t".into(),
            }
        })
    });
    RegressionRun {
        name: name.into(),
        rows: each.collect(),
        ..RegressionRun::default()
    }
}

fn three() -> Comparison {
    let mut runs = [
        run("before", &["ext4", "f2fs", "xfs", "jfs<b>"], 1.0),
        run("after", &["ext4", "f2fs", "xfs"], 1.3),
        run("later", &["ext4", "f2fs", "xfs", "jfs<b>", "btrfs"], 3.0),
    ];
    runs[1].failed = vec![TrialFailure {
        card: "a1-32gb".into(),
        candidate: "jfs<b>".into(),
        workload: "rootfs".into(),
        reason: format!("mount: <bad> superblock{}", " /a/long/path".repeat(20)),
        id: "0123456789abcdef".into(),
    }];
    for (run, best) in runs.iter_mut().zip(["ext4", "xfs", "xfs"]) {
        run.show = "whichfs trial show TRIAL --store 'x y.sqlite'".into();
        run.answer = Some(RunVerdict {
            needs: "rootfs".into(),
            ranking: vec![RankedPlace {
                candidate: best.into(),
                score: 1.0,
                p_best: Some(0.6),
                ..RankedPlace::default()
            }],
            ..RunVerdict::default()
        });
    }
    compare_runs(&runs).unwrap()
}

fn page(comparison: &Comparison) -> String {
    comparison_html(&ComparisonPage {
        comparison,
        fail_over: 0.1,
        reproduce: "whichfs report before after later --html changes.html".into(),
    })
}

#[test]
fn the_page_says_what_changed_in_each_run_and_escapes() {
    let html = page(&three());
    for said in [
        "id=\"run-2\"",
        "id=\"run-3\"",
        "6.12-later",
        "<span class=\"stamp\">modelled</span>",
        "30 % worse",
        "3.0 × better",
        "jfs&#60;b&#62;",
        "Gone: jfs&#60;b&#62; (4 figures).",
        "New: btrfs (4 figures).",
        "mount: share of CPU time",
        "30 % higher",
        "whichfs report before after later",
        "10 worse by more than 10 %; 4 gone.",
        "<h1>jfs&#60;b&#62; fails in run 2 (1 of 1 trial): mount: &#60;bad&#62; superblock",
        "10 figures worse, 5 better. 10 worse by more than 10 %; 4 gone.",
        "whichfs trial show 0123456789ab --store &#39;x y.sqlite&#39;\n",
        "failed: <code>0123456789ab</code>",
        "Run 2: xfs wins; in run 1 it was ext4.",
        "1.00 → none",
        "seed 1: <code>t</code>",
    ] {
        assert!(html.contains(said), "{said}");
    }
    for network in ["http:", "https:", "src=", "url("] {
        assert!(!html.contains(network), "{network}");
    }
    let map = html.split("id=\"run-2\"").nth(1).unwrap();
    let map = map.split("</table>").next().unwrap();
    for left_out in ["xfs", "btrfs"] {
        assert!(
            !map.contains(left_out),
            "the same, or in neither run: {map}"
        );
    }
    let same = compare_runs(&[run("a", &["ext4"], 1.0), run("b", &["ext4"], 1.0)]).unwrap();
    assert!(page(&same).contains("<h1>Nothing is better or worse beyond noise</h1>"));
}

#[test]
fn chromium_shows_a_comparison_at_every_width_and_filters_it() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("changes.html");
    std::fs::write(&path, page(&three())).unwrap();
    let pictures = std::env::var_os("WHICHFS_PICTURES").map(PathBuf::from);
    for width in [1280, 768, 390] {
        for dark in [false, true] {
            browser.look(width, dark, "screen");
            browser.open(&path, "");
            assert_eq!(browser.text(UNLABELLED), "");
            assert_eq!(browser.text(TOO_WIDE), "", "{width}");
            assert_eq!(browser.text(OVERLAPS), "", "{width}");
            if let Some(pictures) = &pictures {
                let scheme = if dark { "dark" } else { "light" };
                let name = format!("changes-{width}-{scheme}.png");
                browser.picture(&pictures.join(&name), true);
            }
        }
    }
    browser.look(1280, false, "screen");
    browser.open(&path, "#q=ext4+mount&k=worse");
    let bars = "document.querySelectorAll('#run-3 .row:not([hidden])').length";
    assert_eq!(browser.number(bars), 1.0);
    browser.value(
        "(() => { const k = document.getElementById('kind'); k.value = 'better';
           k.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(browser.number(bars), 0.0);
    assert_eq!(browser.text("location.hash"), "#q=ext4+mount&k=better");
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}
