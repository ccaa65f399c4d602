//! Power cuts of the candidates that could win: the metric `power_loss`.
//!
//! Its value is the upper end of the 95 % interval (Wilson) of the share of cuts after which the
//! filesystem needed repair or durable data were lost: it is never 0, gets smaller the more cuts
//! leave all whole, and so can be compared by ratio as every other metric.

use crate::crash::CrashRow;
use crate::page::{CutSeries, Item};
use std::collections::BTreeMap;
use whichfs_crash::Share;
use whichfs_decide::plan::MORE_SEEDS_WITHIN;
use whichfs_decide::{Count, Excluded, FigureRow, Need, POWER_LOSS, Verdict};

/// Cuts of each candidate where the need wants none to hurt and nobody says how many.
const STRICT_CUTS: u64 = 20;

/// The series made so far.
#[derive(Clone, Debug)]
pub struct PowerCuts {
    /// Cuts of each series.
    pub number: u64,
    /// A candidate that a cut hurt cannot be chosen.
    none_may_hurt: bool,
    /// By candidate; the reason where no series could be made.
    made: BTreeMap<String, Result<CrashRow, String>>,
}

impl PowerCuts {
    /// `asked` cuts of each candidate, or as many as `need` wants.
    pub fn new(asked: Option<u64>, need: &Need) -> PowerCuts {
        let setting = need.settings.get(POWER_LOSS);
        let none_may_hurt = setting.is_some_and(|set| set == "none");
        PowerCuts {
            number: match (asked, none_may_hurt) {
                (Some(number), _) => number,
                (None, true) => STRICT_CUTS,
                (None, false) => 0,
            },
            none_may_hurt,
            made: BTreeMap::new(),
        }
    }

    /// Keeps what became of the series of `candidate`.
    pub fn add(&mut self, candidate: &str, made: Result<CrashRow, String>) {
        self.made.insert(candidate.to_owned(), made);
    }

    /// Whether any are to be made.
    pub fn wanted(&self) -> bool {
        self.number > 0
    }

    /// Candidates whose cuts can still change who wins: the leader and those near it.
    pub fn lacking(&self, verdict: &Verdict) -> Vec<String> {
        let Some(leader) = verdict.ranking.first().filter(|_| self.number > 0) else {
            return Vec::new();
        };
        let near = verdict
            .ranking
            .iter()
            .filter(|ranked| ranked.score * MORE_SEEDS_WITHIN >= leader.score);
        near.map(|ranked| ranked.candidate.clone())
            .filter(|name| !self.made.contains_key(name))
            .collect()
    }

    /// Candidates that a cut hurt, or that could not be cut, where none may hurt.
    pub fn excluded(&self) -> Vec<Excluded> {
        let strict = self.made.iter().filter(|_| self.none_may_hurt);
        strict
            .filter_map(|(name, made)| {
                let why = match made {
                    Ok(row) if hurt(row).count == 0 => return None,
                    Ok(row) => told(row),
                    Err(_) if whichfs_crash::contract(name, "").is_none() => return None,
                    Err(why) => format!("could not be tried with power cuts: {why}"),
                };
                Some(Excluded {
                    candidate: name.clone(),
                    why,
                    rule: Some(POWER_LOSS.to_owned()),
                    source: made.as_ref().ok().map(evidence),
                    ..Excluded::default()
                })
            })
            .collect()
    }

    /// The metric's rows, made like `like`.
    pub fn rows(&self, like: &[FigureRow], seed: u64) -> Vec<FigureRow> {
        let made = self.made.iter();
        made.filter_map(|(name, made)| {
            let cuts = made.as_ref().ok()?;
            let row = like.iter().find(|row| row.candidate == *name)?;
            Some(FigureRow {
                metric: POWER_LOSS.to_owned(),
                value: hurt(cuts).high * 100.0,
                unit: "%".to_owned(),
                lower_is_better: true,
                seed,
                trial: cuts.series.clone(),
                mount_options: cuts.options.clone(),
                ..row.clone()
            })
        })
        .collect()
    }

    /// How many of the cuts of each candidate hurt.
    pub fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>> {
        let made = self.made.iter();
        let each = made.filter_map(|(name, made)| {
            let share = hurt(made.as_ref().ok()?);
            let count = Count {
                hits: share.count,
                of: share.of,
                low: share.low,
                high: share.high,
            };
            Some((name.clone(), count))
        });
        BTreeMap::from([(POWER_LOSS.to_owned(), each.collect())])
    }

    /// What the report says of them.
    pub fn items(&self) -> Vec<Item> {
        let item = |value: String, source: String| Item {
            label: "power cuts".to_owned(),
            value,
            source,
            ..Item::default()
        };
        if self.number == 0 {
            return vec![item("not measured".to_owned(), HINT.to_owned())];
        }
        let made = self.made.iter();
        made.map(|(name, made)| match made {
            Ok(row) => item(format!("{name} {}", told(row)), evidence(row)),
            Err(why) => item(format!("{name}: none"), why.clone()),
        })
        .collect()
    }

