//! What decides a series of cuts: the same specification gives the same images.

use crate::digest::sha256;
use crate::lab_executor::LabExecutor;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_crash::{
    Cut, CutPlace, Faults, all_cuts, collection_cuts, cut_at, end_cut, random_cuts,
};
use whichfs_fs::Recipe;
use whichfs_workload::Op;

use super::record::Recorded;

/// Which instants are cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// So many at random.
    Random(u64),
    /// Every boundary between requests, and one instant inside each write.
    All,
    /// Before, inside and after this request.
    At(usize),
    /// So many at random while the card copies live data.
    Collection(u64),
    /// So many at random while the new filesystem is mounted for the first time.
    Mount(u64),
    /// One, when the run has ended.
    End,
}

/// What made a series: with another of these the same specification may give other images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Makers {
    /// Version of the program and of its method.
    pub version: String,
    /// SHA-256 of the card's profile.
    pub card_sha256: String,
    /// SHA-256 of the board.
    pub board_sha256: String,
    /// SHA-256 of the lab kernel.
    pub kernel_sha256: String,
    /// SHA-256 of the agent.
    pub agent_sha256: String,
    /// SHA-256 of the sealed userland; none where programs of the host ran, and in series of
    /// versions before 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userland_sha256: Option<String>,
    /// Versions of the filesystem's tools, where they are the host's.
    pub tools: BTreeMap<String, String>,
}

impl Makers {
    /// Those of this machine for a filesystem of `recipe`.
    pub fn of(bench: &LabExecutor, recipe: &Recipe) -> Makers {
        Makers {
            version: crate::version::version(),
            card_sha256: sha256(bench.card.canonical().as_bytes()),
            board_sha256: sha256(bench.board.text.as_bytes()),
            kernel_sha256: bench.kernel.sha256.clone(),
            agent_sha256: bench.agent.sha256.clone(),
            userland_sha256: bench.userland_sha256(),
            tools: bench.tool_versions(recipe),
        }
    }

    /// What of these differs from `other`, in words.
    pub fn differences(&self, other: &Makers) -> Vec<&'static str> {
        let pairs = [
            ("whichfs", self.version != other.version),
            ("card profile", self.card_sha256 != other.card_sha256),
            ("board", self.board_sha256 != other.board_sha256),
            ("lab kernel", self.kernel_sha256 != other.kernel_sha256),
            ("agent", self.agent_sha256 != other.agent_sha256),
            (
                "sealed userland",
                self.userland_sha256 != other.userland_sha256,
            ),
            ("filesystem's tools", self.tools != other.tools),
        ];
        pairs
            .into_iter()
            .filter_map(|(name, other)| other.then_some(name))
            .collect()
    }
}

/// A real device whose power is cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct CutDevice {
    /// What tells the device from others.
    pub device: String,
    /// What takes the power: `sysrq`, `watchdog`, or the user's command.
    pub power: String,
    /// First byte of the partition.
    pub partition_offset: u64,
    /// Release of the kernel.
    pub kernel: String,
}

/// A series of cuts of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Spec {
    /// Filesystem of the catalogue.
    pub fs: String,
    /// Mount options instead of the recipe's, or beside them if they begin with `+`.
    pub mount: Option<String>,
    /// Card: a name or the absolute path of a profile.
    pub card: String,
    /// `used` or `fresh`.
    pub card_state: String,
    /// Board: a name or the absolute path of a board file.
    pub board: String,
    /// Name of the clock: which time counts.
    pub clock: String,
    /// Name of the workload in the catalogue.
    pub workload: String,
    /// Its parameters that are not the default.
    pub parameters: BTreeMap<String, u64>,
    /// Its operations, if they are data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Vec<Op>>,
    /// Every operation tells that it returned, whatever the contract: what had not begun at a cut
    /// is then not missing after it, and mounts compare, since telling takes some CPU time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returns: bool,
    /// Size of the partition that holds the filesystem.
    pub partition_bytes: u64,
    /// Damage beyond the card's own.
    pub faults: Faults,
    /// Which instants.
    pub cuts: Selection,
    /// How often the power goes again while the filesystem recovers from the cut before.
    pub recovery: u64,
    /// Whether the filesystem's checker is run.
    pub fsck: bool,
    /// Seed of everything.
    pub seed: u64,
    /// Where it is cut, if that is a real device: card, board and clock are then named as in trials
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<CutDevice>,
    /// What made it.
    pub made_by: Makers,
}

impl Spec {
    /// Its identity: twelve hexadecimal digits.
    pub fn id(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_else(|error| {
            unreachable!("a Spec is strings, numbers and sorted maps: {error}")
        });
        sha256(&json)[..12].to_owned()
    }

    /// Whether nothing is cut: damage without a cut is judged when all is done, unless another
    /// fault needs a cut.
    pub fn is_whole(&self) -> bool {
        whichfs_crash::is_without_cut(&self.faults)
    }

    /// The cuts of a recorded run; none if there is no such request.
    pub fn cuts(&self, recorded: &Recorded) -> Vec<Cut> {
        let (log, first) = (recorded.timeline.log(), recorded.first);
        let mut cuts = match self.cuts {
            Selection::At(request) => cut_at(log, request, self.seed),
            Selection::All => all_cuts(log, first, self.seed),
            Selection::Random(count) => random_cuts(log, first, count, self.seed),
            Selection::Collection(count) => collection_cuts(log, first, count, self.seed),
            Selection::Mount(count) => random_cuts(&log[..first], 0, count, self.seed),
            Selection::End => end_cut(log, recorded.time, self.seed).into_iter().collect(),
        };
        if self.is_whole() {
            // Only the seed of the damage differs.
            for cut in &mut cuts {
                cut.request = log.len().saturating_sub(1);
                cut.place = CutPlace::After;
                cut.at = recorded.time;
            }
        }
        cuts
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::spec;

    #[test]
    fn whatever_decides_the_images_decides_the_id() {
        let changes: [fn(&mut Spec); 9] = [
            |s| s.returns = true,
            |spec| spec.script = Some(vec![Op::SyncFs]),
            |s| s.fs = "xfs".into(),
            |s| s.mount = Some("sync".into()),
            |s| s.cuts = Selection::Collection(20),
            |s| s.recovery = 1,
            |s| s.seed = 2,
            |s| s.faults = ["reorder".parse().unwrap()].into(),
            |s| s.made_by.kernel_sha256 = "f".into(),
        ];
        let mut ids = vec![spec().id()];
        for change in changes {
            let mut other = spec();
            change(&mut other);
            assert_eq!(
                serde_json::from_str::<Spec>(&serde_json::to_string(&other).unwrap()).unwrap(),
                other
            );
            ids.push(other.id());
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(ids[0].len() == 12);
    }

    #[test]
    fn what_differs_is_named() {
        let mut other = Makers::default();
        assert!(other.differences(&Makers::default()).is_empty());
        other.tools.insert("mkfs.ext4".into(), "2".into());
        assert_eq!(
            other.differences(&Makers::default()),
            ["filesystem's tools"]
        );
    }
}
