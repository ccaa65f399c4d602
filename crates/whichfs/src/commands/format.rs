//! `whichfs format`: partitions and tuned filesystems on a card or in an image.

use crate::cli::FormatArgs;
use crate::consent::CommandLineConsent;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::page::command_line;
use crate::{interrupt, output};
use std::path::Path;
use whichfs_device::{Access, DestroyLimits, HereError, Roots, TargetDisk, TargetKind, target};
use whichfs_engine::board::Board;
use whichfs_engine::device::confirm;
use whichfs_engine::medium::{self, KernelReport};
use whichfs_engine::{builder_files, places, signatures};
use whichfs_format::{
    Check, InterruptedFormat, check_commands, format_disk, format_image, steps, validate,
};
use whichfs_layout::{DiskPlan, Layout, TableKind, is_mount};
use whichfs_report::documents::format::{Formatted, format_text};
use whichfs_units::shell_word;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  sudo whichfs format /dev/sdX --fs f2fs --dry-run         every command, what it is called
  sudo whichfs format /dev/sdX --fs f2fs --card mycard.toml --destroy ID
  sudo whichfs format /dev/mmcblk1 --fs ext4 --layout boot-root-data --au 8M --destroy ID
  whichfs format card.img --size 2G --fs ext4 --layout ab   an image; no root is needed
  whichfs format --card a1-32gb --fs ext4 --board raspberry-pi-3 --emit bsp/
                                                           files for Yocto, genimage, repart …

A device is refused that is mounted, in use, the system's own, not removable (--internal) or
larger than --max-size, and all on it is lost only if --destroy names it. It is the same one
before each step, or nothing more is written. What was done is in a journal: after an
interruption the next call tells the state of the card.

Exit status: 0 done and verified, 1 a check found a fault, 2 bad usage or input, 3 a tool is
missing, 4 a tool failed, 130 interrupted.";

/// Runs the command.
pub fn run(args: &FormatArgs) -> Outcome<u8> {
    let Some(path) = &args.target else {
        return emit_alone(args);
    };
    let is_device = std::fs::metadata(path).is_ok_and(|meta| {
        use std::os::unix::fs::FileTypeExt;
        meta.file_type().is_block_device()
    });
    // What lies in /dev and is no file yet would be an image in memory by a slip.
    if is_device || path.starts_with("/dev") {
        return device(args, path);
    }
    image(args, path)
}

/// The layout that the arguments name.
fn layout(args: &FormatArgs) -> Outcome<Layout> {
    let layout = match (&args.layout, &args.board) {
        (Some(name), _) => builder_files::layout(name)?,
        (None, Some(_)) => builder_files::layout("boot-root")?,
        (None, None) if args.fs.is_none() => {
            return Err(Failure::input(
                "name a filesystem (--fs ext4; whichfs fs list names all) or a --layout",
            ));
        }
        (None, None) => {
            if !is_mount(&args.mount) {
                let mount = &args.mount;
                return Err(Failure::input(format!(
                    "--mount {mount:?}: expected an absolute path without blanks, quotes, #, $, \
                     \\, // and .."
                )));
            }
            Layout::single(TableKind::Gpt, "data", args.label.clone(), &args.mount)
        }
    };
    let table = args.table.map(Into::into);
    match &args.board {
        Some(board) => Board::open(board)?.lay_out(layout, table),
        None => Ok(layout.with_table(table)),
    }
}

fn emit_alone(args: &FormatArgs) -> Outcome<u8> {
    let told = KernelReport {
        discard: true,
        ..KernelReport::default()
    };
    let plan = plan(args, args.size, told)?;
    let files = emit(args, &plan)?;
    tell(args, &plan, None, &[], &[], &files)?;
    Ok(0)
}

fn emit(args: &FormatArgs, plan: &DiskPlan) -> Outcome<Vec<String>> {
    match &args.emit {
        Some(directory) => builder_files::write(plan, directory, &command_line()),
        None => Ok(Vec::new()),
    }
}

