//! The cards that agree with what is known of one.
//!
//! Nobody knows a card exactly. [`Knowledge`] is what is known: size, year, maker, marks, and
//! observations with their noise. The [`Population`] of measured cards gives the prior: which
//! families there are, and how geometry, times and rates go together. [`infer`] draws cards from
//! the prior and refines them until they reproduce the observations on the pure model under the
//! same sequences of requests. The result is a [`Posterior`]: equally likely samples, each a
//! whole profile.
//!
//! Inside: `knowledge` (the file), `population` (the data), `prior` (cards from the population),
//! `likelihood` (how well a card agrees), `smc` (the sampler), `contradiction` (observations that
//! no card has), `posterior` (samples, intervals, families), `shipped` (posteriors that ship).
//! Pure: no clock, no entropy, no I/O; equal input, equal output. Threads are the caller's.

mod contradiction;
mod knowledge;
mod likelihood;
mod normal;
mod population;
mod posterior;
mod prior;
mod relevance;
mod shipped;
mod smc;
mod trend;

pub use knowledge::{
    Bound, Knowledge, KnowledgeError, Marks, Observation, OpenAuLimit, shipped_knowledge,
};
pub use population::{Member, Population, PopulationError, figures_text, profile_of};
pub use posterior::{CostPercentiles, InferError, InferenceOptions, Posterior, ToldBy, infer};
pub use prior::Widening;
pub use relevance::Relevance;
pub use shipped::{posterior_key, shipped_key};
pub use whichfs_fit::Jobs;

#[cfg(test)]
mod tests;
