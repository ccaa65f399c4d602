//! The posterior: equally likely cards, what they cost, and which of them a trial gets.

use crate::contradiction;
use crate::knowledge::{Knowledge, Observation, replay};
use crate::likelihood::{log_likelihood, log_likelihood_of_open_aus, model_error, open_aus, times};
use crate::normal::{normal, quantile};
use crate::population::{Population, figures_text, profile_of};
use crate::prior::{Prior, Widening};
use crate::relevance::Relevance;
use crate::smc::{Particle, Sampled, Sampler, parallel};
use serde::{Deserialize, Serialize};
use whichfs_card::{CapacityError, Family, Interface, Profile};
use whichfs_fit::{CurvePlace, Jobs, PointOrder};
use whichfs_logs::{Operation, Order as Access};
use whichfs_units::{KIB, Rng};

/// Cards of a posterior where observations are rates, and where they are of flashbench -O, whose
/// sequences take ten times as long.
const SAMPLES: usize = 1024;
const SAMPLES_OF_CURVES: usize = 320;
/// Cards that are tried at most: about a minute on two cores.
const BUDGET: usize = 60_000;
const BUDGET_OF_CURVES: usize = 10_000;
/// Steps of each card at each power of the likelihood; fewer where there are more rates of
/// flashbench than a few, because each step then takes ten times as long.
const STEPS: usize = 5;
const STEPS_OF_CURVES: usize = 2;
const FEW_OF_CURVES: usize = 4;
/// Cards of prior and posterior of which the costs are summarised.
const SUMMARY_SAMPLES: usize = 256;
/// Most observations: more say nothing new and take long.
const OBSERVATIONS_MOST: usize = 1000;

/// The costs that a summary shows.
pub(crate) const SUMMARY: [CurvePlace; 13] = [
    host(Operation::Read, Access::Sequential, 128 * KIB),
    host(Operation::Read, Access::Random, 4 * KIB),
    host(Operation::Write, Access::Sequential, 512 * KIB),
    host(Operation::Write, Access::Random, 4 * KIB),
    host(Operation::Write, Access::Random, 16 * KIB),
    host(Operation::Write, Access::Random, 64 * KIB),
    host(Operation::Write, Access::Random, 512 * KIB),
    in_turns(1, 16 * KIB),
    in_turns(3, 16 * KIB),
    in_turns(5, 16 * KIB),
    in_turns(7, 16 * KIB),
    in_turns(3, 512 * KIB),
    in_turns(7, 512 * KIB),
];
/// More AUs than this in turns count as no limit.
const COUNTED_AUS_MOST: u64 = 64;
/// Place in [`SUMMARY`] by which samples of a family are ordered.
const ORDERED_BY: usize = 3;

const fn host(operation: Operation, access: Access, bytes: u64) -> CurvePlace {
    CurvePlace {
        order: PointOrder::Host(operation, access),
        aus: 1,
        bytes,
    }
}

const fn in_turns(aus: u32, bytes: u64) -> CurvePlace {
    CurvePlace {
        order: PointOrder::Linear,
        aus,
        bytes,
    }
}

/// How to infer.
#[derive(Clone, Copy, Debug)]
pub struct InferenceOptions {
    /// Seed of the draws.
    pub seed: u64,
    /// How cards are tried side by side.
    pub jobs: Jobs,
    /// Number of samples; 0 is what suits the observations.
    pub samples: usize,
    /// How near members of the population are to the card.
    pub relevance: Relevance,
    /// How much wider than the population the prior is.
    pub widening: Widening,
}

impl Default for InferenceOptions {
    fn default() -> InferenceOptions {
        InferenceOptions {
            seed: 1,
            jobs: Jobs::default(),
            samples: 0,
            relevance: Relevance::CHOSEN,
            widening: Widening::default(),
        }
    }
}

