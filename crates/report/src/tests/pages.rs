//! The page as a browser shows it: nothing fails, nothing lacks a label, filters filter, and the
//! address keeps the view. Pictures go to the directory of `WHICHFS_PICTURES`, if it is set.

use super::browser::Browser;
use crate::fixture::{large_page, page, page_of_many_metrics, page_with_gaps};
use crate::{Page, html};
use serde_json::json;
use std::path::PathBuf;

fn written(dir: &tempfile::TempDir, page: &Page) -> PathBuf {
    let path = dir.path().join("report.html");
    std::fs::write(&path, html(page)).unwrap();
    path
}

/// Elements without a text or label that a person or a screen reader needs.
pub(super) const UNLABELLED: &str = "
  [...document.querySelectorAll('svg')].filter(e => !(e.getAttribute('aria-label') || '').trim())
  .concat([...document.querySelectorAll('button, a, summary, th, option')]
    .filter(e => !e.textContent.trim() && !e.getAttribute('aria-label')))
  .concat([...document.querySelectorAll('input, select')].filter(e => !e.labels.length))
  .concat([...document.querySelectorAll('section')].filter(e => !e.querySelector('h2')))
  .map(e => e.outerHTML.slice(0, 80)).join('; ')";

/// Elements that stick out of the window sideways, but for those in a box that scrolls.
pub(super) const TOO_WIDE: &str = "
  document.documentElement.scrollWidth > document.documentElement.clientWidth
    ? [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll')
        && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .map(e => e.outerHTML.slice(0, 80)).slice(0, 5).join('; ')
        || `text as wide as ${document.documentElement.scrollWidth}`
    : ''";

/// Texts that touch or cover the bar beside them.
pub(super) const OVERLAPS: &str = "
  [...document.querySelectorAll('.row')].filter(row => {
    const box = (s) => row.querySelector(s).getBoundingClientRect();
    const [name, bar, value] = ['.name', '.bar', '.value'].map(box);
    return bar.width > 0 && (name.right > bar.left + 1 || value.left < bar.right - 1
      || value.right > document.documentElement.clientWidth + 1);
  }).map(e => e.textContent.trim().slice(0, 40)).slice(0, 5).join('; ')";

/// Labels of the picture that lie on another one.
const COVERED: &str = "
  [...document.querySelectorAll('.front .point text')].filter((one, at, all) =>
    all.slice(at + 1).some(other => {
      const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
      return a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
    })).map(e => e.textContent).join('; ')";

/// Charts without weight that are open.
const UNCOUNTED: &str = "
  [...document.querySelectorAll('section.metric')].filter(e =>
    e.textContent.includes('Shown, not counted.')
    && !e.querySelector(':scope > details:not([open])'))
  .map(e => e.id).join('; ')";

/// Bars that are cut and do not show it.
const UNMARKED: &str = "
  [...document.querySelectorAll('.fill.broken')]
  .filter(e => !e.parentElement.querySelector('.break'))
  .map(e => e.parentElement.getAttribute('aria-label')).join('; ')";

#[test]
fn chromium_shows_the_page_at_every_width_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pictures = std::env::var_os("WHICHFS_PICTURES").map(PathBuf::from);
    let path = written(&dir, &page_with_gaps());
    for width in [1280, 768, 390] {
        for dark in [false, true] {
            browser.look(width, dark, "screen");
            browser.open(&path, "");
            assert_eq!(browser.text(UNLABELLED), "");
            // Figures may have long names.
            browser.text("document.querySelector('#sort').append(new Option('w'.repeat(100))), ''");
            assert_eq!(browser.text(TOO_WIDE), "", "{width}");
            assert_eq!(browser.text(OVERLAPS), "", "{width}");
            let first =
                browser.number("document.querySelector('h1').getBoundingClientRect().bottom");
            assert!(first < 400.0, "the answer is on the first screen: {first}");
            for (part, least) in [("#apply", 390), ("#front svg", 1280), ("#unknown p", 1280)] {
                let end =
                    format!("document.querySelector('{part}').getBoundingClientRect().bottom");
                let end = browser.number(&end);
                let screen = if part == "#apply" { 1600.0 } else { 900.0 };
                assert!(width < least || end < screen, "{part} at {width}: {end}");
            }
            let labels = browser.text(COVERED);
            assert_eq!(labels, "", "labels of the picture at {width}");
            let closed = browser.text(UNCOUNTED);
            assert_eq!(closed, "", "charts that do not count are folded");
            assert_eq!(browser.text(UNMARKED), "", "a cut bar has its mark");
            let colours = "getComputedStyle(document.body).backgroundColor";
            let background = if dark {
                "rgb(20, 23, 26)"
            } else {
                "rgb(255, 255, 255)"
            };
            assert_eq!(browser.text(colours), background);
            if let Some(pictures) = &pictures {
                let scheme = if dark { "dark" } else { "light" };
                let name = format!("report-{width}-{scheme}.png");
                browser.picture(&pictures.join(&name), true);
                browser.picture(&pictures.join(format!("first-{name}")), false);
            }
        }
    }
    browser.look(1280, true, "print");
    browser.open(&path, "");
    let form = "getComputedStyle(document.getElementById('filter')).display";
    assert_eq!(browser.text(form), "none", "controls are not printed");
    let background =
        "getComputedStyle(document.documentElement).getPropertyValue('--ground').trim()";
    assert_eq!(browser.text(background), "#fff", "paper is white");
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

/// What is wider than a sheet of A4 with a browser's margins, in boxes that scroll on a screen too.
const CUT_ON_PAPER: &str = "
  [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().width > 0
      && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.outerHTML.slice(0, 80)).slice(0, 5).join('; ')";

/// Width in pixels of what a browser prints on A4: 210 mm less two margins of 10 mm.
const A4: u32 = 718;

#[test]
fn chromium_prints_every_column_on_a_sheet() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = written(&dir, &page_of_many_metrics());
    browser.look(A4, false, "print");
    browser.open(&path, "");
    browser.value("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.text(CUT_ON_PAPER), "");
    let printed = "getComputedStyle(document.querySelector('.printed')).display
        + getComputedStyle(document.querySelector('.heat')).visibility";
    assert!(browser.text(printed).starts_with("block"));
    let maps = browser.number("document.querySelectorAll('.map').length");
    assert_eq!(maps, 3.0, "17 metrics, six a table");
    let columns = "new Set([...document.querySelectorAll('.map th[data-m]')]
        .filter(e => e.offsetWidth).map(e => e.dataset.m)).size";
    assert_eq!(browser.number(columns), 17.0, "each is printed");
    let closed = "document.querySelectorAll('details.told:not([open])').length";
    assert_eq!(
        browser.number(closed),
        0.0,
        "figures of drawings are printed"
    );
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);

    // The table of the screen on paper is what the check must find.
    browser.value("document.querySelector('.screen').classList.remove('screen')");
    assert!(
        browser.text(CUT_ON_PAPER).contains("<t"),
        "it finds a cut column"
    );
}

