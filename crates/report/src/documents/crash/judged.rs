//! Whether a series of cuts does what is asked of it: the harms that must not be met (`--fail-on`)
//! and the bound that must be shown (`--until`).

use super::CutReport;
use super::series::{cut_place, name_words};
use whichfs_crash::{CutResult, Harm, Share, ShareBound};
use whichfs_units::counted;

/// What a series is judged by.
#[derive(Clone, Copy, Debug)]
pub struct SeriesRule<'a> {
    /// Harms of which none may be met after any cut.
    pub fail_on: &'a [Harm],
    /// Bound of the share of harmed cuts that it must show.
    pub until: Option<ShareBound>,
}

/// A series judged: a line of the table that one reads first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedSeries {
    /// Candidate name.
    pub fs: String,
    /// Number of the series; none where an image was given.
    pub series: Option<String>,
    /// How many cuts.
    pub cuts: u64,
    /// Seconds of the run that was cut: of virtual time, or measured on a device.
    pub seconds: f64,
    /// Each harm, in the order of [`Harm::ALL`]: after how many cuts.
    pub harms: Vec<Share>,
    /// Why it fails; nothing if it passes.
    pub failed: Vec<String>,
    /// Every cut.
    pub annex: Vec<AnnexLine>,
}

/// One cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnexLine {
    /// Its number in the series.
    pub number: u64,
    /// Where it lies.
    pub place: String,
    /// What became of the filesystem.
    pub condition: String,
    /// What the user meets, and findings; empty if nothing.
    pub harm: String,
}

impl SeriesRule<'_> {
    /// `report` judged.
    pub fn judge(&self, report: &CutReport) -> JudgedSeries {
        let of = report.cuts.len() as u64;
        let harms = Harm::ALL.map(|harm| {
            let hit = report.cuts.iter().filter(|cut| cut.seen().has(harm));
            Share::new(hit.count() as u64, of)
        });
        let met = Harm::ALL.into_iter().zip(&harms);
        let met = met.filter(|(harm, share)| share.count > 0 && self.fail_on.contains(harm));
        let mut failed: Vec<String> = met
            .map(|(harm, share)| format!("{} after {share}", words(harm)))
            .collect();
        if let Some(bound) = self.until {
            let harmed = report.met.harmed;
            let lacking = bound.clean_cuts_needed(harmed.count, harmed.of);
            if lacking > 0 {
                let more = counted(lacking as usize, "more cut");
                failed.push(format!("{bound} is not shown: {more} without harm needed"));
            }
        }
        JudgedSeries {
            fs: report.fs.clone(),
            series: report.series.clone(),
            cuts: of,
            seconds: report.virtual_s.or(report.measured_s).unwrap_or_default(),
            harms: harms.to_vec(),
            failed,
            annex: report.cuts.iter().map(annex_line).collect(),
        }
    }
}

/// A harm as the head of a column.
pub fn words(harm: Harm) -> &'static str {
    match harm {
        Harm::Broken => "broke a promise",
        Harm::NoMount => "did not mount by itself",
        Harm::Repair => "needed repair",
        Harm::Lost => "lost durable files",
        Harm::ReadError => "could not read a file",
    }
}

fn annex_line(result: &CutResult) -> AnnexLine {
    let seen = result.seen();
    let met = Harm::ALL.into_iter().filter(|harm| seen.has(*harm));
    AnnexLine {
        number: result.cut.number,
        place: cut_place(result),
        condition: name_words(&result.condition),
        harm: met.map(words).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixture::result;
    use super::*;
    use whichfs_crash::{FilesystemCondition, contract};

    fn report() -> CutReport {
        let mut cuts = vec![result(0), result(1), result(2)];
        for cut in &mut cuts {
            cut.condition = FilesystemCondition::Clean;
            cut.broken = false;
        }
        cuts[1].condition = FilesystemCondition::NeedsCheck;
        let contract = contract("vfat", "").unwrap();
        CutReport::new(Some("12".to_owned()), "vfat", "", contract, cuts)
    }

    #[test]
    fn a_series_fails_by_what_it_is_asked_for_and_by_nothing_else() {
        let rule = |fail_on, until| SeriesRule { fail_on, until };
        let report = report();
        let judged = rule(&[Harm::Broken], None).judge(&report);
        assert_eq!((judged.failed.len(), judged.cuts), (0, 3));
        let counts: Vec<u64> = judged.harms.iter().map(|share| share.count).collect();
        assert_eq!(counts, [0, 0, 1, 0, 0]);
        assert_eq!(judged.annex.len(), 3, "every cut");
        assert_eq!(judged.annex[1].harm, "needed repair");
        let judged = rule(&[Harm::Repair, Harm::Lost], None).judge(&report);
        assert_eq!(judged.failed.len(), 1);
        assert!(judged.failed[0].starts_with("needed repair after 1 of 3"));
        let judged = rule(&[], Some("p<1%".parse().unwrap())).judge(&report);
        assert!(judged.failed[0].contains("is not shown"), "{judged:?}");
    }
}