/// Why there is no posterior.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InferError {
    /// Two observations of the same requests.
    #[error(
        "\"{0}\" and \"{1}\" contradict each other: they are of the same requests and differ by \
         far more than their noise; correct or leave out one"
    )]
    Contradiction(String, String),
    /// More observations than say anything new.
    #[error(
        "{0} observations; at most {OBSERVATIONS_MOST} are used: whichfs card fit takes curves"
    )]
    TooMany(usize),
    /// No member of the population is such a card.
    #[error(
        "no card of the population can have {0} bytes with the sizes that are stated: check \
         capacity_bytes and [sizes]"
    )]
    NoCard(u64),
}

/// Kinds of measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldBy {
    /// Whether reads were timed, in order and at random.
    pub reads: bool,
    /// Whether a stream of writes was timed.
    pub writes_in_order: bool,
    /// Whether small writes at random places were timed.
    pub writes_at_random: bool,
    /// Whether it was counted how many AUs can be written in turns.
    pub open_aus: bool,
}

impl ToldBy {
    /// All kinds.
    pub const ALL: ToldBy = ToldBy {
        reads: true,
        writes_in_order: true,
        writes_at_random: true,
        open_aus: true,
    };
    /// No measurement.
    pub const NOTHING: ToldBy = ToldBy {
        reads: false,
        writes_in_order: false,
        writes_at_random: false,
        open_aus: false,
    };

    /// The kinds of which `knowledge` has some.
    pub fn those_of(knowledge: &Knowledge) -> ToldBy {
        let mut found = ToldBy {
            open_aus: knowledge.open_aus.is_some(),
            ..ToldBy::NOTHING
        };
        for observation in &knowledge.observations {
            match observation.place.order {
                PointOrder::Host(Operation::Read, _) => found.reads = true,
                PointOrder::Host(Operation::Write, Access::Sequential) => {
                    found.writes_in_order = true;
                }
                PointOrder::Host(Operation::Write, Access::Random) => found.writes_at_random = true,
                _ => {}
            }
        }
        found
    }

    /// The kinds that `others` has not.
    #[must_use]
    pub fn beside(self, others: ToldBy) -> ToldBy {
        ToldBy {
            reads: self.reads && !others.reads,
            writes_in_order: self.writes_in_order && !others.writes_in_order,
            writes_at_random: self.writes_at_random && !others.writes_at_random,
            open_aus: self.open_aus && !others.open_aus,
        }
    }

    /// Whether measurements of these kinds tell what requests at `place` cost.
    fn tells(self, place: &CurvePlace) -> bool {
        match place.order {
            PointOrder::Host(Operation::Read, _) => self.reads,
            PointOrder::Host(Operation::Write, Access::Sequential) => self.writes_in_order,
            PointOrder::Host(Operation::Write, Access::Random) => self.writes_at_random,
            _ => false,
        }
    }
}

/// Equally likely cards.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// Maker and model.
    pub title: String,
    /// Families with their probabilities before the observations.
    pub prior_families: Vec<(Family, f64)>,
    /// Nanoseconds of a request: the 10th, 50th and 90th percentile of prior and posterior.
    pub costs: Vec<CostPercentiles>,
    /// What should be known of the result: observations that no card meets, a rough result.
    pub remarks: Vec<String>,
    /// Cards that were tried.
    pub evaluations: usize,
    /// The samples, by family, the likeliest first, and within a family by the cost of random
    /// writes of 4 KiB: neighbours are alike.
    pub(crate) samples: Vec<Profile>,
}

/// What requests of one kind cost, in nanoseconds each: 10th, 50th and 90th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostPercentiles {
    /// Which requests.
    pub place: CurvePlace,
    /// Before the observations.
    pub prior_ns: [f64; 3],
    /// After them.
    pub posterior_ns: [f64; 3],
}

/// The cards that agree with `knowledge`.
///
/// # Errors
/// Observations of the same requests that contradict each other, too many, or a card that the
/// population has not.
pub fn infer(
    population: &Population,
    knowledge: &Knowledge,
    options: &InferenceOptions,
) -> Result<Posterior, InferError> {
    let observations = &knowledge.observations;
    if observations.len() > OBSERVATIONS_MOST {
        return Err(InferError::TooMany(observations.len()));
    }
    if let Some([one, other]) = contradiction::of_one_place(observations) {
        return Err(InferError::Contradiction(
            one.label.clone(),
            other.label.clone(),
        ));
    }
    let no_card = || InferError::NoCard(knowledge.capacity_bytes);
    let prior = Prior::new(population, knowledge, &options.relevance, options.widening);
    let prior = prior.ok_or_else(no_card)?;
    let sampled = sample(&prior, knowledge, options);
    if sampled.posterior.is_empty() {
        return Err(no_card());
    }
    Ok(Posterior::of(&prior, knowledge, options, &sampled))
}

