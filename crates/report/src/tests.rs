//! What a reader sees: no line too long, nothing loaded, nothing obeyed, nothing missing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod browser;
mod comparisons;
mod failed;
mod hostile;
pub(crate) mod pages;
mod rows;

use crate::fixture::{large_page, page, page_with_gaps, samples, verdict};
use crate::{Page, TerminalLook, html, terminal};
use whichfs_decide::Verdict;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/terminal-80.txt");

fn plain(width: usize) -> String {
    terminal(
        &verdict(),
        TerminalLook {
            width,
            colour: false,
        },
    )
}

/// Lines longer than `width`, but for those of "How to apply it", which must not be broken.
fn too_long(text: &str, width: usize) -> Vec<&str> {
    let (before, rest) = text.split_once("\nHow to apply it").unwrap_or((text, ""));
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let lines = before.lines().chain(after.lines());
    lines.filter(|line| line.chars().count() > width).collect()
}

#[test]
fn terminal_at_80_columns_is_the_golden_text() {
    let text = plain(80);
    if std::env::var_os("WHICHFS_BLESS").is_some() {
        std::fs::write(GOLDEN, &text).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    assert_eq!(
        text, golden,
        "run again with WHICHFS_BLESS=1 if the change is wanted"
    );
}

#[test]
fn no_line_exceeds_the_width() {
    for width in [60, 80, 100, 120, 200] {
        let text = plain(width);
        assert!(
            too_long(&text, width).is_empty(),
            "{width}: {:?}",
            too_long(&text, width)
        );
    }
    assert_eq!(
        too_long("x\nabc\n", 2),
        ["abc"],
        "the check finds a line that is too long"
    );
}

#[test]
fn every_candidate_and_every_weighted_metric_is_shown() {
    let verdict = verdict();
    assert_eq!(verdict.ranking.len() + verdict.excluded.len(), 19);
    assert_eq!(verdict.metrics.len(), 8);
    for text in [plain(80), plain(120), html(&page())] {
        for ranked in &verdict.ranking {
            assert!(text.contains(&ranked.candidate), "{}", ranked.candidate);
        }
        for metric in &verdict.metrics {
            assert!(text.contains(&metric.label), "{}", metric.label);
        }
        assert!(
            text.contains("vfat, vfat-factory"),
            "the excluded are grouped by reason"
        );
    }
}

#[test]
fn all_eight_metrics_fit_at_80_columns() {
    assert!(!plain(80).contains("not shown at this width"));
    assert!(
        plain(60).contains("not shown at this width"),
        "narrower, what is left out is said"
    );
}

#[test]
fn colour_changes_nothing_but_colour() {
    let coloured = terminal(
        &verdict(),
        TerminalLook {
            width: 80,
            colour: true,
        },
    );
    assert!(coloured.contains('\u{1b}'));
    assert!(!plain(80).contains('\u{1b}'));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find('\u{1b}') {
        stripped.push_str(&rest[..start]);
        rest = rest[start..].split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain(80));
}

/// References in `page` that a browser would fetch: links within the page are none.
fn loads(page: &str) -> Vec<&'static str> {
    let page = page.replace("href=\"#", "").replace("href^=\"#", "");
    let marks = [
        "src=",
        "href=",
        "url(",
        "@import",
        "<link",
        "<iframe",
        "<object",
        "fetch(",
        "import(",
        "XMLHttpRequest",
        "WebSocket",
        "http://",
        "https://",
    ];
    marks
        .into_iter()
        .filter(|mark| page.contains(mark))
        .collect()
}

