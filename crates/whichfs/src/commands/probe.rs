//! `whichfs probe`: what a card is like, from timings.

use super::passed_over;
use super::probe_progress::Watcher;
use crate::cli::{ProbeArgs, WriteHow};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{interrupt, output};
use std::path::Path;
use whichfs_card::{Card, Contents, builtin};
use whichfs_curves::{Modelled, TimedDevice};
use whichfs_device::{Access, Raw, Roots, TargetKind, target};
use whichfs_engine::cards;
use whichfs_engine::digest::sha256;
use whichfs_engine::logs;
use whichfs_engine::places::WholeFile;
use whichfs_engine::probe_state;
use whichfs_engine::signatures;
use whichfs_probe::{Findings, ProbeBudget, ProbeOptions, Writing};
use whichfs_report::documents::probe::{findings_summary, findings_text};
use whichfs_report::{sweep_text, sweeps_csv};
use whichfs_units::Bytes;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs probe a1-32gb                        a modelled card, in virtual time
  sudo whichfs probe /dev/mmcblk0              reads only: page, AU, zones, read rates
  sudo whichfs probe /dev/sdX --write          writes too, and puts back what was there
  sudo whichfs probe /dev/sdX --write=destroy --budget 200M,10m --save mycard.toml
  sudo whichfs probe /dev/sdX --write --for rootfs --save mycard.toml   what decides that need
  sudo whichfs probe /dev/sdX --write --capacity   is all of it real?
  sudo whichfs probe /dev/sdX --write --put-back   after a check that was killed
  whichfs probe a1-32gb --sweep --json > a1.json   rates of 18 block sizes
  whichfs probe --from flashbench.log          what a saved flashbench output tells

A device that is mounted, in use or the system's own is refused. Without --write nothing is
written; --write=destroy refuses a device that holds a filesystem or a partition table unless
--destroy names it.";

/// Probes a card, or interprets a log.
pub fn run(args: &ProbeArgs) -> Outcome<u8> {
    if let Some(log) = &args.from {
        return interpret(args, log);
    }
    let Some(name) = &args.target else {
        return Err(Failure::input(
            "name a card (whichfs card list), a device (lsblk lists them) or a file to probe",
        ));
    };
    let mut opened = open(name, args)?;
    let device = &mut *opened.device;
    if args.put_back {
        return super::capacity::put_back(device, name, &opened.identity, args);
    }
    if opened.is_real {
        permit(&mut opened, name, args)?;
    }
    let device = &mut *opened.device;
    if args.flashbench_compatible {
        let table = logs::align_table(device)?;
        return output::text_line(table.trim_end()).map(|()| 0);
    }
    if args.capacity {
        let identity = opened.is_real.then_some(&*opened.identity);
        return super::capacity::run(device, identity, args);
    }
    if args.sweep {
        return sweep(args, name, &mut opened);
    }
    measure(args, &mut opened, &|findings| show(args, name, findings))
}

/// Refuses a device that a killed check left marked, or whose data nobody gave up.
fn permit(opened: &mut Opened, name: &str, args: &ProbeArgs) -> Outcome {
    super::capacity::refuse_marked(&mut *opened.device, name, &opened.identity)?;
    if args.write == Some(WriteHow::Destroy) {
        let found = || signatures::on(Path::new(name));
        signatures::permit(name, &opened.identity, args.destroy.as_deref(), found)
            .map_err(|refused| refused.about("--destroy"))?;
    }
    Ok(())
}

/// Sweeps block sizes.
fn sweep(args: &ProbeArgs, name: &str, opened: &mut Opened) -> Outcome<u8> {
    if let Some(why) = &opened.sparse {
        return Err(Failure::input(why));
    }
    let options = options(args)?;
    let mut watcher = Watcher::new(None, args.json || args.csv);
    let asked = (name, opened.identity.as_str());
    let found = whichfs_probe::sweep(&mut *opened.device, asked, &options, &mut watcher);
    output::clear_bar();
    match (args.json, args.csv) {
        (true, _) => output::document(&found)?,
        (_, true) => {
            output::text(&sweeps_csv(std::slice::from_ref(&found)).map_err(Failure::environment)?)?
        }
        _ => output::text_line(sweep_text(&found, output::width()).trim_end())?,
    }
    Ok(interrupt::or(match found.cells.is_empty() {
        true => exit_code(Kind::No),
        false => 0,
    }))
}