/// Runs the sampler for `knowledge`.
fn sample(prior: &Prior, knowledge: &Knowledge, options: &InferenceOptions) -> Sampled {
    let observations: &[Observation] = &knowledge.observations;
    let of_curves = (observations.iter()).filter(|of| of.place.order.is_flashbench());
    let of_curves = of_curves.count();
    let curves = of_curves > 0;
    let usual = if curves { SAMPLES_OF_CURVES } else { SAMPLES };
    let sampler = Sampler {
        prior,
        observations,
        replay: replay(options.seed),
        seed: options.seed,
        jobs: options.jobs,
        steps: match of_curves > FEW_OF_CURVES {
            true => STEPS_OF_CURVES,
            false => STEPS,
        },
        budget: if curves { BUDGET_OF_CURVES } else { BUDGET },
    };
    sampler.run(if options.samples > 0 {
        options.samples
    } else {
        usual
    })
}

impl Posterior {
    fn of(
        prior: &Prior,
        knowledge: &Knowledge,
        options: &InferenceOptions,
        sampled: &Sampled,
    ) -> Posterior {
        let samples = ordered(&sampled.posterior, options);
        let prior_cards = sampled.prior.iter().map(|particle| particle.card.clone());
        let first: Vec<Profile> = prior_cards.take(SUMMARY_SAMPLES).collect();
        let step = samples.len().div_ceil(SUMMARY_SAMPLES);
        let some: Vec<Profile> = samples.iter().step_by(step).cloned().collect();
        let before = spent(&first, &SUMMARY, options);
        let after = spent(&some, &SUMMARY, options);
        let costs = SUMMARY
            .iter()
            .enumerate()
            .map(|(at, place)| CostPercentiles {
                place: *place,
                prior_ns: interval(&before, at, options.seed),
                posterior_ns: interval(&after, at, options.seed),
            });
        let mut remarks = contradiction::of_cards(
            &knowledge.observations,
            sampled.prior.iter().chain(&sampled.posterior),
        );
        if sampled.cut_short {
            remarks.push(
                "the observations say more than this many samples can follow: intervals are \
                 rough; whichfs card fit takes whole curves"
                    .into(),
            );
        }
        Posterior {
            title: knowledge.title.clone(),
            prior_families: prior.families(),
            costs: costs.collect(),
            remarks,
            evaluations: sampled.evaluations,
            samples,
        }
    }

    /// The same cards under the name `title`.
    #[must_use]
    pub fn titled(mut self, title: String) -> Posterior {
        for sample in &mut self.samples {
            let interface = sample.interface();
            *sample = sample.clone().as_card(&title, interface);
        }
        self.title = title;
        self
    }

    /// The 10th, 50th and 90th percentile of the time of a request at each of `places`, in
    /// nanoseconds: over the samples, with the model's own error.
    pub fn intervals(&self, places: &[CurvePlace], options: &InferenceOptions) -> Vec<[f64; 3]> {
        let spent = spent(&self.samples, places, options);
        (0..places.len())
            .map(|at| interval(&spent, at, options.seed))
            .collect()
    }

    /// What tells the cards of `seeds` apart: nanoseconds of a request at each place of
    /// [`Posterior::costs`], not a number where the card refuses; then how many AUs can be written
    /// in turns, in order and at random, 65 without a limit.
    pub fn features_of(&self, seeds: &[u64], options: &InferenceOptions) -> Vec<Vec<f64>> {
        let cards = seeds.iter().map(|seed| self.sample(*seed).clone());
        let cards: Vec<Profile> = cards.collect();
        let mut features = spent(&cards, &SUMMARY, options);
        for (of_card, card) in features.iter_mut().zip(&cards) {
            let counts = open_aus(card).map(|aus| aus.min(COUNTED_AUS_MOST + 1) as f64);
            of_card.extend(counts);
        }
        features
    }

