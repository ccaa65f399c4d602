//! Workloads `blocksize` and `blocksize_direct`: a file is written and read in calls of one size,
//! for each power of two from 512 B to 64 MiB, as Bootlin (2023) did on a BeagleBone Black to find
//! a card's page and segment.
//!
//! A new file is written for each size, made durable inside the time, read after a mount with empty
//! caches, and deleted before the next.
//!
//! Buffered, the page cache stands between: it joins what is written to large requests and reads
//! ahead, so the size where a curve bends is that of a call's cost against a page of the cache. It
//! says nothing of the card's page. Direct (O_DIRECT), a call is a request, or several, and the
//! curve is the card's and the filesystem's. Calls smaller than the device's logical block are
//! impossible then: `block_min` leaves them out. Some filesystems write through the cache all the
//! same where a call appends or is no multiple of their own block (vfat, f2fs, btrfs, nilfs2).

use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng, SECTOR};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(80, &BUFFERED), (90, &DIRECT)];

/// Level of what is written: it does not compress.
const LEVEL: u8 = 0;

/// The only file, which each size writes anew.
const FILE: &str = "blocks.bin";

/// The workload, in one of its two forms.
pub struct BlockSize {
    /// Past the page cache.
    direct: bool,
}

/// Through the page cache.
pub const BUFFERED: BlockSize = BlockSize { direct: false };

/// Past the page cache.
pub const DIRECT: BlockSize = BlockSize { direct: true };

const PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the file; sizes of which it is no multiple are left out",
        min: SECTOR,
        max: 4 * GIB - 64 * MIB,
    },
    Parameter {
        name: "block_min",
        default: SECTOR,
        unit: "B",
        meaning: "smallest call; direct ones cannot be below the device's logical block",
        min: SECTOR,
        max: 64 * MIB,
    },
    Parameter {
        name: "block_max",
        default: 64 * MIB,
        unit: "B",
        meaning: "largest call",
        min: SECTOR,
        max: 64 * MIB,
    },
];

/// The sizes and the phases of both forms, three for each.
macro_rules! sizes {
    ($($label:literal $bytes:expr,)*) => {
        const SIZES: &[(&str, u64)] = &[$(($label, $bytes)),*];

        const BUFFERED_PHASES: &[PhaseDef] = &[$(
            PhaseDef::warm(
                concat!("write_", $label),
                "write the file in calls of this size, then fsync (MB/s)",
                true,
                &MetricDef::one(concat!("write_", $label), Rule::Throughput),
            ),
            PhaseDef::cold(
                concat!("read_", $label),
                "read it in calls of this size, cold (MB/s)",
                &MetricDef::one(concat!("read_", $label), Rule::Throughput),
            ),
            PhaseDef::warm(concat!("clean_", $label), "delete it, then syncfs", true, &[]),
        )*];

        const DIRECT_PHASES: &[PhaseDef] = &[$(
            PhaseDef::warm(
                concat!("write_", $label),
                "write the file in direct calls of this size, then fsync (MB/s)",
                true,
                &MetricDef::one(concat!("direct_write_", $label), Rule::Throughput),
            ),
            PhaseDef::cold(
                concat!("read_", $label),
                "read it in direct calls of this size (MB/s)",
                &MetricDef::one(concat!("direct_read_", $label), Rule::Throughput),
            ),
            PhaseDef::warm(concat!("clean_", $label), "delete it, then syncfs", true, &[]),
        )*];
    };
}

sizes! {
    "512" SECTOR,
    "1k" KIB,
    "2k" 2 * KIB,
    "4k" 4 * KIB,
    "8k" 8 * KIB,
    "16k" 16 * KIB,
    "32k" 32 * KIB,
    "64k" 64 * KIB,
    "128k" 128 * KIB,
    "256k" 256 * KIB,
    "512k" 512 * KIB,
    "1m" MIB,
    "2m" 2 * MIB,
    "4m" 4 * MIB,
    "8m" 8 * MIB,
    "16m" 16 * MIB,
    "32m" 32 * MIB,
    "64m" 64 * MIB,
}

