//! Workload `aged`: what a filesystem does when it has been in use for long.
//!
//! First a file is written and read on the new filesystem. Then files of mixed sizes fill it to
//! `bytes`; in each round a share of them, drawn at random, is deleted, and new ones of other sizes
//! fill what became free, so that free space and files come into pieces. At last a share is deleted
//! once more and a file as large as the first one is written into the holes and read cold. Old and
//! new figures stand beside each other; their ratio is what age costs.
//!
//! `aged_paused` is the same with a pause behind every filling and deleting, in which a filesystem
//! that cleans up behind itself, or has a process for it, can do so.
//!
//! Sizes of files are spread evenly over the octaves from `file_min` to `file_max`. How full the
//! card is is `bytes` by the size of its partition: 60 % and more is where filesystems begin to
//! differ.

use crate::content::generated;
use crate::listing::Listing;
use crate::workload::{
    Error, MetricDef, Parameter, PhaseDef, Rule, Workload, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Nanos, Rng};

/// Level of what is written: it does not compress.
const LEVEL: u8 = 0;

/// Directory of the files that age it.
const DIR: &str = "aged";

/// Shares are given in parts of this.
const PERMILLE: u64 = 1000;

/// The workload, without pauses or with them.
pub struct Aged {
    paused: bool,
}

/// In one go.
pub const AGED: Aged = Aged { paused: false };
/// With pauses.
pub const PAUSED: Aged = Aged { paused: true };

/// Those of both, and the length of a pause.
const PARAMETERS: [Parameter; 7] = [
    Parameter {
        name: "bytes",
        default: 128 * MIB,
        unit: "B",
        meaning: "bytes to which files fill the filesystem in each round",
        min: MIB,
        max: 1024 * GIB,
    },
    Parameter {
        name: "rounds",
        default: 4,
        unit: "rounds",
        meaning: "how often files are deleted and others written in their place",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "delete_permille",
        default: 300,
        unit: "permille",
        meaning: "share of the files that each round deletes, at random",
        min: 1,
        max: PERMILLE,
    },
    Parameter {
        name: "file_min",
        default: 4 * KIB,
        unit: "B",
        meaning: "smallest file",
        min: 512,
        max: GIB,
    },
    Parameter {
        name: "file_max",
        default: 2 * MIB,
        unit: "B",
        meaning: "largest file",
        min: 512,
        max: GIB,
    },
    Parameter {
        name: "test_bytes",
        default: 16 * MIB,
        unit: "B",
        meaning: "bytes of the file that is written and read, on the new and on the old filesystem",
        min: 4 * KIB,
        max: 4 * GIB - 1,
    },
    Parameter {
        name: "pause_s",
        default: 4_000,
        unit: "s",
        meaning: "length of each pause; an hour is what nilfs_cleanerd protects by default",
        min: 1,
        max: 12 * 3_600,
    },
];

const PHASES: [PhaseDef; 7] = phases(PhaseDef::warm(
    "age",
    "rounds: delete files at random, fill again with others, syncfs (MB/s)",
    true,
    &MetricDef::one("aged_refill", Rule::Throughput),
));

/// A rate over pauses would tell nothing: there is none.
const PAUSED_PHASES: [PhaseDef; 7] = phases(PhaseDef::warm(
    "age",
    "rounds: delete files at random, fill again with others, syncfs, then a pause",
    true,
    &[],
));

const fn phases(age: PhaseDef) -> [PhaseDef; 7] {
    [
        PhaseDef::warm(
            "new_write",
            "write a file on the new filesystem, then syncfs (MB/s)",
            true,
            const { &MetricDef::one("new_write", Rule::Throughput) },
        ),
        PhaseDef::cold(
            "new_read",
            "read it, cold (MB/s)",
            const { &MetricDef::one("new_read", Rule::Throughput) },
        ),
        PhaseDef::warm(
            "fill",
            "delete it and fill the filesystem with files, then syncfs (MB/s)",
            true,
            const { &MetricDef::one("aged_fill", Rule::Throughput) },
        )
        .then_space(),
        age,
        PhaseDef::warm(
            "make_room",
            "delete files at random once more, then syncfs",
            true,
            &[],
        ),
        PhaseDef::warm(
            "aged_write",
            "write a file into the holes, then syncfs (MB/s)",
            true,
            const { &MetricDef::one("aged_write", Rule::Throughput) },
        ),
        PhaseDef::cold(
            "aged_read",
            "read it, cold (MB/s)",
            const { &MetricDef::one("aged_read", Rule::Throughput) },
        ),
    ]
}

