//! The configuration of a kernel: which options are on.

use std::collections::BTreeSet;

/// Options that are built in (`y`) or modules (`m`), with which of the two.
pub fn options_of(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, value)| name.starts_with("CONFIG_") && matches!(*value, "y" | "m"))
        .collect()
}

/// Drivers of candidates that are modules.
pub fn candidates_in_modules<'a>(options: &[(&'a str, &str)]) -> Vec<&'a str> {
    let drivers: BTreeSet<&str> = (whichfs_fs::candidates().iter())
        .filter_map(|candidate| candidate.facts().kernel_options.first().copied())
        .collect();
    let modules = options.iter().filter(|(_, value)| *value == "m");
    modules
        .map(|(name, _)| *name)
        .filter(|name| drivers.contains(name))
        .collect()
}
