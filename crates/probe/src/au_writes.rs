//! Where AUs end, seen by writes: for cards whose reads do not tell, and to check what they do.
//!
//! On a card with a limit of open AUs a write into an AU that is open is fast, and into
//! another a hundred times slower. So two places lie in one AU or not: write the first,
//! then the second. From the beginning of an AU the distance at which the answer changes is
//! its size, found by bisection: any size, no candidates.
//!
//! A second write far ahead makes the AU's log chaotic; cards allow fewer of these than of
//! those in order, so fresh AUs are opened between pairs until old ones are closed.

use crate::bench::{Bench, Halt};
use crate::evidence::{AuByWrites, OpenAuTest};
use crate::open_aus::BLOCK;
use crate::places;
use whichfs_units::MIB;

/// Largest AU.
const AU_MAX: u64 = 64 * MIB;
/// Searches before it is given up: one wrong answer leads astray.
const ATTEMPTS: u32 = 2;
/// Times that each pair around the end must agree.
const CHECKS: u32 = 2;

/// Fewest pairs that must tell.
const VOTES_LEAST: u32 = 4;
/// Most answers of a search that may be lost.
const LOST_MOST: u32 = 7;

/// What is known of the slots.
struct Pairs<'a> {
    linear: &'a OpenAuTest,
    /// Fresh AUs to open before each pair.
    fillers: u32,
    bases: Vec<u64>,
    next: usize,
    next_filled: usize,
}

impl Pairs<'_> {
    fn base(&mut self) -> u64 {
        let base = self.bases[self.next % self.bases.len()];
        self.next += 1;
        base
    }

    /// An AU that copies when it is closed: one with data.
    fn filler(&mut self) -> u64 {
        if self.linear.filled.is_empty() {
            return self.base();
        }
        self.next_filled += 1;
        self.linear.filled[self.next_filled % self.linear.filled.len()]
    }

    /// Whether `second` lies in the AU of `first`; `None` if a write failed.
    fn together(
        &mut self,
        bench: &mut Bench,
        first: u64,
        second: u64,
    ) -> Result<Option<bool>, Halt> {
        let fillers: Vec<u64> = (0..self.fillers).map(|_| self.filler()).collect();
        for place in fillers.iter().chain([&first, &second]) {
            bench.hold(*place, BLOCK)?;
        }
        for filler in fillers {
            bench.write_through(filler, BLOCK)?;
        }
        let opened = bench.write_through(first, BLOCK)?;
        let answer = bench.write_through(second, BLOCK)?;
        bench.release();
        let middle = (self.linear.alone_us.median * self.linear.overflow_us).sqrt();
        Ok(opened.and(answer).map(|us| us < middle))
    }
}

/// Measures the AU on a card with a known limit of open AUs, or checks `supposed`.
pub(crate) fn measure(
    bench: &mut Bench,
    linear: &OpenAuTest,
    random_limit: u32,
    supposed: Option<u64>,
) -> Result<AuByWrites, Halt> {
    let limit = linear.limits.first().copied().unwrap_or(0);
    if limit == 0 || linear.overflow_us <= 0.0 {
        return Err(Halt::Stage(
            "no limit of open AUs, so writes do not tell AUs apart".into(),
        ));
    }
    if !linear.filled.is_empty() && supposed.is_some() {
        let reason = "the card was never written: closing an AU costs nothing, which tells nothing";
        return Err(Halt::Stage(reason.into()));
    }
    let stride = places::stride(bench.capacity, supposed).max(supposed.unwrap_or(0) * 3);
    let mut bases = places::bases(bench, stride, 0);
    bases.extend(places::bases(bench, stride, 1));
    bases.retain(|base| base + 3 * AU_MAX.min(stride) <= bench.capacity);
    if bases.len() < limit as usize + 3 {
        return Err(Halt::Stage("the device is too small for this test".into()));
    }
    bench.rng.shuffle(&mut bases);
    let mut pairs = Pairs {
        linear,
        fillers: limit.div_ceil(random_limit.clamp(1, limit)) - 1,
        bases,
        next: 0,
        next_filled: 0,
    };
    if !linear.filled.is_empty() {
        pairs.fillers = limit;
    }
    // What earlier stages left open and chaotic is closed first.
    for _ in 0..limit {
        let base = pairs.filler();
        bench.hold(base, BLOCK)?;
        bench.write_through(base, BLOCK)?;
        bench.release();
    }
    // Not as far as the next place, which may be open.
    find(bench, &mut pairs, supposed, AU_MAX.min(stride / 8 * 5))
}