/// Formats a block device.
fn device(args: &FormatArgs, path: &Path) -> Outcome<u8> {
    if args.size.is_some() {
        return Err(Failure::input(
            "--size is of an image; a device has its own",
        ));
    }
    let roots = Roots::default();
    let limits = DestroyLimits {
        max_bytes: args.max_size,
        internal: args.internal,
    };
    let mut target_disk = TargetDisk::find(path, &limits, &roots)?;
    let journals = places::journals()?;
    if let Some(told) =
        InterruptedFormat::read(&journals, &target_disk.id).and_then(|left| left.told())
    {
        note!("the last run on this card {told}");
    }
    let told = KernelReport {
        erase_bytes: target_disk.erase_bytes,
        discard: target_disk.discard,
        sector_bytes: Some(target_disk.sector_bytes),
    };
    let plan = plan(args, Some(target_disk.bytes), told)?;
    validate(&plan)?;
    let mut commands = commands(&plan, target_disk.name());
    commands.extend(check_commands(&plan, target_disk.name()));
    let name = target_disk.id.clone();
    if args.dry_run {
        let files = emit(args, &plan)?;
        tell(args, &plan, Some(&name), &commands, &[], &files)?;
        return Ok(0);
    }
    let found = signatures::on(path).unwrap_or_default();
    let consent = CommandLineConsent {
        destroy: args.destroy.as_slice(),
        json: args.json,
    };
    confirm(&mut target_disk, &consent, &found, &roots)?;
    let flag = interrupt::flag();
    let checks = format_disk(&target_disk, &plan, &roots, &journals, flag, &mut |what| {
        if !args.json {
            note!("{what}");
        }
    })?;
    let files = emit(args, &plan)?;
    tell(args, &plan, Some(&name), &[], &checks, &files)?;
    Ok(code(&checks))
}

/// Every command, as a person would type it.
fn commands(plan: &DiskPlan, disk: &str) -> Vec<String> {
    steps(plan, disk)
        .iter()
        .flat_map(|step| step.shown())
        .collect()
}

/// Makes an image file.
fn image(args: &FormatArgs, path: &Path) -> Outcome<u8> {
    let there = std::fs::metadata(path).ok();
    if there.as_ref().is_some_and(std::fs::Metadata::is_dir) {
        let path = path.display();
        return Err(Failure::input(format!(
            "{path} is a directory; name a block device (lsblk lists them) or the file of an image"
        )));
    }
    let is_other = there.as_ref().is_some_and(|meta| !meta.is_file());
    if is_other || (there.is_none() && path.is_symlink()) {
        return Err(Failure::input(format!(
            "{} is {}; name a block device (lsblk lists them) or the file of an image",
            path.display(),
            match is_other {
                true => "neither a device nor a file",
                false => "a link to nothing",
            }
        )));
    }
    let size = match (&there, args.size) {
        (_, Some(size)) => Some(size),
        (Some(meta), None) if meta.len() > 0 => Some(meta.len()),
        _ => None,
    };
    let plan = plan(args, size, KernelReport::default())?;
    validate(&plan)?;
    if there.is_some_and(|meta| meta.len() > 0) {
        overwritten(args, path)?;
    }
    if args.dry_run {
        let commands = commands(&plan, "loopX");
        let files = emit(args, &plan)?;
        tell(args, &plan, None, &commands, &[], &files)?;
        return Ok(0);
    }
    let checks = format_image(path, &plan, interrupt::flag(), &mut |what| {
        if !args.json {
            note!("{what}");
        }
    })?;
    let files = emit(args, &plan)?;
    tell(args, &plan, None, &[], &checks, &files)?;
    Ok(code(&checks))
}

/// A file that is there and not empty is overwritten only if it is named, and nobody uses it.
fn overwritten(args: &FormatArgs, path: &Path) -> Outcome {
    let found = target(path, Access::Write, &Roots::default())?;
    let TargetKind::File { .. } = found.kind else {
        return Ok(());
    };
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (id, path) = (real.display().to_string(), path.display().to_string());
    match args.destroy.as_deref() {
        Some(given) if given == id => Ok(()),
        _ if args.dry_run => Ok(()),
        Some(given) => Err(HereError::OtherConfirmed {
            path,
            given: shell_word(given),
            id: shell_word(&id),
        }
        .into()),
        None => Err(HereError::NotConfirmed {
            path,
            id: shell_word(&id),
        }
        .into()),
    }
}

/// The partitions that the arguments ask for on a card of `size`.
fn plan(args: &FormatArgs, size: Option<u64>, told: KernelReport) -> Outcome<DiskPlan> {
    let (layout, seed) = (layout(args)?, builder_files::seed(args.seed)?);
    let medium = medium::of(&args.medium.knowledge(), size, told)?;
    Ok(DiskPlan::new(&layout, &medium, args.fs.as_deref(), seed)?)
}

fn code(checks: &[Check]) -> u8 {
    match checks.iter().any(Check::is_bad) {
        true => exit_code(Kind::No),
        false => 0,
    }
}

/// Tells the plan, what would be done, what was found, and what was written.
fn tell(
    args: &FormatArgs,
    plan: &DiskPlan,
    id: Option<&str>,
    commands: &[String],
    checks: &[Check],
    files: &[String],
) -> Outcome {
    let document = Formatted::new(plan, id, commands, checks, files);
    match args.json {
        true => output::document(&document),
        false => {
            let version = env!("CARGO_PKG_VERSION");
            let emit = args.emit.as_deref();
            let text = format_text(
                &document,
                plan,
                version,
                emit,
                args.dry_run,
                output::width(),
            );
            output::text(&text)
        }
    }
}