/// Bytes of the page as a PDF, in base64.
fn sheets(browser: &mut Browser) -> usize {
    let printed = browser.call("Page.printToPDF", json!({"printBackground": true}));
    printed["data"].as_str().unwrap().len()
}

/// Cells without a figure once made 22 MB of 29 sheets: a picture of the whole sheet for each.
#[test]
fn chromium_prints_cells_without_a_figure_without_pictures() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    browser.open(&written(&dir, &page_with_gaps()), "");
    assert!(browser.number("document.querySelectorAll('.none').length") > 0.0);
    let plain = sheets(&mut browser);
    browser.value(
        "document.head.insertAdjacentHTML('beforeend', '<style>.none { background: \
         repeating-linear-gradient(45deg, transparent 0 6px, #ccc 6px 12px) !important }</style>')",
    );
    let pictures = sheets(&mut browser);
    assert!(
        plain + 100_000 < pictures,
        "{plain} bytes, with such pictures {pictures}"
    );
}

const ROWS: &str = "[...document.querySelectorAll('.heat tbody tr:not([hidden])')]
  .map(e => e.dataset.c).join(' ')";
const SECTIONS: &str = "document.querySelectorAll('section.metric:not([hidden])').length";

#[test]
fn chromium_filters_sorts_and_keeps_the_view_in_the_address() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = written(&dir, &page());
    browser.look(1280, false, "screen");
    browser.open(&path, "");
    let all = browser.text(ROWS);
    assert!(
        all.starts_with("f2fs ") && all.split(' ').count() == 15,
        "{all}"
    );

    browser.click("#filter summary");
    browser.click("button[value='xfs']");
    browser.click("button[value='jfs']");
    browser.click("button[value='mount']");
    assert_eq!(browser.text(ROWS), "xfs jfs");
    assert_eq!(browser.number(SECTIONS), 1.0);
    let bars = "document.querySelectorAll('#device .row[data-c]:not([hidden])').length";
    assert_eq!(
        browser.number(bars),
        6.0,
        "three drawings of two candidates"
    );
    assert_eq!(browser.text("location.hash"), "#c=xfs%2Cjfs&m=mount");
    let said = browser.text("document.getElementById('view').textContent");
    assert!(
        said.contains("Shown: 2 of 15 candidates, 1 of 8 metrics."),
        "{said}"
    );

    browser.value(
        "(() => { const s = document.getElementById('sort'); s.value = 'mount';
           s.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(browser.text(ROWS), "jfs xfs", "jfs mounts faster");
    let hash = browser.text("location.hash");

    // The link shows the same again, in a page that is opened with it.
    browser.open(&path, &hash);
    assert_eq!(browser.text(ROWS), "jfs xfs");
    assert_eq!(browser.number(SECTIONS), 1.0);
    browser.click("#view button");
    assert_eq!(browser.text(ROWS).split(' ').count(), 15);
    assert_eq!(browser.text("location.hash"), "#s=mount");

    // Going to a section keeps the view; going back leaves it.
    browser.open(&path, "#q=ext4");
    assert_eq!(browser.text(ROWS).split(' ').count(), 3);
    browser.click("nav a[href='#card']");
    assert_eq!(browser.text("location.hash"), "#q=ext4&at=card");
    browser.open(&path, "#metric-8");
    let top = "document.getElementById('metric-8').getBoundingClientRect().top < 900";
    assert!(browser.value(top).as_bool().unwrap(), "plain links work");

    // Nonsense in the address shows everything.
    browser.open(&path, "#s=nonsense&m=&c=&o=nonsense&at=nowhere");
    assert_eq!(browser.text(ROWS).split(' ').count(), 15);
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

#[test]
fn chromium_lists_every_sample_on_demand_and_obeys_the_keyboard() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = written(&dir, &page());
    browser.look(1280, false, "screen");
    browser.open(&path, "");
    browser.click("#metric-1 .samples summary");
    let rows = "document.querySelectorAll('#metric-1 .samples tbody tr').length";
    assert_eq!(
        browser.number(rows),
        21.0,
        "15 candidates, three of them with three seeds"
    );
    let pre = "document.querySelectorAll('#metric-1 .samples pre').length";
    assert_eq!(browser.number(pre), 0.0, "commands come on demand");
    browser.click("#metric-1 .samples tbody tr:nth-child(2) button");
    let told = |selector: &str| {
        format!("[...document.querySelectorAll('{selector}')].map(e => e.textContent).join('|')")
    };
    let commands = browser.text(&told("#metric-1 .samples pre"));
    let id = browser
        .text("document.querySelector('#metric-1 .samples [aria-expanded=true]').textContent");
    let expected = format!(
        "whichfs trial show {id}|whichfs choose --for rootfs --card a1-32gb --fs f2fs \
         --first-seed 2 --seeds 1 --fresh --out repeat-f2fs-2"
    );
    assert_eq!(commands, expected);
    let written = browser.text(&told("#trials-1 pre"));
    assert!(
        written.contains(&expected),
        "the same without the script: {written}"
    );
    browser.click("#metric-1 .samples [aria-expanded=true]");
    assert_eq!(browser.number(pre), 0.0, "and go again");
    assert_eq!(browser.text("location.hash"), "#o=random_update");

    // A candidate's name leads to its trials, which are opened; so does an address.
    for way in ["click", "address"] {
        match way {
            "click" => browser.click("#metric-1 .row a"),
            _ => drop(browser.open(&path, "#trials-1")),
        }
        let shown = "document.getElementById('trials-1').checkVisibility()
            && document.getElementById('trials-1').getBoundingClientRect().top < 900";
        assert!(browser.value(shown).as_bool().unwrap(), "{way}");
    }

    // Nothing but keys: to the search field, a word, and on to the list, which is opened.
    browser.open(&path, "");
    let mut steps = 0;
    while browser.text("document.activeElement.id") != "find" {
        browser.key("Tab");
        steps += 1;
        assert!(steps < 60, "the search field is reached by keys");
    }
    for letter in ["x", "f", "s"] {
        browser.key(letter);
    }
    assert_eq!(browser.text(ROWS), "xfs-nocrc xfs");
    let focus = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.text(focus), "solid", "the focus is seen");
    while browser.text("document.activeElement.tagName") != "SUMMARY" {
        browser.key("Tab");
    }
    browser.key("Enter");
    assert!(
        browser
            .value("document.querySelector('#filter details').open")
            .as_bool()
            .unwrap()
    );
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

