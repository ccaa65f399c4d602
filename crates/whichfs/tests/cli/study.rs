//! `whichfs study`: what is listed, what is refused before any guest begins.

use crate::sandbox::Sandbox;

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let all = [&["study", "run"], arguments].concat();
    Sandbox::new().run(&all).fails(2, words);
}

#[test]
fn wrong_names_are_refused_with_those_that_are_right() {
    refused(&["elc2015"], &["elc2015-power", "elc2015-corruption"]);
    refused(&["no/such.toml"], &["no/such.toml", "can be read"]);
    refused(
        &["elc2015-power", "--only-fs", "vfat"],
        &["--only-fs vfat", "ext4, btrfs"],
    );
    refused(
        &["elc2015-power", "--cuts", "0"],
        &["--cuts", "1..=1000000"],
    );
}

#[test]
fn without_a_kernel_the_remedy_is_told() {
    let run = Sandbox::new().run(&["study", "run", "sync-mounts", "--out", "out"]);
    run.fails(3, &["make kernel"]);
}
