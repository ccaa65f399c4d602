//! Images of read-only filesystems, built by the tools of the sealed userland in a guest of the
//! lab: this machine's tools and libraries have no part in their bytes.

use crate::guest_places::DEVICE;
use crate::images::{HostTools, ImageBuilder};
use crate::lab_executor::LabExecutor;
use crate::shared;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::Contents;
use whichfs_fs::{ImageBuild, Recipe};
use whichfs_lab::{CpuPrices, Disk, GuestLimits, GuestSpec};
use whichfs_layout::superblock::{self, SuperblockFigure};
use whichfs_trial::Step;
use whichfs_units::MIB;
use whichfs_workload::environment;

/// Seed of the guest: it draws nothing that reaches an image.
const SEED: u64 = 1;
/// How long a tool may take: strong compression of a large tree takes minutes.
const WALL: Duration = Duration::from_secs(3600);
/// What tools pad images to.
const PADDING: u64 = 4096;
/// Where programs of a guest find the shared tree (`agent/src/boot.rs`).
const TREE_IN_GUEST: &str = "/mnt/.host/tree/.";

impl ImageBuilder for LabExecutor {
    fn version(&self, recipe: &Recipe) -> String {
        match self.userland_sha256() {
            Some(sha256) => format!("userland {sha256} kernel {}", self.kernel.sha256),
            None => HostTools.version(recipe),
        }
    }

    fn build(&self, build: &ImageBuild, tree: &Path, image: &Path) -> Result<(), String> {
        if self.userland.is_none() {
            return HostTools.build(build, tree, image);
        }
        let disk = self.built(build, tree)?;
        let offset = disk.offset;
        write(disk.into_contents(), offset, image)
    }
}

impl LabExecutor {
    /// A disk that begins with the image of `tree`.
    fn built(&self, build: &ImageBuild, tree: &Path) -> Result<Disk, String> {
        let word = |word: &String| match word.as_str() {
            ImageBuild::TREE => TREE_IN_GUEST.to_owned(),
            ImageBuild::IMAGE => DEVICE.to_owned(),
            word => word.to_owned(),
        };
        let step = Step::Run {
            phase: None,
            argv: build.argv.iter().map(word).collect(),
            env: environment(&build.env),
            dir: "/".into(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        };
        let job = self.job(vec![step], SEED);
        let shared = shared::directories(Some(tree), None);
        let spec = GuestSpec {
            shared: &shared,
            // Nobody times it.
            cpu: CpuPrices::default(),
            limits: GuestLimits {
                wall: WALL,
                silent_cpu: WALL,
                ..self.limits
            },
            ..self.guest(&job, None)
        };
        let disk = self.disk(&self.card.profile, SEED);
        let disk = disk.map_err(|failure| failure.message)?;
        let never = AtomicBool::new(false);
        let life = whichfs_lab::run(&spec, vec![disk], &never, &mut |_| ());
        let life = life.map_err(|error| error.to_string())?;
        life.result.map_err(|error| error.to_string())?;
        let disk = life.disks.into_iter().next();
        disk.ok_or_else(|| "the lab gave no disk back".into())
    }
}

/// Writes the image at `offset` of `contents`, as long as its superblock says, to `path`.
fn write(mut contents: Contents, offset: u64, path: &Path) -> Result<(), String> {
    let mut read = |at: u64, bytes: usize| {
        let mut out = vec![0; bytes];
        let read = contents.read(offset + at, &mut out);
        read.map(|()| out).map_err(|error| error.to_string())
    };
    let found = superblock::read(&mut read, 0)?;
    let bytes = found.and_then(|superblock| superblock.figure(SuperblockFigure::Bytes));
    let bytes = bytes.ok_or("the tool wrote no image that is known")?;
    let end = bytes.next_multiple_of(PADDING);
    let file = File::create(path).map_err(|error| error.to_string())?;
    let mut at = 0;
    while at < end {
        let length = MIB.min(end - at);
        let chunk = read(at, usize::try_from(length).unwrap_or(usize::MAX))?;
        let written = file.write_all_at(&chunk, at);
        written.map_err(|error| error.to_string())?;
        at += length;
    }
    Ok(())
}
