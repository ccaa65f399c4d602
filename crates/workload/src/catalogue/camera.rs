//! Workload `camera`: bursts of photos.
//!
//! Each photo of a burst is written to a new file and made durable (fsync) before the next; then
//! the camera rests, and the card with it. The time of a burst runs from its first photo to the
//! return of its last fsync, and is how long the photographer waits.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(110, &Camera)];

/// Level of photos: compressed already.
const LEVEL: u8 = 0;

const DIR: &str = "DCIM";

/// A photo camera that takes bursts.
pub struct Camera;

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "bursts",
        default: 5,
        unit: "bursts",
        meaning: "bursts in all",
        min: 1,
        max: 10_000,
    },
    Parameter {
        name: "photos",
        default: 10,
        unit: "files",
        meaning: "photos of a burst",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "photo_min",
        default: 2_000 * KIB,
        unit: "B",
        meaning: "smallest photo",
        min: 1,
        max: GIB,
    },
    Parameter {
        name: "photo_max",
        default: 5_000 * KIB,
        unit: "B",
        meaning: "largest photo",
        min: 1,
        max: GIB,
    },
    Parameter {
        name: "pause_ms",
        default: 10_000,
        unit: "ms",
        meaning: "pause between two bursts",
        min: 0,
        max: 3_600_000,
    },
];

const PHASES: [PhaseDef; 1] = [PhaseDef::warm(
    "camera_bursts",
    "write bursts of photos, fsync after each photo, pause between bursts (ms of a burst)",
    true,
    &[
        MetricDef {
            metric: "camera_burst",
            rule: Rule::Median,
        },
        MetricDef {
            metric: "camera_burst_longest",
            rule: Rule::Longest,
        },
    ],
)
.then_space()];

impl Workload for Camera {
    fn name(&self) -> &'static str {
        "camera"
    }

    fn title(&self) -> &'static str {
        "photo camera: bursts of photos, each durable, with pauses"
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
        let [smallest, largest] =
            ["photo_min", "photo_max"].map(|name| parameter(self, spec, name));
        (smallest > largest)
            .then(|| format!("photo_min = {smallest} is above photo_max = {largest}"))
    }
}

impl Operations for Camera {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let (photos, pause) = (value("photos"), value("pause_ms") * 1_000_000);
        let (smallest, largest) = (value("photo_min"), value("photo_max"));
        let mut rng = Rng::named(seed, phase);
        let mut photo = move |at: u64| Op::Save {
            path: format!("{DIR}/img_{at:06}.jpg"),
            size: smallest + rng.below(largest - smallest + 1),
            content: generated(LEVEL, rng.next_u64()),
            mode: None,
        };
        let burst = move |at: u64| {
            // A pause, which is none before the first burst, starts the watch.
            let nanoseconds = if at == 0 { 0 } else { pause };
            let mut ops = vec![Op::Pause { nanoseconds }];
            ops.extend((at * photos..(at + 1) * photos).map(&mut photo));
            ops.push(Op::Lap);
            ops
        };
        let begin = Op::Mkdir {
            path: DIR.into(),
            mode: None,
        };
        Ok(Box::new(
            std::iter::once(begin).chain((0..value("bursts")).flat_map(burst)),
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_burst_is_a_pause_its_photos_and_a_lap() {
        let spec = WorkloadSpec {
            name: "camera".into(),
            parameters: [("bursts".to_owned(), 2), ("photos".to_owned(), 3)].into(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        let ops = Camera.operations("camera_bursts", &spec, None, 1).unwrap();
        let words: Vec<String> = ops
            .map(|op| match op {
                Op::Pause { nanoseconds } => format!("pause {nanoseconds}"),
                Op::Save { path, .. } => path,
                Op::Lap => "lap".into(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(words[1], "pause 0");
        assert_eq!(words[5..7], ["lap", "pause 10000000000"]);
        assert_eq!(
            words[7..],
            [
                "DCIM/img_000003.jpg",
                "DCIM/img_000004.jpg",
                "DCIM/img_000005.jpg",
                "lap"
            ]
        );
    }
}
