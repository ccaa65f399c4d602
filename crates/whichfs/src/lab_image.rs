//! Images of filesystems whose tools take no tree: the lab makes and mounts the filesystem on the
//! modelled card, copies the files, and the card's contents are the image. No root, and no driver
//! in this machine's kernel is needed.

use crate::cli::ImageArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::interrupt;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use whichfs_card::Contents;
use whichfs_engine::board::{self, Board};
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::clock::Clock;
use whichfs_engine::digest::sha256;
use whichfs_engine::lab_executor::{DEVICE, LabExecutor, MOUNT_POINT, environment};
use whichfs_format::{Builder, Check, Tree, image_checks};
use whichfs_fs::{Candidate, Purpose, Recipe};
use whichfs_lab::{GuestSpec, LabError, Limits, SharedDirectory, available_cores};
use whichfs_layout::{Medium, labelled, mkfs};
use whichfs_trial::Step;
use whichfs_units::{Bytes, counted};

/// How long the lab may take.
const WALL: Duration = Duration::from_secs(3600);
/// Bytes that are copied at a time; those that are all zero stay a hole.
const CHUNK: usize = 64 << 10;
/// Name of the tree in the guest, and where programs find it (`agent/src/boot.rs`).
const TREE: &str = "tree";
const TREE_IN_GUEST: &str = "/mnt/.host/tree/.";

/// Makes the image that `args` name, of `bytes`, with the files of `tree`.
pub fn make(
    args: &ImageArgs,
    tree: &Tree,
    candidate: &Candidate,
    medium: &Medium,
    bytes: u64,
) -> Outcome<Vec<Check>> {
    tree.check(candidate)?;
    let name = args.medium.card.as_deref().unwrap_or(cards::DEFAULT);
    let mut board = board::DEFAULT.to_owned();
    let clock = Clock::parse("device", &mut board)?;
    let bench = LabExecutor::new(
        cards::open(name)?,
        CardState::Fresh,
        Board::open(&board)?,
        clock,
        WALL,
        1,
    )?;
    if bytes > bench.partition_bytes() {
        return Err(Failure::input(format!(
            "an image of {} does not fit the modelled card {name}, on which the lab makes it; \
             name a larger --card",
            Bytes(bytes)
        )));
    }
    // Identifiers in the lab are drawn from a seed: one for each tree and size.
    let key = sha256(format!("{} {} {bytes}", tree.root.display(), tree.bytes).as_bytes());
    let seed = u64::from_str_radix(&key[..16], 16).unwrap_or(1);
    let recipe = candidate
        .recipe(&medium.geometry(bytes), Purpose::Lab { seed })
        .map_err(|unfit| Failure::input(format!("--fs {}: {unfit}", args.fs)))?;
    let recipe = labelled(recipe, candidate, &args.label)?;
    if !args.json {
        note!(
            "{} in the lab, with {}",
            candidate.name,
            counted(tree.entries, "entry")
        );
    }
    let contents = filled(&bench, tree, candidate, &recipe, seed, bytes)?;
    let mut checks = write(args, &recipe, contents, bench.disk_offset(), bytes)?;
    checks.extend(tree.unsupported.lost(Builder::Lab));
    Ok(checks)
}

/// The contents of a card on which the lab made the filesystem and copied the files.
fn filled(
    bench: &LabExecutor,
    tree: &Tree,
    candidate: &Candidate,
    recipe: &Recipe,
    seed: u64,
    bytes: u64,
) -> Outcome<Contents> {
    let job = bench.job(steps(candidate, recipe), seed);
    let shared = [SharedDirectory {
        name: TREE,
        path: std::fs::canonicalize(&tree.root).unwrap_or_else(|_| tree.root.clone()),
    }];
    let spec = GuestSpec {
        shared: &shared,
        limits: Limits {
            silent_cpu: bench.limits.wall,
            ..bench.limits
        },
        ..bench.guest(&job, available_cores().last().copied())
    };
    let disk = bench.disk_of_bytes(&bench.card.profile, seed, bytes)?;
    let life = whichfs_lab::run(&spec, vec![disk], interrupt::flag(), &mut |_| ())
        .map_err(Failure::environment)?;
    match life.result {
        Ok(()) => {}
        Err(LabError::Interrupted) => {
            return Err(Failure::new(
                Kind::Interrupted,
                "interrupted; no image was made",
            ));
        }
        Err(error) => {
            let last = life.console.last().map_or("", String::as_str);
            let why =
                format!("the lab could not make the image: {error} {last}; is --size enough?");
            return Err(Failure::new(Kind::Trial, why));
        }
    }
    let disk = life.disks.into_iter().next();
    let disk = disk.ok_or_else(|| Failure::environment("the lab gave no disk back"))?;
    Ok(disk.into_contents())
}

/// mkfs, mount, copy, unmount.
fn steps(candidate: &Candidate, recipe: &Recipe) -> Vec<Step> {
    let run = |argv: Vec<String>, env: &BTreeMap<String, String>, dir: &str| Step::Run {
        phase: None,
        argv,
        env: environment(env),
        dir: dir.into(),
        stdin: String::new(),
        show: false,
        any_status: false,
        keeps_rights: false,
    };
    let made = mkfs(recipe, DEVICE).into_iter();
    let mut steps: Vec<Step> = made.map(|argv| run(argv, &recipe.mkfs_env, "/")).collect();
    steps.push(Step::Mount {
        phase: None,
        source: DEVICE.into(),
        target: MOUNT_POINT.into(),
        kernel_fs: recipe.kernel_fs.into(),
        options: recipe.mount_options.clone(),
    });
    let keep = match candidate.facts().unix_permissions {
        true => "-a",
        false => "-r",
    };
    let copy = ["cp", keep, TREE_IN_GUEST, "."].map(str::to_owned);
    steps.push(run(copy.to_vec(), &BTreeMap::new(), MOUNT_POINT));
    steps.push(Step::Unmount {
        phase: None,
        target: MOUNT_POINT.into(),
    });
    steps
}

/// Writes the image, whole or not at all, and checks it.
fn write(
    args: &ImageArgs,
    recipe: &Recipe,
    mut contents: Contents,
    offset: u64,
    bytes: u64,
) -> Outcome<Vec<Check>> {
    let mut part = args.output.clone().into_os_string();
    part.push(format!(".{}.part", std::process::id()));
    let part = std::path::PathBuf::from(part);
    let failed = |error: &dyn std::fmt::Display| {
        let _ = std::fs::remove_file(&part);
        Failure::input(format!(
            "cannot write {}: {error}; name a file in a directory with room",
            args.output.display()
        ))
    };
    let file = File::create(&part).map_err(|e| failed(&e))?;
    file.set_len(bytes).map_err(|e| failed(&e))?;
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < bytes {
        let wanted = CHUNK.min(usize::try_from(bytes - at).unwrap_or(CHUNK));
        let chunk = &mut buffer[..wanted];
        contents.read(offset + at, chunk).map_err(|e| failed(&e))?;
        if chunk.iter().any(|&byte| byte != 0) {
            file.write_all_at(chunk, at).map_err(|e| failed(&e))?;
        }
        at += wanted as u64;
    }
    file.sync_all().map_err(|e| failed(&e))?;
    let checks = image_checks(&part, recipe)?;
    match checks.iter().any(Check::is_bad) {
        true => drop(std::fs::remove_file(&part)),
        false => std::fs::rename(&part, &args.output).map_err(|e| failed(&e))?,
    }
    Ok(checks)
}
