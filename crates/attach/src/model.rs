//! The modelled card behind the device: when a request completes, and its bytes.
//!
//! Requests are served in the order of their arrival: the card is serial. Bytes move when a
//! request arrives, time passes until it completes; as nothing answers before its time, no
//! one can tell the difference.

use crate::clock::{Clock, Speed, monotonic};
use crate::way::Ways;
use parking_lot::{Mutex, MutexGuard};
use whichfs_blockdev::{BlockDevice, Payload, Timing};
use whichfs_card::{Card, CardStatus, Contents, ContentsError, Request, RequestKind, Stats};
use whichfs_units::Nanos;

/// When and how a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The instant of the monotonic clock at which it completes; `None`: at once.
    pub due: Option<u64>,
    /// An `errno` where it failed.
    pub result: Result<(), i32>,
}

/// Card, bytes and time of one attached device.
pub(crate) struct Model {
    state: Mutex<State>,
}

struct State {
    device: Timing,
    pace: Pace,
    ways: Ways,
    /// Why the contents failed, for the one who asks.
    failure: Option<String>,
}

/// How the card's time passes.
#[derive(Clone, Copy)]
enum Pace {
    /// Not at all: the device is set up, requests cost nothing and are not counted.
    Still,
    /// Not at all, but each request waits so many nanoseconds: the way to the card is measured.
    Trial(u64),
    /// With this machine's.
    Clocked(Clock),
    /// With each request by what it takes: nothing is waited for.
    Free,
}

/// What a card has done, and its time.
pub(crate) struct Progress {
    pub card_time: Nanos,
    pub stats: Stats,
    pub failure: Option<String>,
}

impl Model {
    /// `request_cost` is what the host's controller adds to each request.
    pub fn new(card: Card, contents: Contents, request_cost: Nanos) -> Model {
        let device = Timing {
            card,
            contents,
            request_cost,
        };
        let state = State {
            device,
            pace: Pace::Still,
            ways: Ways::default(),
            failure: None,
        };
        Model {
            state: Mutex::new(state),
        }
    }

    /// From now on the card's time runs at `speed`. What was submitted keeps its time.
    pub fn run_at(&self, speed: Speed) {
        let state = &mut *self.lock();
        state.pace = match speed {
            Speed::Max => Pace::Free,
            Speed::Thousandths(thousandths) => {
                let now = monotonic();
                Pace::Clocked(Clock::new(now, state.card_time(now), thousandths))
            }
        };
    }

    /// From now on requests wait so many nanoseconds each, or, with `None`, not at all; the
    /// card knows of neither. Only before the card's time runs.
    pub fn try_out(&self, delay_ns: Option<u64>) {
        self.lock().pace = delay_ns.map_or(Pace::Still, Pace::Trial);
    }

    /// What the ways from the block layer and back take, which is not the card's time.
    pub fn take_off(&self, ways: Ways) {
        self.lock().ways = ways;
    }

    /// Serves a request that arrived at `arrival` of the monotonic clock.
    pub fn serve(&self, arrival: u64, request: &Request, payload: Payload<'_>) -> Ending {
        let state = &mut *self.lock();
        let (due, status) = match state.pace {
            Pace::Still => (None, CardStatus::Ok),
            Pace::Trial(delay) => (Some(arrival + delay), CardStatus::Ok),
            Pace::Clocked(clock) => {
                let way = match request.op {
                    RequestKind::Read => state.ways.read.ns(request.bytes),
                    RequestKind::Write => state.ways.write.ns(request.bytes),
                    RequestKind::Discard | RequestKind::Flush => state.ways.write.ns(0),
                };
                let issued = arrival.saturating_sub(way);
                let done = state.device.submit(clock.card(issued), request);
                (Some(clock.monotonic(done.at)), done.status)
            }
            Pace::Free => {
                let now = state.device.card.busy_until();
                (None, state.device.submit(now, request).status)
            }
        };
        let result = match refusal(status) {
            None => state.transfer(request, payload),
            Some(errno) => Err(errno),
        };
        Ending { due, result }
    }

    /// What the card has done up to now.
    pub fn progress(&self) -> Progress {
        let state = self.lock();
        Progress {
            card_time: state.card_time(monotonic()),
            stats: state.device.stats().clone(),
            failure: state.failure.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the card wrong: each request is one call.
        self.state.lock()
    }
}

impl State {
    fn card_time(&self, now: u64) -> Nanos {
        match self.pace {
            Pace::Still | Pace::Trial(_) => Nanos::ZERO,
            Pace::Free => self.device.card.busy_until(),
            Pace::Clocked(clock) => clock.card(now),
        }
    }

