//! Images of filesystems whose tools take no tree: the lab makes and mounts the filesystem on the
//! modelled card, copies the files, and the card's contents are the image. No root, and no driver
//! in this machine's kernel is needed.

use crate::board::{self, Board};
use crate::cards::{self, CardState};
use crate::clock::Clock;
use crate::digest::sha256;
use crate::error::{Error as Failure, ErrorKind as Kind, Outcome};
use crate::guest_places::{DEVICE, MOUNT_POINT};
use crate::lab_executor::LabExecutor;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::Contents;
use whichfs_format::{Builder, Check, PartialImage, Tree, image_checks};
use whichfs_fs::{Candidate, Purpose, Recipe};
use whichfs_lab::{GuestLimits, GuestSpec, LabError, SharedDirectory, available_cores};
use whichfs_layout::{Medium, labelled, mkfs};
use whichfs_trial::Step;
use whichfs_units::{Bytes, counted};
use whichfs_workload::environment;

/// How long the lab may take.
const WALL: Duration = Duration::from_secs(3600);
/// Bytes that are copied at a time; those that are all zero stay a hole.
const CHUNK: usize = 64 << 10;
/// Name of the tree in the guest, and where programs find it (`agent/src/boot.rs`).
const TREE: &str = "tree";
const TREE_IN_GUEST: &str = "/mnt/.host/tree/.";

/// An image that the lab makes.
pub struct LabImage<'a> {
    /// The files that it gets.
    pub tree: &'a Tree,
    /// Filesystem that the image holds.
    pub candidate: &'a Candidate,
    /// What it is tuned to.
    pub medium: &'a Medium,
    /// Size of the image.
    pub bytes: u64,
    /// Name or profile of the modelled card on which it is made; none is the default card.
    pub card: Option<&'a str>,
    /// Its label; empty is none.
    pub label: &'a str,
    /// Where the image is written.
    pub output: &'a Path,
}

/// Makes an image; `tell` hears what is going on.
///
/// # Errors
/// The tree or the image fits neither filesystem nor card; the lab cannot run; the file cannot be
/// written; `cancelled`.
pub fn make(
    image: &LabImage<'_>,
    cancelled: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> Outcome<Vec<Check>> {
    let &LabImage {
        tree,
        candidate,
        medium,
        bytes,
        ..
    } = image;
    tree.check(candidate)?;
    let name = image.card.unwrap_or(cards::DEFAULT);
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
             name a larger card",
            Bytes(bytes)
        )));
    }
    // Identifiers in the lab are drawn from a seed: one for each tree and size.
    let key = sha256(format!("{} {} {bytes}", tree.root.display(), tree.bytes).as_bytes());
    let seed = u64::from_str_radix(&key[..16], 16).unwrap_or(1);
    let recipe = candidate
        .recipe(&medium.geometry(bytes), Purpose::Lab { seed })
        .map_err(|unfit| Failure::input(format!("{}: {unfit}", candidate.name)))?;
    let recipe = labelled(recipe, candidate, image.label)?;
    let entries = counted(tree.entries, "entry");
    tell(&format!("{} in the lab, with {entries}", candidate.name));
    let contents = filled(&bench, image, &recipe, seed, cancelled)?;
    let mut checks = write(image.output, &recipe, contents, bench.disk_offset(), bytes)?;
    checks.extend(tree.unsupported.lost(Builder::Lab));
    Ok(checks)
}

/// The contents of a card on which the lab made the filesystem and copied the files.
fn filled(
    bench: &LabExecutor,
    image: &LabImage<'_>,
    recipe: &Recipe,
    seed: u64,
    cancelled: &AtomicBool,
) -> Outcome<Contents> {
    let tree = image.tree;
    let job = bench.job(steps(image.candidate, recipe), seed);
    let shared = [SharedDirectory {
        name: TREE,
        path: std::fs::canonicalize(&tree.root).unwrap_or_else(|_| tree.root.clone()),
    }];
    let spec = GuestSpec {
        shared: &shared,
        limits: GuestLimits {
            silent_cpu: bench.limits.wall,
            ..bench.limits
        },
        ..bench.guest(&job, available_cores().last().copied())
    };
    let disk = bench.disk_of_bytes(&bench.card.profile, seed, image.bytes)?;
    let life = whichfs_lab::run(&spec, vec![disk], cancelled, &mut |_| ())
        .map_err(Failure::environment)?;
    match life.result {
        Ok(()) => {}
        Err(LabError::Interrupted) => {
            return Err(Failure::new(
                Kind::Interrupted,
                "interrupted; no image was made",
            ));
        }
        Err(error) if error.blames_host().is_some() && !matches!(error, LabError::WallLimit(_)) => {
            let why = error.blames_host().unwrap_or_default();
            return Err(Failure::environment(format!("no image was made: {why}")));
        }
        Err(error) => {
            let last = life.console.last().map_or("", String::as_str);
            let why = format!(
                "the lab could not make the image: {error} {last}; is the image large enough?"
            );
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
    output: &Path,
    recipe: &Recipe,
    mut contents: Contents,
    offset: u64,
    bytes: u64,
) -> Outcome<Vec<Check>> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::input(format!(
            "cannot write {}: {error}; name a file in a directory with room",
            output.display()
        ))
    };
    let part = PartialImage::beside(output, "image", bytes)?;
    let file = File::options().write(true).open(&part.path);
    let file = file.map_err(|e| failed(&e))?;
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
    let checks = image_checks(&part.path, recipe)?;
    if !checks.iter().any(Check::is_bad) {
        part.keep(output)?;
    }
    Ok(checks)
}