    /// Logarithm of how likely observations and counts of open AUs of `knowledge` are on the card
    /// of each of `seeds`, up to a constant; minus infinity where the card refuses.
    pub fn agreement(
        &self,
        seeds: &[u64],
        knowledge: &Knowledge,
        options: &InferenceOptions,
    ) -> Vec<f64> {
        let observations = &knowledge.observations;
        let places: Vec<CurvePlace> = observations.iter().map(|one| one.place).collect();
        let cards = seeds.iter().map(|seed| self.sample(*seed).clone());
        let spent = spent(&cards.collect::<Vec<Profile>>(), &places, options);
        let likely = |(times, seed): (&Vec<f64>, &u64)| {
            let counts = knowledge.open_aus.map_or(0.0, |found| {
                log_likelihood_of_open_aus(found, open_aus(self.sample(*seed)))
            });
            match times.iter().all(|ns| ns.is_finite()) {
                true => log_likelihood(observations, times) + counts,
                false => f64::NEG_INFINITY,
            }
        };
        spent.iter().zip(seeds).map(likely).collect()
    }

    /// Places among [`Posterior::features_of`] that measurements of these kinds tell.
    pub fn told_by(kinds: ToldBy) -> Vec<usize> {
        let costs = (0..SUMMARY.len()).filter(|at| kinds.tells(&SUMMARY[*at]));
        let counts = (SUMMARY.len()..SUMMARY.len() + 2).filter(|_| kinds.open_aus);
        costs.chain(counts).collect()
    }

    /// Equally likely cards that agree with what is known.
    pub fn samples(&self) -> &[Profile] {
        &self.samples
    }

    /// Cuts each sample down to `bytes` ([`Profile::cut_down`]).
    ///
    /// # Errors
    /// A sample that cannot have that size.
    pub fn cut_down(&mut self, bytes: u64) -> Result<(), CapacityError> {
        for sample in &mut self.samples {
            *sample = sample.cut_down(bytes)?;
        }
        Ok(())
    }

    /// Families with their probabilities, the likeliest first.
    pub fn families(&self) -> Vec<(Family, f64)> {
        let share = |family: Family| {
            let of_family = self
                .samples
                .iter()
                .filter(|sample| sample.family() == family);
            of_family.count() as f64 / self.samples.len() as f64
        };
        let mut families = Family::NAMES
            .map(|(_, family)| (family, share(family)))
            .to_vec();
        families.retain(|(_, share)| *share > 0.0);
        families.sort_by(|a, b| b.1.total_cmp(&a.1));
        families
    }

    /// The card of trials with `seed`: equal for all candidates. The cards of the seeds 1, 2, 3 …
    /// are spread over the samples (van der Corput's sequence), so that a few seeds stand for all.
    pub fn sample(&self, seed: u64) -> &Profile {
        let spread = (seed.reverse_bits() as f64 / 2_f64.powi(64)).min(1.0 - f64::EPSILON);
        &self.samples[(spread * self.samples.len() as f64) as usize]
    }

    /// The card that stands for all where one is needed, as for what filesystems are tuned to: of
    /// the likeliest family, in the middle.
    pub fn representative(&self) -> &Profile {
        let likeliest = self.families()[0].0;
        let first = self
            .samples
            .iter()
            .position(|sample| sample.family() == likeliest);
        let of_family = self
            .samples
            .iter()
            .filter(|sample| sample.family() == likeliest);
        &self.samples[first.unwrap_or(0) + of_family.count() / 2]
    }
}

/// Nanoseconds of a request at each of `places` on each of `cards`; not a number where a card
/// refuses.
fn spent(cards: &[Profile], places: &[CurvePlace], options: &InferenceOptions) -> Vec<Vec<f64>> {
    let replay = replay(options.seed);
    let of_card = |at: usize| times(&cards[at], places, &replay);
    let refused = || vec![f64::NAN; places.len()];
    parallel(options.jobs, cards.len(), |at| {
        of_card(at).unwrap_or_else(refused)
    })
}

