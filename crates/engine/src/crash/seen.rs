//! What agents said of a filesystem that was looked at, in the lab or on a board.

use super::look::{AGAIN, CHECK, MOUNT, REPAIR, USE};
use whichfs_crash::{Checked, FoundTree};
use whichfs_lab::Stamped;
use whichfs_trial::Event;
use whichfs_units::Nanos;

/// What an inspection told: found entries and sectors, in order.
type Told = Vec<Event>;

/// What the agent said of an image.
#[derive(Default)]
pub struct Seen {
    /// What was done with it.
    pub checked: Checked,
    /// What was found, as it was told: at first and again.
    found: Told,
    found_again: Told,
    pub mount: Option<Nanos>,
    pub fsck_check: Option<Nanos>,
    pub fsck_repair: Option<Nanos>,
    /// The last phase was that of the checker or of the repair.
    in_checker: bool,
}

impl Seen {
    /// A hang while its checker or its repair runs is theirs.
    pub fn is_of_checker(&mut self) {
        if self.in_checker {
            self.checked.checker_hung = self.checked.hung.take();
        }
    }

    /// Whether its repair was run and refused, and it mounts neither before nor after that.
    pub fn wants_rescue(&self) -> bool {
        let checked = &self.checked;
        let refused = checked.repair.is_some_and(|status| status != 0);
        let fails =
            |mounted: &Option<std::result::Result<(), String>>| matches!(mounted, Some(Err(_)));
        refused && fails(&checked.mounted) && fails(&checked.mounted_again)
    }

    /// What was found when it was mounted first.
    pub fn found(&self) -> FoundTree {
        gather(&self.found)
    }

    /// What was found when it was mounted again.
    pub fn found_again(&self) -> FoundTree {
        gather(&self.found_again)
    }

    /// Whether all was found again as it had been.
    pub fn found_the_same(&self) -> bool {
        self.found == self.found_again
    }

    /// Takes up events in their order.
    pub fn hear_events(&mut self, events: Vec<Stamped>) {
        let seen = self;
        let mut phase = String::new();
        let mut begun = Nanos(0);
        let mut again = false;
        for stamped in events {
            match stamped.event {
                Event::PhaseBegin { phase: name } => {
                    begun = stamped.at;
                    again |= name == AGAIN;
                    phase = name;
                }
                Event::PhaseEnd { phase: name, .. } => match name.as_str() {
                    MOUNT => {
                        seen.checked.mounted = Some(Ok(()));
                        seen.checked.usable = Some(Ok(()));
                        seen.mount = Some(stamped.at.saturating_sub(begun));
                    }
                    AGAIN => seen.checked.mounted_again = Some(Ok(())),
                    CHECK => seen.fsck_check = Some(stamped.at.saturating_sub(begun)),
                    REPAIR => {
                        // With the last resort, where it came to that.
                        let before = seen.fsck_repair.unwrap_or_default();
                        seen.fsck_repair = Some(before + stamped.at.saturating_sub(begun));
                    }
                    _ => {}
                },
                Event::Failed { attempt, message } => seen.failed(&attempt, &message),
                Event::Metric { name, value, .. } if name == "exit_status" => {
                    let status = Some(value as i64);
                    match phase.as_str() {
                        CHECK => seen.checked.check = status,
                        REPAIR => seen.checked.repair = status,
                        _ => {}
                    }
                }
                Event::KernelLog { lines, .. } => seen.log(&phase).extend(lines),
                event @ (Event::Found { .. } | Event::Sectors { .. }) => {
                    seen.current(again).push(event);
                }
                _ => {}
            }
        }
        seen.in_checker = matches!(phase.as_str(), CHECK | REPAIR);
    }

    /// The messages of the first mount, or those after it.
    fn log(&mut self, phase: &str) -> &mut Vec<String> {
        match phase {
            CHECK | REPAIR | AGAIN => &mut self.checked.messages_again,
            _ => &mut self.checked.messages,
        }
    }

    fn current(&mut self, again: bool) -> &mut Told {
        if again {
            &mut self.found_again
        } else {
            &mut self.found
        }
    }

    fn failed(&mut self, attempt: &str, message: &str) {
        let failed = Some(Err(message.to_owned()));
        match attempt {
            MOUNT if self.checked.mounted.is_none() => self.checked.mounted = failed,
            USE => self.checked.usable = failed,
            AGAIN => self.checked.mounted_again = failed,
            // An unmount that fails, a checker that cannot be started.
            _ => self.checked.messages.push(format!("{attempt}: {message}")),
        }
    }
}

/// All that was found, of what was told.
fn gather(told: &Told) -> FoundTree {
    let mut found = FoundTree::default();
    for event in told {
        match event {
            Event::Found { entries } => {
                for entry in entries {
                    let what = (entry.node.clone(), entry.mode);
                    if found.entries.insert(entry.path.clone(), what).is_some() {
                        found.repeated.insert(entry.path.clone());
                    }
                    if !entry.zeros.is_empty() {
                        let zeros = entry.zeros.clone();
                        found.zeros.insert(entry.path.clone(), zeros);
                    }
                    if !entry.sectors.is_empty() {
                        let sectors = entry.sectors.clone();
                        found.sectors.insert(entry.path.clone(), sectors);
                    }
                }
            }
            Event::Sectors {
                path,
                first,
                digests,
            } => {
                let all = found.sectors.entry(path.clone()).or_default();
                if *first == 0 {
                    all.clear();
                }
                all.extend_from_slice(digests);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_trial::{DeviceFigures, DirectoryEntry, Node};

    fn found(path: &str, size: u64) -> Event {
        let entry = DirectoryEntry {
            path: path.to_owned(),
            node: Node::File { size, digest: 7 },
            mode: 0o644,
            sectors: vec![size as u32],
            zeros: Vec::new(),
        };
        Event::Found {
            entries: vec![entry],
        }
    }

    /// What was seen where the first mount found `first` and the second told `again`.
    fn seen(first: Vec<Event>, again: Vec<Event>) -> Seen {
        let phase = || Event::PhaseBegin {
            phase: AGAIN.to_owned(),
        };
        let all = [first, vec![phase()], again].concat();
        let stamp = |event| Stamped {
            at: Nanos(1),
            event,
            device: DeviceFigures::default(),
            others: Vec::new(),
        };
        let mut seen = Seen::default();
        seen.hear_events(all.into_iter().map(stamp).collect());
        seen
    }

    #[test]
    fn what_was_found_again_is_compared_with_what_was_found() {
        let first = || vec![found("a", 1), found("b", 2), found("c", 3)];
        let same = seen(first(), first());
        assert!(same.found_the_same());
        assert_eq!(same.found(), same.found_again());

        let other = seen(first(), vec![found("a", 1), found("b", 9), found("c", 3)]);
        assert!(!other.found_the_same());
        assert_ne!(other.found_again(), other.found());

        let less = seen(first(), vec![found("a", 1), found("b", 2)]);
        assert!(!less.found_the_same());
        assert_eq!(less.found_again().entries.len(), 2);
    }

    #[test]
    fn a_path_that_is_told_twice_is_told() {
        let twice = seen(vec![found("a", 1), found("a", 1)], Vec::new());
        assert!(twice.found().repeated.contains("a"));
        assert!(twice.found_again().entries.is_empty());
    }
}
