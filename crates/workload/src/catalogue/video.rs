//! Workload `video`: a camera records a steady stream, for example a dash camera or a recorder of
//! surveillance cameras.
//!
//! A frame is appended every so often, at its time if the card keeps up; the stream is made
//! durable with fdatasync every so many frames. A write that stalls lets frames pile up, which are
//! written one after the other as soon as it returns: nothing is dropped, so that every card
//! writes the same bytes. What matters is how long a frame waits: stalls over a second, the
//! longest, and the 99th percentile.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(100, &Video)];

/// Level of video: compressed already.
const LEVEL: u8 = 0;

const DIR: &str = "video";

const FILE: &str = "video/record.mp4";

const NS_PER_S: u64 = 1_000_000_000;

/// A camera that records a steady stream.
pub struct Video;

const PARAMETERS: [Parameter; 4] = [
    Parameter {
        name: "bytes_per_second",
        default: 3 * MIB,
        unit: "B/s",
        meaning: "rate of the stream; 24 Mbit/s is 1080p of a dash camera",
        min: KIB,
        max: GIB,
    },
    Parameter {
        name: "seconds",
        default: 30,
        unit: "s",
        meaning: "length of the recording",
        min: 1,
        max: 86_400,
    },
    Parameter {
        name: "frames_per_second",
        default: 30,
        unit: "frames/s",
        meaning: "writes a second",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "sync_every",
        default: 30,
        unit: "frames",
        meaning: "fdatasync after every so many frames",
        min: 1,
        max: 1_000_000_000,
    },
];

const PHASES: [PhaseDef; 2] = [
    PhaseDef {
        space_after: true,
        ..PhaseDef::warm(
            "video_record",
            "append frames at their times, fdatasync now and then (stalls, ms)",
            true,
            &[
                MetricDef {
                    metric: "video_stalls",
                    rule: Rule::Stalls,
                },
                MetricDef {
                    metric: "video_longest",
                    rule: Rule::Longest,
                },
                MetricDef {
                    metric: "video_p99",
                    rule: Rule::Percentile99,
                },
            ],
        )
    },
    PhaseDef::cold(
        "video_play",
        "read the recording as fast as it goes, cold (MB/s)",
        &MetricDef::one("video_play", Rule::Throughput),
    ),
];

impl Workload for Video {
    fn name(&self) -> &'static str {
        "video"
    }

    fn title(&self) -> &'static str {
        "recorder: a steady stream of video, stalls counted"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let [rate, frames] =
            ["bytes_per_second", "frames_per_second"].map(|name| parameter(self, spec, name));
        (rate < frames).then(|| {
            format!("bytes_per_second = {rate} is less than a byte for each of {frames} frames")
        })
    }
}

impl Operations for Video {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        match phase {
            "video_record" => Ok(Box::new(record(
                value("bytes_per_second"),
                value("frames_per_second"),
                value("seconds"),
                value("sync_every"),
                Rng::named(seed, phase),
            ))),
            "video_play" => Ok(Box::new(std::iter::once(Op::Read { path: FILE.into() }))),
            other => Err(unknown_phase(self, other)),
        }
    }
}

/// The frames of a recording, each at its time.
fn record(
    rate: u64,
    frames: u64,
    seconds: u64,
    sync_every: u64,
    mut rng: Rng,
) -> impl Iterator<Item = Op> {
    let begin = Op::Mkdir {
        path: DIR.into(),
        mode: None,
    };
    let frame = move |at: u64| {
        let wait = Op::WaitUntil {
            nanoseconds: at * NS_PER_S / frames,
        };
        // Bytes until the frame's end less those until its begin: the rate is kept exactly.
        let until = |frame: u64| (u128::from(frame) * u128::from(rate) / u128::from(frames)) as u64;
        let append = Op::Append {
            path: FILE.into(),
            len: until(at + 1) - until(at),
            content: generated(LEVEL, rng.next_u64()),
            sync: (at + 1).is_multiple_of(sync_every),
        };
        [wait, append]
    };
    std::iter::once(begin)
        .chain((0..frames * seconds).flat_map(frame))
        .chain([Op::SyncFs])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_syncs_come_in_time() {
        let ops: Vec<Op> = record(1_000_003, 30, 4, 15, Rng::named(1, "x")).collect();
        let (mut bytes, mut syncs, mut last) = (0, 0, 0);
        for op in &ops {
            match op {
                Op::Append { len, sync, .. } => {
                    bytes += len;
                    syncs += u64::from(*sync);
                }
                Op::WaitUntil { nanoseconds } => {
                    assert!(*nanoseconds == 0 || *nanoseconds > last);
                    last = *nanoseconds;
                }
                _ => {}
            }
        }
        assert_eq!((bytes, syncs), (4 * 1_000_003, 8));
        assert_eq!(
            last,
            119 * NS_PER_S / 30,
            "the last frame begins 1/30 s before the end"
        );
    }
}
