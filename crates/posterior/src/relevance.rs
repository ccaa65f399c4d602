//! How much a member of the population counts for a card: by how near it is to what is known of the
//! card in year, size, maker, interface, and in whether the number of open AUs is limited.

use crate::knowledge::{Knowledge, OpenAuLimit};
use crate::population::{Member, Population};
use whichfs_card::Profile;
use whichfs_curves::flashbench::OPEN_AUS_MOST;

/// How much a difference between a member and what is known counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relevance {
    /// Years over which the weight of a member falls by a factor of e.
    pub years: f64,
    /// Standard deviation of `ln` of the capacity.
    pub ln_bytes: f64,
    /// Weight of a member of the same maker, over that of another.
    pub maker: f64,
    /// Weight of a member with another interface.
    pub interface: f64,
}

impl Relevance {
    /// Set by judgement, not by a search: another interface says the most, then age and maker.
    /// The hold-out of `docs/cards.md` was made with these weights.
    pub const CHOSEN: Relevance = Relevance {
        years: 3.0,
        ln_bytes: 1.4,
        maker: 4.0,
        interface: 0.02,
    };
}

/// How often a count of open AUs that somebody read off a flashbench -O and the card fitted to the
/// same run disagree on whether there is a limit: in 1 of the 26 runs of `flashbench.json`.
const MISREAD: f64 = 1.0 / 26.0;

/// Whether two makers have a name or an ID in common: `SanDisk/03` and `03`.
fn same_maker(a: &str, b: &str) -> bool {
    let mut names = a.split('/');
    names.any(|name| b.split('/').any(|other| name.eq_ignore_ascii_case(other)))
}

/// Whether flashbench -O, which ends at [`OPEN_AUS_MOST`], finds how many AUs can be open: of
/// members no more is known.
pub(crate) fn is_limited(profile: &Profile) -> bool {
    profile.family().limits_open_aus() && profile.open_aus_linear() <= u64::from(OPEN_AUS_MOST)
}

/// Whether a member has a limit where `open` has none, or none where it has.
fn disagree(open: OpenAuLimit, member: &Profile) -> bool {
    match open.limit() {
        Some(limit) => (limit <= OPEN_AUS_MOST) != is_limited(member),
        None => is_limited(member) && member.open_aus_linear() <= u64::from(open.tried),
    }
}

/// How much nearness in years counts for `year` and that of a member; `None` where one is unknown.
fn nearness(year: Option<u32>, member: &Member, relevance: &Relevance) -> Option<f64> {
    let apart = f64::from(member.year?.abs_diff(year?));
    Some((-apart / relevance.years).exp())
}

/// How much a member of unknown year counts for its year: as much as one of a year that is drawn
/// from those of the population.
pub(crate) fn undated(
    population: &Population,
    knowledge: &Knowledge,
    relevance: &Relevance,
) -> f64 {
    let members = population.members.iter();
    let dated = members.filter_map(|member| {
        let near = nearness(knowledge.year, member, relevance)?;
        Some((member.weight, member.weight * near))
    });
    let (all, near) = dated.fold((0.0, 0.0), |(all, near), (of, is)| (all + of, near + is));
    if all > 0.0 { near / all } else { 1.0 }
}

/// How much a member counts for the card of `knowledge`; one of unknown year as `undated` says.
pub(crate) fn weight(
    member: &Member,
    knowledge: &Knowledge,
    relevance: &Relevance,
    undated: f64,
) -> f64 {
    let years = nearness(knowledge.year, member, relevance).unwrap_or(undated);
    let apart = (member.bytes as f64 / knowledge.capacity_bytes as f64).ln() / relevance.ln_bytes;
    let mut weight = member.weight * years * (-apart * apart / 2.0).exp();
    if member.interface != knowledge.interface {
        weight *= relevance.interface;
    }
    if knowledge
        .open_aus
        .is_some_and(|open| disagree(open, &member.profile))
    {
        weight *= MISREAD;
    }
    match (&member.maker, &knowledge.maker) {
        (Some(a), Some(b)) if same_maker(a, b) => weight * relevance.maker,
        _ => weight,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_card::Interface;

    #[test]
    fn a_member_of_unknown_year_counts_as_one_of_any_year() {
        let mut population = Population::shipped().unwrap();
        let mut known = Knowledge::of("a card", Interface::Sd, 8_000_000_000 / 512 * 512);
        let weight_of = |known: &Knowledge, population: &Population| {
            let undated = undated(population, known, &Relevance::CHOSEN);
            weight(&population.members[0], known, &Relevance::CHOSEN, undated)
        };
        known.year = Some(2014);
        let year = population.members[0].year;
        assert!(year.is_some_and(|year| year.abs_diff(2014) < 2), "{year:?}");
        let near = weight_of(&known, &population);
        population.members[0].year = None;
        let unknown = weight_of(&known, &population);
        population.members[0].year = Some(2030);
        let far = weight_of(&known, &population);
        assert!(
            near > 1.2 * unknown && unknown > 1.2 * far,
            "{near} {unknown} {far}"
        );
        // Of a card of unknown year, no year is nearer than another.
        known.year = None;
        let any = weight_of(&known, &population);
        population.members[0].year = None;
        assert_eq!(weight_of(&known, &population), any);
    }
}