#[test]
fn the_page_loads_nothing() {
    let page = html(&page());
    assert_eq!(loads(&page), Vec::<&str>::new());
    assert_eq!(loads("<img src=\"x\">"), ["src="], "the check finds a load");
    assert_eq!(loads("<a href=\"x\">"), ["href="]);
    assert!(page.contains("default-src &#39;none&#39;"));
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn the_page_answers_in_order() {
    let page = html(&page());
    let order = [
        "<h1>Use f2fs",
        "How to apply it",
        "How sure",
        "What it costs against the second",
        "What was excluded",
        "All candidates, all metrics",
        "id=\"metric-1\"",
        "id=\"metric-8\"",
        "How long operations took",
        "What reached the device",
        "<h2>Wear",
        "<h2>The card",
        "What it ran on",
        "How it was judged",
        "How to reproduce it",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|mark| page.find(mark).unwrap_or_else(|| panic!("no '{mark}'")))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// What lies between two marks.
fn section<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = page.split_once(begin).unwrap().1;
    rest.split_once(end).unwrap().0
}

#[test]
fn what_is_missing_is_shown_as_missing() {
    let given = page_with_gaps();
    let page = html(&given);
    assert!(page.contains("not judged") && page.contains("1 of its 2 trials failed"));
    let cells = page.matches("–<br><small>no figure</small>").count();
    assert_eq!(
        cells,
        1 + 8,
        "one of a judged one, all of one that failed its only trial"
    );
    assert!(
        page.contains("Not measured:</b>")
            && page.contains("hurt by power cuts (12&nbsp;% of the weights)")
    );
    assert!(page.contains("Mind:</b> Measured without nilfs_cleanerd"));
    let text = terminal(
        &given.verdict,
        TerminalLook {
            width: 80,
            colour: false,
        },
    );
    for said in [
        "hurt by power cuts",
        "Mind: measured without nilfs_cleanerd",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn ten_thousand_trials_are_a_page_below_five_megabytes() {
    let seeds = 10_000_u64.div_ceil(15);
    let given = large_page(seeds);
    assert!(given.trials_of.len() >= 10_000);
    let page = html(&given);
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    let data = section(&page, "<div id=\"data\" hidden>", "</div>").replace("&#34;", "\"");
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    let values = data["metrics"].as_array().unwrap().iter();
    let count: usize = values
        .flat_map(|metric| metric["values"].as_array().unwrap())
        .map(|row| row.as_array().unwrap().len())
        .sum();
    assert_eq!(count, 8 * 15 * seeds as usize, "every sample is there");
}

#[test]
fn json_holds_all_that_the_page_shows() {
    let given = page_with_gaps();
    let text = serde_json::to_string(&given).unwrap();
    let back: Page = serde_json::from_str(&text).unwrap();
    assert_eq!(back.trials_of, given.trials_of);
    assert_eq!(html(&back).len(), html(&given).len());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in [
        "ranking",
        "excluded",
        "rules",
        "unmeasured",
        "origin",
        "fit_error",
        "devices",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
}

#[test]
fn every_sample_is_a_dot_and_every_bar_has_a_label() {
    let page = html(&page());
    let metrics = section(&page, "<div id=\"metrics\">", "id=\"latency\"");
    assert_eq!(metrics.matches("<circle").count(), samples().len());
    assert_eq!(
        page.matches("<svg").count(),
        page.matches("role=\"img\" aria-label=\"").count()
    );
    assert_eq!(
        metrics.matches("<svg").count(),
        15 * 8,
        "a bar for each candidate and metric"
    );
    assert_eq!(
        page.matches("<svg").count(),
        15 * (8 + 5) + 4,
        "and the picture of the first screen, score, latency with its axis, sizes, open AUs and \
         amplification with theirs"
    );
    assert_eq!(metrics.matches("↓ lower is better").count(), 3);
    assert_eq!(metrics.matches("↑ higher is better").count(), 5);
    assert_eq!(metrics.matches("<span class=\"stamp\">modelled").count(), 8);
    let spreads = metrics.matches("class=\"spread\"").count();
    assert_eq!(spreads, 3 * 8, "those with several seeds have a spread");
    assert!(page.contains("seed 3: "));
}

/// `verdict` with every text replaced by `text`.
fn hostile(text: &str) -> Verdict {
    let json = serde_json::to_string(&verdict()).unwrap();
    let named = json.replace("\"f2fs\"", &serde_json::to_string(text).unwrap());
    let mut verdict: Verdict = serde_json::from_str(&named).unwrap();
    verdict.card = text.to_owned();
    verdict.title = text.to_owned();
    verdict.commands = vec![text.to_owned()];
    verdict.excluded[0].why = text.to_owned();
    verdict.metrics[0].label = text.to_owned();
    verdict
}

#[test]
fn hostile_names_are_text_in_html() {
    let evil = "<script>alert('x')</script>\"><img onerror=y>&amp;";
    let mut given = Page {
        verdict: hostile(evil),
        ..page()
    };
    given.card_figures[0].label = evil.to_owned();
    given.devices[0].candidate = evil.to_owned();
    given.devices[0].phases[0].phase = evil.to_owned();
    given.trials_of[0].id = evil.to_owned();
    given.repeat = evil.to_owned();
    given.reproduce = vec![evil.to_owned()];
    let page = html(&given);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(!page.contains("<img"), "markup got through");
    assert!(page.contains("&#60;script&#62;"), "and it is shown as text");
    let attributes = page.split("aria-label=\"").skip(1);
    for attribute in attributes {
        let value = attribute.split('"').next().unwrap();
        assert!(!value.contains('<'), "{value}");
    }
}

/// Links within `page` whose target is not there.
fn dangling(page: &str) -> Vec<&str> {
    let links = page.split("href=\"#").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let lacks = |id: &&str| !page.contains(&format!("id=\"{id}\""));
    links.filter(lacks).collect()
}

#[test]
fn links_lead_somewhere_also_where_nothing_qualifies() {
    let bare = |verdict: Verdict| Page {
        verdict,
        devices: Vec::new(),
        ..page()
    };
    let mut none = verdict();
    none.ranking.clear();
    let mut all_failed = page_with_gaps().verdict;
    all_failed.ranking.clear();
    all_failed.metrics.clear();
    let mut unmeasured = none.clone();
    unmeasured.metrics.clear();
    for verdict in [verdict(), none, all_failed, unmeasured] {
        let page = html(&bare(verdict));
        assert_eq!(dangling(&page), Vec::<&str>::new());
    }
    assert_eq!(dangling("<a href=\"#x\">"), ["x"], "the check finds one");
}

#[test]
fn hostile_names_are_harmless_in_a_terminal() {
    let text = terminal(
        &hostile("\u{1b}]0;owned\u{7}\u{e000}x\u{202e}"),
        TerminalLook {
            width: 80,
            colour: false,
        },
    );
    let bad = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{e000}');
    assert!(!text.chars().any(bad));
    assert!(too_long(&text, 80).is_empty());
}

#[test]
fn nothing_qualifies_is_said_with_the_rules() {
    let mut verdict = verdict();
    verdict.ranking.clear();
    verdict.commands.clear();
    verdict.changes.clear();
    verdict.unmeasured = vec![whichfs_decide::Unmeasured {
        metric: "mount".into(),
        label: "mount".into(),
        share: 1.0,
    }];
    let text = terminal(
        &verdict,
        TerminalLook {
            width: 80,
            colour: false,
        },
    );
    assert!(text.contains("No candidate qualifies"));
    assert!(text.contains("keeps no Unix permissions"));
    let page = html(&Page { verdict, ..page() });
    assert!(page.contains("No candidate qualifies") && page.contains("There is no winner"));
    assert!(
        !page.contains("the other weights decide"),
        "nothing decides"
    );
}

#[test]
#[ignore = "writes the page to $WHICHFS_PAGE, of the verdict.json $WHICHFS_VERDICT if it is set"]
fn write_the_page() {
    let given = match std::env::var("WHICHFS_VERDICT") {
        Ok(path) => serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
        Err(_) => crate::fixture::page_of_many_metrics(),
    };
    std::fs::write(std::env::var("WHICHFS_PAGE").unwrap(), html(&given)).unwrap();
}
