//! `whichfs image`: a tuned filesystem with a directory's files in it, without root.

use crate::cli::ImageArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{interrupt, output};
use std::path::Path;
use whichfs_engine::lab_image::{self, LabImage};
use whichfs_engine::medium::{self, KernelReport};
use whichfs_engine::{cards, places};
use whichfs_format::{Builder, Check, Tree, builder, tree_image};
use whichfs_fs::{Candidate, Purpose};
use whichfs_layout::{Medium, labelled};
use whichfs_report::documents::image::{ImageDocument, image_text};
use whichfs_units::Bytes;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs image rootfs/ --fs ext4 --card a1-32gb --size 512M -o root.ext4
  whichfs image rootfs/ --fs squashfs-zstd -o root.squashfs
  whichfs image files/ --fs exfat --au 4M --size 256M -o data.exfat     by way of the lab
  fakeroot whichfs image rootfs/ --fs f2fs --size 1G -o root.f2fs       owned by root

Owners and modes are those of the tree; run it under fakeroot, as image builders do, if they are
to be root's. Filesystems whose tools take no tree (exfat, ntfs3, nilfs2, reiserfs, jfs) are
mounted in the lab, on the modelled card, and the files are copied there.";

/// Runs the command.
pub fn run(args: &ImageArgs) -> Outcome<u8> {
    let candidate = whichfs_fs::find(&args.fs).map_err(|e| Failure::input(format!("--fs: {e}")))?;
    places::refuse_device(&args.output)?;
    if args.output.exists() && !args.force {
        return Err(Failure::input(format!(
            "{} is there; name another file, or say --force to overwrite it",
            args.output.display()
        )));
    }
    let tree = Tree::open(&args.tree)?;
    if is_within(&args.output, &tree.root) {
        return Err(Failure::input(format!(
            "{} lies in the tree that it is to hold; name a file outside of {}",
            args.output.display(),
            args.tree.display()
        )));
    }
    let (medium, bytes) = sized(args, candidate, &tree)?;
    let recipe = candidate.recipe(&medium.geometry(bytes), Purpose::User);
    let recipe = recipe.map_err(|unfit| {
        Failure::input(format!("--fs {}: {unfit}; say a larger --size", args.fs))
    })?;
    let recipe = labelled(recipe, candidate, &args.label)?;
    let by_lab = args.lab || builder(&recipe) == Builder::Lab;
    let mut say = |what: &str| {
        if !args.json {
            note!("{what}");
        }
    };
    let cancelled = interrupt::flag();
    let checks = match by_lab && recipe.image.is_none() {
        true => {
            let image = LabImage {
                tree: &tree,
                candidate,
                medium: &medium,
                bytes,
                card: args.medium.card.as_deref(),
                label: &args.label,
                output: &args.output,
            };
            lab_image::make(&image, cancelled, &mut say)?
        }
        false => {
            let output = &args.output;
            tree_image(
                &tree, candidate, &recipe, bytes, output, cancelled, &mut say,
            )?
        }
    };
    tell(args, &medium, bytes, &recipe.tuning, &checks)
}

/// Whether the file `output`, which need not be there yet, lies in the directory `tree`.
fn is_within(output: &Path, tree: &Path) -> bool {
    let above = match output.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    match [above, tree].map(std::fs::canonicalize) {
        [Ok(above), Ok(tree)] => above.starts_with(tree),
        _ => false,
    }
}

/// The card, and the size of the image: what is said, else what the tree needs.
fn sized(args: &ImageArgs, candidate: &Candidate, tree: &Tree) -> Outcome<(Medium, u64)> {
    // Where nothing is said of the card, its capacity does not matter beside the image.
    let capacity = match args.medium.card {
        Some(_) => None,
        None => Some(
            args.size
                .unwrap_or(0)
                .max(cards::geometry(&cards::open(cards::DEFAULT)?.profile).partition_bytes),
        ),
    };
    let medium = medium::of(
        &args.medium.knowledge(),
        capacity,
        KernelReport {
            discard: true,
            ..KernelReport::default()
        },
    )?;
    let unit = medium.unit.bytes;
    let bytes = match args.size {
        Some(size) => size,
        None => tree.image_bytes(candidate, unit),
    };
    if bytes % 4096 != 0 || bytes == 0 {
        return Err(Failure::input(format!(
            "--size {bytes}: expected a multiple of 4K, best of the allocation unit of {}",
            Bytes(unit)
        )));
    }
    Ok((medium, bytes))
}

fn tell(
    args: &ImageArgs,
    medium: &Medium,
    bytes: u64,
    tuning: &[(String, String)],
    checks: &[Check],
) -> Outcome<u8> {
    let document = ImageDocument {
        image: args.output.display().to_string(),
        fs: &args.fs,
        bytes: std::fs::metadata(&args.output).map_or(bytes, |meta| meta.len()),
        au_bytes: medium.unit.bytes,
        au_why: &medium.unit.why,
        tuning,
        checks,
    };
    match args.json {
        true => output::document(&document)?,
        false => output::text(&image_text(&document, output::width()))?,
    }
    Ok(match document.is_bad() {
        true => exit_code(Kind::No),
        false => 0,
    })
}
