//! Cards from the population: the prior of a card of which marks are known.
//!
//! A member is drawn by how near it is to what is known (size, year, maker, interface). Its
//! times, rates and thresholds are then moved by a kernel: shrunk towards the mean of the family
//! and spread along the differences between the family's members (Liu and West, "Combined
//! parameter and state estimation in simulation-based filtering", 2001). The kernel keeps mean
//! and covariance of the members, so figures that go together in the data go together in the
//! prior. How likely a family is follows from the same weights, and beyond the years of the
//! population from the trend over them ([`Trend`]). Sizes, counts of open AUs, and each rule of
//! the card, are now and then those of another member of the family, or what is known of them.
//!
//! A card is a function of its [`State`]: a member, and numbers that are normal or uniform. The
//! sampler moves those; so it never needs the density of the prior.

use crate::knowledge::{Knowledge, OpenAuLimit};
use crate::normal::{normals, pick};
use crate::population::{Member, Population};
use crate::relevance::{Relevance, undated, weight};
use crate::trend::Trend;
use whichfs_card::{Family, Figure, Profile};
use whichfs_units::Rng;

/// How much wider than the population a prior is: for cards that are faster than all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Widening {
    /// Standard deviation of `ln` of a factor that all times and rates share.
    pub speed: f64,
    /// Standard deviation of `ln` of each time and rate beside that.
    pub each: f64,
}

/// Standard deviation of `ln` of each figure beside the kernel: two units of one model differ by
/// more than 10 % (`flash.md` §5).
const UNIT_SPREAD: f64 = 0.1;
/// How often what stands in one of [`GROUPS`] is that of another member.
const EXCHANGE: f64 = 0.15;
/// Figures that are exchanged together, because they must fit together, by path or by section. A
/// card that nobody measured seldom has all the rules of one that somebody did.
const GROUPS: [&[&str]; 9] = [
    &[
        "geometry.page_bytes",
        "geometry.write_unit_bytes",
        "geometry.au_bytes",
        "geometry.spare_aus",
        "write.program_bytes",
        "page_map.unit_bytes",
        "page_map.background_aus",
        "update_block.group_bytes",
        "update_block.gather_bytes",
    ],
    &[
        "geometry.open_aus_linear",
        "geometry.open_aus_random",
        "page_map.streams",
    ],
    &["log_block.first_opened", "log_block.merge_at_once"],
    &[
        "log_block.small_write_bytes",
        "log_block.small_write_us",
        "log_block.idle_close_us",
    ],
    &["log_block.log_percent"],
    &["fat."],
    &["update_block.keep_writes", "update_block.whole_us"],
    &[
        "update_block.shared_percent",
        "update_block.short_pieces",
        "update_block.tail_percent",
    ],
    &[
        "page_map.keep_writes",
        "page_map.worth_percent",
        "page_map.rest_us",
    ],
];

/// What a card is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    family: usize,
    member: usize,
    /// Standard normal.
    normals: Vec<f64>,
    /// Uniform: one for each of [`GROUPS`].
    units: [f64; GROUPS.len()],
}

/// The members of one family and how their figures spread.
struct Kin {
    family: Family,
    probability: f64,
    /// The members at the capacity of the card.
    profiles: Vec<Profile>,
    /// Their weights, whose sum is one.
    weights: Vec<f64>,
    /// Mean of `ln` of each figure that varies, over the members that have it.
    means: Vec<f64>,
    /// Bandwidth of the kernel (Silverman, 1986), in standard deviations.
    bandwidth: f64,
}

/// The prior of one card.
pub(crate) struct Prior<'a> {
    kin: Vec<Kin>,
    knowledge: &'a Knowledge,
    widening: Widening,
}

