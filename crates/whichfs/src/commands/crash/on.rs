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
use whichfs_engine::crash::measured::{CutRequest, Subject};
use whichfs_engine::crash::power::Way;
use whichfs_engine::crash::script;
use whichfs_engine::crash::spec::{CutDevice, Selection};
use whichfs_engine::device::{DeviceExecutor, DeviceLease};
use whichfs_engine::places;
use whichfs_engine::report_folder::ReportFolder;
use whichfs_format::partition_commands;
use whichfs_remote::{DevicePlace, Outage};
use whichfs_report::documents::crash::{
    CutReport, CutSums, cut_line, cuts_text, measured_row, promised,
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
    let place: DevicePlace = place.parse()?;
    let mut way = way(args, &place)?;
    let cuts = selection(args)?;
    if let DevicePlace::Here(path) = &place {
        return Err(Failure::input(format!(
            "--on {}: the power of this machine cannot be cut by itself; name a board: \
             ssh://USER@HOST/dev/mmcblk0 or labgrid:PLACE/dev/mmcblk0",
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
    let series = &args.series;
    let wall_limit = Duration::from_secs(series.place.machine.wall_limit);
    let (options, state) = (args.here.options(), interrupt::state());
    let mut site = DeviceExecutor::open(&place, &options, wall_limit, state)?;
    let request = CutRequest {
        workload,
        parameters: parameters(series.size, workload),
        script,
        mount: series.mount.clone(),
        partition_bytes: series.partition,
        cuts,
        fsck: !series.no_fsck,
        seed: series.seed,
        power: way.name(),
    };
    let subject = |candidate| Subject::of(&site, candidate, &request, interrupt::state());
    let subjects = candidates.into_iter().map(subject);
    let subjects: Vec<Subject> = subjects.collect::<std::result::Result<_, _>>()?;
    let cuts = request.cuts;
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
        way.prepare(&mut field)?;
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

/// What takes the power of the board at `place`, as far as it is known before the board is asked.
fn way(args: &CrashArgs, place: &DevicePlace) -> Outcome<Way> {
    let on = &args.on;
    let off = on.power_off_time.unwrap_or(OFF_TIME);
    let board = |by| Ok(Way::Board(by, Duration::ZERO));
    let timed = on.power_on_command.is_some() || on.power == Some(PowerArg::Labgrid);
    if on.power_off_time.is_some() && !timed {
        return Err(Failure::input(
            "--power-off-time: only --power labgrid and --power-on-command wait before they give \
             the power again; leave it out",
        ));
    }
    match (on.power, &on.power_command, place) {
        (Some(PowerArg::Sysrq), ..) => board(Outage::Sysrq),
        (Some(PowerArg::Watchdog), ..) => board(Outage::Watchdog),
        (Some(PowerArg::Labgrid), _, DevicePlace::Labgrid { place, .. }) => Ok(Way::Labgrid {
            place: place.clone(),
            lead: Duration::ZERO,
            off,
        }),
        (Some(PowerArg::Labgrid), ..) => Err(Failure::input(
            "--power labgrid: the lab knows the power of its own boards alone; name the board by \
             its place: --on labgrid:PLACE/dev/mmcblk0",
        )),
        (None, Some(command), _) => Ok(Way::Command {
            off: command.clone(),
            on: on.power_on_command.clone().map(|on| (off, on)),
        }),
        (None, None, _) => Err(Failure::input(
            "what takes the board's power? --power watchdog, sysrq or labgrid, or --power-command \
             CMD (a switched socket)",
        )),
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
        note!("{name}: cut {number} of {all}: {}{left}", cut_line(result));
    }
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
        item("board", &site.machine.name, ""),
        item("kernel", &site.machine.kernel, ""),
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
