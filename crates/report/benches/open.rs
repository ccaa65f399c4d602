//! How large the page of 10,000 trials is, how fast it is written, and how fast Chromium opens it.
#![allow(dead_code, reason = "the tests use more of what is shared with them")]

/// What the shared files take from the crate.
mod device {
    pub(crate) use whichfs_report::{DeviceView, LatencyView, PhaseView, SeriesView, TrialLine};
}
mod files {
    pub(crate) use whichfs_report::RunStamp;
}
mod page {
    pub(crate) use whichfs_report::{Item, Page};
}
#[path = "../src/tests/browser.rs"]
mod browser;
#[path = "../src/fixture.rs"]
mod fixture;

use std::time::Instant;

/// Trials on the page.
const TRIALS: u64 = 10_000;
/// What the issue allows: bytes, and milliseconds until it is loaded.
const MOST_BYTES: usize = 5_000_000;
const MOST_MS: f64 = 2_000.0;
/// The best of so many.
const TIMES: usize = 5;

fn main() {
    let page = fixture::large_page(TRIALS.div_ceil(15));
    let begun = Instant::now();
    let html = whichfs_report::html(&page);
    let written = begun.elapsed().as_secs_f64() * 1e3;
    let (trials, bytes) = (page.trials_of.len(), html.len());
    println!("page of {trials} trials: {bytes} bytes (at most {MOST_BYTES}), {written:.0} ms");
    let Some(mut browser) = browser::Browser::start() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("report.html");
    std::fs::write(&path, html).expect("room for the page");
    browser.look(1280, false, "screen");
    let opened = (0..TIMES).map(|_| browser.open(&path, ""));
    let best = opened.fold(f64::INFINITY, f64::min);
    println!("Chromium opens it in {best:.0} ms (at most {MOST_MS:.0}), the best of {TIMES}");
    assert!(bytes <= MOST_BYTES);
}
