//! Workload `limits`: whether a filesystem can be used at all, and how far its times reach. One
//! small file is written; files are stamped with years to come; all of it is read back after a
//! remount.

use crate::phase::{Phase, Programs};
use crate::program::{Program, ProgramFigures, shell};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, unknown_phase,
};
use whichfs_trial::{Metric, WorkloadSpec};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(220, &Limits)];

/// The least of a filesystem: one small file, and dates of years to come.
pub struct Limits;

const WRITE: &str = "limits_write";
const READ: &str = "limits_read";

/// The years that files are stamped with, and seconds since 1970 of their first of July.
const YEARS: [(&str, i64); 3] = [
    ("year_2040", 2_224_713_600),
    ("year_2110", 4_433_616_000),
    ("year_2500", 16_740_864_000),
];

const fn told(metric: &'static str, unit: &'static str) -> MetricDef {
    MetricDef {
        metric,
        rule: Rule::Told {
            unit,
            lower_is_better: false,
        },
    }
}

const PHASES: [PhaseDef; 2] = [
    PhaseDef::warm(
        WRITE,
        "write a file of five bytes, stamp three others with 2040, 2110 and 2500, then sync; that \
         the others find no room is no failure",
        true,
        &[],
    ),
    PhaseDef::cold(
        READ,
        "read the file, the room that is left (free: bytes that any user may write; free_inodes: \
         files, where they are counted) and the year that each stamp has become (year_2040 …: a \
         year)",
        &[
            told("free", "B"),
            told("free_inodes", "inodes"),
            told("year_2040", "year"),
            told("year_2110", "year"),
            told("year_2500", "year"),
        ],
    ),
];

/// Bytes of four small files in blocks of their own.
const FILES_BYTES: u64 = 16 << 10;

const WRITE_SCRIPT: &str = r#"
echo text > file && sync -f . || exit 1
while [ $# -gt 1 ]; do
    { : > "$1" && touch -d "@$2" "$1"; } 2> /dev/null
    shift 2
done
sync -f .
"#;

const READ_SCRIPT: &str = r#"
read -r line < file
[ "$line" = text ] || { echo "the file holds other than what was written" >&2; exit 1; }
stat -f -c 'room %S %a %c %d' .
for file in "$@"; do
    [ -e "$file" ] && stat -c '%n %Y' "$file"
done
true
"#;

impl Workload for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn title(&self) -> &'static str {
        "whether one file can be written, what room is left, which years a time can have"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Program(self)
    }
}

impl Programs for Limits {
    fn program(
        &self,
        phase: &str,
        _spec: &WorkloadSpec,
        _seed: u64,
    ) -> Result<Program, WorkloadError> {
        let names = YEARS.iter().map(|(name, _)| (*name).to_owned());
        Ok(match phase {
            WRITE => {
                let pairs = YEARS.iter();
                let pairs = pairs.flat_map(|(name, at)| [(*name).to_owned(), at.to_string()]);
                shell(WRITE_SCRIPT, pairs, false)
            }
            READ => shell(READ_SCRIPT, names, true),
            other => return Err(unknown_phase(self, other)),
        })
    }

    fn writes(&self, _phase: &str, _spec: &WorkloadSpec) -> Option<u64> {
        Some(FILES_BYTES)
    }

    fn told(&self, phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
        if phase != READ {
            return Ok(None);
        }
        let mut metrics = Vec::new();
        for line in output.lines() {
            metrics.extend(figures(line).ok_or_else(|| format!("stat said '{line}'"))?);
        }
        Ok(Some(ProgramFigures {
            metrics,
            ..ProgramFigures::default()
        }))
    }
}

/// The figures in a line of the script: `room BLOCK FREE INODES FREE_INODES` or `year_N SECONDS`.
fn figures(line: &str) -> Option<Vec<Metric>> {
    let (name, rest) = line.split_once(' ')?;
    let numbers: Vec<i64> = rest
        .split(' ')
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let metric = |metric: &str, value: f64, unit: &str| Metric {
        metric: metric.to_owned(),
        value,
        unit: unit.to_owned(),
        lower_is_better: false,
    };
    match (name, numbers.as_slice()) {
        ("room", [block, free, inodes, free_inodes]) => {
            let mut found = vec![metric("free", (block * free) as f64, "B")];
            if *inodes > 0 {
                found.push(metric("free_inodes", *free_inodes as f64, "inodes"));
            }
            Some(found)
        }
        (_, [seconds]) if YEARS.iter().any(|(known, _)| *known == name) => {
            Some(vec![metric(name, year_of(*seconds) as f64, "year")])
        }
        _ => None,
    }
}

/// The year of the Gregorian calendar (UTC) in which `seconds` since 1970 lie.
fn year_of(seconds: i64) -> i64 {
    // Days since 0000-03-01, in eras of 400 years (H. Hinnant, chrono-compatible date algorithms).
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    // March is the first month of such a year: January and February are of the next.
    era * 400 + year + i64::from(day_of_year >= 306)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn years_of_known_instants() {
        for (seconds, year) in [
            (0, 1970),
            (-1, 1969),
            (i64::from(i32::MIN), 1901),
            (i64::from(i32::MAX), 2038),
            (i64::from(u32::MAX), 2106),
            (951_782_399, 2000),
            (946_684_799, 1999),
            (946_684_800, 2000),
        ] {
            assert_eq!(year_of(seconds), year, "{seconds}");
        }
        for (name, seconds) in YEARS {
            assert_eq!(format!("year_{}", year_of(seconds)), name);
        }
    }

    #[test]
    fn what_stat_says_becomes_figures() {
        let output = "room 4096 10 0 0\nyear_2040 -2147483648\n";
        let told = Limits.told(READ, output).unwrap().unwrap();
        let named: Vec<(&str, f64)> = told
            .metrics
            .iter()
            .map(|m| (m.metric.as_str(), m.value))
            .collect();
        assert_eq!(
            named,
            [("free", 40960.0), ("year_2040", 1901.0)],
            "FAT counts no inodes"
        );
        let counted = figures("room 1024 2 16 11").unwrap();
        assert_eq!(counted[1].value, 11.0);
        for wrong in ["room 1 2 3", "year_2041 5", "x", "year_2040 soon"] {
            assert_eq!(figures(wrong), None, "{wrong}");
        }
        assert!(Limits.told(READ, "nonsense").is_err());
    }

    #[test]
    fn the_scripts_write_and_read_a_directory() {
        let spec = WorkloadSpec {
            name: "limits".into(),
            parameters: Default::default(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        let base = std::env::temp_dir().join(format!("whichfs-limits-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        let run = |phase| {
            let program = Limits.program(phase, &spec, 1).unwrap();
            let output = crate::program::run_for_test(&program, &base);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(WRITE);
        let told = Limits.told(READ, &run(READ)).unwrap().unwrap();
        std::fs::remove_dir_all(base).unwrap();
        let stamped = told.metrics.iter().find(|m| m.metric == "year_2040");
        assert_eq!(stamped.unwrap().value, 2040.0);
    }
}
