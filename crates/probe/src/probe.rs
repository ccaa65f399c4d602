//! The probe: stage after stage on one device, with all that was measured as its state.

use crate::at_random::Blocks;
use crate::bench::{Bench, Halt};
use crate::evidence::{OpenAuTest, ProbeEvidence, Sentinel, Stage};
use crate::findings::Findings;
use crate::infer::{au_by_reads, au_bytes, infer, limit_of};
use crate::open_aus::{self, BLOCK, Order};
use crate::options::{NextStage, ProbeOptions, Progress, Writing};
use crate::rates::{self, Direction};
use crate::{
    align, at_random, au_writes, aus_with_data, cache, first_aus, places, stats, sustained,
    write_units,
};
use whichfs_curves::TimedDevice;

/// Probes `device`. Whatever happens, the findings say what is known and why the rest is not.
pub fn probe(
    device: &mut dyn TimedDevice,
    options: &ProbeOptions,
    progress: &mut dyn Progress,
) -> Findings {
    resume(device, ProbeEvidence::begin("", *options), progress)
}

/// Goes on from what [`Progress::checkpoint`] was given: finished stages are not repeated,
/// those without a result are tried again. Options are those of the first part, except that
/// the caller may have changed them in `state` ([`ProbeEvidence::go_on`]). A state of a device of
/// another size is not used; one from a file is to pass [`ProbeEvidence::check`] before.
pub fn resume(
    device: &mut dyn TimedDevice,
    state: ProbeEvidence,
    progress: &mut dyn Progress,
) -> Findings {
    let capacity = device.capacity_bytes();
    let mut evidence = state;
    if evidence.capacity_bytes != capacity {
        let other = evidence.capacity_bytes;
        let mut events = Vec::new();
        match other {
            0 => events = evidence.events,
            _ => events.push(format!(
                "the stored state is of a device of {other} bytes: begun anew"
            )),
        }
        evidence = ProbeEvidence {
            capacity_bytes: capacity,
            events,
            ..ProbeEvidence::begin(&evidence.identity, evidence.options)
        };
    }
    evidence.ended = None;
    evidence.failed.clear();
    evidence.lost.clear();
    let mut bench = Bench::new(device, progress, &evidence);
    let stages = planned(&evidence);
    let all: u32 = stages.iter().map(|stage| stage.2).sum::<u32>().max(1);
    let mut left: Vec<Stage> = stages.iter().map(|stage| stage.0).collect();
    let weigh = |left: &[Stage]| -> u32 {
        let of = stages.iter().filter(|stage| left.contains(&stage.0));
        of.map(|stage| stage.2).sum()
    };
    left.retain(|stage| !evidence.done.contains(stage));
    loop {
        let stage = match bench.next(&left, &evidence) {
            NextStage::Run(stage) => stage,
            NextStage::Done => break,
            NextStage::Enough(why) => {
                evidence.ended = Some(why);
                bench.checkpoint(&evidence);
                break;
            }
        };
        let mut known = stages.iter().filter(|known| left.contains(&known.0));
        let Some((_, doing, weight)) = known.find(|known| known.0 == stage).copied() else {
            break;
        };
        let before = all - weigh(&left);
        left.retain(|other| *other != stage);
        let share = |work: u32| f64::from(work) / f64::from(all);
        let (from, to) = (share(before), share(before + weight));
        bench.begin(&format!("{stage:?}"), doing, (from, to));
        let outcome = run(&mut bench, stage, &mut evidence);
        bench.release();
        evidence.spent = bench.spent;
        evidence.events.clone_from(&bench.events);
        evidence.read_sentinels.clone_from(&bench.read_sentinels);
        match outcome {
            Ok(()) => evidence.done.push(stage),
            Err(Halt::Stage(reason)) => {
                evidence.failed.insert(stage, reason);
            }
            Err(Halt::Lost(reason)) => {
                evidence.failed.insert(stage, reason);
                evidence.lost.push(stage);
            }
            Err(Halt::Probe(reason)) => {
                evidence.ended = Some(format!("{doing}: {reason}"));
                bench.checkpoint(&evidence);
                break;
            }
        }
        bench.checkpoint(&evidence);
    }
    bench.tell(1.0);
    infer(&evidence)
}

/// Stages that this probe may run.
fn planned(evidence: &ProbeEvidence) -> Vec<(Stage, &'static str, u32)> {
    let writing = evidence.options.writing != Writing::Never;
    let stages = Stage::ALL.into_iter();
    stages
        .filter(|(stage, _, _)| writing || !stage.writes())
        .collect()
}

