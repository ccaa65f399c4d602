//! What a study has to do, and about how long that takes.

use super::device::time_words;
use crate::text::Lines;
use std::time::Duration;
use whichfs_study::PerformanceStudy;
use whichfs_units::{Bytes, counted};

/// The machine on which trials took as long as the table says that `elsewhere` is about.
const MACHINE: &str = "an AMD EPYC (Zen 5)";

/// How long trials take.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedTime {
    /// One after the other, those of which something is known.
    pub wall: Duration,
    /// How many of them are known only from another machine.
    pub elsewhere: usize,
    /// How many are not known at all.
    pub unknown: usize,
}

/// What there is to do.
#[derive(Debug)]
pub struct StudyPlan<'a> {
    /// What the study file asks for.
    pub study: &'a PerformanceStudy,
    /// Trials of the matrix.
    pub trials: usize,
    /// Those that the store has.
    pub known: usize,
    /// Candidates that cannot run here.
    pub left_out: &'a [String],
    /// What the others write into files.
    pub written_bytes: u64,
    /// Workloads among them whose programs write what nobody knows beforehand.
    pub programs: &'a [String],
    /// How long the others take.
    pub wall: ExpectedTime,
    /// Trials at once.
    pub jobs: Option<usize>,
}

/// What `plan` has to do, in lines of at most `width` columns.
pub fn study_plan_text(plan: &StudyPlan, width: usize) -> String {
    let mut out = Lines::new(width);
    let left = plan.trials - plan.known;
    out.paragraph(
        &format!(
            "{}: {}, {} of them finished, {left} to run; they write {}.",
            plan.study.name,
            counted(plan.trials, "trial"),
            plan.known,
            amount(plan.written_bytes, plan.programs)
        ),
        0,
    );
    for said in plan.left_out {
        out.paragraph(&format!("left out: {said}"), 2);
    }
    let jobs = plan.jobs.unwrap_or(1);
    out.paragraph(&how_long(left, &plan.wall, jobs), 0);
    out.text()
}

/// How long `left` trials take, so many at once.
fn how_long(left: usize, expected: &ExpectedTime, jobs: usize) -> String {
    if left == 0 {
        return "Nothing is left to run.".to_owned();
    }
    let known = left - expected.unknown;
    let from = match expected.elsewhere {
        0 => "as trials like them did here".to_owned(),
        n if n == known => format!("as on {}", MACHINE),
        n => format!(
            "as trials like them did here, and as {n} of them on {}",
            MACHINE
        ),
    };
    let wall = time_words(expected.wall / jobs.max(1) as u32);
    let cores = counted(jobs, "core");
    match (known, expected.unknown) {
        (0, _) => "How long they take is not known: trials like them were never run here. \
                   --budget 2m runs what fits, and the next --dry-run tells."
            .to_owned(),
        (_, 0) => format!("They take about {wall} on {cores}, {from}."),
        (_, unknown) => format!(
            "{known} of them take about {wall} on {cores}, {from}; the other {unknown} were never \
             run."
        ),
    }
}

/// What is written, in words.
fn amount(written: u64, programs: &[String]) -> String {
    let programs = programs.join(", ");
    let bytes = Bytes(written);
    match (written, programs.as_str()) {
        (_, "") => format!("{bytes} into files on modelled cards"),
        (0, _) => format!("what the programs of {programs} write, which is not known beforehand"),
        _ => format!(
            "{bytes} into files on modelled cards at least; what the programs of {programs} write \
             is not known beforehand"
        ),
    }
}
