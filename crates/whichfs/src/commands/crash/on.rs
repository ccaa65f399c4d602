//! `whichfs crash run --on`: the power of a board is cut.

use super::{CrashRun, code_of, input, page, tell_bound};
use crate::cli::{CrashArgs, CutCount, PowerArg};
use crate::failure::{Failure, Outcome};
use crate::page::command_line;
use crate::{interrupt, output};
use std::time::{Duration, Instant};
use whichfs_crash::Faults;
use whichfs_engine::crash::archive::SeriesArchive;
use whichfs_engine::crash::campaign::{BoardCuts, CrashCampaign, CutObserver};
use whichfs_engine::crash::check::Result;
use whichfs_engine::crash::inputs::parameters;
use whichfs_engine::crash::measured::Subject;
use whichfs_engine::crash::power::Way;
use whichfs_engine::crash::record::{no_contract, promises};
use whichfs_engine::crash::script;
use whichfs_engine::crash::spec::{CutDevice, Makers, Selection, Spec};
use whichfs_engine::device::{DeviceExecutor, DeviceLease};
use whichfs_engine::report_folder::ReportFolder;
use whichfs_engine::{digest, lab_executor, places};
use whichfs_format::partition_commands;
use whichfs_fs::Candidate;
use whichfs_remote::{DevicePlace, Outage};
use whichfs_report::documents::crash::{
    CutReport, CutSums, cut_place, cuts_text, measured_row, name_words, promised,
};
use whichfs_report::{CrashGroup, CrashPage, Item, crash_files, item};
use whichfs_trial::REAL;
use whichfs_units::shell_word;
use whichfs_units::{Bytes, counted};
use whichfs_workload::{Op, Workload};

/// Time without power where nobody says: what capacitors of a board hold is gone then.
const OFF_TIME: Duration = Duration::from_secs(5);

const METHOD: &str = "For each cut the filesystem was made anew on the device and the workload run \
    by an agent on the board, which told each promise of the system and went on when it was heard. \
    At a random moment the power went. When the board was back, the filesystem was mounted before \
    any check, read, used, checked and repaired there. A cut breaks a promise if what was found \
    contradicts what had been promised and told, or what that filesystem promises with these mount \
    options.";

/// What is cut, and how far that is.
struct Series {
    subject: Subject,
    campaign: CrashCampaign,
}

/// Runs the command for the device at `place`.
pub fn run(args: &CrashArgs, place: &str) -> Outcome<u8> {
    let mut way = way(args)?;
    let cuts = selection(args)?;
    let place: DevicePlace = place.parse()?;
    if let DevicePlace::Here(path) = &place {
        return Err(Failure::input(format!(
            "--on {}: the power of this machine cannot be cut by itself; name a board: \
             ssh://USER@HOST/dev/mmcblk0",
            path.display()
        )));
    }
    let (workload, lines) = input::workload(&args.series)?;
    let candidates = input::candidates(&args.series)?;
    input::mount_options(&args.series)?;
    if let (Some(lines), Some(path)) = (&lines, &args.series.script) {
        script::suits(lines, &candidates, path)?;
    }
    let script = lines.map(|lines| lines.into_iter().map(|line| line.op).collect::<Vec<Op>>());
    let files = args.out.as_deref().map(page::folder).transpose()?;
    let wall_limit = Duration::from_secs(args.series.place.machine.wall_limit);
    let mut site = DeviceExecutor::open(&place, &args.here.options(), wall_limit)?;
    let subjects: Vec<Subject> = candidates
        .into_iter()
        .map(|candidate| {
            let asked = (workload, script.clone(), cuts.clone());
            subject(args, &site, asked, &way, candidate)
        })
        .collect::<Outcome<_>>()?;
    if args.on.dry_run {
        return dry_run(&site, &subjects, &way, count(&cuts));
    }
    let directory = places::crashes()?;
    let mut all = Vec::new();
    for subject in subjects {
        let opened = SeriesArchive::open(&directory, &subject.spec, args.fresh)?;
        let wanted = (0..count(&cuts)).collect();
        all.push(Series {
            subject,
            campaign: CrashCampaign::new(opened, wanted, args.fresh),
        });
    }
    if all.iter().any(|one| !one.campaign.missing().is_empty()) {
        site.around
            .confirm(&site.device, &args.here.consent(args.json))?;
        interrupt::flag();
        let mut field = site.around.lease(&site.device, "power cuts")?;
        if let Way::Board(by, lead) = &mut way {
            *lead = field.takes(*by)?;
        }
        let mut left = args.here.max_write;
        for series in &mut all {
            make(series, &mut field, &way, &mut left)?;
        }
        field.end()?;
    }
    report(args, &site, workload, all, files)
}

/// Cuts that `selection` asks for.
fn count(selection: &Selection) -> u64 {
    match selection {
        Selection::Random(count) => *count,
        _ => 1,
    }
}