/// Probes the device `name` with writes, and saves its profile as `path`. What it finds is told
/// on standard error. An interrupted one goes on from there.
///
/// # Errors
/// The device is in use, or holds data that `identity` does not give up; nothing was found.
pub fn save(name: &str, how: WriteHow, identity: &str, path: &Path) -> Outcome {
    let state = path.with_extension("probe.json");
    let args = ProbeArgs {
        target: Some(name.to_owned()),
        write: Some(how),
        destroy: (how == WriteHow::Destroy).then(|| identity.to_owned()),
        resume: Some(state.clone()),
        save: Some(path.to_owned()),
        seed: 1,
        ..ProbeArgs::default()
    };
    let mut opened = open(name, &args)?;
    permit(&mut opened, name, &args)?;
    let code = measure(&args, &mut opened, &|findings| {
        note!("{}", told(name, findings));
        Ok(ended(findings))
    })?;
    match code {
        0 => {
            // It is done: the next probe begins anew.
            let _ = std::fs::remove_file(state);
            Ok(())
        }
        code if code == exit_code(Kind::Interrupted) => Err(Failure::new(
            Kind::Interrupted,
            "interrupted; the same command goes on with the probe",
        )),
        _ => Err(Failure::new(
            Kind::No,
            format!("the probe of {name} found nothing that a profile could be made of"),
        )),
    }
}

/// Measures, shows what was found, and only then writes the files that were asked for.
fn measure(
    args: &ProbeArgs,
    opened: &mut Opened,
    show: &dyn Fn(&Findings) -> Outcome<u8>,
) -> Outcome<u8> {
    if let Some(why) = &opened.sparse {
        return Err(Failure::input(why));
    }
    let state = probe_state::begin(args.resume.as_deref(), &opened.identity, options(args)?)?;
    let profile = args.save.as_deref().map(WholeFile::new).transpose()?;
    let drawing = args.plot.as_deref().map(WholeFile::new).transpose()?;
    if let Some(path) = &args.resume {
        // Whether the state can be kept is known before the first request, too.
        WholeFile::new(path)?;
    }
    let mut watcher = Watcher::new(args.resume.as_deref(), args.json);
    if let Some(name) = &args.need {
        let capacity = opened.device.capacity_bytes();
        watcher.narrowing = Some(super::choose::narrowing(name, capacity)?);
    }
    let findings = whichfs_probe::resume(&mut *opened.device, state, &mut watcher);
    output::clear_bar();
    let findings = match opened.is_file {
        true => findings.of_a_file(),
        false => findings,
    };
    let findings = match opened.page_cache {
        Some(why) => findings.of_no_card(why),
        None => findings,
    };
    let code = show(&findings)?;
    if let Some(failed) = &watcher.failed {
        alert!("whichfs: {failed}");
    }
    if let Some(file) = drawing {
        file.write(whichfs_report::probe_svg(&findings).as_bytes())?;
    }
    match profile {
        // What was not found would be the defaults of a composed card.
        Some(_) if code != 0 => {
            alert!("whichfs: --save: ended before the card was known: no profile")
        }
        Some(file) => file.write(findings.to_profile().map_err(Failure::input)?.as_bytes())?,
        None => {}
    }
    Ok(code)
}

/// What was found, in five lines, or with --verbose with all evidence.
fn told(name: &str, findings: &Findings) -> String {
    match output::is_verbose() {
        true => findings_text(name, findings, output::width()),
        false => findings_summary(name, findings, output::width()),
    }
}

