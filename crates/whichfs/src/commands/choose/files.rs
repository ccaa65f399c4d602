//! The files of `choose --out`.

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use whichfs_decide::FigureRow;
use whichfs_engine::places::{self, WholeFile};
use whichfs_report::{Export, Page};
use whichfs_trial::Trial;

/// The files of the report: that they can be written is known before the first trial.
pub struct Report {
    path: PathBuf,
    html: WholeFile,
    rows: [WholeFile; 3],
    json: WholeFile,
    junit: WholeFile,
}

impl Report {
    /// Those in the directory `out`, which is made.
    ///
    /// # Errors
    /// It is no directory, or nothing can be written there.
    pub fn new(out: &Path) -> Outcome<Report> {
        places::make_out(out)?;
        let file = |name: &str| WholeFile::new(&out.join(name));
        Ok(Report {
            html: file("report.html")?,
            rows: [
                file("results.csv")?,
                file("results.json")?,
                file("results.md")?,
            ],
            json: file("verdict.json")?,
            junit: file("junit.xml")?,
            path: out.join("report.html"),
        })
    }

    /// Writes them, with the figures in `rows` and what failed of `trials`; where the report is.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(self, page: &Page, rows: &[FigureRow], trials: &[Trial]) -> Outcome<PathBuf> {
        use whichfs_report::{csv, document_json, failed_rows, html, json, junit_of, markdown};
        let verdict = &page.verdict;
        let export = Export {
            rows,
            failed: &failed_rows(trials),
            fit_error: verdict.fit_error.map(|fit| fit.median),
        };
        self.html.write(html(page).as_bytes())?;
        let [as_csv, as_json, as_markdown] = self.rows;
        as_csv.write(csv(&export).as_bytes())?;
        as_json.write(json(&export).as_bytes())?;
        as_markdown.write(markdown(verdict, &export).as_bytes())?;
        let document = document_json(page).map_err(Failure::environment)?;
        self.json.write(document.as_bytes())?;
        self.junit
            .write(junit_of("whichfs choose", verdict).as_bytes())?;
        Ok(self.path)
    }
}
