//! The second card of a trial: a disk of its own behind the first, or RAM.
//!
//! It is drawn with the seed of the trial and begins used. Its bus is that of its own profile; as
//! many requests are in flight as the controller of the first card takes.

use super::LabExecutor;
use super::disks::CONTENTS_MIN_BYTES;
use crate::cards::{self, CardState};
use crate::digest::sha256;
use crate::error::{Error, Outcome};
use crate::guest_places::SECOND_DEVICE;
use crate::partition::{self, CardWindow};
use crate::prepare_error::PrepareError;
use std::collections::BTreeMap;
use whichfs_card::Profile;
use whichfs_fs::Recipe;
use whichfs_lab::Disk;
use whichfs_study::{SecondCard, SecondCardUse, Tuning};
use whichfs_trial::{BlockQueue, SecondCardIdentity};
use whichfs_units::MIB;
use whichfs_workload::StepUpper;

/// Filesystem of an upper layer on a card.
const UPPER: &str = "ext4";
/// Where the layers of overlayfs are mounted in the guest.
const LOWER_POINT: &str = "/mnt/lower";
const UPPER_POINT: &str = "/mnt/upper";

/// The second card of a prepared trial.
pub(super) struct Second {
    /// What of it decides the result.
    pub identity: SecondCardIdentity,
    /// How its filesystem becomes the upper layer, if it holds that.
    pub upper: Option<StepUpper>,
    /// What the commands of that need in their environment.
    pub env: BTreeMap<String, String>,
    /// Its disk; none in RAM.
    pub disk: Option<SecondDisk>,
}

/// The disk of a second card.
pub(super) struct SecondDisk {
    name: String,
    profile: Profile,
    window: CardWindow,
}

impl LabExecutor {
    /// What `second` comes to in a trial with `seed`.
    ///
    /// # Errors
    /// It cannot be opened, or is too small.
    pub(super) fn second(&self, second: &SecondCard, seed: u64) -> Result<Second, PrepareError> {
        let holds = second.holds.word().to_owned();
        if second.is_ram() {
            return Ok(Second {
                identity: SecondCardIdentity {
                    card: SecondCard::RAM.to_owned(),
                    card_sha256: String::new(),
                    holds,
                    partition_offset: 0,
                    partition_bytes: 0,
                },
                upper: Some(upper(Vec::new(), "", "tmpfs", "")),
                env: BTreeMap::new(),
                disk: None,
            });
        }
        let card = cards::open(&second.card).map_err(PrepareError::Failed)?;
        let window = window(second, &card.profile).map_err(PrepareError::Failed)?;
        let profile = card.of_seed(seed);
        let mut found = Second {
            identity: SecondCardIdentity {
                card: card.name.clone(),
                card_sha256: sha256(profile.canonical().as_bytes()),
                holds,
                partition_offset: window.offset,
                partition_bytes: window.bytes,
            },
            upper: None,
            env: BTreeMap::new(),
            disk: None,
        };
        if second.holds == SecondCardUse::Upper {
            let recipe = upper_recipe(&card.profile, window, seed)?;
            let argvs = recipe.mkfs.iter();
            let mkfs = argvs
                .map(|argv| Recipe::on_device(argv, SECOND_DEVICE))
                .collect();
            let kernel_fs = recipe.kernel_fs;
            found.upper = Some(upper(mkfs, SECOND_DEVICE, kernel_fs, &recipe.mount_options));
            found.env = recipe.mkfs_env;
        }
        found.disk = Some(SecondDisk {
            name: card.name,
            profile,
            window,
        });
        Ok(found)
    }

    /// The guest's disk of the second card `second` in the trial of `seed`.
    pub(super) fn second_disk(&self, second: &SecondDisk, seed: u64) -> Outcome<Disk> {
        let contents = self.contents_within(second.profile.capacity_bytes(), CONTENTS_MIN_BYTES)?;
        let key = (format!("second {}", second.name), seed);
        let card = self.card_of(key, &second.profile, CardState::Used);
        Ok(self.disk_with(card, contents, &second.profile, second.window))
    }

