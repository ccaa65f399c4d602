//! What the recipe of a candidate becomes in a trial, wherever that runs.

use crate::error::Error;
use crate::images::Images;
use crate::prepare_error::PrepareError;
use crate::{external_journal, helper};
use whichfs_fs::{ImageBuild, Recipe};
use whichfs_study::Variant;
use whichfs_workload::Workload;

/// Changes `recipe` of the candidate called `name` as `variant` says.
///
/// # Errors
/// The candidate does not take what the variant asks for.
pub fn apply_variant(
    recipe: &mut Recipe,
    variant: &Variant,
    name: &str,
) -> Result<(), PrepareError> {
    let wrong =
        |why| PrepareError::Failed(Error::input(format!("{name}, {}: {why}", variant.name)));
    recipe.mount_options = variant.options(&recipe.mount_options);
    helper::apply_variant(recipe, variant, name)?;
    external_journal::apply_variant(recipe, variant, name)?;
    for argv in &mut recipe.mkfs {
        *argv = variant.command(argv, Recipe::DEVICE).map_err(wrong)?;
    }
    if let Some(build) = &mut recipe.image {
        // mksquashfs takes its options last, the others before the image.
        let place = match build.argv.first().map(String::as_str) {
            Some("mksquashfs") => "",
            _ => ImageBuild::IMAGE,
        };
        build.argv = variant.command(&build.argv, place).map_err(wrong)?;
    }
    Ok(())
}

/// Checks that `workload` has a tree if `recipe` is one for an image.
///
/// # Errors
/// It has none: the candidate is excluded.
pub fn require_tree(recipe: &Recipe, workload: &dyn Workload) -> Result<(), PrepareError> {
    if recipe.image.is_none() || Images::can_hold(workload) {
        return Ok(());
    }
    let name = workload.name();
    Err(PrepareError::Excluded {
        why: format!("it is read-only, and {name} has no tree to put into an image"),
        source: None,
    })
}

/// Checks that no tools of `candidate` are `missing`: here, or on the board `board`.
///
/// # Errors
/// Some are: the candidate is excluded, with the command that installs them.
pub fn missing_tools(
    candidate: &whichfs_fs::Candidate,
    missing: &[&str],
    board: Option<&str>,
) -> Result<(), PrepareError> {
    if missing.is_empty() {
        return Ok(());
    }
    let place = board.map_or(String::new(), |board| format!(" on {board}"));
    Err(PrepareError::Excluded {
        why: format!(
            "{} is not installed{place}: apt-get install {}",
            missing.join(", "),
            candidate.facts().packages.join(" ")
        ),
        source: None,
    })
}