impl<'a> Prior<'a> {
    /// The prior of the card of `knowledge`; `None` where no member of the population is such a
    /// card.
    pub fn new(
        population: &'a Population,
        knowledge: &'a Knowledge,
        relevance: &Relevance,
        widening: Widening,
    ) -> Option<Prior<'a>> {
        let mut kin = Vec::new();
        let undated = undated(population, knowledge, relevance);
        for (_, family) in Family::NAMES {
            let of_family = |member: &&Member| member.profile.family() == family;
            let of_size = |member: &'a Member| {
                let profile = member.profile.clone();
                let profile = profile.as_card(&knowledge.title, knowledge.interface);
                let profile = profile.with_capacity(knowledge.capacity_bytes).ok()?;
                Some((profile, weight(member, knowledge, relevance, undated)))
            };
            let found = population
                .members
                .iter()
                .filter(of_family)
                .filter_map(of_size);
            let found: Vec<(Profile, f64)> = found.filter(|(.., w)| *w > 0.0).collect();
            if !found.is_empty() {
                kin.push(Kin::new(family, &found));
            }
        }
        let of_interface = population.members.iter().map(|member| {
            let other = member.interface != knowledge.interface;
            let weight = if other { relevance.interface } else { 1.0 };
            (member, member.weight * weight)
        });
        let trend = Trend::of(of_interface);
        let odds = knowledge.year.and_then(|year| Some(trend?.odds(year)));
        for kin in &mut kin {
            if !kin.family.limits_open_aus() {
                kin.probability *= odds.unwrap_or(1.0);
            }
        }
        let sum: f64 = kin.iter().map(|kin| kin.probability).sum();
        for kin in &mut kin {
            kin.probability /= sum;
        }
        (!kin.is_empty()).then_some(Prior {
            kin,
            knowledge,
            widening,
        })
    }

    /// Families with their probabilities.
    pub fn families(&self) -> Vec<(Family, f64)> {
        self.kin
            .iter()
            .map(|kin| (kin.family, kin.probability))
            .collect()
    }

    /// A state drawn from the prior.
    pub fn draw(&self, rng: &mut Rng) -> State {
        let families: Vec<f64> = self.kin.iter().map(|kin| kin.probability).collect();
        let family = pick(&families, rng.unit_f64());
        let kin = &self.kin[family];
        State {
            family,
            member: pick(&kin.weights, rng.unit_f64()),
            normals: normals(rng, kin.normals()),
            units: std::array::from_fn(|_| rng.unit_f64()),
        }
    }

    /// A state near `from`, such that the prior stays as it is: the preconditioned Crank-Nicolson
    /// step (Cotter, Roberts, Stuart and White, 2013) of length `step` up to one; now and then
    /// with another member of the family, other sizes or other counts.
    pub fn near(&self, from: &State, step: f64, rng: &mut Rng) -> State {
        let mut state = from.clone();
        let keep = (1.0 - step * step).sqrt();
        for (normal, other) in state
            .normals
            .iter_mut()
            .zip(normals(rng, from.normals.len()))
        {
            *normal = keep * *normal + step * other;
        }
        for unit in &mut state.units {
            if rng.ratio(1, 8) {
                *unit = rng.unit_f64();
            }
        }
        if rng.ratio(1, 4) {
            state.member = pick(&self.kin[state.family].weights, rng.unit_f64());
        }
        state
    }

    /// The card of a state; `None` where its figures do not fit together.
    pub fn card(&self, state: &State) -> Option<Profile> {
        let kin = &self.kin[state.family];
        let own = &kin.profiles[state.member];
        let others: Vec<&Profile> = GROUPS
            .iter()
            .zip(state.units)
            .map(|(_, unit)| match unit < EXCHANGE {
                true => &kin.profiles[pick(&kin.weights, unit / EXCHANGE)],
                false => own,
            })
            .collect();
        let figures: Vec<&Figure> = own.figures().collect();
        let others: Vec<Vec<&Figure>> = others.iter().map(|of| of.figures().collect()).collect();
        // Of each figure that of the member, or of the one that has its group.
        let taken: Vec<&Figure> = (figures.iter().enumerate())
            .map(|(at, figure)| group_of(figure.path).map_or(*figure, |group| others[group][at]))
            .collect();
        let mut moved = kin.moved(state, &taken, &self.widening).into_iter();
        let mut taken = taken.iter().map(|figure| figure.value);
        let sizes = &self.knowledge.sizes;
        let known = self.knowledge.open_aus;
        let known = known.filter(|_| own.family().limits_open_aus());
        let open = known.and_then(OpenAuLimit::limit).map(u64::from);
        // If nothing else is known, with as many fewer in random order as the member has.
        let fewer = own.open_aus_linear().saturating_sub(own.open_aus_random());
        let fewer = open.map(|open| open.saturating_sub(fewer).max(1));
        let at_random = known
            .and_then(|known| known.random)
            .map(u64::from)
            .or(fewer);
        own.with_values(|figure| {
            let taken = taken.next();
            let moved = if figure.varies() {
                moved.next().flatten()
            } else {
                None
            };
            if let Some(moved) = moved {
                return figure.legal(moved);
            }
            let known = match figure.path {
                "geometry.page_bytes" => sizes.page_bytes,
                "geometry.au_bytes" => sizes.au_bytes,
                "geometry.write_unit_bytes" => sizes.write_unit_bytes,
                "geometry.open_aus_linear" => open,
                "geometry.open_aus_random" => open.and(at_random),
                _ => None,
            };
            known.or(taken).unwrap_or(figure.value)
        })
        .ok()
    }
}