/// Checks a page at three widths, in light and dark, and on paper; `name` is that of its pictures.
pub(crate) fn check_widths(html: &str, name: &str) {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pictures = std::env::var_os("WHICHFS_PICTURES").map(PathBuf::from);
    let path = dir.path().join("page.html");
    std::fs::write(&path, html).unwrap();
    for width in [1280, 768, 390] {
        for dark in [false, true] {
            browser.look(width, dark, "screen");
            browser.open(&path, "");
            assert_eq!(browser.text(UNLABELLED_FIGURES), "", "{name}");
            assert_eq!(browser.text(TOO_WIDE), "", "{name} at {width}");
            if let Some(pictures) = &pictures {
                let scheme = if dark { "dark" } else { "light" };
                let file = pictures.join(format!("{name}-{width}-{scheme}.png"));
                browser.picture(&file, true);
            }
        }
    }
    browser.look(A4, false, "print");
    browser.open(&path, "");
    assert_eq!(browser.text(CUT_ON_PAPER), "", "{name} on paper");
    if let Some(pictures) = &pictures {
        browser.picture(&pictures.join(format!("{name}-print.png")), true);
    }
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
    // What the checks must find.
    browser.look(768, false, "screen");
    let wide = "It is wide. ".repeat(40);
    let wide = html.replace(
        "</h1>",
        &format!("</h1><p style='white-space: nowrap'>{wide}</p>"),
    );
    std::fs::write(&path, wide).unwrap();
    browser.open(&path, "");
    assert!(browser.text(TOO_WIDE).contains("text as wide"), "{name}");
}

