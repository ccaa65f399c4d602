//! Candidates that failed trials are shown wherever the others are.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::section;
use crate::fixture::{page, page_with_gaps};
use crate::{TerminalLook, html, terminal};

const SAID: &str = "Trials of 2 of 16 candidates failed: never-done 1 of 1, \
                    ntfs3 1 of 2. They are not judged: the verdict is of the others.";

#[test]
fn the_first_screen_says_who_failed_trials_and_how_many() {
    let given = page_with_gaps();
    let whole = html(&given);
    let head = section(&whole, "<header>", "<section id=\"sure\">");
    assert!(head.contains(SAID), "{head}");
    assert!(!html(&page()).contains("candidates failed"));
    let look = TerminalLook {
        width: 80,
        colour: false,
    };
    let text = terminal(&given.verdict, look);
    let first = text.split("\nScore (1 is best").next().unwrap();
    let one_line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(SAID), "{first}");
    let mut none = given.verdict;
    none.ranking.clear();
    let text = terminal(&none, look);
    assert!(
        text.contains("Trials of 2 of 2 candidates") && !text.contains("of the others"),
        "{text}"
    );
}

#[test]
fn charts_and_wear_show_them_with_a_mark() {
    let whole = html(&page_with_gaps());
    for number in 1..=8 {
        let begin = format!("id=\"metric-{number}\"");
        let chart = section(&whole, &begin, "</section>");
        for (name, mark) in [
            ("ntfs3", "1 of 2 trials failed"),
            ("never-done", "1 of 1 trial failed"),
        ] {
            // One has a link to its trials, the other has none in this page.
            let shown = [" ", "</a> "]
                .map(|between| format!("{name}{between}<small class=\"mark\">{mark}</small>"));
            assert!(
                shown.iter().any(|shown| chart.contains(shown)),
                "{number}: {shown:?}\n{chart}"
            );
        }
        let bar = section(chart, "data-c=\"ntfs3\"", "</div>");
        assert!(
            bar.contains("class=\"fill") && bar.contains("<circle"),
            "{bar}"
        );
        let bar = section(chart, "data-c=\"never-done\"", "</div>");
        assert!(
            !bar.contains("class=\"fill") && bar.contains("no figure"),
            "{bar}"
        );
    }
    // The drawings of latencies, requests and times, and the tables below them.
    let latency = section(&whole, "id=\"latency\"", "</section>");
    let device = section(&whole, "id=\"device\"", "</section>");
    for (part, drawings, told) in [(latency, 1, 1), (device, 3, 4)] {
        let marked = "ntfs3</a> <small class=\"mark\">1 of 2 trials failed</small></span>";
        assert_eq!(part.matches(marked).count(), drawings, "{part}");
        let labels = part.matches("aria-label=\"ntfs3 (1 of 2 trials failed)");
        assert_eq!(labels.count(), drawings);
        let rows = part.matches("ntfs3 <small class=\"mark\">").count();
        let items = part.matches("<b>ntfs3</b> (1 of 2 trials failed)").count();
        assert_eq!(rows + items, told);
        assert!(part.contains("No figure: never-done (1 of 1 trial failed)."));
        assert_eq!(part.matches("ext4</a></span>").count(), drawings, "no mark");
    }
    let wear = section(&whole, "<section id=\"wear\">", "</section>");
    for shown in [
        "ntfs3 <small class=\"mark\">1 of 2",
        "never-done <small class=\"mark\">1 of 1",
    ] {
        assert!(wear.contains(shown), "{shown}\n{wear}");
    }
    let heat = section(&whole, "class=\"heat\"", "</table>");
    assert!(heat.contains("never-done") && heat.contains("ntfs3"));
}

#[test]
fn what_is_amplified_is_said_at_both_ratios() {
    let whole = html(&page());
    let wear = section(&whole, "<section id=\"wear\">", "</section>");
    for said in [
        "mkfs included",
        "Card's factor",
        "Per application byte, without mkfs",
    ] {
        assert!(wear.contains(said), "{said}\n{wear}");
    }
    assert!(!wear.contains(">Amplification<"));
    assert!(whole.contains("for each byte written to files in the long run"));
    let row = section(wear, "<th scope=\"row\">f2fs</th>", "</tr>");
    assert!(
        row.ends_with("<td class=\"n\">–</td>"),
        "the long run's figure is not that of the trial: {row}"
    );
}

#[test]
fn figures_of_drawings_are_in_tables_too() {
    let whole = html(&page());
    let latency = section(&whole, "id=\"latency\"", "</section>");
    let table = section(latency, "<table class=\"figures\">", "</table>");
    let row = section(table, "data-c=\"f2fs\"", "</tr>");
    assert_eq!(row.matches("<td").count(), 6, "{row}");
    assert!(row.contains("1.37 ms") && row.contains("389 ms"), "{row}");
    assert!(
        latency.contains("text-anchor=\"start\">1.00 ms</text>"),
        "an axis"
    );
    let device = section(&whole, "id=\"device\"", "</section>");
    let phases = section(device, "<table class=\"figures\">", "</table>");
    assert_eq!(phases.matches("<tr data-c=").count(), 15 * 3);
    assert!(phases.contains("random update"));
}

#[test]
fn what_decides_is_stamped() {
    let whole = html(&page());
    for title in ["What it costs against the second", "The card"] {
        let stamped = format!("<h2>{title} <small><span class=\"stamp\">modelled</span>");
        assert!(whole.contains(&stamped), "{stamped}");
    }
}
