//! What became of a filesystem after one cut.

use crate::contract::Contract;
use crate::judge::PathFinding;
use crate::messages::{KernelMessage, classify};
use crate::outcome::PathOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// All that was done with an image, in this order. `None`: it did not come to that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Checked {
    /// Whether the first mount succeeded, before any check; the error if not.
    pub mounted: Option<Result<(), String>>,
    /// Kernel messages from the first mount to its unmount.
    pub messages: Vec<String>,
    /// Whether a file could be made, written, renamed, read and deleted.
    pub usable: Option<Result<(), String>>,
    /// Findings of the first mount.
    pub findings: Vec<PathFinding>,
    /// Exit status of the check that changes nothing.
    pub check: Option<i64>,
    /// Exit status of the repair.
    pub repair: Option<i64>,
    /// Whether it mounted after the repair.
    pub mounted_again: Option<Result<(), String>>,
    /// Kernel messages from the check on.
    pub messages_again: Vec<String>,
    /// Findings after the repair.
    pub findings_again: Vec<PathFinding>,
    /// The kernel panicked: its line.
    pub panicked: Option<String>,
    /// The guest hung: how.
    pub hung: Option<String>,
    /// The filesystem's checker or its repair did not end: how. What follows was not done.
    pub checker_hung: Option<String>,
    /// Requests that the card answered with an error meanwhile.
    pub failed_requests: u64,
    /// Sectors that the card gave with a wrong bit, and no error.
    pub corrupted_reads: u64,
    /// Writes that the card had answered with an error in the run, before the cut.
    #[serde(default)]
    pub refused_writes: u64,
}

/// What became of a filesystem; the worse, the later.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FilesystemCondition {
    /// It mounts as if nothing had been.
    Clean,
    /// It mounts after recovering its journal or log.
    Recovered,
    /// It mounts but can only be read.
    ReadOnly,
    /// It mounts and works, but is not whole: its checker finds faults, or a directory lists a name
    /// twice.
    NeedsCheck,
    /// It does not mount or work; after the repair it does, and nothing durable is lost.
    Repaired,
    /// After the repair it mounts and works, and durable data are lost that were there before, or
    /// nothing could be read before.
    RepairedWithLoss,
    /// It does not mount, and has no checker or that was not run.
    MountFailed,
    /// It does not mount, nor after the repair.
    Unfixable,
    /// It does not mount, nor after the repair, and the card answers requests with errors.
    CardFailed,
    /// It mounts, and something that was durable is lost.
    DurableLost,
    /// It mounts, and something holds bytes that it never had, without a word of the kernel.
    SilentCorruption,
    /// The kernel failed: BUG, oops, panic.
    Oops,
    /// The kernel hangs.
    Hang,
}

/// What became of it, and whether that breaks the filesystem's contract.
///
/// No filesystem promises more than its card gives. Where the card answers with errors, it breaks
/// nothing to pass an error on, to refuse to write, or not to mount, and what a repair throws
/// away then is the card's loss. Wrong or missing data without an error break the contract all
/// the same, and so does a kernel that fails. A card that refused writes in the run has had its
/// filesystem stop there: that it wants a check breaks nothing, what was promised is promised.
pub fn verdict(checked: &Checked, contract: &Contract) -> (FilesystemCondition, bool) {
    let later = later(checked);
    let condition = condition(checked, &later);
    let excused = checked.failed_requests > 0;
    let stopped = excused || checked.refused_writes > 0;
    let broken = match condition {
        FilesystemCondition::Clean
        | FilesystemCondition::Recovered
        | FilesystemCondition::CardFailed => false,
        FilesystemCondition::ReadOnly
        | FilesystemCondition::NeedsCheck
        | FilesystemCondition::Repaired
        | FilesystemCondition::RepairedWithLoss
        | FilesystemCondition::MountFailed
        | FilesystemCondition::Unfixable => contract.structure && !stopped,
        FilesystemCondition::DurableLost | FilesystemCondition::SilentCorruption => false,
        FilesystemCondition::Oops | FilesystemCondition::Hang => true,
    };
    let breaks = |finding: &&PathFinding| match finding.outcome {
        PathOutcome::ReadError if excused => false,
        // A fault of the structure, as a check that is wanted.
        PathOutcome::ListedTwice if stopped => false,
        _ => finding.broken,
    };
    let mut found = checked.findings.iter().chain(later);
    (condition, broken || found.any(|finding| breaks(&finding)))
}

