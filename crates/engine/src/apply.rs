//! How to apply a candidate: commands and the fstab line, for a person to paste.

use whichfs_fs::{Geometry, Helper, ImageBuild, Purpose, Recipe};
use whichfs_units::shell_word;

/// The user's partition in commands.
const PARTITION: &str = "$DEV";

/// The commands for `candidate` on a card of `geometry`, to be mounted on `target` for good;
/// `None` if it does not fit the card.
pub fn commands(geometry: &Geometry, candidate: &str, target: &str) -> Option<Vec<String>> {
    let candidate = whichfs_fs::find(candidate).ok()?;
    let recipe = candidate.recipe(geometry, Purpose::User).ok()?;
    let mut lines = of_recipe(&recipe, target);
    let packages = candidate.facts().packages.join(" ");
    lines.extend(beside(&recipe, target, &packages));
    Some(lines)
}

/// The process that belongs to it while it is mounted, if there is one: how it is started, and
/// in which packages it is.
fn beside(recipe: &Recipe, target: &str, packages: &str) -> Option<String> {
    let helper = recipe.helper.as_ref().filter(|helper| !helper.mounts)?;
    let words = helper.argv.iter().map(|argument| match argument.as_str() {
        Helper::MOUNT => target.to_owned(),
        argument => word(argument),
    });
    let command = words.collect::<Vec<_>>().join(" ");
    Some(format!(
        "# {packages}: mount.{} of it starts what must run while it is mounted; where mount(8) \
         does not, as BusyBox': {command}",
        recipe.kernel_fs
    ))
}

/// The commands of a recipe.
pub fn of_recipe(recipe: &Recipe, target: &str) -> Vec<String> {
    let partition = "DEV=/dev/mmcblk0p2   # your partition, begun on an AU boundary";
    let mut lines = vec![partition.to_owned()];
    let line = |argv: &[String]| {
        let words: Vec<String> = argv.iter().map(|argument| word(argument)).collect();
        words.join(" ")
    };
    lines.extend(recipe.mkfs.iter().map(|argv| line(argv)));
    if let Some(build) = &recipe.image {
        lines.push(
            line(&build.argv)
                .replace(ImageBuild::TREE, "rootfs")
                .replace(ImageBuild::IMAGE, "image"),
        );
        lines.push(format!(
            "dd if=image of={PARTITION} bs=1M oflag=direct conv=fsync"
        ));
    }
    let options = match recipe.mount_options.as_str() {
        "" => String::new(),
        options => format!(" -o {options}"),
    };
    lines.push(format!(
        "mount -t {}{options} {PARTITION} /mnt",
        recipe.kernel_fs
    ));
    // The root is checked before the others, if it is checked at all.
    let pass = match (recipe.fstab_passno, target) {
        (0, _) => 0,
        (_, "/") => 1,
        (pass, _) => pass,
    };
    lines.push(format!(
        "# fstab: PARTUUID=…  {target}  {}  {}  0  {pass}",
        recipe.kernel_fs, recipe.fstab_options
    ));
    lines
}

/// A word as a shell takes it, with the device's placeholder replaced.
fn word(word: &str) -> String {
    match word == Recipe::DEVICE {
        true => PARTITION.to_owned(),
        false => shell_word(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_run_beside_it_is_told() {
        let geometry = Geometry {
            partition_bytes: 1 << 30,
            page_bytes: 8 << 10,
            write_unit_bytes: 32 << 10,
            au_bytes: 4 << 20,
            discard: false,
            flush: false,
        };
        let last = |name| commands(&geometry, name, "/data").and_then(|mut all| all.pop());
        let told = last("nilfs2").unwrap_or_default();
        assert!(
            told.starts_with("# nilfs-tools: mount.nilfs2 of it starts")
                && told.ends_with("BusyBox': nilfs_cleanerd $DEV /data"),
            "{told}"
        );
        // The kernel's driver of NTFS needs nothing beside it, nor do others.
        for name in ["ntfs3", "ext4"] {
            let told = last(name).unwrap_or_default();
            assert!(told.starts_with("# fstab:"), "{told}");
        }
    }

    #[test]
    fn the_placeholder_becomes_the_partition_and_other_words_are_quoted() {
        assert_eq!(word(Recipe::DEVICE), PARTITION);
        assert_eq!(word("a b"), "'a b'");
    }
}
