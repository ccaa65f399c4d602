//! Where the power goes: instants of a recorded run.

use serde::{Deserialize, Serialize};
use whichfs_blockdev::Logged;
use whichfs_card::RequestKind;
use whichfs_units::{Nanos, Rng};

/// Where in a request a cut lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutPlace {
    /// Right before the request reaches the card.
    Before,
    /// While the card works on it: requests wait for those before them.
    Inside,
    /// Right after the card reported it done.
    After,
    /// On a real device, whose requests nobody sees: `request` tells nothing then.
    Unseen,
}

/// One power cut. All that follows from it is a function of these figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Cut {
    /// Its number in its series.
    pub number: u64,
    /// Index of the request in the log.
    pub request: usize,
    /// Where in that request.
    pub place: CutPlace,
    /// When; requests that are done by then were reported done.
    pub at: Nanos,
    /// Seed of what chance decides: which cached writes are lost, where a write is torn.
    pub seed: u64,
}

/// `count` random cuts among the requests from `first` on, in the order of time. Requests of any
/// kind are equally likely, and so are the three places of each.
pub fn random_cuts(log: &[Logged], first: usize, count: u64, seed: u64) -> Vec<Cut> {
    let requests = log.len().saturating_sub(first) as u64;
    if requests == 0 {
        return Vec::new();
    }
    let begun = begun(log);
    let mut rng = Rng::named(seed, "crash/cuts");
    let mut cuts: Vec<Cut> = (0..count)
        .map(|_| {
            let request = first + rng.below(requests) as usize;
            let place =
                [CutPlace::Before, CutPlace::Inside, CutPlace::After][rng.below(3) as usize];
            place_at(log, &begun, request, place, rng.next_u64())
        })
        .collect();
    number(&mut cuts);
    cuts
}

/// `count` random cuts inside requests from `first` on for which the card was copying live data;
/// none if there were none.
pub fn collection_cuts(log: &[Logged], first: usize, count: u64, seed: u64) -> Vec<Cut> {
    let collecting: Vec<usize> = (first..log.len())
        .filter(|&index| log[index].collected)
        .collect();
    if collecting.is_empty() {
        return Vec::new();
    }
    let begun = begun(log);
    let mut rng = Rng::named(seed, "crash/cuts");
    let mut cuts: Vec<Cut> = (0..count)
        .map(|_| {
            let request = collecting[rng.below(collecting.len() as u64) as usize];
            place_at(log, &begun, request, CutPlace::Inside, rng.next_u64())
        })
        .collect();
    number(&mut cuts);
    cuts
}

/// Every arrival and completion of the requests from `first` on, and one instant inside each that
/// writes; of those at the same instant one.
pub fn all_cuts(log: &[Logged], first: usize, seed: u64) -> Vec<Cut> {
    let begun = begun(log);
    let mut rng = Rng::named(seed, "crash/cuts");
    let mut cuts = Vec::new();
    for request in first..log.len() {
        let inside = (log[request].op == RequestKind::Write).then_some(CutPlace::Inside);
        let places = [Some(CutPlace::Before), inside, Some(CutPlace::After)];
        for place in places.into_iter().flatten() {
            cuts.push(place_at(log, &begun, request, place, rng.next_u64()));
        }
    }
    number(&mut cuts);
    cuts.dedup_by_key(|cut| cut.at);
    number(&mut cuts);
    cuts
}

/// When the card begins to work on each request: when it has come and those before it are done.
fn begun(log: &[Logged]) -> Vec<Nanos> {
    let mut free = Nanos(0);
    let begun = log.iter().map(|request| {
        let begun = request.arrived.max(free);
        free = free.max(request.done);
        begun
    });
    begun.collect()
}

/// The three cuts around request number `request`; none if there is no such request.
pub fn cut_at(log: &[Logged], request: usize, seed: u64) -> Vec<Cut> {
    if request >= log.len() {
        return Vec::new();
    }
    let begun = begun(log);
    let mut rng = Rng::named(seed, "crash/cuts");
    let mut cuts: Vec<Cut> = [CutPlace::Before, CutPlace::Inside, CutPlace::After]
        .map(|place| place_at(log, &begun, request, place, rng.next_u64()))
        .to_vec();
    number(&mut cuts);
    cuts
}

/// One cut when the run has ended at `time` and all promises are given; none if nothing was
/// written.
pub fn end_cut(log: &[Logged], time: Nanos, seed: u64) -> Option<Cut> {
    Some(Cut {
        number: 0,
        request: log.len().checked_sub(1)?,
        place: CutPlace::After,
        at: time,
        seed: Rng::named(seed, "crash/cuts").next_u64(),
    })
}