    /// The series that were made, for the report.
    pub fn series_of(&self, seed: u64) -> Vec<CutSeries> {
        let made = self.made.iter();
        made.filter_map(|(name, made)| {
            let row = made.as_ref().ok()?;
            Some(CutSeries {
                candidate: name.clone(),
                seed,
                id: row.series.clone(),
                cuts: self.number,
            })
        })
        .collect()
    }

    /// What to say below the verdict.
    pub fn sentences(&self) -> Vec<String> {
        let items = self.items().into_iter();
        items
            .map(|item| format!("Power cuts: {} ({}).", item.value, item.source))
            .collect()
    }
}

const HINT: &str = "--cuts 20 cuts the power of those that could win";

/// Cuts that hurt: repair was needed or durable data were lost, promised or not.
fn hurt(row: &CrashRow) -> Share {
    let parts = row.conditions.iter().filter(|part| part.severity > 0);
    Share::new(parts.map(|part| part.count).sum(), row.cuts)
}

/// The worst cut with the command that shows it again, or the series if all was whole.
fn evidence(row: &CrashRow) -> String {
    match row.worst.first() {
        Some(case) => format!("the worst: {}; {}", case.condition, case.replay),
        None => format!("series {}", row.series),
    }
}

/// In a sentence that follows the candidate's name.
fn told(row: &CrashRow) -> String {
    let share = hurt(row);
    if share.count == 0 {
        return format!(
            "was whole after all {} power cuts (hurt: {share})",
            share.of
        );
    }
    format!("needed repair or lost durable data after power cuts: {share}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::{ConditionCount, WorstCase};

    fn row(hurt: u64) -> CrashRow {
        let part = |severity, count| ConditionCount {
            severity,
            count,
            ..ConditionCount::default()
        };
        CrashRow {
            series: "12ab".into(),
            cuts: 20,
            conditions: vec![part(0, 20 - hurt), part(1, hurt)],
            worst: (hurt > 0)
                .then(|| WorstCase {
                    condition: "needs check".into(),
                    replay: "whichfs crash replay 12ab-7".into(),
                    ..WorstCase::default()
                })
                .into_iter()
                .collect(),
            ..CrashRow::default()
        }
    }

    fn cuts(none_may_hurt: bool) -> PowerCuts {
        PowerCuts {
            number: 20,
            none_may_hurt,
            made: BTreeMap::from([
                ("ext2".to_owned(), Ok(row(5))),
                ("ext4".to_owned(), Ok(row(0))),
                (
                    "squashfs-xz".to_owned(),
                    Err("nothing is written to it".into()),
                ),
                ("xfs".to_owned(), Err("no room".into())),
            ]),
        }
    }

    #[test]
    fn who_was_hurt_is_excluded_only_where_none_may() {
        assert!(cuts(false).excluded().is_empty());
        let excluded = cuts(true).excluded();
        let names: Vec<&str> = excluded.iter().map(|e| e.candidate.as_str()).collect();
        assert_eq!(names, ["ext2", "xfs"]);
        assert!(
            excluded[0]
                .why
                .contains("after power cuts: 5 of 20 (11 to 47 %)"),
            "{excluded:?}"
        );
        assert_eq!(excluded[0].rule.as_deref(), Some("power_loss"));
    }

    #[test]
    fn each_series_is_told_in_a_sentence() {
        let said = cuts(false).sentences();
        assert!(said[0].contains("(the worst: needs check; whichfs crash replay 12ab-7)"));
        assert!(
            said[1].contains("ext4 was whole after all 20 power cuts (hurt: 0 of 20 (≤ 16 %))")
        );
        let none = PowerCuts {
            number: 0,
            ..cuts(false)
        };
        assert!(none.sentences()[0].contains("--cuts 20"));
    }

    #[test]
    fn the_figure_is_the_upper_end_so_that_more_cuts_without_harm_are_better() {
        let like = |candidate: &str| FigureRow {
            card: "c".into(),
            kernel: "k".into(),
            clock: "cpu".into(),
            candidate: candidate.into(),
            mount_options: "noatime".into(),
            workload: "rootfs".into(),
            metric: "mount".into(),
            value: 1.0,
            unit: "s".into(),
            lower_is_better: true,
            seed: 1,
            trial: "t".into(),
        };
        let rows = cuts(false).rows(&[like("ext2"), like("ext4"), like("squashfs-xz")], 1);
        assert_eq!(rows.len(), 2);
        // Wilson, 0 of 20: 3.84 / (20 + 3.84).
        assert!((rows[1].value - 16.1).abs() < 0.1, "{rows:?}");
        assert!(rows[0].value > 40.0 && rows[0].trial == "12ab");
    }
}
