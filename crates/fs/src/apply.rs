//! How to apply a recipe: commands and the fstab line, for a person to paste.

use crate::{ImageBuild, Recipe};
use whichfs_units::shell_word;

/// The user's partition in commands.
const PARTITION: &str = "$DEV";

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
pub fn word(word: &str) -> String {
    match word == Recipe::DEVICE {
        true => PARTITION.to_owned(),
        false => shell_word(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_becomes_the_partition_and_other_words_are_quoted() {
        assert_eq!(word(Recipe::DEVICE), PARTITION);
        assert_eq!(word("a b"), "'a b'");
    }
}
