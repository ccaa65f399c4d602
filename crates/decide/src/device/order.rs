//! In which order trials run on a device.
//!
//! A device changes while it is measured: it warms up, its free blocks are used up. So that this
//! hits no candidate more than another, each repeat runs all trials in an order of its own. A
//! reference trial is repeated between them to detect drift.

use whichfs_units::Rng;

/// Most trials between two reference runs, which then cost an eighth of the time.
const REFERENCE_EVERY: usize = 8;
/// From so many trials on there are at least three reference runs: fewer tell no change.
const MANY: usize = 4;

/// What runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The reference before all others, whose figures are thrown away: programs come into the
    /// cache and the device awakes.
    Discarded,
    /// The reference of this number.
    Reference(u64),
    /// The trial at this place of the matrix.
    Trial(usize),
}

/// The order of the trials whose repeats are `repeats` (by their place in the matrix): repeat by
/// repeat, each in an order that `seed` decides. Those that are `done` are left out, the others
/// keep their order. `reference` is the number of the first reference run.
pub fn order(repeats: &[u64], done: &[bool], seed: u64, reference: u64) -> Vec<Turn> {
    let mut rounds: Vec<u64> = repeats.to_vec();
    rounds.sort_unstable();
    rounds.dedup();
    let mut trials = Vec::new();
    for round in rounds {
        let mut places: Vec<usize> = (0..repeats.len())
            .filter(|&at| repeats[at] == round)
            .collect();
        Rng::named(seed, &format!("order of repeat {round}")).shuffle(&mut places);
        places.retain(|&at| !done.get(at).is_some_and(|done| *done));
        trials.extend(places);
    }
    if trials.is_empty() {
        return Vec::new();
    }
    let mut turns = vec![Turn::Discarded];
    let mut next = reference..;
    let mut refer = |turns: &mut Vec<Turn>| turns.extend(next.next().map(Turn::Reference));
    let every = match trials.len() {
        few if few < MANY => few,
        many => many.div_ceil(2).min(REFERENCE_EVERY),
    };
    for part in trials.chunks(every) {
        refer(&mut turns);
        turns.extend(part.iter().map(|&at| Turn::Trial(at)));
    }
    refer(&mut turns);
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn places(turns: &[Turn]) -> Vec<usize> {
        let place = |turn: &Turn| match turn {
            Turn::Trial(at) => Some(*at),
            _ => None,
        };
        turns.iter().filter_map(place).collect()
    }

    /// Ten trials, twice each.
    fn repeats() -> Vec<u64> {
        (0..20).map(|at| 1 + at / 10).collect()
    }

    #[test]
    fn every_trial_runs_once_repeat_by_repeat_in_an_order_of_its_own() {
        let turns = order(&repeats(), &[], 7, 1);
        let found = places(&turns);
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 20);
        assert!(found[..10].iter().all(|at| *at < 10), "{found:?}");
        let second: Vec<usize> = found[10..].iter().map(|at| at - 10).collect();
        assert_ne!(found[..10], second[..], "each repeat has its own");
        assert_ne!(found[..10], (0..10).collect::<Vec<_>>()[..]);
        assert_eq!(turns, order(&repeats(), &[], 7, 1));
        assert_ne!(turns, order(&repeats(), &[], 8, 1));
    }

    #[test]
    fn references_stand_first_last_and_between() {
        let turns = order(&repeats(), &[], 7, 3);
        assert_eq!(turns[..2], [Turn::Discarded, Turn::Reference(3)]);
        assert_eq!(turns.last(), Some(&Turn::Reference(6)));
        let at = |turn| turns.iter().position(|other| *other == turn).unwrap_or(0);
        assert_eq!(at(Turn::Reference(4)) - at(Turn::Reference(3)), 9);
        assert_eq!(turns.len(), 20 + 4 + 1);
        let references = |trials: usize| {
            let turns = order(&vec![1; trials], &[], 7, 1);
            turns.len() - trials - 1
        };
        assert_eq!([1, 3, 4, 5, 16, 17].map(references), [2, 2, 3, 3, 3, 4]);
    }

    #[test]
    fn what_is_done_is_left_out_and_the_rest_keeps_its_order() {
        let all = places(&order(&repeats(), &[], 7, 1));
        for killed_after in 0..=20 {
            let mut done = vec![false; 20];
            all[..killed_after].iter().for_each(|&at| done[at] = true);
            let rest = order(&repeats(), &done, 7, 1);
            assert_eq!(places(&rest), all[killed_after..]);
            assert_eq!(
                rest.is_empty(),
                killed_after == 20,
                "nothing left, nothing run"
            );
        }
    }
}
