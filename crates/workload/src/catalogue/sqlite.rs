//! Workload `sqlite`: the real SQLite inserts and updates rows in transactions, each of which is
//! durable when it returns (`synchronous=FULL`), with a rollback journal and with a write-ahead
//! log.
//!
//! The shell's own timer tells how long each transaction took, to 1 ms: the resolution of
//! SQLite's clock. Making the table, and the checkpoint at the end of a write-ahead log, are
//! in the phase and in no transaction.

use crate::phase::{Phase, Programs};
use crate::program::{Program, ProgramFigures};
use crate::workload::{MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_trial::{LatencyHistogram, Metric, WorkloadSpec};
use whichfs_units::{KIB, Rng};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(180, &Sqlite)];

/// An SQLite database with small durable transactions.
pub struct Sqlite;

/// The library that does the work: the program only calls it.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0";

/// What is printed when all transactions were done.
const END: &str = "whichfs: all transactions were done";

const PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "transactions",
        default: 500,
        unit: "transactions",
        meaning: "transactions of each phase",
        min: 1,
        max: 1_500,
    },
    Parameter {
        name: "rows",
        default: 4,
        unit: "rows",
        meaning: "rows that a transaction inserts or updates",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "row_bytes",
        default: 200,
        unit: "B",
        meaning: "text in a row",
        min: 1,
        max: 4 * KIB,
    },
];

/// Letters that the text of rows is taken from: statements stay short, because they are part of
/// the job that the guest reads.
const POOL_BYTES: u64 = 8 * KIB;

/// A phase that yields transactions/s, and the time that 99 % of them do not exceed.
macro_rules! phase {
    ($name:literal, $meaning:literal) => {
        PhaseDef {
            name: $name,
            meaning: $meaning,
            cold: false,
            writes: true,
            space_after: false,
            metrics: &[
                MetricDef {
                    metric: $name,
                    rule: Rule::Told {
                        unit: "transactions/s",
                        lower_is_better: false,
                    },
                },
                MetricDef {
                    metric: concat!($name, "_p99"),
                    rule: Rule::Percentile99,
                },
            ],
        }
    };
}

const PHASES: [PhaseDef; 4] = [
    phase!(
        "sqlite_insert_rollback",
        "insert rows; journal_mode=DELETE: the journal is made and deleted each time"
    ),
    phase!("sqlite_update_rollback", "update random rows of that table"),
    phase!(
        "sqlite_insert_wal",
        "insert rows into a table of its own; journal_mode=WAL"
    ),
    phase!("sqlite_update_wal", "update random rows of that table"),
];

impl Sqlite {
    /// The input of sqlite3 for `phase`, one transaction a line: the shell times lines.
    fn statements(&self, phase: &str, spec: &WorkloadSpec, seed: u64) -> String {
        let value = |name| parameter(self, spec, name);
        let [transactions, rows] = [value("transactions"), value("rows")];
        let mut rng = Rng::named(seed, phase);
        let mut text = String::from(".bail on\n");
        let mode = if phase.ends_with("_wal") {
            "WAL"
        } else {
            "DELETE"
        };
        let _ = writeln!(text, "PRAGMA journal_mode={mode};");
        text.push_str("PRAGMA synchronous=FULL;\nPRAGMA temp_store=MEMORY;\n");
        let _ = writeln!(
            text,
            "CREATE TEMP TABLE pool AS SELECT '{}' AS text;",
            words(&mut rng)
        );
        let _ = writeln!(
            text,
            "CREATE TEMP TABLE line AS WITH RECURSIVE count(n) AS \
             (SELECT 0 UNION ALL SELECT n+1 FROM count WHERE n<{}) SELECT n FROM count;",
            rows - 1
        );
        let inserts = phase.contains("insert");
        if inserts {
            text.push_str("CREATE TABLE record(id INTEGER PRIMARY KEY, content TEXT);\n");
        }
        text.push_str(".timer on\n");
        let bytes = value("row_bytes");
        let offsets = POOL_BYTES - bytes;
        for transaction in 0..transactions {
            let offset = rng.below(offsets);
            let content = format!("substr(text,1+({offset}+n*977)%{offsets},{bytes})");
            let _ = if inserts {
                let first = transaction * rows;
                writeln!(
                    text,
                    "BEGIN;INSERT INTO record SELECT {first}+n,{content} FROM pool,line;COMMIT;"
                )
            } else {
                // As far from each other as they can be: each is on a page of its own.
                let first = rng.below(transactions * rows);
                let id = format!("({first}+n*{transactions})%{}", transactions * rows);
                writeln!(
                    text,
                    "BEGIN;UPDATE record SET content={content} FROM pool,line WHERE id={id};COMMIT;"
                )
            };
        }
        let _ = writeln!(text, ".print {END}");
        text
    }
}

/// The random letters that rows are parts of.
fn words(rng: &mut Rng) -> String {
    (0..POOL_BYTES)
        .map(|_| char::from(b'a' + u8::try_from(rng.below(26)).unwrap_or(0)))
        .collect()
}

