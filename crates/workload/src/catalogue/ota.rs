//! Workload `ota`: an update over the air. A device runs from one file (its system), of which it
//! reads pieces now and then, while the image of the next system arrives and is written over the
//! other slot; then it is made durable and verified.
//!
//! Updater and system are two processes of perl, so that a read can wait for what the updater
//! has the kernel write. No piece of the system is read twice: it comes from the card, as a page
//! does that is needed for the first time. What counts is how long a read takes while the image
//! is written, beside how long it takes when nothing is.

use super::appstart::perl_seed;
use crate::content::generated;
use crate::listing::Listing;
use crate::phase::{Operations, Phase, Programs};
use crate::program::{Program, ProgramFigures};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use std::collections::BTreeMap;
use whichfs_trial::{Counts, LatencyHistogram, Op, WorkloadSpec};
use whichfs_units::{GIB, KIB, MIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(230, &Ota)];

/// An update that is written while the old system runs.
pub struct Ota;

/// Level of images: compressed already.
const LEVEL: u8 = 0;
/// Bytes of a piece.
const READ: u64 = 64 * KIB;
/// Bytes from one piece that is read to the next: farther than the kernel reads ahead.
const STRIDE: u64 = 256 * KIB;

const CALM: &str = "ota_calm";
const UPDATE: &str = "ota_update";

const SYSTEM: &str = "system.img";
const SLOT: &str = "slot.img";

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "image_bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the image",
        min: MIB,
        max: 4 * GIB - 1,
    },
    Parameter {
        name: "system_bytes",
        default: 64 * MIB,
        unit: "B",
        meaning: "bytes of the system that runs",
        min: MIB,
        max: 4 * GIB - 1,
    },
    Parameter {
        name: "bytes_per_second",
        default: 8_000_000,
        unit: "B/s",
        meaning: "how fast the image arrives",
        min: 10_000,
        max: 1_000_000_000,
    },
    Parameter {
        name: "reads",
        default: 4,
        unit: "operations",
        meaning: "reads of the system for each MiB of the image",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "sync_every",
        default: 16,
        unit: "MiB",
        meaning: "the slot is made durable (fsync) after so much",
        min: 1,
        max: 4_096,
    },
];

const UPDATE_METRICS: [MetricDef; 4] = [
    MetricDef {
        metric: UPDATE,
        rule: Rule::Seconds,
    },
    MetricDef {
        metric: "ota_read",
        rule: Rule::Median,
    },
    MetricDef {
        metric: "ota_read_p99",
        rule: Rule::Percentile99,
    },
    MetricDef {
        metric: "ota_read_longest",
        rule: Rule::Longest,
    },
];

const PHASES: [PhaseDef; 4] = [
    PhaseDef::warm(
        "ota_install",
        "write the system and the old image in the other slot, then syncfs (MB/s)",
        true,
        &MetricDef::one("ota_install", Rule::Throughput),
    )
    .then_space(),
    PhaseDef::cold(
        CALM,
        "read pieces of 64 KiB of the system at the same times as during the update, each once, \
         cold (half and 99 % of the reads take no longer than so many ms)",
        &[
            MetricDef {
                metric: "ota_calm_read",
                rule: Rule::Median,
            },
            MetricDef {
                metric: "ota_calm_read_p99",
                rule: Rule::Percentile99,
            },
        ],
    ),
    PhaseDef {
        cold: true,
        ..PhaseDef::warm(
            UPDATE,
            "write the image over the slot as it arrives, 1 MiB at a time, with fsync in between \
             and at the end (s), while the same pieces of the system are read, cold (ms)",
            true,
            &UPDATE_METRICS,
        )
    },
    PhaseDef::cold(
        "ota_verify",
        "read the whole slot, cold (MB/s)",
        &MetricDef::one("ota_verify", Rule::Throughput),
    ),
];

/// Reads the system and, if the first argument says so, writes the image meanwhile. The other
/// arguments: bytes of image and system, bytes a second, reads for each MiB, MiB between two fsync,
/// seed. Prints the nanoseconds of each read.
const SCRIPT: &str = r#"
use strict;
use IO::Handle;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC sleep);
my ($update, $image, $system, $rate, $reads, $sync, $state) = @ARGV;
my ($mib, $piece, $stride) = (1 << 20, 1 << 16, 1 << 18);
sub below { $state = ($state * 1103515245 + 12345) % 2147483648; int($state / 8) % $_[0] }
my $begin = clock_gettime(CLOCK_MONOTONIC);
sub wait_until {
    my $left = $begin + $_[0] - clock_gettime(CLOCK_MONOTONIC);
    sleep($left) if $left > 0;
}
sub write_image {
    my $block = join "", map { pack "L", below(1 << 28) * 16 + $_ % 16 } 1 .. $mib / 4;
    open(my $slot, "+<", "slot.img") or die "slot.img: $!\n";
    for (my ($offset, $count) = (0, 1); $offset < $image; $offset += $mib, $count++) {
        wait_until($offset / $rate);
        my $bytes = $image - $offset < $mib ? $image - $offset : $mib;
        syswrite($slot, $block, $bytes) == $bytes or die "slot.img: $!\n";
        if ($count % $sync == 0) { $slot->sync or die "fsync: $!\n" }
    }
    $slot->sync or die "fsync: $!\n";
}
my @pieces = (0 .. int($system / $stride) - 1);
for my $at (reverse 1 .. $#pieces) {
    my $other = below($at + 1);
    @pieces[$at, $other] = @pieces[$other, $at];
}
my $child = 0;
if ($update) {
    defined($child = fork) or die "fork: $!\n";
    if (!$child) { write_image(); exit 0 }
}
open(my $file, "<", "system.img") or die "system.img: $!\n";
my $wanted = int($image * $reads / $mib);
for my $number (0 .. $wanted - 1) {
    wait_until($number * $mib / $reads / $rate);
    my $from = clock_gettime(CLOCK_MONOTONIC);
    sysseek($file, $pieces[$number] * $stride, 0);
    sysread($file, my $buffer, $piece) or die "system.img: $!\n";
    printf "%.0f\n", (clock_gettime(CLOCK_MONOTONIC) - $from) * 1e9;
}
if ($child) {
    waitpid($child, 0);
    $? == 0 or die "the image could not be written\n";
}
"#;