/// Runs one stage and stores its result.
fn run(bench: &mut Bench, stage: Stage, evidence: &mut ProbeEvidence) -> Result<(), Halt> {
    bench.look()?;
    let au = au_bytes(evidence);
    match stage {
        Stage::Align => evidence.align = Some(align::measure(bench)?),
        Stage::Reading => {
            evidence.reads = Some(rates::streams(bench, Direction::Read, au, None)?);
            evidence.random_reads = Some(at_random::reads_at_random(bench)?);
        }
        Stage::Sustained => evidence.sustained = Some(sustained::measure(bench, au)?),
        Stage::WriteUnit => evidence.write_unit = Some(write_units::measure(bench, au)?),
        Stage::Flush => evidence.flush = Some(rates::flush(bench)?),
        Stage::Writing => {
            let flush = evidence.flush.as_ref();
            evidence.writes = Some(rates::streams(bench, Direction::Write, au, flush)?);
            write_sentinel(bench, evidence)?;
        }
        Stage::OpenLinear => {
            let result = open_aus::measure(bench, Order::Linear, au, None, write_rate(evidence))?;
            evidence.open_linear = Some(result);
        }
        Stage::OpenRandom => {
            let linear = evidence.open_linear.as_ref();
            let result = open_aus::measure(bench, Order::Random, au, linear, write_rate(evidence))?;
            evidence.open_random = Some(result);
        }
        Stage::AuByWrites => {
            let (linear, _) = limited(evidence)?;
            let random = evidence.open_random.as_ref();
            let random = random.map_or(1, |random| match random.limits.first() {
                Some(limit) => *limit,
                None => random.free_up_to,
            });
            let supposed = au_by_reads(evidence);
            let mut result = au_writes::measure(bench, linear, random, supposed)?;
            if result.nowhere
                && linear.filled.is_empty()
                && let Some(linear) = aus_with_data::again(bench, linear, supposed)?
            {
                evidence.open_linear = Some(linear.clone());
                result = au_writes::measure(bench, &linear, random, supposed)?;
            }
            evidence.au_by_writes = Some(result);
        }
        Stage::FatRegion => {
            let linear = evidence.open_linear.as_ref();
            let linear = linear.ok_or_else(|| Halt::Stage("open AUs are not known".into()))?;
            let limit = limit_of(Some(linear)).filter(|_| linear.copies);
            let au = match (au, limit) {
                (Some(au), _) => au,
                (None, None) => 4 << 20,
                (None, Some(_)) => return Err(Halt::Stage("the AU is not known".into())),
            };
            evidence.fat = Some(first_aus::fat_region(bench, au, linear, limit)?);
        }
        Stage::SmallWrites => {
            let (linear, limit) = limited(evidence)?;
            let result = first_aus::small_writes(bench, au, linear, limit)?;
            evidence.small_writes = Some(result);
        }
        Stage::RandomWrites => {
            let blocks = blocks(evidence, au);
            evidence.random_writes = Some(at_random::writes_at_random(bench, blocks)?);
        }
        Stage::Cache => {
            let long = evidence.sustained.as_ref();
            let full = long.is_some_and(|long| long.fast.is_some());
            evidence.cache = Some(cache::cache(bench, !full)?);
        }
        Stage::Discard => {
            write_sentinel(bench, evidence)?;
            if evidence.options.writing == Writing::Preserve {
                let reason = "a discard would lose data that are to be kept";
                return Err(Halt::Stage(reason.into()));
            }
            let linear = evidence.open_linear.as_ref();
            evidence.discard = Some(cache::discard(bench, au, linear)?);
        }
    }
    Ok(())
}

/// The open AUs of a card that has a limit, beyond which it copies AUs.
fn limited(evidence: &ProbeEvidence) -> Result<(&OpenAuTest, u32), Halt> {
    let linear = evidence.open_linear.as_ref();
    if linear.is_some_and(|linear| !linear.copies) {
        let reason = "one AU too many costs less than a copy of it, so writes do not tell";
        return Err(Halt::Stage(reason.into()));
    }
    let known = linear.and_then(|linear| Some((linear, limit_of(Some(linear))?)));
    known.ok_or_else(|| Halt::Stage("no limit of open AUs was found, which this test needs".into()))
}

/// Blocks that writes at random may make a page map put in order; none where AUs have places and
/// are copied for one too many.
fn blocks(evidence: &ProbeEvidence, au: Option<u64>) -> Option<Blocks> {
    let open = evidence.open_linear.as_ref()?;
    let copies = open.copies || open.kept;
    let (bytes, rate) = au.zip(write_rate(evidence)).filter(|_| !copies)?;
    Some(Blocks {
        bytes,
        least_us: open_aus::COPY_LEAST * bytes as f64 / rate * 1e6,
        wanted: match open.folds {
            Some(true) => 3,
            None => 2,
            Some(false) => 0,
        },
    })
}

/// Rate of writing in order, in bytes a second.
fn write_rate(evidence: &ProbeEvidence) -> Option<f64> {
    let rates = evidence.writes.as_ref()?.rates.values().next_back()?;
    stats::median(rates)
}

/// Writes in order at a fresh place: the same at different times tells drift.
fn write_sentinel(bench: &mut Bench, evidence: &mut ProbeEvidence) -> Result<(), Halt> {
    const WRITES: u64 = 12;
    const LEAD: u64 = 3;
    let length = (WRITES + LEAD) * BLOCK;
    let Some(base) = places::stream_base(bench, 1, length, au_bytes(evidence)) else {
        return Ok(());
    };
    bench.hold(base, length)?;
    let mut times = Vec::new();
    for at in 0..WRITES + LEAD {
        let us = bench.write_through(base + at * BLOCK, BLOCK)?;
        if at >= LEAD {
            times.extend(us);
        }
    }
    bench.release();
    if let Some(us) = stats::median(&times) {
        let at_s = bench.spent.device.as_secs_f64();
        evidence.write_sentinels.push(Sentinel { at_s, us });
    }
    Ok(())
}