    /// How the guest's kernel is to see the disk of `second`.
    pub(super) fn second_queue(&self, second: &SecondDisk) -> BlockQueue {
        let host = self.board.host(second.profile.interface());
        host.queue(SECOND_DEVICE.trim_start_matches("/dev/"))
    }
}

/// The part of the second card of `profile` that is used: all of it for a layer, whole AUs for a
/// journal.
fn window(second: &SecondCard, profile: &Profile) -> Outcome<CardWindow> {
    let whole = CardWindow::whole(profile);
    let bytes = match second.holds {
        SecondCardUse::Upper => whole.bytes,
        SecondCardUse::Journal => (second.mib * MIB).next_multiple_of(profile.au_bytes()),
    };
    match bytes <= whole.bytes {
        true => Ok(CardWindow { bytes, ..whole }),
        false => Err(Error::input(format!(
            "the second card {} has no room for a journal of {} MiB: take a smaller journal or \
             another card",
            second.card, second.mib
        ))),
    }
}

/// What makes the filesystem of an upper layer, tuned to its card.
fn upper_recipe(profile: &Profile, window: CardWindow, seed: u64) -> Result<Recipe, PrepareError> {
    let candidate = whichfs_fs::find(UPPER).map_err(Error::input);
    let candidate = candidate.map_err(PrepareError::Failed)?;
    // Another seed: the lower layer may be of the same kind, and have the same identifiers.
    let (tuning, seed) = (Tuning::ThisCard, seed.wrapping_add(1));
    let recipe = partition::recipe(candidate, profile, window.bytes, &tuning, seed, false);
    Ok(recipe.map_err(PrepareError::Failed)??)
}

