//! `whichfs lab exec`: any program of this machine on a formatted, mounted card.

use crate::cli::ExecArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{interrupt, output};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use whichfs_engine::board::Board;
use whichfs_engine::cards;
use whichfs_engine::clock::Clock;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::lab_executor::trial_runner::figures;
use whichfs_engine::lab_program::LabProgram;
use whichfs_engine::visible;
use whichfs_lab::{GuestLimits, GuestRun, GuestSpec, HostView, LabError, Stamped, available_cores};
use whichfs_report::documents::exec::{LabExec, cpu_line, device_lines};
use whichfs_trial::{Event, Job, PhaseFigures};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs lab exec --card a1-32gb --fs ext4 -- dd if=/dev/zero of=x bs=1M count=64 conv=fsync
  whichfs lab exec --card class4-4gb --fs f2fs -- bonnie++ -u root -d . -s 256M -r 64M -n 4
  whichfs lab exec --fs btrfs --mount compress=zstd -- \\
      fio --name=r --rw=randwrite --size=32M --bs=4k --fsync=1
  whichfs lab exec --fs ext4 --mkfs 'mkfs.ext4 -F -b 1024 {device}' -- df -h .
  whichfs lab exec --fs ext4 --see /srv/app -- /srv/app/benchmark

Program and mkfs are this machine's. The program sees this machine's files read-only, but no
secrets (--see limits it further), the card as its working directory, and virtual time. A
program that reads the time-stamp counter itself sees the host's time; whichfs therefore gives
fio the option --clocksource=clock_gettime.";

/// Runs the command.
pub fn run(args: &ExecArgs) -> Outcome<u8> {
    whichfs_fs::find(&args.fs).map_err(|e| Failure::input(format!("--fs: {e}")))?;
    let bench = bench(args)?;
    let line = args.mkfs.iter().chain(&args.command);
    visible::check(&line.cloned().collect::<Vec<_>>(), bench.view())?;
    let exec = LabProgram {
        fs: &args.fs,
        mkfs: args.mkfs.as_deref(),
        mount: args.mount.as_deref(),
        seed: args.seed,
        command: &args.command,
    };
    let steps = exec.steps(&bench)?;
    let job = Job {
        counts_work: true,
        acknowledged: false,
        ..bench.job(steps, args.seed)
    };
    let spec = GuestSpec {
        // A program of the user may compute without a word as long as the wall limit lets it.
        limits: GuestLimits {
            silent_cpu: bench.limits.wall,
            ..bench.limits
        },
        ..bench.guest(&job, available_cores().last().copied())
    };
    let disk = bench.disk(&bench.card.of_seed(args.seed), args.seed)?;
    let begun = Instant::now();
    let mut heard = Heard::default();
    let life = whichfs_lab::run(&spec, vec![disk], interrupt::flag(), &mut |stamped| {
        heard.hear(stamped, !args.json);
    })
    .map_err(Failure::environment)?;
    summary(args, &bench, &life, heard, begun.elapsed())
}

fn bench(args: &ExecArgs) -> Outcome<LabExecutor> {
    let place = &args.place;
    let card = cards::open(&place.card)?;
    let mut board = place.machine.board.clone();
    let clock = Clock::parse(&place.machine.clock, &mut board)?;
    let wall_limit = Duration::from_secs(place.machine.wall_limit);
    LabExecutor::seeing_host(
        card,
        place.machine.card_state.into(),
        Board::open(&board)?,
        clock,
        wall_limit,
        1,
        view(&args.see)?,
    )
}

