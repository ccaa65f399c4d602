//! Studies of the kind `crash`: series of power cuts.

use crate::cli::{PlaceArgs, StudyArgs, StudyTrialsArgs};
use crate::commands::crash;
use crate::commands::crash::page::environment;
use crate::commands::once;
use crate::failure::{Failure, Kind, Outcome};
use crate::page::command_line;
use crate::{interrupt, output};
use whichfs_crash::Fault;
use whichfs_engine::crash::inputs::{WALL_LIMIT, together, whole_path};
use whichfs_engine::crash::record::RecordingPlan;
use whichfs_engine::crash::spec::{Makers, Selection, Spec};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::report_folder::ReportFolder;
use whichfs_engine::trial_cache::now_unix;
use whichfs_report::documents::study::{
    add_series, compare_mounts, crash_group, crash_study_text, cuts_item, paragraphs,
};
use whichfs_report::{CRASH_FILES, CrashGroup, CrashPage, crash_files};
use whichfs_study::{CrashSeries, CrashStudy};

/// Runs one.
pub fn run(found: CrashStudy, args: &StudyArgs) -> Outcome<u8> {
    refuse(args.of_trials())?;
    let own_cuts = found.cuts;
    let study = changed(found, args.cuts, &args.trials.only_fs)?;
    let bench = crash::bench(&place(&study), args.jobs)?;
    let out = args.out.as_deref();
    let files = ReportFolder::new(out, "whichfs-study", &CRASH_FILES, now_unix())?;
    let cells = study.cells();
    let mut page = empty_page(&study, own_cuts, &bench);
    page.run = args.run.stamp();
    let mut first_failure = None;
    for (index, cell) in cells.iter().enumerate() {
        let left = cells.len() - index - 1;
        note!(
            "series {} of {}: {} {}, {}, {}",
            index + 1,
            cells.len(),
            cell.fs,
            cell.mount.name,
            cell.faults.name,
            cell.load.name
        );
        let made = spec(&study, &bench, cell)
            .and_then(|spec| crash::made(&bench, &spec, args.fresh, (left, interrupt::flag())));
        match made {
            Ok(made) => add_series(&mut page, &study, cell, made.row, &made.contract),
            Err(failure) if failure.kind == Kind::Interrupted => return Err(failure),
            Err(failure) => {
                note!("not made: {failure}");
                let failed = format!("{} {}: {failure}", cell.fs, cell.mount.name);
                crash_group(&mut page, cell).failed.push(failed);
                first_failure.get_or_insert(failure);
            }
        }
    }
    compare_mounts(&mut page);
    let path = files.write(&crash_files(&page))?;
    output::answer(args.json, &page, crash_study_text, &path)?;
    match first_failure {
        Some(failure) if page.groups.iter().all(|group| group.rows.is_empty()) => Err(failure),
        Some(failure) => Ok(crate::failure::exit_code(failure.kind)),
        None => Ok(0),
    }
}

/// Prints the cuts of one for other machines, those of a series in a line.
pub fn plan(found: CrashStudy, trials: &StudyTrialsArgs) -> Outcome<u8> {
    refuse(trials.of_trials())?;
    let study = changed(found, None, &trials.only_fs)?;
    let bench = crash::bench(&place(&study), None)?;
    let cells = study.cells();
    let specs = cells.iter().map(|cell| spec(&study, &bench, cell));
    let specs = specs.collect::<Outcome<Vec<Spec>>>()?;
    crash::tell(&bench, &specs, study.cuts, trials.only_missing).map(|()| 0)
}

/// The study with so many `cuts`, and with the filesystems `only_fs` alone, if any are given.
fn changed(mut study: CrashStudy, cuts: Option<u64>, only_fs: &[String]) -> Outcome<CrashStudy> {
    study.cuts = cuts.unwrap_or(study.cuts);
    once("--fs", only_fs)?;
    for name in only_fs {
        if !study.filesystems.contains(name) {
            return Err(Failure::input(format!(
                "--fs {name}: {} has {}",
                study.name,
                study.filesystems.join(", ")
            )));
        }
    }
    if !only_fs.is_empty() {
        study.filesystems.retain(|fs| only_fs.contains(fs));
    }
    Ok(study)
}

fn place(study: &CrashStudy) -> PlaceArgs {
    PlaceArgs {
        card: study.card.clone(),
        machine: crate::cli::MachineArgs {
            card_state: crate::cli::CardStateArg::Used,
            board: study.board.clone(),
            clock: "cpu".to_owned(),
            wall_limit: WALL_LIMIT.as_secs(),
        },
    }
}

/// One series of the matrix.
fn spec(study: &CrashStudy, bench: &LabExecutor, cell: &CrashSeries) -> Outcome<Spec> {
    let faults = cell.faults.faults.iter().map(|name| name.parse::<Fault>());
    let au = bench.geometry().au_bytes;
    let bytes = study.partition_bytes.next_multiple_of(au);
    let mut spec = Spec {
        fs: cell.fs.to_owned(),
        // Beside the recipe's.
        mount: (!cell.mount.add.is_empty()).then(|| format!("+{}", cell.mount.add)),
        card: whole_path(&study.card),
        card_state: bench.card_state.name().to_owned(),
        board: whole_path(&study.board),
        clock: "cpu".to_owned(),
        workload: cell.load.workload.clone(),
        parameters: cell.load.parameters.clone(),
        script: None,
        returns: true,
        partition_bytes: bytes.min(bench.partition_bytes()),
        faults: faults.collect::<Result<_, _>>().map_err(Failure::input)?,
        cuts: Selection::Random(study.cuts),
        recovery: 0,
        fsck: true,
        seed: study.seed,
        measured: None,
        made_by: Makers::default(),
    };
    together(&spec.faults)?;
    spec.made_by = Makers::of(bench, &RecordingPlan::new(bench, &spec)?.recipe()?);
    Ok(spec)
}

fn empty_page(study: &CrashStudy, own_cuts: u64, bench: &LabExecutor) -> CrashPage {
    let mut environment = environment(bench, study.partition_bytes, study.seed);
    environment.push(cuts_item(study.cuts, own_cuts));
    CrashPage {
        title: study.title.clone(),
        source: study.source.clone(),
        method: paragraphs(&study.method),
        groups: Vec::<CrashGroup>::new(),
        promises: Vec::new(),
        environment,
        reproduce: command_line(),
        ..CrashPage::default()
    }
}

/// Refuses `flag`, if one is given that only studies with trials have.
fn refuse(flag: Option<&'static str>) -> Outcome {
    match flag {
        Some(flag) => Err(Failure::input(format!(
            "{flag}: this study cuts power; --cuts and --fs make it shorter"
        ))),
        None => Ok(()),
    }
}
