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
use crate::evidence::{AuByWrites, OpenAus};
use crate::open_aus::BLOCK;
use crate::places;
use whichfs_units::{MIB, SECTOR};

/// Largest AU.
const AU_MAX: u64 = 64 * MIB;
/// Pairs that must agree on either side of the end.
const CHECKS: u32 = 2;

/// What is known of the slots.
struct Pairs<'a> {
    linear: &'a OpenAus,
    /// Fresh AUs to open before each pair.
    fillers: u32,
    bases: Vec<u64>,
    next: usize,
}

impl Pairs<'_> {
    fn base(&mut self) -> u64 {
        let base = self.bases[self.next % self.bases.len()];
        self.next += 1;
        base
    }

    /// Whether `second` lies in the AU of `first`; `None` if a write failed.
    fn together(
        &mut self,
        bench: &mut Bench,
        first: u64,
        second: u64,
    ) -> Result<Option<bool>, Halt> {
        let fillers: Vec<u64> = (0..self.fillers).map(|_| self.base()).collect();
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
    linear: &OpenAus,
    random_limit: u32,
    supposed: Option<u64>,
) -> Result<AuByWrites, Halt> {
    let limit = linear.limits.first().copied().unwrap_or(0);
    if limit == 0 || linear.overflow_us <= 0.0 {
        return Err(Halt::Stage(
            "no limit of open AUs, so writes do not tell AUs apart".into(),
        ));
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
    };
    // What earlier stages left open and chaotic is closed first.
    for _ in 0..limit {
        let base = pairs.base();
        bench.hold(base, BLOCK)?;
        bench.write_through(base, BLOCK)?;
        bench.release();
    }
    let mut result = AuByWrites {
        fineness_bytes: BLOCK,
        ..AuByWrites::default()
    };
    if let Some(au) = supposed.filter(|au| *au > BLOCK) {
        check(bench, &mut pairs, au, 1, &mut result)?;
        if result.disagree == 0 {
            result.au_bytes = Some(au);
            return Ok(result);
        }
        (result.agree, result.disagree) = (0, 0);
    }
    let most = AU_MAX.min(stride);
    let Some(au) = bisect(bench, &mut pairs, most)? else {
        result.doubt = Some("no place nearby lies in another AU".into());
        return Ok(result);
    };
    check(bench, &mut pairs, au, CHECKS, &mut result)?;
    if result.disagree == 0 {
        result.au_bytes = Some(au);
    } else {
        result.doubt = Some(format!(
            "{} of {} pairs of writes speak against {}: AUs differ or begin elsewhere",
            result.disagree,
            result.agree + result.disagree,
            whichfs_units::Bytes(au)
        ));
    }
    Ok(result)
}

/// Least distance from the beginning of an AU that lies in another one.
fn bisect(bench: &mut Bench, pairs: &mut Pairs, most: u64) -> Result<Option<u64>, Halt> {
    // In blocks: `near` lies in the same AU, `far` in another.
    let (mut near, mut far) = (0, most / BLOCK);
    let first = pairs.base();
    if pairs.together(bench, first, first + far * BLOCK)? == Some(true) {
        return Ok(None);
    }
    let mut lost = 0;
    while far > near + 1 && lost < 8 {
        let middle = u64::midpoint(near, far);
        let base = pairs.base();
        match pairs.together(bench, base, base + middle * BLOCK)? {
            Some(true) => near = middle,
            Some(false) => far = middle,
            None => lost += 1,
        }
        bench.tell(0.5 * (1.0 - (far - near) as f64 * BLOCK as f64 / most as f64));
    }
    Ok((far == near + 1).then_some(far * BLOCK))
}

/// Tries places on either side of the first and of the second end.
fn check(
    bench: &mut Bench,
    pairs: &mut Pairs,
    au: u64,
    times: u32,
    result: &mut AuByWrites,
) -> Result<(), Halt> {
    debug_assert!(au.is_multiple_of(SECTOR));
    for _ in 0..times {
        for (from, distance, same) in [
            (0, au - BLOCK, true),
            (0, au, false),
            (au, au - BLOCK, true),
            (au, au, false),
        ] {
            let base = pairs.base() + from;
            match pairs.together(bench, base, base + distance)? {
                Some(answer) if answer == same => result.agree += 1,
                Some(_) => result.disagree += 1,
                None => {}
            }
        }
    }
    Ok(())
}