impl Workload for BlockSize {
    fn name(&self) -> &'static str {
        match self.direct {
            true => "blocksize_direct",
            false => "blocksize",
        }
    }

    fn title(&self) -> &'static str {
        match self.direct {
            true => "a file in direct calls of 512 B to 64 MiB: the card's curve",
            false => "a file in buffered calls of 512 B to 64 MiB: the page cache's curve",
        }
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        match self.direct {
            true => DIRECT_PHASES,
            false => BUFFERED_PHASES,
        }
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let [bytes, smallest, largest] =
            ["bytes", "block_min", "block_max"].map(|name| parameter(self, spec, name));
        if smallest > largest {
            return Some(format!(
                "block_min = {smallest} is above block_max = {largest}"
            ));
        }
        let any = |&(_, block): &(&str, u64)| {
            (smallest..=largest).contains(&block) && bytes.is_multiple_of(block)
        };
        (!SIZES.iter().any(any)).then(|| {
            format!(
                "bytes = {bytes} is a multiple of no power of two from block_min = {smallest} to \
                 block_max = {largest}"
            )
        })
    }
}

impl Operations for BlockSize {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let (what, label) = phase.split_once('_').unwrap_or((phase, ""));
        let Some(&(_, block)) = SIZES.iter().find(|(known, _)| *known == label) else {
            return Err(unknown_phase(self, phase));
        };
        let (path, len, direct) = (FILE.to_owned(), value("bytes"), self.direct);
        let close = Op::SyncClose { path: path.clone() };
        let ops = match what {
            "write" => {
                let content = generated(LEVEL, Rng::named(seed, phase).next_u64());
                let write = Op::WriteAt {
                    path,
                    offset: 0,
                    len,
                    block,
                    direct,
                    content,
                };
                vec![write, close]
            }
            "read" => vec![Op::ReadAt {
                path,
                offset: 0,
                len,
                block,
                direct,
            }],
            "clean" => vec![Op::Unlink { path }, Op::SyncFs],
            _ => return Err(unknown_phase(self, phase)),
        };
        let wanted = (value("block_min")..=value("block_max")).contains(&block)
            && value("bytes").is_multiple_of(block);
        Ok(Box::new(ops.into_iter().filter(move |_| wanted)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(parameters: &[(&str, u64)]) -> WorkloadSpec {
        WorkloadSpec {
            name: "blocksize".into(),
            parameters: parameters
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    fn count(phase: &str, parameters: &[(&str, u64)]) -> usize {
        let ops = DIRECT.operations(phase, &spec(parameters), None, 1);
        ops.unwrap().count()
    }

    #[test]
    fn every_power_of_two_has_its_phases() {
        assert_eq!(SIZES.len(), 18);
        for (pair, name) in SIZES.windows(2).zip(BUFFERED_PHASES.chunks(3)) {
            assert_eq!(pair[0].1 * 2, pair[1].1);
            assert_eq!(name[0].name, format!("write_{}", pair[0].0));
        }
        assert_eq!(BUFFERED_PHASES.len(), 54);
    }

    #[test]
    fn sizes_that_are_not_wanted_do_nothing() {
        let large = [("block_min", 4096), ("block_max", 1 << 20)];
        for phase in ["write_2k", "read_2k", "clean_2k", "write_2m"] {
            assert_eq!(count(phase, &large), 0, "{phase}");
        }
        assert_eq!(
            count("write_8m", &[("bytes", 4 << 20)]),
            0,
            "above the file"
        );
        assert_eq!(count("write_4k", &large), 2);
        assert_eq!(count("read_1m", &large), 1);
    }

    #[test]
    fn contradictions_are_named() {
        let refused = |parameters: &[(&str, u64)]| {
            let error = BUFFERED.check(&spec(parameters)).unwrap_err();
            error.to_string()
        };
        assert!(refused(&[("bytes", 1000)]).contains("multiple of no power"));
        let crossed = [("block_min", 8192), ("block_max", 4096)];
        assert!(refused(&crossed).contains("above block_max"));
        let between = [("block_min", 1025), ("block_max", 2047)];
        assert!(refused(&between).contains("multiple of no power"));
    }
}