impl Workload for Aged {
    fn name(&self) -> &'static str {
        match self.paused {
            false => "aged",
            true => "aged_paused",
        }
    }

    fn title(&self) -> &'static str {
        match self.paused {
            false => "a filesystem in use for long: filled, deleted, filled again, then measured",
            true => "the same with pauses, in which it may clean up",
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        let last = PARAMETERS.len() - 1;
        match self.paused {
            false => &PARAMETERS[..last],
            true => &PARAMETERS,
        }
    }

    fn phases(&self) -> &'static [PhaseDef] {
        match self.paused {
            false => &PHASES,
            true => &PAUSED_PHASES,
        }
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let value = |name| parameter(self, spec, name);
        let (smallest, largest) = (value("file_min"), value("file_max"));
        if smallest > largest {
            return Some(format!(
                "file_min = {smallest} is above file_max = {largest}"
            ));
        }
        let (bytes, room) = (value("bytes"), value("test_bytes"));
        (bytes < room + largest)
            .then(|| format!("bytes = {bytes} does not hold test_bytes = {room} and a file"))
    }

    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, Error> {
        self.check(spec)?;
        let value = |name| parameter(self, spec, name);
        let mut card = Filled {
            rng: Rng::named(seed, "aged"),
            bytes: value("bytes"),
            sizes: [value("file_min"), value("file_max")],
            files: Vec::new(),
            used: 0,
            made: 0,
            pause: match self.paused {
                false => Vec::new(),
                true => pauses(value("pause_s")),
            },
        };
        let test = |path: &str| Op::Create {
            path: path.to_owned(),
            size: value("test_bytes"),
            content: generated(LEVEL, Rng::named(seed, path).next_u64()),
            mode: None,
        };
        let read = |path: &str| {
            let path = path.to_owned();
            vec![Op::Read { path }]
        };
        let ops = match phase {
            "new_write" => vec![test("new.bin"), Op::SyncFs],
            "new_read" => read("new.bin"),
            "aged_write" => vec![test("aged.bin"), Op::SyncFs],
            "aged_read" => read("aged.bin"),
            "fill" | "age" | "make_room" => {
                let [fill, age, make_room] = card.life(value("rounds"), value("delete_permille"));
                match phase {
                    "fill" => fill,
                    "age" => age,
                    _ => make_room,
                }
            }
            other => return Err(unknown_phase(self, other)),
        };
        Ok(Box::new(ops.into_iter()))
    }
}

/// The files that age a filesystem.
struct Filled {
    rng: Rng,
    /// Bytes to which it is filled.
    bytes: u64,
    /// Smallest and largest file.
    sizes: [u64; 2],
    /// Number and size of each file that is there.
    files: Vec<(u64, u64)>,
    used: u64,
    /// Files made so far.
    made: u64,
    /// What comes behind a change.
    pause: Vec<Op>,
}

impl Filled {
    /// What fills it, what ages it, and what makes room at the end.
    fn life(&mut self, rounds: u64, permille: u64) -> [Vec<Op>; 3] {
        let mut fill = vec![
            Op::Unlink {
                path: "new.bin".into(),
            },
            Op::Mkdir {
                path: DIR.into(),
                mode: None,
            },
        ];
        self.fill(&mut fill);
        let mut age = Vec::new();
        for _ in 0..rounds {
            self.delete(permille, &mut age);
            self.fill(&mut age);
            age.extend_from_slice(&self.pause);
        }
        let mut make_room = Vec::new();
        self.delete(permille, &mut make_room);
        make_room.push(Op::SyncFs);
        make_room.extend_from_slice(&self.pause);
        [fill, age, make_room]
    }

    /// Writes files as long as the next one fits, then syncfs.
    fn fill(&mut self, ops: &mut Vec<Op>) {
        loop {
            let size = self.size();
            if self.used + size > self.bytes {
                break;
            }
            ops.push(Op::Create {
                path: path(self.made),
                size,
                content: generated(LEVEL, self.rng.next_u64()),
                mode: None,
            });
            self.files.push((self.made, size));
            self.used += size;
            self.made += 1;
        }
        ops.push(Op::SyncFs);
    }

