//! `whichfs card fit`: a profile from logs of measurements.

use super::passed_over;
use crate::cli::FitArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_engine::logs;
use whichfs_engine::places::write_whole;
use whichfs_fit::{
    FitOptions, FitRow, Jobs, Sizes, UnfittedRun, card_name, fit, table as report_table,
};
use whichfs_logs::{LoggedRun, Remark};
use whichfs_probe::{Quantity, Value, interpret};
use whichfs_report::documents::fit::{CardFit, fit_text};

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card fit flashbench.log --out mycard.toml --plot fit.svg
  whichfs card fit align.log open.log random.log   one card, a file for each test
  whichfs card fit flashbench.json --run 5_2
  whichfs card fit flashbench.json --run 5_2 --block-sizes 4096,65536,1048576
  whichfs card fit flashbench.json --report > fit.md
  whichfs choose --card ./mycard.toml            decide for the fitted card

flashbench -O of three block sizes tells the family; -O --random, -a and -f tell more. Rates of
dd, hdparm, iozone and fio are fitted too; from them alone the family is not told but composed.
Exit status 1: the card fits no family.";

/// Block sizes that `--report` fits for its test of prediction.
const REPORT_SIZES: [u64; 3] = [4096, 65_536, 1_048_576];

/// Fits one run, or all for a report.
pub fn run(args: &FitArgs) -> Outcome<u8> {
    if args.report {
        let (runs, skipped) = logs::read(&args.logs, &passed_over(args.json))?;
        return report(&runs, &skipped, args);
    }
    let run = logs::read_one(&args.logs, args.run.as_deref(), &passed_over(args.json))?;
    let found = fit(&run.curves, &run.rates, &options(&run, args, true))
        .map_err(|error| Failure::input(format!("{}: {error}", run.name)))?;
    if let Some(path) = &args.out {
        write_whole(path, found.toml.as_bytes())?;
    }
    if let Some(path) = &args.plot {
        write_whole(
            path,
            whichfs_report::fit_svg(&run.name, &found.compared, found.breaks.as_ref()).as_bytes(),
        )?;
    }
    match args.json {
        true => output::document(&CardFit::new(&run.name, &found))?,
        false => {
            let out = args.out.as_deref();
            output::text_line(&fit_text(&run.name, &found, out, output::width()))?;
        }
    }
    Ok(u8::from(found.breaks.is_some()))
}

fn options(run: &LoggedRun, args: &FitArgs, some: bool) -> FitOptions {
    let sizes = (some && !args.block_sizes.is_empty()).then(|| args.block_sizes.clone());
    FitOptions {
        block_sizes: sizes,
        seed: args.seed,
        capacity_bytes: run.card.capacity_bytes,
        erase_bytes: run.erase_bytes,
        sizes: sizes_of_reads(run),
        jobs: Jobs(side_by_side),
        title: card_name(run),
        source: run.name.clone(),
    }
}

/// Each job on a thread of its own.
fn side_by_side(count: usize, job: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for at in 0..count {
            scope.spawn(move || job(at));
        }
    });
}

/// Sizes of which a probe is sure that reads this log.
fn sizes_of_reads(run: &LoggedRun) -> Sizes {
    let found = interpret(&run.curves);
    let sure = |quantity| {
        let finding = found.get(quantity);
        let value = finding.value.filter(|_| finding.confident());
        value.map(Value::whole)
    };
    Sizes {
        page_bytes: sure(Quantity::PageBytes),
        write_unit_bytes: sure(Quantity::WriteUnitBytes),
        au_bytes: sure(Quantity::AuBytes),
    }
}

/// Fits every run twice, to all points and to three block sizes. `skipped`: what of the logs is
/// no run.
fn report(runs: &[LoggedRun], skipped: &[Remark], args: &FitArgs) -> Outcome<u8> {
    let mut fitted = Vec::new();
    let mut left = UnfittedRun::without_curves(skipped);
    for (at, run) in runs.iter().enumerate() {
        note!("[{}/{}] {}", at + 1, runs.len(), run.name);
        let all = options(run, args, false);
        let some = FitOptions {
            block_sizes: Some(REPORT_SIZES.to_vec()),
            ..all.clone()
        };
        match (fit(&run.curves, &[], &all), fit(&run.curves, &[], &some)) {
            (Ok(all), Ok(some)) => fitted.push((run, all, some)),
            (Err(error), _) | (_, Err(error)) => {
                note!("  left out: {error}");
                left.push(UnfittedRun::of(run, &error));
            }
        }
    }
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<String> = fitted.iter().map(|(run, ..)| card_name(run)).collect();
    let rows: Vec<FitRow> = fitted
        .iter()
        .zip(&names)
        .map(|((run, all, some), card)| FitRow {
            name: &run.name,
            card,
            all,
            some,
        })
        .collect();
    if rows.is_empty() {
        return Err(Failure::input(
            "no run has enough points for a fit: give logs of flashbench -O, or rates of dd, \
             hdparm, iozone or fio",
        ));
    }
    output::text_line(report_table(&rows, &left).trim_end())?;
    Ok(0)
}