impl Kin {
    fn new(family: Family, found: &[(Profile, f64)]) -> Kin {
        let sum: f64 = found.iter().map(|(.., weight)| weight).sum();
        let weights: Vec<f64> = found.iter().map(|(.., weight)| weight / sum).collect();
        let profiles: Vec<Profile> = found.iter().map(|(profile, _)| profile.clone()).collect();
        let count = profiles[0]
            .figures()
            .filter(|figure| figure.varies())
            .count();
        let mut means = vec![0.0; count];
        let mut shares = vec![0.0; count];
        for (profile, weight) in profiles.iter().zip(&weights) {
            for (j, value) in logarithms(profile).enumerate() {
                if let Some(value) = value {
                    means[j] += weight * value;
                    shares[j] += weight;
                }
            }
        }
        for (mean, share) in means.iter_mut().zip(shares) {
            *mean /= f64::max(share, f64::MIN_POSITIVE);
        }
        // Kish's effective number of members; times and rates of cards vary along some four
        // directions (write rate, small writes, copies, reads).
        let effective = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        const DIRECTIONS: f64 = 4.0;
        let silverman = (4.0 / ((DIRECTIONS + 2.0) * effective)).powf(1.0 / (DIRECTIONS + 4.0));
        Kin {
            family,
            probability: sum,
            profiles,
            weights,
            means,
            bandwidth: silverman.min(0.9),
        }
    }

    /// Normal numbers of a state: one for each member, one for each figure, one for the speed.
    fn normals(&self) -> usize {
        self.weights.len() + self.means.len() + 1
    }

    /// Those of `figures` that vary, moved by the kernel; `None` for those that the card has not.
    fn moved(&self, state: &State, figures: &[&Figure], widening: &Widening) -> Vec<Option<f64>> {
        let (of_members, rest) = state.normals.split_at(self.weights.len());
        let (of_figures, speed) = rest.split_at(self.means.len());
        let mut along = vec![0.0; self.means.len()];
        for ((profile, weight), normal) in self.profiles.iter().zip(&self.weights).zip(of_members) {
            let by = weight.sqrt() * normal;
            for ((along, value), mean) in along.iter_mut().zip(logarithms(profile)).zip(&self.means)
            {
                *along += value.map_or(0.0, |value| by * (value - mean));
            }
        }
        let shrink = (1.0 - self.bandwidth * self.bandwidth).sqrt();
        let spread = UNIT_SPREAD.hypot(widening.each);
        let figures = figures.iter().copied().filter(|figure| figure.varies());
        let values = figures.zip(&self.means).zip(along.iter().zip(of_figures));
        let of_figure = |((figure, mean), (along, own)): ((&Figure, &f64), (&f64, &f64))| {
            let value = logarithm(figure)?;
            let slower = widening.speed * speed[0] * direction(figure.path);
            let at = mean + shrink * (value - mean) + self.bandwidth * along + spread * own;
            Some((at + slower).exp())
        };
        values.map(of_figure).collect()
    }
}