/// The seconds after `real` in a line of the shell's timer.
fn real_seconds(line: &str) -> Option<f64> {
    let mut words = line.strip_prefix("Run Time:")?.split_whitespace();
    words.find(|word| *word == "real")?;
    words.next()?.parse().ok()
}

impl Workload for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn title(&self) -> &'static str {
        "the real SQLite: durable transactions, rollback journal and write-ahead log"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Program(self)
    }
}

impl Programs for Sqlite {
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError> {
        let file = if phase.ends_with("_wal") {
            "wal.db"
        } else {
            "rollback.db"
        };
        Ok(Program {
            argv: ["sqlite3", "-batch", "-bail", file]
                .map(str::to_owned)
                .to_vec(),
            env: BTreeMap::new(),
            stdin: self.statements(phase, spec, seed),
            told: true,
            files: vec![LIBRARY.to_owned()],
            package: "sqlite3",
        })
    }

    fn writes(&self, _phase: &str, spec: &WorkloadSpec) -> Option<u64> {
        let value = |name| parameter(self, spec, name);
        // Journal header, the old page of each row, the new ones, and what their sync writes.
        let pages = value("rows").saturating_mul(2).saturating_add(4);
        let row_bytes = value("rows").saturating_mul(value("row_bytes"));
        let each = pages.saturating_mul(4 * KIB).saturating_add(row_bytes);
        Some(value("transactions").saturating_mul(each))
    }

    fn told(&self, phase: &str, output: &str) -> Result<Option<ProgramFigures>, String> {
        if !output.lines().any(|line| line == END) {
            let last = output.lines().last().unwrap_or_default();
            return Err(format!(
                "sqlite3 stopped before its end; it last said {last:?}"
            ));
        }
        let mut told = ProgramFigures::default();
        let mut latency = LatencyHistogram::default();
        let mut all = 0.0;
        for seconds in output.lines().filter_map(real_seconds) {
            all += seconds;
            // Never negative; a clock that was set meanwhile counts as no time.
            latency.record((seconds.max(0.0) * 1e9).round() as u64);
        }
        told.counts.operations = latency.count();
        if all > 0.0 {
            told.metrics.push(Metric {
                metric: phase.to_owned(),
                value: latency.count() as f64 / all,
                unit: "transactions/s".to_owned(),
                lower_is_better: false,
            });
        }
        told.latency = latency;
        Ok(Some(told))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(parameters: &[(&str, u64)]) -> WorkloadSpec {
        WorkloadSpec {
            name: "sqlite".into(),
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

    #[test]
    fn a_transaction_is_a_line_and_durable() {
        let small = spec(&[("transactions", 3), ("rows", 2), ("row_bytes", 5)]);
        let of = |phase, seed| Sqlite.program(phase, &small, seed).unwrap();
        let insert = of("sqlite_insert_wal", 1);
        assert_eq!(insert.argv.last().unwrap(), "wal.db");
        let text = &insert.stdin;
        assert!(text.contains("journal_mode=WAL") && text.contains("synchronous=FULL"));
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("BEGIN;"))
            .collect();
        assert_eq!(lines.len(), 3);
        for (line, first) in lines
            .iter()
            .zip(["SELECT 0+n,", "SELECT 2+n,", "SELECT 4+n,"])
        {
            assert!(line.ends_with("COMMIT;") && line.contains(first), "{line}");
        }
        let update = of("sqlite_update_rollback", 1);
        assert_eq!(update.stdin.matches("UPDATE").count(), 3);
        assert!(
            update.stdin.contains("+n*3)%6"),
            "two rows far from each other"
        );
        assert!(update.stdin.contains("journal_mode=DELETE"));
        assert_eq!(update, of("sqlite_update_rollback", 1));
        assert_ne!(update, of("sqlite_update_rollback", 2));
    }

    /// A job of the lab has less than 1 MiB.
    #[test]
    fn the_largest_specification_fits_a_job() {
        let largest = spec(&[
            ("transactions", 1_500),
            ("rows", 1_000),
            ("row_bytes", 4_096),
        ]);
        let programs = crate::programs(&Sqlite, &largest, u64::MAX).unwrap();
        let bytes: usize = programs.iter().map(|program| program.stdin.len()).sum();
        assert!(bytes < 900_000, "{bytes}");
    }

    #[test]
    fn the_timer_is_read_by_name() {
        let output = format!(
            "delete\nRun Time: real 0.020 user 0.000915 sys 0.000000\n\
             Run Time: user 0.1 real 0.005 sys 0.0\n{END}\n"
        );
        let told = Sqlite.told("sqlite_insert_wal", &output).unwrap().unwrap();
        assert_eq!(told.counts.operations, 2);
        assert_eq!(told.metrics[0].value, 80.0);
        let p99 = told.latency.quantile_ns(99, 100).unwrap();
        assert!((20_000_000..20_700_000).contains(&p99), "{p99}");
    }

    #[test]
    fn what_ends_early_is_no_figure() {
        let error = Sqlite.told("sqlite_insert_wal", "wal\nRun Time: real 0.020\n");
        assert!(error.unwrap_err().contains("stopped before its end"));
    }
}
