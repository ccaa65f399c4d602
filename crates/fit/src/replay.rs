//! The tests of the measured points, done on a modelled card.

use crate::host;
use crate::points::{Point, PointOrder};
use whichfs_card::{Card, Profile};
use whichfs_curves::flashbench::{OpenAuTests, Opened, WriteTimes, write_times_of};
use whichfs_curves::{DeviceError, Modelled};

/// AUs of the card on which shapes are tried.
pub(crate) const TRIAL_AUS: u64 = 128;
/// Least capacity of it, in bytes.
pub(crate) const TRIAL_BYTES_LEAST: u64 = 512 << 20;

/// The sequences of requests that the measured points are of, for a modelled card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// flashbench's `--erasesize`, in bytes.
    pub erase_bytes: u64,
    /// Seed of what the card was written with before, and of random places.
    pub seed: u64,
    /// What the card had opened before each test of flashbench, as far as it is told.
    pub opened: Opened,
}

impl Replay {
    /// Times of requests at `points` on the card of `profile`, in nanoseconds.
    ///
    /// # Errors
    /// The card refuses a request: it is too small.
    pub fn times(&self, profile: &Profile, points: &[Point]) -> Result<Vec<f64>, DeviceError> {
        let tests = self.tests(points);
        let written = match tests.most {
            [0, 0] => None,
            _ => Some(write_times_of(profile, self.seed, &tests)?),
        };
        let used = match points.iter().all(|point| point.place.order.is_flashbench()) {
            true => None,
            false => Some(Modelled::new(
                Card::used(profile, self.seed),
                profile.capacity_bytes(),
            )),
        };
        let time = |point: &Point| {
            let (place, bytes) = (point.place, point.place.bytes);
            if let (PointOrder::Host(operation, access), Some(used)) = (place.order, &used) {
                return host::replay(used, operation, access, bytes, self.seed);
            }
            let random = place.order == PointOrder::Random;
            let of_place = |times: &WriteTimes| times.get(random, place.aus, bytes).copied();
            let spent = written.as_ref().and_then(of_place);
            let missing = || DeviceError::Unsupported("a write that flashbench does not do");
            spent.map(|spent| spent.mean_ns()).ok_or_else(missing)
        };
        points.iter().map(time).collect()
    }

    /// Those of flashbench's tests that `points` need.
    fn tests(&self, points: &[Point]) -> OpenAuTests {
        let of_test = points
            .iter()
            .filter(|point| point.place.order.is_flashbench());
        let least = of_test.map(|point| point.place.bytes).min();
        let usual = OpenAuTests::PUBLISHED.block_bytes;
        OpenAuTests {
            erase_bytes: self.erase_bytes,
            block_bytes: least.map_or(usual, |least| least.min(usual)),
            most: PointOrder::FLASHBENCH.map(|order| {
                let of_order = points.iter().filter(|point| point.place.order == order);
                of_order.map(|point| point.place.aus).max().unwrap_or(0)
            }),
            opened: self.opened,
        }
    }

    /// Capacity of the cut-down card on which a shape with AUs of `au_bytes` is tried, in bytes.
    pub fn trial_capacity(&self, au_bytes: u64) -> u64 {
        (TRIAL_AUS * self.erase_bytes.max(au_bytes)).max(TRIAL_BYTES_LEAST)
    }

    /// Least capacity that has room for all tests, in bytes.
    pub fn least_capacity(&self) -> u64 {
        let end = OpenAuTests {
            erase_bytes: self.erase_bytes,
            ..OpenAuTests::PUBLISHED
        }
        .end_bytes();
        (end + 11 * self.erase_bytes).max(352 << 20)
    }
}
