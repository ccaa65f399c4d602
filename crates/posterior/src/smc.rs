//! The sampler: sequential Monte Carlo over a tempered likelihood (Del Moral, Doucet and Jasra,
//! "Sequential Monte Carlo samplers", 2006).
//!
//! Particles begin as draws from the prior. The likelihood is raised to a power that grows from
//! zero to one, each time so far that the effective number of particles halves (Jasra et al.,
//! 2011); particles are resampled by weight (systematic resampling, Kitagawa 1996) and refreshed
//! by Metropolis steps that keep the tempered posterior: steps along the prior, and now and then
//! a new draw from it, which can change the family.

use crate::knowledge::Observation;
use crate::likelihood::{log_likelihood, times};
use crate::prior::{Prior, State};
use std::sync::OnceLock;
use whichfs_card::Profile;
use whichfs_fit::{CurvePlace, Jobs, Replay};
use whichfs_units::Rng;

/// One step in so many is a new draw from the prior.
const FRESH_ONE_IN: u64 = 5;
/// Share of steps to be accepted (Roberts and Rosenthal, 2001), by which their length is set.
const ACCEPTED: f64 = 0.3;
/// Draws from the prior for a particle whose figures do not fit together.
const DRAWS: usize = 50;
/// Jobs into which the particles are cut.
const CHUNKS: usize = 8;

/// A card that may be the one that was observed.
#[derive(Clone, Debug)]
pub(crate) struct Particle {
    pub state: State,
    pub card: Profile,
    /// Nanoseconds at each observation's place.
    pub times: Vec<f64>,
    log_likelihood: f64,
}

/// What the sampler needs.
pub(crate) struct Sampler<'a> {
    pub prior: &'a Prior<'a>,
    pub observations: &'a [Observation],
    pub replay: Replay,
    pub seed: u64,
    pub jobs: Jobs,
    /// Steps of each particle after it was resampled.
    pub steps: usize,
    /// Evaluations of the model after which the likelihood is raised at once.
    pub budget: usize,
}

/// What came of it.
pub(crate) struct Sampled {
    /// Draws from the prior.
    pub prior: Vec<Particle>,
    /// Equally likely draws from the posterior.
    pub posterior: Vec<Particle>,
    /// Cards that were tried.
    pub evaluations: usize,
    /// Whether the budget ended it early: the posterior is then rougher.
    pub cut_short: bool,
}

impl Sampler<'_> {
    /// Draws `count` particles from the posterior; fewer come back only if cards of the prior do
    /// not fit together or refuse the requests.
    pub fn run(&self, count: usize) -> Sampled {
        let first = self.parallel(count, |at| self.first(at));
        let prior: Vec<Particle> = first.into_iter().flatten().collect();
        let mut particles = prior.clone();
        let (mut power, mut step, mut stage) = (0.0, 0.5, 0);
        let (mut evaluations, mut cut_short) = (prior.len(), false);
        while power < 1.0 && !particles.is_empty() {
            let spent = evaluations + self.steps * particles.len() > self.budget;
            cut_short |= spent;
            let next = if spent {
                1.0
            } else {
                next_power(&particles, power)
            };
            let mut rng = Rng::named(self.seed, &format!("posterior.resample.{stage}"));
            particles = resampled(&particles, next - power, &mut rng);
            power = next;
            if spent {
                break;
            }
            for round in 0..self.steps {
                let moved = self.parallel(particles.len(), |at| {
                    let name = format!("posterior.step.{stage}.{round}.{at}");
                    self.moved(
                        &particles[at],
                        power,
                        step,
                        &mut Rng::named(self.seed, &name),
                    )
                });
                evaluations += moved.len();
                let accepted = moved.iter().filter(|particle| particle.is_some()).count();
                let share = accepted as f64 / particles.len() as f64;
                step = (step * (share - ACCEPTED).exp()).clamp(0.03, 1.0);
                for (particle, moved) in particles.iter_mut().zip(moved) {
                    if let Some(moved) = moved {
                        *particle = moved;
                    }
                }
            }
            stage += 1;
        }
        Sampled {
            prior,
            posterior: particles,
            evaluations,
            cut_short,
        }
    }

    /// A particle from the prior.
    fn first(&self, at: usize) -> Option<Particle> {
        let mut rng = Rng::named(self.seed, &format!("posterior.first.{at}"));
        (0..DRAWS).find_map(|_| self.particle(self.prior.draw(&mut rng)))
    }

    /// Where a Metropolis step takes `from`; `None` where it stays.
    fn moved(&self, from: &Particle, power: f64, step: f64, rng: &mut Rng) -> Option<Particle> {
        let state = match rng.ratio(1, FRESH_ONE_IN) {
            true => self.prior.draw(rng),
            false => self.prior.near(&from.state, step, rng),
        };
        let bar = (1.0 - rng.unit_f64()).ln();
        let moved = self.particle(state)?;
        (power * (moved.log_likelihood - from.log_likelihood) >= bar).then_some(moved)
    }

    fn particle(&self, state: State) -> Option<Particle> {
        let card = self.prior.card(&state)?;
        // Requests that were measured more than once are done once.
        let mut places: Vec<CurvePlace> = self.observations.iter().map(|of| of.place).collect();
        places.sort_unstable();
        places.dedup();
        let spent = times(&card, &places, &self.replay)?;
        let of_place = |of: &Observation| places.binary_search(&of.place).map(|at| spent[at]).ok();
        let times: Vec<f64> = self.observations.iter().filter_map(of_place).collect();
        let log_likelihood = log_likelihood(self.observations, &times);
        Some(Particle {
            state,
            card,
            times,
            log_likelihood,
        })
    }

    /// The results of `job` for each number below `count`.
    fn parallel<T: Send + Sync>(&self, count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
        parallel(self.jobs, count, job)
    }
}

/// The results of `job` for each number below `count`, in some jobs side by side.
pub(crate) fn parallel<T: Send + Sync>(
    jobs: Jobs,
    count: usize,
    job: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    jobs.run(CHUNKS, &|chunk| {
        for at in (chunk..count).step_by(CHUNKS) {
            slots[at].get_or_init(|| job(at));
        }
    });
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// The power above `power` at which half of the particles are still effective; at most one.
fn next_power(particles: &[Particle], power: f64) -> f64 {
    let enough = |next: f64| {
        let weights = weights(particles, next - power);
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        1.0 / squares >= particles.len() as f64 / 2.0
    };
    if enough(1.0) {
        return 1.0;
    }
    let (mut low, mut high) = (power, 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        match enough(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    // Never so little that it does not come to an end.
    high.max(power + 1e-6).min(1.0)
}

/// Weights of the particles when the power grows by `by`; their sum is one.
fn weights(particles: &[Particle], by: f64) -> Vec<f64> {
    let raised = particles
        .iter()
        .map(|particle| by * particle.log_likelihood);
    let most = raised.clone().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = raised.map(|raised| (raised - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// As many particles, each as often as its weight says.
fn resampled(particles: &[Particle], by: f64, rng: &mut Rng) -> Vec<Particle> {
    let weights = weights(particles, by);
    let count = particles.len();
    let offset = rng.unit_f64();
    let (mut at, mut sum) = (0, weights[0]);
    let mut chosen = Vec::with_capacity(count);
    for tooth in 0..count {
        let place = (tooth as f64 + offset) / count as f64;
        while sum < place && at + 1 < count {
            at += 1;
            sum += weights[at];
        }
        chosen.push(particles[at].clone());
    }
    chosen
}