/// `begun` is when the card begins to work on each request of `log`.
fn place_at(log: &[Logged], begun: &[Nanos], request: usize, place: CutPlace, seed: u64) -> Cut {
    let Logged { arrived, done, .. } = log[request];
    let at = match place {
        CutPlace::Before => Nanos(arrived.0.saturating_sub(1)),
        CutPlace::After | CutPlace::Unseen => done,
        // One that overtook others was answered at once.
        CutPlace::Inside => {
            let from = begun[request]
                .0
                .min(done.0.saturating_sub(1))
                .max(arrived.0);
            let lasts = done.0.saturating_sub(from).max(1);
            Nanos(from + Rng::named(seed, "crash/inside").below(lasts))
        }
    };
    Cut {
        number: 0,
        request,
        place,
        at,
        seed,
    }
}

/// Sorts by time and numbers from 0.
fn number(cuts: &mut [Cut]) {
    cuts.sort_by_key(|cut| (cut.at, cut.request, cut.seed));
    for (number, cut) in cuts.iter_mut().enumerate() {
        cut.number = number as u64;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn write(offset: u64, fill: u8, bytes: u64, arrived: u64, done: u64) -> Logged {
        Logged {
            op: RequestKind::Write,
            offset,
            bytes,
            arrived: Nanos(arrived),
            done: Nanos(done),
            collected: false,
            data: vec![fill; bytes as usize].into_boxed_slice(),
        }
    }

    fn log() -> Vec<Logged> {
        (0..50)
            .map(|n| write(n * 4096, n as u8, 4096, n * 100, n * 100 + 60))
            .collect()
    }

    #[test]
    fn a_seed_gives_the_same_cuts_and_another_gives_others() {
        let log = log();
        assert_eq!(random_cuts(&log, 10, 30, 1), random_cuts(&log, 10, 30, 1));
        assert_ne!(random_cuts(&log, 10, 30, 1), random_cuts(&log, 10, 30, 2));
    }

    #[test]
    fn cuts_lie_where_they_say() {
        let log = log();
        let cuts = random_cuts(&log, 10, 300, 1);
        assert_eq!(cuts.len(), 300);
        for (number, cut) in cuts.iter().enumerate() {
            let request = &log[cut.request];
            assert_eq!(cut.number, number as u64);
            assert!(cut.request >= 10);
            match cut.place {
                CutPlace::Before => assert!(cut.at < request.arrived),
                CutPlace::Inside => assert!(request.arrived <= cut.at && cut.at < request.done),
                CutPlace::After => assert_eq!(cut.at, request.done),
                CutPlace::Unseen => panic!("requests of the lab are seen"),
            }
        }
        for place in [CutPlace::Before, CutPlace::Inside, CutPlace::After] {
            assert!(cuts.iter().any(|cut| cut.place == place), "{place:?}");
        }
    }

    #[test]
    fn cuts_in_collection_lie_inside_requests_that_collected() {
        let mut log = log();
        assert!(collection_cuts(&log, 0, 9, 1).is_empty());
        (log[5].collected, log[30].collected) = (true, true);
        let cuts = collection_cuts(&log, 0, 20, 1);
        assert_eq!(cuts.len(), 20);
        assert!(cuts.iter().all(|cut| [5, 30].contains(&cut.request)));
        assert!(cuts.iter().all(|cut| cut.place == CutPlace::Inside));
        assert!(
            collection_cuts(&log, 6, 20, 1)
                .iter()
                .all(|cut| cut.request == 30)
        );
    }

    #[test]
    fn all_cuts_are_every_boundary_and_an_inside_of_each_write() {
        let log = log();
        assert_eq!(all_cuts(&log, 0, 1).len(), 150);
        assert_eq!(all_cuts(&log, 49, 1).len(), 3);
        assert!(all_cuts(&log, 50, 1).is_empty() && random_cuts(&log, 50, 9, 1).is_empty());
        assert_eq!(cut_at(&log, 7, 1).len(), 3);
        assert!(cut_at(&log, 50, 1).is_empty());
    }

    /// Four writes come at once, and each takes 100.
    #[test]
    fn requests_that_wait_are_cut_where_the_card_works_on_them() {
        let log: Vec<Logged> = (0..4)
            .map(|n| write(n * 4096, n as u8, 4096, 50, 150 + n * 100))
            .collect();
        let cuts = all_cuts(&log, 0, 1);
        // Before all of them, inside each, after each.
        assert_eq!(cuts.len(), 9, "{cuts:?}");
        for cut in cuts.iter().filter(|cut| cut.place == CutPlace::Inside) {
            let from = 50 + cut.request as u64 * 100;
            assert!((from..from + 100).contains(&cut.at.0), "{cut:?}");
        }
        let random = random_cuts(&log, 0, 60, 1);
        for cut in random.iter().filter(|cut| cut.place == CutPlace::Inside) {
            assert_eq!(cut.request as u64, (cut.at.0 - 50) / 100, "{cut:?}");
        }
    }

    #[test]
    fn the_cut_at_the_end_is_behind_every_promise() {
        let cut = end_cut(&log(), Nanos(1 << 40), 1);
        let place = cut.map(|cut| (cut.request, cut.at));
        assert_eq!(place, Some((49, Nanos(1 << 40))));
        assert_eq!(end_cut(&[], Nanos(1), 1), None);
    }
}