    /// Deletes a share of the files, at random.
    fn delete(&mut self, permille: u64, ops: &mut Vec<Op>) {
        self.rng.shuffle(&mut self.files);
        let count = (self.files.len() as u64 * permille).div_ceil(PERMILLE) as usize;
        for (at, size) in self.files.drain(..count) {
            ops.push(Op::Unlink { path: path(at) });
            self.used -= size;
        }
    }

    /// A size whose octave is drawn first: small files are as frequent as large ones.
    fn size(&mut self) -> u64 {
        let [smallest, largest] = self.sizes;
        let octaves = u64::from((largest / smallest).ilog2()) + 1;
        let low = smallest << self.rng.below(octaves);
        (low + self.rng.below(low)).min(largest)
    }
}

/// A pause of so many seconds; each operation is one of an hour at most, as scripts have them.
fn pauses(seconds: u64) -> Vec<Op> {
    const HOUR: u64 = 3_600;
    let whole = std::iter::repeat_n(HOUR, (seconds / HOUR) as usize);
    let parts = whole.chain([seconds % HOUR]).filter(|&part| part > 0);
    let pause = |part| Op::Pause {
        nanoseconds: Nanos::from_secs(part).0,
    };
    parts.map(pause).collect()
}

fn path(at: u64) -> String {
    format!("{DIR}/file-{at:07}.bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Filled {
        Filled {
            rng: Rng::named(1, "x"),
            bytes: 64 * MIB,
            sizes: [4 * KIB, 2 * MIB],
            files: Vec::new(),
            used: 0,
            made: 0,
            pause: Vec::new(),
        }
    }

    #[test]
    fn pauses_are_behind_rounds_and_change_nothing_else() {
        let of = |workload: &Aged, phase: &str| -> Vec<Op> {
            let spec = WorkloadSpec {
                name: workload.name().into(),
                parameters: std::collections::BTreeMap::new(),
                tree: None,
                unix: true,
                script: None,
                input: None,
            };
            let ops = workload.operations(phase, &spec, None, 1);
            ops.map(Iterator::collect).unwrap_or_default()
        };
        let is_pause = |op: &Op| matches!(op, Op::Pause { .. });
        // An hour and the rest of each.
        for (phase, pauses) in [("fill", 0), ("age", 8), ("make_room", 2), ("aged_write", 0)] {
            let mut paused = of(&PAUSED, phase);
            assert_eq!(
                paused.iter().filter(|op| is_pause(op)).count(),
                pauses,
                "{phase}"
            );
            assert_eq!(paused.last().is_some_and(is_pause), pauses > 0, "{phase}");
            paused.retain(|op| !is_pause(op));
            let plain = of(&AGED, phase);
            assert!(!plain.is_empty());
            assert_eq!(paused, plain, "{phase}");
        }
        let seconds = |op: &Op| match op {
            Op::Pause { nanoseconds } => nanoseconds / 1_000_000_000,
            _ => 0,
        };
        assert_eq!(super::pauses(7_300).iter().map(seconds).sum::<u64>(), 7_300);
        assert_eq!(super::pauses(3_600).len(), 1);
        assert_eq!(AGED.parameters().len() + 1, PAUSED.parameters().len());
    }

    #[test]
    fn it_stays_full_and_its_files_change() {
        let mut card = filled();
        let mut ops = Vec::new();
        card.fill(&mut ops);
        let first = card.files.clone();
        for _ in 0..5 {
            assert!((62 * MIB..=64 * MIB).contains(&card.used), "{}", card.used);
            let before = card.files.len() as u64;
            card.delete(300, &mut ops);
            assert_eq!(
                card.files.len() as u64,
                before - (before * 300).div_ceil(1000)
            );
            card.fill(&mut ops);
        }
        let kept = first
            .iter()
            .filter(|file| card.files.contains(file))
            .count();
        assert!(kept * 3 < first.len(), "{kept} of {}", first.len());
    }

    #[test]
    fn small_files_are_as_frequent_as_large_ones() {
        let mut card = filled();
        let sizes: Vec<u64> = (0..9_000).map(|_| card.size()).collect();
        assert!(sizes.iter().all(|size| (4 * KIB..=2 * MIB).contains(size)));
        let small = sizes.iter().filter(|&&size| size < 8 * KIB).count();
        assert!(
            (800..1_000 + 100).contains(&small),
            "a ninth or tenth: {small}"
        );
    }
}