/// Drawings that say nothing to a screen reader, but for the little ones of a key.
const UNLABELLED_FIGURES: &str = "
  [...document.querySelectorAll('svg')].filter(e => !e.closest('.key')
    && !(e.getAttribute('aria-label') || '').trim()).map(e => e.outerHTML.slice(0, 80)).join('; ')";

#[test]
fn chromium_opens_ten_thousand_trials() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = written(&dir, &large_page(10_000_u64.div_ceil(15)));
    browser.look(1280, false, "screen");
    let ms = browser.open(&path, "");
    println!("10,000 trials: loaded after {ms:.0} ms");
    browser.click("#metric-1 .samples summary");
    let rows = "document.querySelectorAll('#metric-1 .samples tbody tr').length";
    assert_eq!(browser.number(rows), 15.0 * 667.0);
    assert!(browser.faults.is_empty(), "{:?}", browser.faults);
}

/// A browser that finds no fault in a page with a fault would be of no use.
#[test]
fn chromium_finds_planted_faults() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.html");
    let bad = "<svg></svg><button></button><div style='width:5000px'>x</div>\
               <script>throw new Error('planted')</script>";
    std::fs::write(&path, bad).unwrap();
    browser.look(390, false, "screen");
    browser.open(&path, "");
    let unlabelled = browser.text(UNLABELLED);
    assert!(
        unlabelled.contains("<svg>") && unlabelled.contains("<button>"),
        "{unlabelled}"
    );
    assert!(browser.text(TOO_WIDE).contains("5000px"));
    assert_eq!(browser.faults.len(), 1, "{:?}", browser.faults);
    // The page's policy stops scripts that are not the page's own.
    let injected = html(&page()).replace("</main>", "</main><script>window.bad = 1</script>");
    std::fs::write(&path, injected).unwrap();
    browser.open(&path, "");
    assert_eq!(browser.text("typeof window.bad"), "undefined");
    assert_eq!(browser.faults.len(), 2, "and it is told");
}