/// What was found only after it was used and repaired, of files that were not hurt before, as far
/// as it matters; nothing where the card answered with errors, since what goes then is the card's
/// loss.
fn later(checked: &Checked) -> Vec<&PathFinding> {
    if checked.failed_requests > 0 || checked.refused_writes > 0 {
        return Vec::new();
    }
    let found = checked.findings_again.iter();
    let mut found: Vec<&PathFinding> = found.filter(|finding| finding.matters()).collect();
    if found.is_empty() {
        return found;
    }
    let mut hurt = BTreeSet::new();
    let mut same = BTreeSet::new();
    for finding in &checked.findings {
        let path = finding.path.as_str();
        if finding.broken || finding.is_loss() {
            hurt.insert(path);
        }
        same.insert((path, finding.outcome));
    }
    found.retain(|finding| {
        let path = finding.path.as_str();
        !hurt.contains(path) && !same.contains(&(path, finding.outcome))
    });
    found
}

fn condition(checked: &Checked, later: &[&PathFinding]) -> FilesystemCondition {
    let worst = worst_of(&checked.messages, checked);
    let ever = worst.max(worst_of(&checked.messages_again, checked));
    if checked.hung.is_some() || ever == KernelMessage::Hang {
        return FilesystemCondition::Hang;
    }
    if checked.panicked.is_some() || ever == KernelMessage::Oops {
        return FilesystemCondition::Oops;
    }
    if !matches!(checked.mounted, Some(Ok(()))) {
        return after_failure(checked);
    }
    let silent = |finding: &PathFinding| finding.outcome == PathOutcome::WrongSilently;
    if checked.findings.iter().any(silent) || later.iter().any(|finding| silent(finding)) {
        return FilesystemCondition::SilentCorruption;
    }
    if checked.findings.iter().any(PathFinding::is_loss) {
        return FilesystemCondition::DurableLost;
    }
    let complains = |status: Option<i64>| status.is_some_and(|status| status != 0);
    if later.iter().any(|finding| finding.is_loss()) {
        return match complains(checked.check) || complains(checked.repair) {
            true => FilesystemCondition::RepairedWithLoss,
            false => FilesystemCondition::DurableLost,
        };
    }
    match &checked.usable {
        Some(Err(why)) if why.contains("EROFS") => return FilesystemCondition::ReadOnly,
        // Full, as the workload left it: that is no damage.
        Some(Err(why)) if why.contains("ENOSPC") => {}
        // All of it was read; a repair does not make the card write.
        Some(Err(_)) if checked.failed_requests > 0 => return FilesystemCondition::ReadOnly,
        Some(Err(_)) if checked.repair.is_none() && checked.checker_hung.is_none() => {
            return FilesystemCondition::NeedsCheck;
        }
        Some(Err(_)) => return after_failure(checked),
        _ => {}
    }
    let mut kinds = checked.messages.iter().map(|line| classify(line));
    let recovered = kinds.any(|kind| kind == KernelMessage::Recovery);
    // It asks to be checked, did not help itself, and nothing checked it.
    let unchecked = worst == KernelMessage::WantsCheck && checked.check.is_none() && !recovered;
    let finds = complains(checked.check) || checked.checker_hung.is_some();
    // Where its checker sees nothing, the listing does.
    let mut listed = checked.findings.iter().chain(later.iter().copied());
    let twice = listed.any(|finding| finding.outcome == PathOutcome::ListedTwice);
    if worst >= KernelMessage::ReadOnly || finds || unchecked || twice {
        return FilesystemCondition::NeedsCheck;
    }
    match recovered {
        true => FilesystemCondition::Recovered,
        false => FilesystemCondition::Clean,
    }
}

/// The worst that the kernel said. That a card answered with an error says nothing of the
/// filesystem; without such an answer the filesystem asked for what is not there.
fn worst_of(messages: &[String], checked: &Checked) -> KernelMessage {
    let kinds = messages.iter().map(|line| classify(line));
    let of_filesystem =
        kinds.filter(|kind| checked.failed_requests == 0 || *kind != KernelMessage::DeviceError);
    of_filesystem.max().unwrap_or(KernelMessage::Plain)
}

