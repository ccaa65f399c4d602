//! `whichfs study`: experiments that are data, made and told as a whole.

mod claims;
mod crash;
mod here;
mod performance;
mod plan;
mod show;

pub use claims::claims;
pub use performance::{WALL_LIMIT_S, compared};
pub use plan::plan;
pub use show::show;

use crate::cli::{JsonArgs, StudyArgs};
use crate::failure::Outcome;
use crate::output;
use whichfs_engine::studies;
use whichfs_report::documents::study::studies_text;
use whichfs_study::Study;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs study list
  whichfs study show elc2015-power                what it runs, about how long
  whichfs study show pandora                      what it runs, and the figures of its last run
  whichfs study run linuxplanet --quick           trials, beside the published figures
  whichfs study run alignment --quick             what misalignment costs, with intervals
  whichfs study run linuxplanet --budget 10m      what fits into ten minutes; goes on later
  whichfs study run linuxplanet --dry-run         how many trials, about how long
  whichfs study run pandora --card platinum-class10-64gb
  whichfs study run linuxplanet --tree ./linux-6.12    a real kernel tree instead of a drawn one
  whichfs study claims                            what the authors concluded, and what we find
  whichfs study run elc2015-power --cuts 40       what ELC 2015 did, with fewer cuts
  whichfs study run sync-mounts --fs vfat --out sync
  sudo whichfs study run pandora --quick --on /dev/sdX --dry-run    on a real card: what it does
  sudo whichfs study run pandora --quick --on /dev/sdX --destroy ID --budget 2h --max-write 20G
  whichfs study run pandora --quick --on ssh://root@board/dev/mmcblk0 --dry-run    on a board's card
  whichfs study run pandora --on labgrid:a/dev/sda --on labgrid:b/dev/sda --dry-run    a fleet
  sudo whichfs study run pandora --quick --on /media/card    in a directory: nothing is formatted
  whichfs study run pandora --cluster slurm --jobs 20     on the machines of a cluster
  whichfs study run ./mine.toml                   a file in the form of studies/*.toml

Each series is kept as `crash run` keeps it, each trial in the store: an interrupted study
goes on where it was. With --on the trials of each repeat run in a random order on the device,
the first is not counted, and a reference trial is repeated between them to detect drift.
ssh://USER@HOST[:PORT]/dev/… is the device of a board: by your own ssh, without questions, with an
agent that is copied there (make agents) and removed again. A directory is measured as it is
mounted; what is written there is removed. labgrid:PLACE/dev/… is the device of a board in a lab,
which is acquired and released by labgrid-client; several --on run at once.

Exit status: 0 done, 2 bad usage or input, 3 this machine lacks something, 4 a series or
trial failed (the others were made all the same).";

/// Examples in the help text of `study plan`.
pub const PLAN_EXAMPLES: &str = "\
Examples:
  whichfs study plan pandora --quick > trials.jsonl
  whichfs trial run trials.jsonl > records.jsonl         on this machine or any other
  whichfs store import records.jsonl --plan trials.jsonl
  whichfs study run pandora --quick                      finds the trials in the store
  whichfs study plan pandora --quick --only-missing      what is still to be run
  whichfs study plan pandora | parallel -j 8 --pipe -N 1 whichfs trial run > records.jsonl

A line has the id of a trial, its identity, what it is made from, and what it needs (cores, memory,
disk, about how long). Lines of equal id are told once. See docs/many-machines.md.";

/// Lists all studies.
pub fn list(args: &JsonArgs) -> Outcome<u8> {
    let all = studies::all()?;
    match args.json {
        true => output::list(&all)?,
        false => output::text(&studies_text(&all, output::width()))?,
    }
    Ok(0)
}

/// Runs one.
pub fn run(args: &StudyArgs) -> Outcome<u8> {
    match studies::open(&args.name)? {
        Study::Crash(study) => crash::run(study, args),
        Study::Performance(study) => performance::run(study, args),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_report::documents::workload::WorkloadForm;

    #[test]
    fn a_workload_has_the_forms_of_the_studies_that_run_it() {
        let forms = |name| WorkloadForm::all(name, studies::all().unwrap());
        let found = forms("copies");
        assert_eq!(
            (found.len(), found[0].study.as_str()),
            (1, "bootlin-copies")
        );
        assert_eq!(found[0].full["bytes"], 319_000_000);
        assert_eq!(found[0].quick["bytes"], 31_900_000);
        assert!(
            forms("logger")
                .iter()
                .any(|form| form.study == "sync-mounts")
        );
        assert!(forms("none").is_empty());
    }
}