fn upper(mkfs: Vec<Vec<String>>, device: &str, kernel_fs: &str, options: &str) -> StepUpper {
    StepUpper {
        mkfs,
        device: device.to_owned(),
        kernel_fs: kernel_fs.to_owned(),
        mount_options: options.to_owned(),
        mount_point: UPPER_POINT.to_owned(),
        lower_point: LOWER_POINT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::board::{self, Board};
    use crate::clock::Clock;
    use crate::images::Images;
    use crate::lab_executor::trial_runner;
    use crate::workload_run::WorkloadRun;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;
    use whichfs_study::Variant;
    use whichfs_trial::{PhaseFigures, Status, Trial};

    #[test]
    fn a_journal_has_whole_allocation_units_and_a_layer_all_of_the_card() {
        let profile = cards::open("emmc-8gb").unwrap().profile;
        let whole = CardWindow::whole(&profile);
        let of = |holds, mib| {
            let card = "emmc-8gb".to_owned();
            window(&SecondCard { card, holds, mib }, &profile)
        };
        let journal = of(SecondCardUse::Journal, 65).unwrap();
        assert_eq!(journal.offset, whole.offset);
        assert!(journal.bytes >= 65 * MIB && journal.bytes % profile.au_bytes() == 0);
        assert_eq!(of(SecondCardUse::Upper, 64).unwrap(), whole);
        let refused = of(SecondCardUse::Journal, 40_000).unwrap_err();
        assert!(
            refused.message.contains("take a smaller journal"),
            "{refused}"
        );
    }

    #[test]
    fn the_layers_of_one_kind_have_other_identifiers() {
        let profile = cards::open("emmc-8gb").unwrap().profile;
        let whole = CardWindow::whole(&profile);
        let ext4 = whichfs_fs::find(UPPER).unwrap();
        let below = partition::recipe(ext4, &profile, whole.bytes, &Tuning::ThisCard, 7, false);
        let below = below.unwrap().unwrap();
        assert_ne!(
            upper_recipe(&profile, whole, 7).ok().unwrap().mkfs,
            below.mkfs
        );
    }

    /// The trial of `fs` with what `second` holds on a second card, and its candidate's name.
    fn trial(fs: &str, second: Option<(&str, SecondCardUse)>) -> Trial {
        let mut board = board::DEFAULT.to_owned();
        let clock = Clock::parse("cpu", &mut board).unwrap();
        let (card, board) = (
            cards::open("a1-32gb").unwrap(),
            Board::open(&board).unwrap(),
        );
        let limit = Duration::from_secs(300);
        let lab = LabExecutor::new(card, CardState::Used, board, clock, limit, 1).unwrap();
        let parameters = BTreeMap::from([("bytes".to_owned(), 12 * MIB), ("files".into(), 200)]);
        let work = WorkloadRun {
            partition_bytes: Some(512 * MIB),
            ..WorkloadRun::named("rootfs", &parameters).unwrap()
        };
        let variant = Variant {
            second_card: second.map(|(card, holds)| SecondCard {
                card: card.to_owned(),
                holds,
                mib: SecondCard::JOURNAL_MIB,
            }),
            ..Variant::default()
        };
        let candidate = whichfs_fs::find(fs).unwrap();
        let images = Images::new(&|_| ());
        let prepared = lab.prepare(candidate, &work, &variant, 1, &images);
        let prepared = prepared.unwrap_or_else(|error| panic!("{error:?}"));
        let never = AtomicBool::new(false);
        let trial = trial_runner::run(&lab, &prepared, None, &never, &mut |_, _| {}).unwrap();
        assert_eq!(trial.outcome.status, Status::Done, "{fs}");
        trial
    }

    fn phase<'t>(trial: &'t Trial, name: &str) -> &'t PhaseFigures {
        let mut phases = trial.outcome.phases.iter();
        phases.find(|phase| phase.phase == name).unwrap()
    }

    fn has_lab() -> bool {
        let lab = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
        let there = lab.iter().all(|name| std::env::var_os(name).is_some());
        if !there {
            whichfs_testkit::skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set");
        }
        there
    }

    /// What a journal writes moves to the second card, and nothing else does. The planted fault is
    /// the trial without one: by the same rule, its journal is seen on the first card.
    #[test]
    fn lab_an_external_journal_is_written_on_the_second_card_and_not_on_the_first() {
        if !has_lab() {
            return;
        }
        for fs in ["ext4", "xfs"] {
            let inside = trial(fs, None);
            let outside = trial(fs, Some(("emmc-8gb", SecondCardUse::Journal)));
            assert_eq!(outside.identity.candidate, format!("{fs}+journal"));
            assert_ne!(inside.identity.id(), outside.identity.id());
            // Updates with an fsync each: a commit of the journal for each of them.
            let [with, without] = [&outside, &inside].map(|trial| phase(trial, "random_update"));
            let journal = with.second_card.as_ref().unwrap();
            let moved = |first: &PhaseFigures| first.device.write_bytes + journal.write_bytes / 2;
            assert!(
                journal.writes >= with.counts.operations / 2,
                "{fs}: {journal:?}"
            );
            assert!(
                moved(with) < without.device.write_bytes,
                "{fs}: {} on the first card and {} on the second; {} in all on one",
                with.device.write_bytes,
                journal.write_bytes,
                without.device.write_bytes
            );
            assert!(
                moved(without) > without.device.write_bytes,
                "a journal that stays is seen"
            );
            assert_eq!(without.second_card, None);
            let metric = |name: &str| {
                let mut metrics = outside.outcome.metrics.iter();
                metrics
                    .find(|metric| metric.metric == name)
                    .map(|metric| metric.value)
            };
            assert!(metric("second_card_written").unwrap() >= journal.write_bytes as f64);
            assert!(metric("second_card_amplification").unwrap() > 0.0);
        }
    }

    #[test]
    fn lab_what_lies_over_an_image_takes_its_writes() {
        if !has_lab() {
            return;
        }
        for card in ["emmc-8gb", SecondCard::RAM] {
            let layered = trial("squashfs-zstd", Some((card, SecondCardUse::Upper)));
            let update = phase(&layered, "random_update");
            assert_eq!(update.device.write_bytes, 0, "the image is never written");
            let written = update.second_card.as_ref().map(|second| second.write_bytes);
            match card {
                SecondCard::RAM => assert_eq!(written, None),
                _ => assert!(written.unwrap() > 0),
            }
        }
    }
}