/// It did not mount or work: what the repair made of it.
fn after_failure(checked: &Checked) -> FilesystemCondition {
    let card_failed = checked.failed_requests > 0;
    match &checked.mounted_again {
        None | Some(Err(_)) if card_failed => FilesystemCondition::CardFailed,
        None if checked.repair.is_some() || checked.checker_hung.is_some() => {
            FilesystemCondition::Unfixable
        }
        None => FilesystemCondition::MountFailed,
        Some(Err(_)) => FilesystemCondition::Unfixable,
        Some(Ok(())) if checked.findings_again.iter().any(|finding| finding.durable) => {
            FilesystemCondition::RepairedWithLoss
        }
        Some(Ok(())) => FilesystemCondition::Repaired,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::contract::contract;

    fn good() -> Checked {
        Checked {
            mounted: Some(Ok(())),
            usable: Some(Ok(())),
            check: Some(0),
            repair: Some(0),
            mounted_again: Some(Ok(())),
            ..Checked::default()
        }
    }

    fn finding(outcome: PathOutcome, broken: bool) -> PathFinding {
        PathFinding {
            path: "a".into(),
            outcome,
            broken,
            durable: broken,
            what: String::new(),
        }
    }

    fn of(change: impl FnOnce(&mut Checked)) -> (FilesystemCondition, bool) {
        let mut checked = good();
        change(&mut checked);
        verdict(&checked, &contract("ext4", "").unwrap())
    }

    #[test]
    fn each_way_to_end_is_told() {
        assert_eq!(of(|_| {}), (FilesystemCondition::Clean, false));
        let recovered = |checked: &mut Checked| {
            checked.messages = vec!["EXT4-fs (vda): recovery complete".into()];
        };
        assert_eq!(of(recovered), (FilesystemCondition::Recovered, false));
        assert_eq!(
            of(|c| c.check = Some(4)),
            (FilesystemCondition::NeedsCheck, true)
        );
        let read_only = |checked: &mut Checked| {
            checked.usable = Some(Err("create x: EROFS: Read-only file system".into()));
        };
        assert_eq!(of(read_only), (FilesystemCondition::ReadOnly, true));
        assert_eq!(
            of(|c| c.mounted = Some(Err("EIO".into()))),
            (FilesystemCondition::Repaired, true)
        );
        let gone = |checked: &mut Checked| {
            checked.mounted = Some(Err("EIO".into()));
            checked.mounted_again = Some(Err("EIO".into()));
        };
        assert_eq!(of(gone), (FilesystemCondition::Unfixable, true));
        let lost = |c: &mut Checked| c.findings = vec![finding(PathOutcome::Missing, true)];
        assert_eq!(of(lost), (FilesystemCondition::DurableLost, true));
        let legal = |c: &mut Checked| c.findings = vec![finding(PathOutcome::Truncated, false)];
        assert_eq!(of(legal), (FilesystemCondition::Clean, false));
        let twice = |c: &mut Checked| {
            let durable = false;
            c.findings = vec![PathFinding {
                durable,
                ..finding(PathOutcome::ListedTwice, true)
            }];
        };
        assert_eq!(
            of(twice),
            (FilesystemCondition::NeedsCheck, true),
            "nothing is lost"
        );
        let by_card = |c: &mut Checked| {
            twice(c);
            c.refused_writes = 1;
        };
        assert_eq!(of(by_card), (FilesystemCondition::NeedsCheck, false));
        let silent = |c: &mut Checked| c.findings = vec![finding(PathOutcome::WrongSilently, true)];
        assert_eq!(of(silent), (FilesystemCondition::SilentCorruption, true));
        assert_eq!(
            of(|c| c.hung = Some("spins".into())),
            (FilesystemCondition::Hang, true)
        );
        let oops = |c: &mut Checked| c.messages = vec!["kernel BUG at fs/x.c:1!".into()];
        assert_eq!(of(oops), (FilesystemCondition::Oops, true));
        let stuck = |c: &mut Checked| {
            c.messages_again = vec!["INFO: task a:1 blocked for more than 120 seconds.".into()];
        };
        assert_eq!(of(stuck), (FilesystemCondition::Hang, true));
    }

    #[test]
    fn what_a_card_refuses_is_no_broken_promise_of_the_filesystem() {
        let refusing = |change: &dyn Fn(&mut Checked)| {
            of(|checked| {
                checked.failed_requests = 3;
                checked.messages = vec!["I/O error, dev vda, sector 8 op 0x0:(READ)".into()];
                change(checked);
            })
        };
        assert_eq!(
            refusing(&|_| {}),
            (FilesystemCondition::Clean, false),
            "it passed"
        );
        let read_error = |c: &mut Checked| c.findings = vec![finding(PathOutcome::ReadError, true)];
        assert_eq!(
            refusing(&read_error),
            (FilesystemCondition::DurableLost, false)
        );
        let no_write = |c: &mut Checked| c.usable = Some(Err("fsync x: EIO".into()));
        assert_eq!(refusing(&no_write), (FilesystemCondition::ReadOnly, false));
        assert_eq!(
            refusing(&|c| c.check = Some(8)),
            (FilesystemCondition::NeedsCheck, false)
        );
        let dead = |c: &mut Checked| {
            c.mounted = Some(Err("EIO".into()));
            c.mounted_again = Some(Err("EIO".into()));
        };
        assert_eq!(refusing(&dead), (FilesystemCondition::CardFailed, false));
        let thrown_away = |c: &mut Checked| {
            c.mounted = Some(Err("EIO".into()));
            c.findings_again = vec![finding(PathOutcome::Missing, true)];
        };
        assert_eq!(
            refusing(&thrown_away),
            (FilesystemCondition::RepairedWithLoss, false)
        );
    }

    #[test]
    fn a_filesystem_may_stop_where_its_card_refused_a_write_and_may_not_lie() {
        let refused = |change: &dyn Fn(&mut Checked)| {
            of(|checked| {
                checked.refused_writes = 1;
                change(checked);
            })
        };
        assert_eq!(
            refused(&|c| c.check = Some(4)),
            (FilesystemCondition::NeedsCheck, false)
        );
        let lost = |c: &mut Checked| c.findings = vec![finding(PathOutcome::Old, true)];
        assert_eq!(
            refused(&lost),
            (FilesystemCondition::DurableLost, true),
            "fsync had returned"
        );
        let unread = |c: &mut Checked| c.findings = vec![finding(PathOutcome::ReadError, true)];
        assert_eq!(
            refused(&unread),
            (FilesystemCondition::DurableLost, true),
            "the card reads"
        );
        let repaired = |c: &mut Checked| {
            c.mounted = Some(Err("EIO".into()));
            c.findings_again = vec![finding(PathOutcome::Missing, true)];
        };
        assert_eq!(
            refused(&repaired),
            (FilesystemCondition::RepairedWithLoss, false)
        );
    }

    #[test]
    fn silence_and_a_failing_kernel_break_promises_on_a_bad_card_too() {
        let refusing = |change: &dyn Fn(&mut Checked)| {
            of(|checked| {
                checked.failed_requests = 3;
                change(checked);
            })
        };
        let silent = |c: &mut Checked| c.findings = vec![finding(PathOutcome::WrongSilently, true)];
        assert_eq!(
            refusing(&silent),
            (FilesystemCondition::SilentCorruption, true)
        );
        let missing = |c: &mut Checked| c.findings = vec![finding(PathOutcome::Missing, true)];
        assert_eq!(refusing(&missing), (FilesystemCondition::DurableLost, true));
        assert_eq!(
            refusing(&|c| c.messages = vec!["kernel BUG at fs/x.c:1!".into()]),
            (FilesystemCondition::Oops, true)
        );
        // The card answered nothing with an error: the filesystem asked beyond its end.
        let beyond = |c: &mut Checked| c.messages = vec!["Buffer I/O error on dev vda".into()];
        assert_eq!(of(beyond), (FilesystemCondition::NeedsCheck, true));
        let corrupted = |c: &mut Checked| {
            c.corrupted_reads = 3;
            c.findings = vec![finding(PathOutcome::ReadError, true)];
        };
        assert_eq!(
            of(corrupted),
            (FilesystemCondition::DurableLost, true),
            "no error"
        );
    }

    #[test]
    fn what_a_repair_loses_is_lost() {
        let jfs = contract("jfs", "").unwrap();
        let mut checked = good();
        checked.mounted = Some(Err("EINVAL".into()));
        assert_eq!(
            verdict(&checked, &jfs),
            (FilesystemCondition::Repaired, false)
        );
        checked.findings_again = vec![finding(PathOutcome::Missing, true)];
        assert_eq!(
            verdict(&checked, &jfs),
            (FilesystemCondition::RepairedWithLoss, true)
        );
    }

    #[test]
    fn what_is_read_again_counts() {
        let changed = |checked: &mut Checked| {
            checked.findings = vec![finding(PathOutcome::Old, false)];
            checked.findings_again = vec![
                finding(PathOutcome::Old, false),
                PathFinding {
                    path: "b".into(),
                    ..finding(PathOutcome::Missing, true)
                },
            ];
        };
        assert_eq!(of(changed), (FilesystemCondition::DurableLost, true));
        let by_repair = |checked: &mut Checked| {
            changed(checked);
            (checked.check, checked.repair) = (Some(4), Some(1));
        };
        assert_eq!(of(by_repair), (FilesystemCondition::RepairedWithLoss, true));
        let garbage = |checked: &mut Checked| {
            checked.findings_again = vec![finding(PathOutcome::WrongSilently, true)];
        };
        assert_eq!(of(garbage), (FilesystemCondition::SilentCorruption, true));
        let hurt_before = |checked: &mut Checked| {
            checked.findings = vec![finding(PathOutcome::Truncated, true)];
            checked.findings_again = vec![finding(PathOutcome::WrongSilently, true)];
        };
        assert_eq!(of(hurt_before), (FilesystemCondition::DurableLost, true));
        let same = |checked: &mut Checked| {
            checked.findings = vec![finding(PathOutcome::Old, false)];
            checked.findings_again = checked.findings.clone();
        };
        assert_eq!(of(same), (FilesystemCondition::Clean, false));
    }

    #[test]
    fn what_asks_for_a_check_needs_it_unless_the_check_finds_nothing() {
        let dirty = |checked: &mut Checked| {
            checked.messages =
                vec!["FAT-fs (vda): Volume was not properly unmounted. Please run fsck.".into()];
        };
        assert_eq!(
            of(dirty).0,
            FilesystemCondition::Clean,
            "the checker found nothing"
        );
        let unchecked = |checked: &mut Checked| {
            dirty(checked);
            (checked.check, checked.repair, checked.mounted_again) = (None, None, None);
        };
        assert_eq!(of(unchecked).0, FilesystemCondition::NeedsCheck);
        let by_itself = |checked: &mut Checked| {
            unchecked(checked);
            checked.messages = vec![
                "NILFS (vda): mounting unchecked fs".into(),
                "NILFS (vda): recovery complete".into(),
            ];
        };
        assert_eq!(of(by_itself).0, FilesystemCondition::Recovered);
    }

    #[test]
    fn what_is_lost_is_told_whether_promised_or_not() {
        let fat = contract("vfat", "").unwrap();
        let mut checked = good();
        checked.findings = vec![PathFinding {
            durable: true,
            ..finding(PathOutcome::Missing, false)
        }];
        assert_eq!(
            verdict(&checked, &fat),
            (FilesystemCondition::DurableLost, false)
        );
    }

    #[test]
    fn a_full_filesystem_works_and_one_that_cannot_be_used_needs_a_check() {
        let full = |c: &mut Checked| c.usable = Some(Err("write x: ENOSPC: no space".into()));
        assert_eq!(of(full), (FilesystemCondition::Clean, false));
        let unusable = |c: &mut Checked| {
            c.usable = Some(Err("create x: EIO".into()));
            (c.check, c.repair, c.mounted_again) = (None, None, None);
        };
        assert_eq!(of(unusable), (FilesystemCondition::NeedsCheck, true));
    }

    #[test]
    fn a_checker_that_does_not_end_is_no_hang_of_the_kernel() {
        let endless = |c: &mut Checked| {
            (c.check, c.repair, c.mounted_again) = (Some(0), None, None);
            c.checker_hung = Some("spins".into());
        };
        assert_eq!(of(endless), (FilesystemCondition::NeedsCheck, true));
        let unmounted = |c: &mut Checked| {
            endless(c);
            c.mounted = Some(Err("EIO".into()));
        };
        assert_eq!(of(unmounted), (FilesystemCondition::Unfixable, true));
        let card = |c: &mut Checked| {
            unmounted(c);
            c.failed_requests = 1;
        };
        assert_eq!(of(card), (FilesystemCondition::CardFailed, false));
    }

    #[test]
    fn an_oops_after_the_repair_is_one() {
        let later = |c: &mut Checked| c.messages_again = vec!["kernel BUG at fs/x.c:1!".into()];
        assert_eq!(of(later), (FilesystemCondition::Oops, true));
    }

    #[test]
    fn what_is_not_promised_breaks_nothing() {
        let mut checked = good();
        checked.check = Some(1);
        let fat = contract("vfat", "").unwrap();
        assert_eq!(
            verdict(&checked, &fat),
            (FilesystemCondition::NeedsCheck, false)
        );
    }
}
