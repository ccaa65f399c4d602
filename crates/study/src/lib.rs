//! Study files, the tables that come of them, published figures, and comparison of runs. Pure.
//!
//! A study file (`studies/*.toml`) says what is tried ([`Study`]); [`grids`] makes tables of the
//! figures, [`claims`] and [`score_of`] set them beside what others published, and
//! [`compare_runs`] says what changed between two runs. Judging is `whichfs-decide`'s.

mod claims;
mod gain;
mod grid;
mod regress;
mod scatter;
mod score;
mod smallest;
mod study;
mod trial_request;

pub use claims::{CLAIMS, Claim, ClaimOutcome, ClaimPart, Judgement, claims, judge_claim};
pub use gain::{Effect, FallingBehind, Gain, gains, turns};
pub use grid::{Grid, GridLine, RankingAgreement, Repeats, grids};
pub use regress::{
    AnswerChange, Cause, Change as RunChange, ComparedMetric, Comparison, Meaning, PlaceChange,
    RankedPlace, RegressError, RegressionRun, RunLine, RunVerdict, Stopped, Taken, TrialFailure,
    TrialName, Was, compare as compare_runs, read_csv, read_json,
};
pub use scatter::{UnitFigure, UnitScatter, unit_scatter};
pub use score::{COVERED, Coverage, LineScore, RatioScore, Regret, Score, Seconds, score_of};
pub use smallest::Bisection;
pub use study::{
    Base, Compare, CrashSeries, CrashStudy, FaultSet, JournalAt, JournalPartition, Known, Mapped,
    Mapping, Mount, Offset, PUBLISHED, PerformanceStudy, PublishedFigure, STUDIES, SecondCard,
    SecondCardUse, Skipped, Smallest, Spot, Study, StudyWorkload, Takes, Tuning, Variant, Yields,
};
pub use trial_request::{TrialInputs, TrialNeeds, TrialRequest};

#[cfg(test)]
mod tests;