fn selection(args: &CrashArgs) -> Outcome<Selection> {
    match args.series.count() {
        CutCount::Number(count) => Ok(Selection::Random(count)),
        CutCount::End => Ok(Selection::End),
        CutCount::All => Err(Failure::input(
            "--cuts all: the requests of a real device are not seen; give a number, or end",
        )),
    }
}

/// What takes the power, as far as it is known before the board is asked.
fn way(args: &CrashArgs) -> Outcome<Way> {
    let on = &args.on;
    match (on.power, &on.power_command) {
        (Some(PowerArg::Sysrq), _) => Ok(Way::Board(Outage::Sysrq, Duration::ZERO)),
        (Some(PowerArg::Watchdog), _) => Ok(Way::Board(Outage::Watchdog, Duration::ZERO)),
        (None, Some(off)) => {
            let pause = on.power_off_time.unwrap_or(OFF_TIME);
            Ok(Way::Command {
                off: off.clone(),
                on: on.power_on_command.clone().map(|on| (pause, on)),
            })
        }
        (None, None) => Err(Failure::input(
            "what takes the board's power? --power watchdog, --power sysrq, or --power-command CMD \
             (a switched socket)",
        )),
    }
}

/// `candidate` on the device of `site`, with the workload, its script and the cuts that were
/// `asked` for.
fn subject(
    args: &CrashArgs,
    site: &DeviceExecutor,
    asked: (&'static dyn Workload, Option<Vec<Op>>, Selection),
    way: &Way,
    candidate: &'static Candidate,
) -> Outcome<Subject> {
    let (workload, script, cuts) = asked;
    let place = site.cuttable(candidate, args.series.partition, args.series.seed)?;
    if place.recipe.image.is_some() {
        return Err(no_contract(candidate.name));
    }
    let (mount_options, contract) =
        promises(candidate.name, &place.recipe, args.series.mount.as_deref())?;
    let machine = &site.machine;
    let spec = Spec {
        fs: candidate.name.to_owned(),
        mount: args.series.mount.clone(),
        card: site.id().to_owned(),
        card_state: "as found".to_owned(),
        board: machine.name.clone(),
        clock: REAL.to_owned(),
        workload: workload.name().to_owned(),
        parameters: parameters(args.series.size, workload),
        script,
        returns: false,
        partition_bytes: place.span.bytes,
        faults: Faults::new(),
        cuts,
        recovery: 0,
        fsck: !args.series.no_fsck,
        seed: args.series.seed,
        measured: Some(measured(site, way, place.span.start)),
        made_by: Makers {
            version: lab_executor::version(),
            card_sha256: digest::sha256(site.device.identity.as_bytes()),
            board_sha256: machine.sha256.clone(),
            kernel_sha256: machine.kernel_sha256.clone(),
            agent_sha256: site.around.agent_sha256().to_owned(),
            userland_sha256: None,
            tools: place.tools.clone(),
        },
    };
    Ok(Subject {
        spec,
        candidate,
        workload,
        place,
        mount_options,
        contract,
        settle_ms: site.settle_ms(),
        wall_limit: site.wall_limit,
        interrupted: interrupt::state(),
    })
}

fn measured(site: &DeviceExecutor, way: &Way, partition_offset: u64) -> CutDevice {
    CutDevice {
        device: site.device.identity.clone(),
        power: way.name(),
        partition_offset,
        kernel: site.machine.kernel.clone(),
    }
}

/// Makes the cuts of `series` that are not kept already, while `left` bytes may be written.
fn make(
    series: &mut Series,
    field: &mut DeviceLease<'_>,
    way: &Way,
    left: &mut Option<u64>,
) -> Outcome {
    let Series { subject, campaign } = series;
    let mut cuts = BoardCuts {
        subject,
        lease: field,
        way,
        write_limit: left,
    };
    let mut lines = Lines {
        name: subject.candidate.name,
        all: 0,
        made: 0,
        begun: Instant::now(),
    };
    let made = campaign.run(&mut cuts, interrupt::state(), &mut lines);
    made.map_err(|failure| {
        let kept = counted(campaign.results().len(), "cut");
        let message = format!("{failure}; {kept} kept: the same command goes on from there");
        Failure::new(failure.kind, message)
    })
}

/// A line for each cut.
struct Lines {
    name: &'static str,
    all: usize,
    made: u32,
    begun: Instant,
}

impl CutObserver for Lines {
    fn known(&mut self, known: usize, all: usize) {
        self.all = all;
        if 0 < known && known < all {
            note!(
                "{}: {known} of {all} cuts were made before (--fresh makes them again)",
                self.name
            );
        }
    }

    fn made(&mut self, result: &Result, missing: usize) {
        self.made += 1;
        let left = self.begun.elapsed() / self.made * missing as u32;
        let left = match left.as_secs() {
            0 => String::new(),
            seconds => format!(" (about {seconds} s to go)"),
        };
        let (name, number, all) = (self.name, result.cut.number, self.all);
        note!("{name}: cut {number} of {all}: {}{left}", said(result));
    }
}

/// A cut in a line.
fn said(result: &Result) -> String {
    let away = result.measured.as_ref().map(|measured| measured.away);
    let away = away.map_or(String::new(), |away| format!(", back after {away}"));
    let broken = match result.broken {
        true => "; it BROKE a promise",
        false => "",
    };
    format!(
        "{}{away}: {}{broken}",
        cut_place(result),
        name_words(&result.condition)
    )
}

/// Tells what became of all series, in the terminal, as JSON and as a page.
fn report(
    args: &CrashArgs,
    site: &DeviceExecutor,
    workload: &dyn Workload,
    all: Vec<Series>,
    files: Option<ReportFolder>,
) -> Outcome<u8> {
    let (mut reports, mut rows) = (Vec::new(), Vec::new());
    let (mut partition_bytes, mut device) = (0, None);
    for Series { subject, campaign } in all {
        let cuts: Vec<Result> = campaign.into_results();
        let (series, fs) = (subject.spec.id(), subject.candidate.name);
        let options = subject.mount_options.as_str();
        rows.push(measured_row(fs, options, &series, &cuts));
        let report = CutReport::new(Some(series), fs, options, subject.contract, cuts);
        if !args.json {
            output::text(&cuts_text(&report, output::width()))?;
        }
        reports.push(report);
        partition_bytes = subject.spec.partition_bytes;
        device = subject.spec.measured;
    }
    if let Some(files) = files {
        let group = CrashGroup {
            faults: "a real device".to_owned(),
            workload: format!("workload {}", args.series.workload),
            rows,
            ..CrashGroup::default()
        };
        let page = CrashPage {
            title: format!("Power cuts on {}", site.id()),
            method: vec![METHOD.to_owned()],
            groups: vec![group],
            promises: promised(&reports),
            environment: environment(site, device.as_ref(), partition_bytes, args.series.seed),
            reproduce: command_line(),
            run: args.run.stamp(),
            judged: page::judged(args, &reports),
            ..CrashPage::default()
        };
        let path = files.write(&crash_files(&page))?;
        note!("report: {}", path.display());
    }
    tell_bound(args, &reports)?;
    let code = code_of(args, &reports);
    if args.json {
        output::document(&CrashRun {
            card: site.id(),
            board: &site.machine.name,
            clock: REAL.to_owned(),
            workload: workload.name(),
            parameters: &parameters(args.series.size, workload),
            partition_bytes,
            faults: &Faults::new(),
            seed: args.series.seed,
            measured: device.as_ref(),
            sums: CutSums::of(&reports),
            filesystems: reports,
        })?;
    }
    Ok(interrupt::or(code))
}

/// What the series ran on.
fn environment(
    site: &DeviceExecutor,
    device: Option<&CutDevice>,
    bytes: u64,
    seed: u64,
) -> Vec<Item> {
    let power = device.map_or(String::new(), |device| device.power.clone());
    let size = Bytes(site.device.bytes).to_string();
    vec![
        item("whichfs", env!("CARGO_PKG_VERSION"), ""),
        item("device", site.id(), &size),
        item("board", site.machine.name.clone(), ""),
        item("kernel", site.machine.kernel.clone(), ""),
        item("partition", Bytes(bytes), ""),
        item("power", power, "what took it"),
        item("clock", REAL, "measured"),
        item("seed", seed, ""),
    ]
}

/// Says what would be done, every command of it.
fn dry_run(site: &DeviceExecutor, subjects: &[Subject], way: &Way, count: u64) -> Outcome<u8> {
    let shown = site.shown();
    let size = Bytes(site.device.bytes);
    let head = format!(
        "{shown} has {size} and is called {}. For each filesystem the workload runs once without a \
         cut; for each of {} everything is made anew, the power goes by {}, and what is left is \
         looked at.",
        site.id(),
        counted(count as usize, "cut"),
        way.name()
    );
    output::paragraph(&head, 0)?;
    output::text_line("\nCommands:")?;
    let mut laid = None;
    for subject in subjects {
        let span = subject.place.span;
        if laid.replace(span) != Some(span) {
            for line in partition_commands(&site.device.name, span, site.device.sector_bytes) {
                output::text_line(&line)?;
            }
        }
        for argv in subject.mkfs() {
            let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
            output::text_line(&words.join(" "))?;
        }
        let (name, options) = (subject.candidate.name, &subject.mount_options);
        output::text_line(&format!("# {name}: mounted with {options:?}"))?;
    }
    let id = shell_word(site.id());
    output::text_line(&format!(
        "\nNothing was written. To erase the device: --destroy {id}"
    ))?;
    Ok(0)
}