    fn transfer(&mut self, request: &Request, payload: Payload<'_>) -> Result<(), i32> {
        let moved = self.device.transfer(request, payload);
        moved.map_err(|error| match error {
            ContentsError::Range { .. } => libc::EINVAL,
            ContentsError::Spill { .. } => {
                self.failure.get_or_insert_with(|| error.to_string());
                libc::ENOSPC
            }
        })
    }
}

/// The `errno` for what the card refuses.
fn refusal(status: CardStatus) -> Option<i32> {
    match status {
        CardStatus::Ok => None,
        CardStatus::OutOfRange | CardStatus::Failed => Some(libc::EIO),
        CardStatus::Misaligned => Some(libc::EINVAL),
        CardStatus::Unsupported => Some(libc::EOPNOTSUPP),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::way::Way;
    use whichfs_card::{Profile, builtin};
    use whichfs_units::MIB;

    fn profile(name: &str) -> Profile {
        let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
        let whole = Profile::parse(name, text).unwrap();
        whole.with_capacity(64 * MIB).unwrap()
    }

    fn model(name: &str) -> (Model, Profile) {
        let profile = profile(name);
        let contents = Contents::new(profile.capacity_bytes());
        (
            Model::new(Card::fresh(&profile), contents, Nanos::ZERO),
            profile,
        )
    }

    fn running(name: &str, speed: Speed) -> (Model, Profile) {
        let (model, profile) = model(name);
        model.run_at(speed);
        (model, profile)
    }

    #[test]
    fn before_the_start_bytes_move_and_nothing_is_counted() {
        let (model, _) = model("a1-32gb");
        let write = Request::write(0, 512);
        let ending = model.serve(5, &write, Payload::Data(&[7; 512]));
        assert_eq!((ending.due, ending.result), (None, Ok(())));
        assert_eq!(model.progress().stats.writes, 0);
        let mut back = [0; 512];
        let _ = model.serve(5, &Request::read(0, 512), Payload::Fill(&mut back));
        assert_eq!(back, [7; 512]);
    }

    #[test]
    fn completions_are_due_when_the_card_says_at_any_speed() {
        for thousandths in [1000, 250, 4000] {
            let (model, profile) = running("class4-4gb", Speed::Thousandths(thousandths));
            let mut twin = Card::fresh(&profile);
            let begun = monotonic() + 1_000_000_000;
            let mut last = None;
            for at in 0..50_u64 {
                let request = Request::write(at * 37 % 100 * 4096, 4096);
                let ending = model.serve(begun, &request, Payload::Data(&[1; 4096]));
                let done = twin.submit(Nanos(0), &request).at;
                if let Some((due, at)) = last {
                    // All arrive at once: gaps are the service times, scaled.
                    let gap: u64 = ending.due.unwrap() - due;
                    let wanted = (done - at).0 as f64 * 1000.0 / thousandths as f64;
                    assert!((gap as f64 - wanted).abs() <= 2.0, "{gap} not {wanted}");
                }
                last = Some((ending.due.unwrap(), done));
            }
        }
    }

    #[test]
    fn at_full_speed_nothing_waits_and_card_time_is_the_sum_of_service_times() {
        let (model, profile) = running("a1-32gb", Speed::Max);
        let mut twin = Card::fresh(&profile);
        for _ in 0..10 {
            let request = Request::write(4096, 4096);
            let ending = model.serve(monotonic(), &request, Payload::Data(&[1; 4096]));
            assert_eq!((ending.due, ending.result), (None, Ok(())));
            twin.submit(twin.busy_until(), &request);
        }
        assert_eq!(model.progress().card_time, twin.busy_until());
        assert_eq!(&model.progress().stats, twin.stats());
    }

    #[test]
    fn a_request_counts_from_when_it_was_issued_and_pays_for_the_controller() {
        let profile = profile("a1-32gb");
        let contents = Contents::new(profile.capacity_bytes());
        let model = Model::new(Card::fresh(&profile), contents, Nanos(30_000));
        let read = Way::through((4096, 40_000), (262_144, 40_000));
        let write = Way::default();
        model.take_off(Ways { read, write });
        model.run_at(Speed::REAL);
        let read = Request::read(0, 4096);
        let alone = Card::fresh(&profile).submit(Nanos::ZERO, &read).at.0;
        let arrival = monotonic() + 1_000_000;
        let due = model
            .serve(arrival, &read, Payload::Fill(&mut [0; 4096]))
            .due;
        assert_eq!(due, Some(arrival - 40_000 + 30_000 + alone));
        // Behind another request neither counts: the card is busy.
        let next = model
            .serve(arrival, &read, Payload::Fill(&mut [0; 4096]))
            .due;
        assert_eq!(next, due.map(|due| due + alone));
    }

    #[test]
    fn in_a_trial_each_request_waits_and_the_card_does_not_know() {
        let (model, _) = model("a1-32gb");
        model.try_out(Some(70));
        let read = Request::read(0, 4096);
        let ending = model.serve(5, &read, Payload::Fill(&mut [0; 4096]));
        assert_eq!(ending.due, Some(75));
        model.try_out(None);
        assert_eq!(
            model.serve(5, &read, Payload::Fill(&mut [0; 4096])).due,
            None
        );
        assert_eq!(model.progress().stats.reads, 0);
    }

    #[test]
    fn a_change_of_speed_keeps_the_cards_time() {
        let (model, _) = running("a1-32gb", Speed::Max);
        let write = Request::write(0, 4096);
        let _ = model.serve(0, &write, Payload::Data(&[1; 4096]));
        let free = model.progress().card_time;
        assert!(free > Nanos::ZERO);
        model.run_at(Speed::REAL);
        let real = model.progress().card_time;
        assert!(real >= free);
        let before = monotonic();
        let due = model
            .serve(before, &write, Payload::Data(&[1; 4096]))
            .due
            .unwrap();
        assert!(due > before);
        model.run_at(Speed::Max);
        assert!(model.progress().card_time >= real);
    }

    #[test]
    fn what_the_card_refuses_is_an_errno_and_changes_no_byte() {
        let (model, _) = running("usb-32gb", Speed::Max);
        let beyond = model.serve(0, &Request::write(64 * MIB, 512), Payload::Data(&[1; 512]));
        assert_eq!(beyond.result, Err(libc::EIO));
        let odd = model.serve(0, &Request::write(100, 512), Payload::Data(&[1; 512]));
        assert_eq!(odd.result, Err(libc::EINVAL));
        let discard = model.serve(0, &Request::discard(0, 4096), Payload::None);
        assert_eq!(discard.result, Err(libc::EOPNOTSUPP));
        assert_eq!(model.progress().stats.errors, 3);
    }

    #[test]
    fn a_discarded_range_reads_zeros() {
        let (model, _) = running("a1-32gb", Speed::Max);
        let _ = model.serve(0, &Request::write(0, 8192), Payload::Data(&[9; 8192]));
        let discard = model.serve(0, &Request::discard(4096, 4096), Payload::None);
        assert_eq!(discard.result, Ok(()));
        let mut back = [1; 8192];
        let _ = model.serve(0, &Request::read(0, 8192), Payload::Fill(&mut back));
        assert!(back[..4096].iter().all(|b| *b == 9));
        assert!(back[4096..].iter().all(|b| *b == 0));
    }

    struct Full;
    impl whichfs_card::Spill for Full {
        fn write_slot(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
            Err(std::io::Error::from_raw_os_error(libc::ENOSPC))
        }
        fn read_slot(&self, _: u64, _: usize, _: &mut [u8]) -> std::io::Result<()> {
            Err(std::io::Error::from_raw_os_error(libc::EIO))
        }
    }

    #[test]
    fn a_spill_without_room_is_enospc_and_is_told() {
        let profile = profile("a1-32gb");
        let contents = Contents::bounded(profile.capacity_bytes(), 1, Box::new(Full));
        let model = Model::new(Card::fresh(&profile), contents, Nanos::ZERO);
        model.run_at(Speed::Max);
        let mut results = Vec::new();
        for chunk in 0..3_u64 {
            let write = Request::write(chunk * MIB, 512);
            results.push(model.serve(0, &write, Payload::Data(&[1; 512])).result);
        }
        assert!(results.contains(&Err(libc::ENOSPC)), "{results:?}");
        assert!(model.progress().failure.unwrap().contains("put away"));
    }
}
