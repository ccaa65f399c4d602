//! Workload `aged`: what a filesystem does when it has been in use for long.
//!
//! First a file is written and read on the new filesystem. Then files of mixed sizes fill it to
//! `bytes`; in each round a share of them, drawn at random, is deleted, and new ones of other sizes
//! fill what became free, so that free space and files come into pieces. At last a share is deleted
//! once more and a file as large as the first one is written into the holes and read cold. Old and
//! new figures stand beside each other; their ratio is what age costs.
//!
//! Sizes of files are spread evenly over the octaves from `file_min` to `file_max`. How full the
//! card is is `bytes` by the size of its partition: 60 % and more is where filesystems begin to
//! differ.

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(150, &Aged)];

/// Level of what is written: it does not compress.
const LEVEL: u8 = 0;

/// Directory of the files that age it.
const DIR: &str = "aged";

/// Shares are given in parts of this.
const PERMILLE: u64 = 1000;

/// A filesystem that was filled and partly emptied many times.
pub struct Aged;

const PARAMETERS: [Parameter; 6] = [
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
];

const PHASES: [PhaseDef; 7] = [
    PhaseDef::warm(
        "new_write",
        "write a file on the new filesystem, then syncfs (MB/s)",
        true,
        &MetricDef::one("new_write", Rule::Throughput),
    ),
    PhaseDef::cold(
        "new_read",
        "read it, cold (MB/s)",
        &MetricDef::one("new_read", Rule::Throughput),
    ),
    PhaseDef::warm(
        "fill",
        "delete it and fill the filesystem with files, then syncfs (MB/s)",
        true,
        &MetricDef::one("aged_fill", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::warm(
        "age",
        "rounds: delete files at random, fill again with others, syncfs (MB/s)",
        true,
        &MetricDef::one("aged_refill", Rule::Throughput),
    ),
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
        &MetricDef::one("aged_write", Rule::Throughput),
    ),
    PhaseDef::cold(
        "aged_read",
        "read it, cold (MB/s)",
        &MetricDef::one("aged_read", Rule::Throughput),
    ),
];

impl Workload for Aged {
    fn name(&self) -> &'static str {
        "aged"
    }

    fn title(&self) -> &'static str {
        "a filesystem in use for long: filled, deleted, filled again, then measured"
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
}

impl Operations for Aged {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let mut card = Filled {
            rng: Rng::named(seed, "aged"),
            bytes: value("bytes"),
            sizes: [value("file_min"), value("file_max")],
            files: Vec::new(),
            used: 0,
            made: 0,
        };
        let test = |path: &str| Op::Create {
            path: path.to_owned(),
            size: value("test_bytes"),
            content: generated(LEVEL, Rng::named(seed, path).next_u64()),
            mode: None,
            pieces: None,
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
        }
        let mut make_room = Vec::new();
        self.delete(permille, &mut make_room);
        make_room.push(Op::SyncFs);
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
                pieces: None,
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

    fn size(&mut self) -> u64 {
        octave_size(&mut self.rng, self.sizes)
    }
}

/// A size from the smallest to the largest whose octave is drawn first: small files are as frequent
/// as large ones.
pub(super) fn octave_size(rng: &mut Rng, [smallest, largest]: [u64; 2]) -> u64 {
    let octaves = u64::from((largest / smallest).ilog2()) + 1;
    let low = smallest << rng.below(octaves);
    (low + rng.below(low)).min(largest)
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
        }
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
