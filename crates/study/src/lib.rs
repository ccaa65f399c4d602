//! Plan, statistics and verdict. Pure.
//!
//! What goes in are a [`Need`] (data, `needs/*.toml`), what is known of the
//! candidates ([`CandidateFacts`]) and the figures of finished trials
//! ([`Sample`]); what comes out is a [`Verdict`]. Nothing here reads a clock, a file
//! or entropy, so the same rows give the same verdict.

mod advice;
mod agreement;
mod bootstrap;
mod cards;
pub mod catalogue;
mod claims;
mod cpu_model_error;
mod device;
mod evidence;
mod exclude;
mod facts;
mod failures;
mod fit;
mod gain;
mod grid;
mod judge;
mod kinds;
mod metric_ranks;
mod need;
mod overrides;
pub mod plan;
mod position;
mod reasons;
mod regress;
mod row;
mod score;
mod sensitivity;
mod smallest;
mod study;
mod told;
mod unit;
mod verdict;

pub use advice::Standard;
pub use agreement::kendall_tau_b;
pub use cards::{CardEvidence, CardPlace, CardRanking, CardScore, Unqualified, rank_cards};
pub use claims::{CLAIMS, Claim, Judgement, Outcome, Part, claims, judge_claim};
pub use cpu_model_error::{ChargedWork, Doubt, charged_works, doubt_ranking, doubts, doubts_told};
pub use device::{
    Budget, Cost, Counter, Distance, Drift, Ledger, REFERENCES_MIN, ReferenceRun, Spent,
    Turn as DeviceTurn, distances, drifts, order,
};
pub use evidence::{Evidence, Failure, Sample};
pub use exclude::{NOT_COMPARABLE, exclude, not_comparable, not_known};
pub use facts::{Can, CandidateFacts, Care, CrashClass, Fact, Matter, Memory, Sourced};
pub use gain::{Effect, Gain, Turn, gains, turns};
pub use grid::{Grid, Line, Order, Repeats, grids};
pub use judge::{JudgeError, NOISE_FLOOR, judge};
pub use kinds::{CardKind, OfKind, sentence as kinds_sentence};
pub use metric_ranks::{Standing, standings};
pub use need::{
    Condition, Enough, Need, NeedError, POWER_LOSS, PartitionRule, Rule, SHORT, Weight,
};
pub use position::FileError;
pub use regress::{
    Answer, AnswerChange, Cause, Change as RunChange, Compared, Comparison, Meaning, Place,
    PlaceChange, RegressError, Run, RunLine, Stopped, Taken, TrialFailure, TrialName, Was,
    compare as compare_runs, read_csv, read_json,
};
pub use row::Row;
pub use score::{COVERED, Coverage, LineScore, Regret, Score, Seconds, score_of};
pub use smallest::Bisection;
pub use study::{
    Base, Cell, Compare, CrashStudy, FaultSet, Journal, JournalAt, Known, Load, Mapped, Mapping,
    Mount, Offset, PUBLISHED, PerformanceStudy, PublishedFigure, STUDIES, Skipped, Smallest, Spot,
    Study, Takes, Tuning, Variant, Yields,
};
pub use unit::unit_for;
pub use verdict::{
    Advice, Baseline, Broken, Change, Count, Excluded, Failed, FailedTrial, Figure, FitError,
    Grade, MetricInfo, Nearest, Origin, Point, Ranked, RuleLine, Unmeasured, Verdict, Without,
};

#[cfg(test)]
mod tests;
