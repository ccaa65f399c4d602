//! What a device is, and what trials do to it, for people.

use super::{DeviceExecutor, DeviceRun};
use std::collections::BTreeSet;
use whichfs_format::partition_commands;
use whichfs_units::{Bytes, shell_word};

impl DeviceExecutor {
    /// What the device is, in a sentence.
    pub fn described(&self) -> String {
        if let Some(dir) = self.inside() {
            return format!(
                "{} is on {}, of {}, mounted on {} with {}.",
                dir.shown,
                dir.id,
                Bytes(dir.bytes),
                dir.place,
                dir.options
            );
        }
        let unit = &self.medium.unit;
        format!(
            "{} has {} and is called {}; allocation unit of {}: {}.",
            self.shown(),
            Bytes(self.device.bytes),
            self.id(),
            Bytes(unit.bytes),
            unit.why
        )
    }

    /// Every command that `runs` use on the device, each once, in their order.
    pub fn commands<'r>(&self, runs: impl Iterator<Item = &'r DeviceRun>) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut lines: Vec<String> = Vec::new();
        for run in runs {
            let mut own = partition_commands(&self.device.name, run.span, self.device.sector_bytes);
            own.extend(run.commands.iter().map(|argv| {
                let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
                words.join(" ")
            }));
            let options = &run.identity.mount_options;
            if !run.commands.is_empty() {
                let candidate = &run.identity.candidate;
                own.push(format!("# {candidate}: mounted with {options:?}"));
            }
            lines.extend(own.into_iter().filter(|line| seen.insert(line.clone())));
        }
        lines
    }
}