/// What the guest sees of this machine.
fn view(see: &[PathBuf]) -> Outcome<HostView> {
    if let (false, (_, missing)) = (see.is_empty(), whichfs_lab::confinement())
        && !missing.is_empty()
    {
        return Err(Failure::environment(format!(
            "--see needs {}, which this machine's kernel lacks: leave --see out, or boot a kernel \
             with CONFIG_SECURITY_LANDLOCK and lsm=landlock",
            missing.join(", ")
        )));
    }
    let real = |directory: &PathBuf| {
        let shown = directory.display();
        let real = directory.canonicalize();
        let real = real.map_err(|error| format!("{error}; name a directory that is there"));
        match real {
            Ok(path) if path.is_dir() => Ok(path),
            Ok(_) => Err(Failure::input(format!(
                "--see {shown}: this is a file; name its directory"
            ))),
            Err(why) => Err(Failure::input(format!("--see {shown}: {why}"))),
        }
    };
    let only = see.iter().map(real).collect::<Outcome<_>>()?;
    Ok(HostView { only })
}

/// What the program said, where it is not passed on at once.
#[derive(Default)]
struct Heard {
    stdout: String,
    stderr: String,
    /// Why what it said could not be passed on.
    lost: Option<std::io::Error>,
}

impl Heard {
    fn hear(&mut self, stamped: &Stamped, pass_on: bool) {
        let Event::Output { stream, text } = &stamped.event else {
            return;
        };
        let is_error = stream == "stderr";
        match (pass_on, is_error) {
            (true, true) => output::note(format_args!("{text}")),
            // No reason to stop the guest: the summary is still wanted.
            (true, false) => {
                let mut out = std::io::stdout().lock();
                let passed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                self.lost = self.lost.take().or(passed.err());
            }
            (false, true) => self.stderr.push_str(text),
            (false, false) => self.stdout.push_str(text),
        }
    }
}

fn summary(
    args: &ExecArgs,
    bench: &LabExecutor,
    life: &GuestRun,
    heard: Heard,
    wall: Duration,
) -> Outcome<u8> {
    let (phases, metrics) = figures(&life.events, &bench.clock.prices(&bench.board));
    let exit_status = metrics
        .iter()
        .find(|m| m.metric == "exit_status")
        .map(|m| m.value as i64);
    let ran = phases.iter().find(|phase| phase.phase == LabProgram::PHASE);
    let virtual_s = ran.map_or(0.0, PhaseFigures::seconds);
    let device = ran.map(|phase| phase.device.clone()).unwrap_or_default();
    // A program that takes its time is no fault of this machine.
    let other = |error: &&LabError| !matches!(error, LabError::WallLimit(_));
    let host = life.result.as_ref().err().filter(other);
    let host = host.and_then(LabError::blames_host);
    let kind = match life.result {
        Err(LabError::Interrupted) => Kind::Interrupted,
        _ if host.is_some() => Kind::Environment,
        _ => Kind::Trial,
    };
    let error = host.or_else(|| life.result.as_ref().err().map(ToString::to_string));
    let code = match (&error, exit_status) {
        (Some(_), _) => exit_code(kind),
        (None, Some(0)) => 0,
        (None, _) => exit_code(Kind::No),
    };
    if args.json {
        output::document(&LabExec {
            card: &bench.card.name,
            board: &bench.board.name,
            clock: bench.clock.name(&bench.board),
            fs: &args.fs,
            command: &args.command,
            exit_status,
            stdout: heard.stdout,
            stderr: heard.stderr,
            virtual_s,
            device,
            phases,
            trace_sha256: &life.trace_sha256,
            error,
            log: if life.result.is_err() {
                &life.console
            } else {
                &[]
            },
        })?;
        return Ok(code);
    }
    if let Some(error) = error {
        let log: Vec<&str> = life.console.iter().map(String::as_str).collect();
        let message = format!("the guest failed: {error}\n{}", log.join("\n"));
        return Err(Failure::new(kind, message));
    }
    let status = exit_status.map_or("unknown".to_owned(), |status| status.to_string());
    note!("--");
    note!(
        "exit status {status}, {virtual_s:.6} s of virtual time, {:.1} s of wall time",
        wall.as_secs_f64()
    );
    note!("{}", device_lines(&device));
    if let Some(line) = ran.and_then(cpu_line) {
        note!("{line}");
    }
    match heard.lost {
        Some(error) => output::lost(&error).map(|()| code),
        None => Ok(code),
    }
}