/// Which of [`GROUPS`] the figure `path` is in.
fn group_of(path: &str) -> Option<usize> {
    let is_in = |group: &&[&str]| {
        let mut names = group.iter();
        names.any(|name| path == *name || name.ends_with('.') && path.starts_with(name))
    };
    GROUPS.iter().position(is_in)
}

/// Times grow where a card is slower, rates fall, thresholds stay.
fn direction(path: &str) -> f64 {
    match path {
        _ if path.starts_with("reader.") || path.starts_with("bus.") => 0.0,
        _ if path.ends_with("_us") => 1.0,
        _ if path.ends_with("_per_s") => -1.0,
        _ => 0.0,
    }
}

fn logarithms(profile: &Profile) -> impl Iterator<Item = Option<f64>> + '_ {
    profile
        .figures()
        .filter(|figure| figure.varies())
        .map(logarithm)
}

/// `ln` of a figure; `None` for zero, which means "nothing of the kind".
fn logarithm(figure: &Figure) -> Option<f64> {
    (figure.value > 0).then(|| (figure.value as f64).ln())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::relevance::is_limited;

    fn known() -> Knowledge {
        Knowledge::of(
            "a card",
            whichfs_card::Interface::Sd,
            8_000_000_000 / 512 * 512,
        )
    }

    fn variance(states: &[State]) -> f64 {
        let all = states.iter().flat_map(|state| &state.normals);
        all.clone().map(|normal| normal * normal).sum::<f64>() / all.count() as f64
    }

    #[test]
    fn steps_keep_the_prior_and_a_step_that_does_not_is_seen() {
        let (population, known) = (Population::shipped().unwrap(), known());
        let prior = Prior::new(&population, &known, &Relevance::CHOSEN, Widening::default());
        let prior = prior.unwrap();
        let mut rng = Rng::named(1, "steps");
        let mut states: Vec<State> = (0..200).map(|_| prior.draw(&mut rng)).collect();
        let members = |states: &[State]| {
            let weight = |state: &State| prior.kin[state.family].weights[state.member];
            states.iter().map(weight).sum::<f64>() / states.len() as f64
        };
        let first = members(&states);
        for _ in 0..20 {
            for state in &mut states {
                *state = prior.near(state, 0.5, &mut rng);
            }
        }
        assert!(
            (variance(&states) - 1.0).abs() < 0.05,
            "{}",
            variance(&states)
        );
        assert!((members(&states) / first - 1.0).abs() < 0.3);
        // Planted: a step that adds without shrinking.
        for state in &mut states {
            for normal in &mut state.normals {
                *normal += 0.5 * crate::normal::normal(&mut rng);
            }
        }
        assert!(
            (variance(&states) - 1.0).abs() > 0.15,
            "{}",
            variance(&states)
        );
    }

    #[test]
    fn cards_near_to_what_is_known_count_more() {
        let population = Population::shipped().unwrap();
        let share = |known: &Knowledge, family: Family| {
            let prior = Prior::new(&population, known, &Relevance::CHOSEN, Widening::default());
            let families = prior.unwrap().families();
            families.iter().find(|(of, _)| *of == family).unwrap().1
        };
        let mut old = known();
        old.year = Some(2013);
        let mut new = Knowledge {
            capacity_bytes: 64_000_000_000,
            ..known()
        };
        new.year = Some(2024);
        assert!(share(&new, Family::PageMap) > 0.9 && share(&old, Family::PageMap) < 0.6);
        let mut sandisk = old.clone();
        sandisk.maker = Some("03".into());
        assert!(share(&sandisk, Family::UpdateBlock) > 1.5 * share(&old, Family::UpdateBlock));
    }

    #[test]
    fn a_known_count_of_open_aus_is_that_of_the_cards_which_have_a_limit() {
        let population = Population::shipped().unwrap();
        let mut known = known();
        known.year = Some(2011);
        let limited = |known: &Knowledge| {
            let prior = Prior::new(&population, known, &Relevance::CHOSEN, Widening::default());
            let prior = prior.unwrap();
            let mut rng = Rng::named(3, "open AUs");
            let cards: Vec<Profile> = (0..200)
                .filter_map(|_| prior.card(&prior.draw(&mut rng)))
                .collect();
            let five = cards.iter().filter(|card| card.open_aus_linear() == 5);
            let limited = cards.iter().filter(|card| is_limited(card));
            [five.count(), limited.count()].map(|count| count as f64 / cards.len() as f64)
        };
        let [_, unknown] = limited(&known);
        known.open_aus = Some(OpenAuLimit::of_flashbench(5));
        let [five, of_five] = limited(&known);
        known.open_aus = Some(OpenAuLimit::of_flashbench(64));
        let [_, of_many] = limited(&known);
        // A test of more AUs may find that 12 are the limit.
        known.open_aus = Some(OpenAuLimit {
            linear: 12,
            random: Some(3),
            tried: 64,
        });
        let prior = Prior::new(&population, &known, &Relevance::CHOSEN, Widening::default());
        let (prior, mut rng) = (prior.unwrap(), Rng::named(3, "twelve"));
        let cards = (0..200).filter_map(|_| prior.card(&prior.draw(&mut rng)));
        let limited = cards.filter(|card| card.family().limits_open_aus());
        let counts = limited.map(|card| (card.open_aus_linear(), card.open_aus_random()));
        let counts: Vec<(u64, u64)> = counts.collect();
        assert!(!counts.is_empty() && counts.iter().all(|of| *of == (12, 3)));
        assert!((0.1..0.9).contains(&unknown), "{unknown}");
        assert!(five > 0.8 && of_five > 0.8, "{five} {of_five}");
        assert!(of_many < 0.2, "{of_many}");
    }

    #[test]
    fn sizes_that_are_known_are_those_of_all_cards() {
        let population = Population::shipped().unwrap();
        let mut known = known();
        known.sizes.au_bytes = Some(8 << 20);
        let prior = Prior::new(&population, &known, &Relevance::CHOSEN, Widening::default());
        let prior = prior.unwrap();
        let mut rng = Rng::named(2, "sizes");
        let cards: Vec<Profile> = (0..60)
            .filter_map(|_| prior.card(&prior.draw(&mut rng)))
            .collect();
        assert!(cards.len() > 30 && cards.iter().all(|card| card.au_bytes() == 8 << 20));
    }

    #[test]
    fn a_card_may_have_rules_that_no_member_has_together_and_their_times_come_with_them() {
        let population = Population::shipped().unwrap();
        let mut known = known();
        known.year = Some(2011);
        let prior = Prior::new(&population, &known, &Relevance::CHOSEN, Widening::default());
        let prior = prior.unwrap();
        let rules = |card: &Profile| -> Option<[u64; 5]> {
            let of = |path: &str| card.figures().find(|figure| figure.path == path);
            let value = |path: &str| Some(of(path)?.value);
            Some([
                value("log_block.first_opened")?,
                value("log_block.merge_at_once")?,
                value("log_block.log_percent")?,
                value("log_block.small_write_bytes")?,
                u64::from(value("log_block.small_write_us")? > 0),
            ])
        };
        let members = population.members.iter();
        let theirs: Vec<_> = members.filter_map(|one| rules(&one.profile)).collect();
        let mut rng = Rng::named(4, "rules");
        let drawn = (0..400).filter_map(|_| prior.card(&prior.draw(&mut rng)));
        let drawn: Vec<_> = drawn.filter_map(|card| rules(&card)).collect();
        let new = drawn.iter().filter(|one| !theirs.contains(one)).count();
        let share = new as f64 / drawn.len() as f64;
        assert!((0.1..0.5).contains(&share), "{share}");
        assert!(drawn.iter().all(|of| (of[3] > 0) == (of[4] > 0)));
    }
}