/// The 10th, 50th and 90th percentile of what cards take at a place, with the model's error.
fn interval(spent: &[Vec<f64>], place: usize, seed: u64) -> [f64; 3] {
    let mut rng = Rng::named(seed, &format!("posterior.interval.{place}"));
    let known = spent
        .iter()
        .map(|times| times[place])
        .filter(|ns| ns.is_finite());
    let mut known: Vec<f64> = known
        .map(|ns| ns * model_error(normal(&mut rng), normal(&mut rng)).exp())
        .collect();
    known.sort_by(f64::total_cmp);
    match known.is_empty() {
        true => [f64::NAN; 3],
        false => [0.1, 0.5, 0.9].map(|part| quantile(&known, part)),
    }
}

/// The cards of `particles`: likeliest family first, then by the cost of random writes.
fn ordered(particles: &[Particle], options: &InferenceOptions) -> Vec<Profile> {
    let mut cards: Vec<Profile> = particles
        .iter()
        .map(|particle| particle.card.clone())
        .collect();
    let costs = spent(&cards, &SUMMARY[ORDERED_BY..=ORDERED_BY], options);
    let count = |family: Family| cards.iter().filter(|card| card.family() == family).count();
    let counts = Family::NAMES.map(|(_, family)| (family, count(family)));
    let rank = |family: Family| {
        let of = counts.iter().find(|(of, _)| *of == family);
        (std::cmp::Reverse(of.map_or(0, |(_, count)| *count)), family)
    };
    let mut order: Vec<(Profile, f64)> = cards
        .drain(..)
        .zip(costs)
        .map(|(card, of)| (card, of[0]))
        .collect();
    order.sort_by(|(a, of_a), (b, of_b)| {
        let by_family = rank(a.family()).cmp(&rank(b.family()));
        by_family.then(of_a.total_cmp(of_b))
    });
    order.into_iter().map(|(card, _)| card).collect()
}

/// A posterior as it is kept.
#[derive(Serialize, Deserialize)]
struct Stored {
    title: String,
    prior_families: Vec<(Family, f64)>,
    costs: Vec<[[f64; 3]; 2]>,
    remarks: Vec<String>,
    evaluations: usize,
    interface: Interface,
    samples: Vec<(Family, String)>,
}

impl Serialize for Posterior {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |sample: &Profile| (sample.family(), figures_text(sample));
        Stored {
            title: self.title.clone(),
            prior_families: self.prior_families.clone(),
            costs: self
                .costs
                .iter()
                .map(|cost| [cost.prior_ns, cost.posterior_ns])
                .collect(),
            remarks: self.remarks.clone(),
            evaluations: self.evaluations,
            interface: self.representative().interface(),
            samples: self.samples.iter().map(text).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Posterior {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Posterior, D::Error> {
        use serde::de::Error;
        let stored = Stored::deserialize(deserializer)?;
        let interfaces = Interface::NAMES.iter();
        let interface = interfaces.clone().find(|(_, of)| *of == stored.interface);
        let interface = interface.map_or("", |(name, _)| name);
        let sample = |(family, figures): &(Family, String)| {
            profile_of(&stored.title, interface, family.name(), figures)
        };
        let samples: Result<Vec<Profile>, String> = stored.samples.iter().map(sample).collect();
        let samples = samples.map_err(Error::custom)?;
        if samples.is_empty() {
            return Err(Error::custom("no samples"));
        }
        let costs = SUMMARY
            .iter()
            .zip(&stored.costs)
            .map(|(place, [prior_ns, posterior_ns])| CostPercentiles {
                place: *place,
                prior_ns: *prior_ns,
                posterior_ns: *posterior_ns,
            });
        Ok(Posterior {
            title: stored.title.clone(),
            prior_families: stored.prior_families.clone(),
            costs: costs.collect(),
            remarks: stored.remarks.clone(),
            evaluations: stored.evaluations,
            samples,
        })
    }
}