/// A device under test.
struct Opened {
    device: Box<dyn TimedDevice>,
    /// What tells it from others.
    identity: String,
    /// Whether a filesystem lies between it and the card.
    is_file: bool,
    /// Whether it outlives the program.
    is_real: bool,
    /// Why it cannot be probed, where it is a file with holes.
    sparse: Option<String>,
    /// Why its timings are no card's.
    page_cache: Option<&'static str>,
}

/// A modelled card by name or profile file, else a device or file of this machine.
fn open(name: &str, args: &ProbeArgs) -> Outcome<Opened> {
    let modelled = builtin().iter().any(|(known, _)| *known == name) || name.ends_with(".toml");
    if modelled || !(name.contains('/') || Path::new(name).exists()) {
        return modelled_card(name, args);
    }
    let access = match args.write {
        Some(_) => Access::Write,
        None => Access::Read,
    };
    let roots = Roots::default();
    let target = target(Path::new(name), access, &roots)?;
    let raw = Raw::open(&target, access, &roots)?;
    Ok(Opened {
        device: Box::new(raw),
        is_file: matches!(target.kind, TargetKind::File { .. }),
        sparse: target.sparse().map(|[bytes, there]| {
            format!(
                "{name}: only {} of its {} are on its filesystem (it is sparse or compressed), and \
                 reading the rest touches no card: probe the device, or a file that is written in \
                 full",
                Bytes(there),
                Bytes(bytes)
            )
        }),
        page_cache: target.page_cache(&roots),
        identity: target.identity,
        is_real: true,
    })
}

fn modelled_card(name: &str, args: &ProbeArgs) -> Outcome<Opened> {
    // A name that is neither a card nor a path gets the nearest names of cards.
    let profile = cards::open(name)?.profile;
    let capacity = profile.capacity_bytes();
    let mut device = Modelled::new(Card::used(&profile, args.seed), capacity);
    if args.capacity {
        let contents = Contents::new(capacity).laid_out(profile.layout());
        device = device.keeping(contents);
    }
    let profile = &sha256(profile.canonical().as_bytes())[..16];
    Ok(Opened {
        device: Box::new(device),
        identity: format!("modelled card, profile {profile}, seed {}", args.seed),
        is_file: false,
        sparse: None,
        page_cache: None,
        is_real: false,
    })
}

/// What the probe may do.
fn options(args: &ProbeArgs) -> Outcome<ProbeOptions> {
    let budget = ProbeBudget::parse(&args.budget);
    Ok(ProbeOptions {
        seed: args.seed,
        writing: match args.write {
            None => Writing::Never,
            Some(WriteHow::Preserve) => Writing::Preserve,
            Some(WriteHow::Destroy) => Writing::Destroy,
        },
        budget: budget.map_err(|why| Failure::input(format!("--budget {why}")))?,
    })
}

fn interpret(args: &ProbeArgs, log: &Path) -> Outcome<u8> {
    let run = logs::read_one(
        &[log.to_owned()],
        args.run.as_deref(),
        &passed_over(args.json),
    )?;
    let findings = whichfs_probe::interpret(&run.curves);
    let drawing = args.plot.as_deref().map(WholeFile::new).transpose()?;
    let code = show(args, &run.name, &findings)?;
    if let Some(file) = drawing {
        file.write(whichfs_report::probe_svg(&findings).as_bytes())?;
    }
    Ok(code)
}

/// Prints the findings; the exit status that they deserve.
fn show(args: &ProbeArgs, name: &str, findings: &Findings) -> Outcome<u8> {
    if args.json {
        output::document(findings)?;
    } else {
        output::text_line(&told(name, findings))?;
    }
    Ok(ended(findings))
}

/// The exit status that `findings` deserve. What reached its budget still told something; nothing
/// at all is a "no".
fn ended(findings: &Findings) -> u8 {
    let mut values = findings.values.values();
    let any = values.any(|finding| finding.value.is_some());
    interrupt::or(if any { 0 } else { exit_code(Kind::No) })
}
