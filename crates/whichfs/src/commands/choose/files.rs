//! The files that `choose` leaves in `--out`.

use crate::failure::{Failure, Outcome};
use crate::places::{self, WholeFile};
use std::path::{Path, PathBuf};
use whichfs_report::Page;
use whichfs_study::Row;

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
    /// A directory or file that cannot be written.
    pub fn new(out: &Path) -> Outcome<Report> {
        places::make(out).map_err(|failure| Failure::input(format!("--out: {failure}")))?;
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

    /// Writes them; where the report is.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(self, page: &Page, rows: &[Row]) -> Outcome<PathBuf> {
        use whichfs_report::{csv, html, json, junit, markdown, verdict_cases};
        self.html.write(html(page).as_bytes())?;
        let [as_csv, as_json, as_markdown] = self.rows;
        as_csv.write(csv(rows).as_bytes())?;
        as_json.write(json(rows).as_bytes())?;
        as_markdown.write(markdown(rows).as_bytes())?;
        let verdict = serde_json::to_vec_pretty(page).map_err(Failure::environment)?;
        self.json.write(&verdict)?;
        let cases = verdict_cases(&page.verdict);
        self.junit
            .write(junit("whichfs choose", &cases).as_bytes())?;
        Ok(self.path)
    }
}
