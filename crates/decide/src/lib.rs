//! Needs, rules, statistics and verdict. Pure.
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
mod cpu_model_error;
mod device;
mod discrepancy;
mod evidence;
mod exclude;
mod facts;
mod failures;
mod fit;
mod judge;
mod kinds;
mod metric_ranks;
mod need;
mod overrides;
pub mod plan;
mod position;
mod reasons;
mod row;
mod sensitivity;
mod settle;
pub mod sustained;
mod told;
mod unit;
mod verdict;

pub use advice::Standard;
pub use agreement::kendall_tau_b;
pub use cards::{CardEvidence, CardPlace, CardRanking, CardScore, Unqualified, rank_cards};
pub use cpu_model_error::{
    ChargedWork, Doubt, charged_works, doubt_ranking, doubts, doubts_told, range,
};
pub use device::{
    Budget, BudgetLimit, Counter, Distance, Drift, Ledger, REFERENCES_MIN, ReferenceRun, TrialCost,
    Turn as DeviceTurn, distances, drifts, order,
};
pub use discrepancy::Discrepancy;
pub use evidence::{Evidence, Failure, Sample};
pub use exclude::{NOT_COMPARABLE, exclude, not_comparable, not_known};
pub use facts::{Can, CandidateFacts, Care, CrashClass, Fact, Matter, SeenMemory, Sourced};
pub use fit::mean;
pub use judge::{JudgeError, NOISE_FLOOR, judge};
pub use kinds::{CardKind, OfKind, sentence as kinds_sentence};
pub use metric_ranks::{Standing, standings};
pub use need::{
    Condition, Enough, HardRule, Need, NeedError, POWER_LOSS, PartitionRule, SHORT, Weight,
};
pub use position::{FileError, Position};
pub use row::FigureRow;
pub use settle::{
    Measurement, MeasurementPrice, PossibleCard, PossibleCards, SETTLED, Settled, Settling,
    settling,
};

pub use sustained::{FilesystemLoad, LongUse, SUSTAINED};
pub use unit::unit_for;
pub use verdict::{
    Advice, Baseline, Broken, CandidateFigure, Change, Count, Excluded, Failed, FailedTrial,
    FigureOrigin, Grade, MetricInfo, ModelError, Nearest, Ranked, RuleLine, SeedFigure, Unmeasured,
    Verdict, Without,
};

#[cfg(test)]
mod tests;