/// Checks what is supposed, or searches up to `most`.
fn find(
    bench: &mut Bench,
    pairs: &mut Pairs,
    supposed: Option<u64>,
    most: u64,
) -> Result<AuByWrites, Halt> {
    let mut result = AuByWrites {
        fineness_bytes: BLOCK,
        ..AuByWrites::default()
    };
    if let Some(au) = supposed.filter(|au| *au > BLOCK) {
        check(bench, pairs, au, 1, &mut result)?;
        if result.disagree == 0 && result.agree >= VOTES_LEAST {
            result.au_bytes = Some(au);
            return Ok(result);
        }
        (result.agree, result.disagree) = (0, 0);
    }
    for _ in 0..ATTEMPTS {
        let au = match bisect(bench, pairs, most)? {
            Ended::At(au) => au,
            Ended::Nowhere => {
                result.nowhere = true;
                result.doubt = Some("no place nearby lies in another AU".into());
                continue;
            }
            Ended::Lost => {
                result.doubt = Some("too many writes failed".into());
                continue;
            }
        };
        (result.agree, result.disagree) = (0, 0);
        check(bench, pairs, au, CHECKS, &mut result)?;
        if result.disagree == 0 && result.agree >= VOTES_LEAST {
            result.au_bytes = Some(au);
            result.nowhere = false;
            result.doubt = None;
            break;
        }
        if result.disagree == 0 {
            result.doubt = Some("too many writes failed".into());
            continue;
        }
        result.doubt = Some(format!(
            "{} of {} pairs of writes speak against {}: AUs differ or begin elsewhere",
            result.disagree,
            result.agree + result.disagree,
            whichfs_units::Bytes(au)
        ));
    }
    Ok(result)
}

/// How a search for the end of an AU ended.
enum Ended {
    /// At this distance from its beginning.
    At(u64),
    /// Nothing within reach lies in another AU.
    Nowhere,
    /// Too many writes failed.
    Lost,
}

/// Least distance from the beginning of an AU that lies in another one.
fn bisect(bench: &mut Bench, pairs: &mut Pairs, most: u64) -> Result<Ended, Halt> {
    // In blocks: `near` lies in the same AU, `far` in another.
    let (mut near, mut far) = (0, most / BLOCK);
    let first = pairs.base();
    if pairs.together(bench, first, first + far * BLOCK)? == Some(true) {
        return Ok(Ended::Nowhere);
    }
    let mut lost = 0;
    while far > near + 1 {
        let middle = u64::midpoint(near, far);
        let base = pairs.base();
        match pairs.together(bench, base, base + middle * BLOCK)? {
            Some(true) => near = middle,
            Some(false) => far = middle,
            None if lost == LOST_MOST => return Ok(Ended::Lost),
            None => lost += 1,
        }
        bench.tell(0.5 * (1.0 - (far - near) as f64 * BLOCK as f64 / most as f64));
    }
    Ok(Ended::At(far * BLOCK))
}

/// Tries neighbours on either side of the first and of the second end, and between.
fn check(
    bench: &mut Bench,
    pairs: &mut Pairs,
    au: u64,
    times: u32,
    result: &mut AuByWrites,
) -> Result<(), Halt> {
    // Neighbours: whichever AU they lie in, its log stays in order.
    let fillers = pairs.fillers;
    if pairs.linear.filled.is_empty() {
        pairs.fillers = 0;
    }
    for _ in 0..times {
        for (place, same) in [
            (au, false),
            (au / 2, true),
            (2 * au, false),
            (au / 3, true),
            (au - BLOCK, true),
        ] {
            let place = place / BLOCK * BLOCK;
            if place == 0 {
                // A third of an AU of two blocks: there is nothing before it.
                continue;
            }
            // One answer of three may be wrong: any write may stall.
            let mut votes = 0;
            for _ in 0..3 {
                let base = pairs.base() + place;
                let answer = pairs.together(bench, base - BLOCK, base)?;
                votes += i32::from(answer == Some(same)) - i32::from(answer == Some(!same));
                if votes != 0 && votes.abs() != 1 || votes == 1 && answer == Some(same) {
                    break;
                }
            }
            match votes {
                1.. => result.agree += 1,
                ..0 => result.disagree += 1,
                0 => {}
            }
        }
    }
    pairs.fillers = fillers;
    Ok(())
}