impl Workload for Ota {
    fn name(&self) -> &'static str {
        "ota"
    }

    fn title(&self) -> &'static str {
        "an image is updated while the system is read"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, phase: &PhaseDef) -> Phase<'_> {
        match phase.name {
            CALM | UPDATE => Phase::Program(self),
            _ => Phase::Operations(self),
        }
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let value = |name| parameter(self, spec, name);
        let wanted =
            u128::from(value("image_bytes")) * u128::from(value("reads")) / u128::from(MIB);
        (wanted * u128::from(STRIDE) > u128::from(value("system_bytes"))).then(|| {
            format!(
                "{wanted} pieces are read, each once and 256 KiB apart: system_bytes of {} or more",
                wanted * u128::from(STRIDE)
            )
        })
    }
}

impl Programs for Ota {
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError> {
        let value = |name| parameter(self, spec, name).to_string();
        let update = match phase {
            CALM => "0",
            UPDATE => "1",
            other => return Err(unknown_phase(self, other)),
        };
        let begin = ["/usr/bin/perl", "-", update].map(str::to_owned);
        let names = [
            "image_bytes",
            "system_bytes",
            "bytes_per_second",
            "reads",
            "sync_every",
        ];
        let given = names.map(value).into_iter().chain([perl_seed(seed)]);
        Ok(Program {
            argv: begin.into_iter().chain(given).collect(),
            env: BTreeMap::from([("PERL_HASH_SEED".to_owned(), "0".to_owned())]),
            stdin: SCRIPT.to_owned(),
            told: true,
            files: Vec::new(),
            package: "perl",
        })
    }

    fn writes(&self, phase: &str, spec: &WorkloadSpec) -> Option<u64> {
        match phase {
            UPDATE => Some(parameter(self, spec, "image_bytes")),
            _ => Some(0),
        }
    }

    fn told(&self, _phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
        let mut latency = LatencyHistogram::default();
        for line in output.lines() {
            latency.record(line.parse().map_err(|_| format!("a read took '{line}'"))?);
        }
        Ok(Some(ProgramFigures {
            counts: Counts {
                operations: latency.count(),
                bytes: latency.count() * READ,
                read_bytes: latency.count() * READ,
                ..Counts::default()
            },
            latency,
            ..ProgramFigures::default()
        }))
    }
}

impl Operations for Ota {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        match phase {
            "ota_install" => {
                let value = |name| parameter(self, spec, name);
                let sizes = [
                    (SYSTEM, value("system_bytes")),
                    (SLOT, value("image_bytes")),
                ];
                Ok(Box::new(install(sizes, seed)))
            }
            "ota_verify" => Ok(Box::new([Op::Read { path: SLOT.into() }].into_iter())),
            other => Err(unknown_phase(self, other)),
        }
    }
}

fn install(files: [(&'static str, u64); 2], seed: u64) -> impl Iterator<Item = Op> + use<> {
    let mut contents = Rng::named(seed, "ota install");
    let files = files.map(|(path, size)| Op::Create {
        path: path.into(),
        size,
        content: generated(LEVEL, contents.next_u64()),
        mode: None,
        pieces: None,
    });
    files.into_iter().chain([Op::SyncFs])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn spec(system: u64) -> WorkloadSpec {
        let given = [
            ("image_bytes", 5 * MIB / 2),
            ("system_bytes", system),
            ("bytes_per_second", 1_000_000_000),
            ("sync_every", 1),
            ("reads", 2),
        ];
        WorkloadSpec {
            name: "ota".into(),
            parameters: given.map(|(name, value)| (name.to_owned(), value)).into(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    #[test]
    fn each_piece_is_read_once_or_it_is_refused() {
        Ota.check(&spec(5 * STRIDE.max(MIB))).unwrap();
        let error = Ota.check(&spec(MIB)).unwrap_err().to_string();
        assert!(error.contains("5 pieces are read"), "{error}");
        assert!(error.contains("system_bytes of 1310720"), "{error}");
    }

    #[test]
    fn the_script_writes_the_image_and_tells_its_reads() {
        let dir = std::env::temp_dir().join(format!("whichfs-ota-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(SYSTEM), vec![1; 2 * MIB as usize]).unwrap();
        std::fs::write(dir.join(SLOT), vec![0; 5 * MIB as usize / 2]).unwrap();
        for (phase, written) in [(CALM, false), (UPDATE, true)] {
            let program = Ota.program(phase, &spec(2 * MIB), 7).unwrap();
            let mut child = Command::new(&program.argv[0])
                .args(&program.argv[1..])
                .current_dir(&dir)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(program.stdin.as_bytes()).unwrap();
            drop(stdin);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            let said = String::from_utf8(output.stdout).unwrap();
            let told = Ota.told(phase, &said).unwrap().unwrap();
            assert_eq!(told.latency.count(), 5, "{said}");
            let slot = std::fs::read(dir.join(SLOT)).unwrap();
            assert_eq!(slot.len() as u64, 5 * MIB / 2);
            assert_eq!(slot.iter().any(|byte| *byte != 0), written);
        }
        std::fs::remove_dir_all(dir).unwrap();
        assert!(Ota.told(CALM, "soon\n").is_err());
    }
}
