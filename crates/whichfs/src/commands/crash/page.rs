//! The page of series of cuts, and its files.

use crate::cli::CrashArgs;
use crate::failure::{Failure, Outcome};
use crate::page::command_line;
use std::path::{Path, PathBuf};
use whichfs_crash::Faults;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::places::{self, WholeFile};
use whichfs_report::documents::crash::{CutReport, promised};
use whichfs_report::{
    CrashGroup, CrashPage, CrashRow, Item, crash_csv, crash_html, crash_outcomes_csv,
};
use whichfs_units::Bytes;

const METHOD: &str = "The workload ran once for each filesystem, and every request that changes \
    the card was kept with its data and times. A cut is an instant of that run: the card's content \
    at that instant was mounted, read, used, checked and repaired by a guest. A cut breaks a \
    promise if what was found contradicts what that filesystem promises with these mount options.";

/// The page of `crash run`.
pub fn of_run(
    bench: &LabExecutor,
    args: &CrashArgs,
    faults: &Faults,
    rows: Vec<CrashRow>,
    reports: &[CutReport],
) -> CrashPage {
    let names: Vec<&str> = faults.iter().map(|fault| fault.name()).collect();
    let meaning = faults.iter().map(|fault| fault.facts().meaning.to_owned());
    let group = CrashGroup {
        faults: match names.is_empty() {
            true => "honest card".to_owned(),
            false => names.join(", "),
        },
        meaning: meaning.collect(),
        workload: format!("workload {}", args.series.workload),
        rows,
        failed: Vec::new(),
    };
    CrashPage {
        title: format!("Power cuts on {}", bench.card.name),
        method: vec![METHOD.to_owned()],
        groups: vec![group],
        promises: promised(reports),
        environment: environment(bench, args.series.partition, args.series.seed),
        reproduce: command_line(),
        ..CrashPage::default()
    }
}

/// What the series ran on.
pub fn environment(bench: &LabExecutor, partition_bytes: u64, seed: u64) -> Vec<Item> {
    let item = |label: &str, value: String, source: &str| Item {
        label: label.to_owned(),
        value,
        source: source.to_owned(),
        ..Item::default()
    };
    let card = format!("{}: {}", bench.card.name, bench.card.profile.title());
    let kernel = format!("sha256 {}", &bench.kernel.sha256[..16]);
    vec![
        item("whichfs", env!("CARGO_PKG_VERSION").to_owned(), ""),
        item("kernel", bench.kernel.release.clone(), &kernel),
        item("card", card, bench.card_state.name()),
        item("partition", Bytes(partition_bytes).to_string(), ""),
        item("board", bench.board.file.title.clone(), "one core modelled"),
        item("clock", bench.clock.name(&bench.board), "virtual time"),
        item("seed", seed.to_string(), ""),
    ]
}

/// The files of a page: that they can be written is known before the first guest.
pub struct Files {
    path: PathBuf,
    html: WholeFile,
    csv: WholeFile,
    outcomes: WholeFile,
}

impl Files {
    /// Those in the directory `out`, which is made.
    pub fn new(out: &Path) -> Outcome<Files> {
        if out.exists() && !out.is_dir() {
            return Err(Failure::input(format!(
                "--out {}: it is no directory; name another",
                out.display()
            )));
        }
        places::make(out)?;
        let path = out.join("report.html");
        Ok(Files {
            html: WholeFile::new(&path)?,
            csv: WholeFile::new(&out.join("results.csv"))?,
            outcomes: WholeFile::new(&out.join("outcomes.csv"))?,
            path,
        })
    }

    /// Writes them; where the page is.
    pub fn write(self, page: &CrashPage) -> Outcome<PathBuf> {
        self.html.write(crash_html(page).as_bytes())?;
        self.csv.write(crash_csv(page).as_bytes())?;
        self.outcomes.write(crash_outcomes_csv(page).as_bytes())?;
        Ok(self.path)
    }
}
