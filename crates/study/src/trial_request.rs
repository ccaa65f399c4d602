//! A planned trial: a line of `study plan`, from which any machine makes the same trial.

use crate::Variant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use whichfs_trial::Identity;

/// A trial of a study that is to be run, and what it takes to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialRequest {
    /// Id of the trial: the digest of `identity`.
    pub id: String,
    /// What it is called, for people.
    pub label: String,
    /// Everything that decides its result, as its record will have it. A machine that comes to
    /// another identity refuses the trial.
    pub identity: Identity,
    /// What the identity has only as digests and commands.
    pub inputs: TrialInputs,
    /// What a machine needs for it.
    pub needs: TrialNeeds,
}

/// What a trial is made from, beside candidate, workload and seed, which its identity names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialInputs {
    /// Card, as the study names it.
    pub card: String,
    /// Board, as the study names it.
    pub board: String,
    /// Clock, as the study names it.
    pub clock: String,
    /// How the filesystem is made and mounted; its kernel, if that is not the lab's own.
    pub variant: Variant,
    /// Bytes of the partition that the workload asks for, if not all of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_bytes: Option<u64>,
    /// Directory of the user whose content is written; it must be at the same place, with the same
    /// content, on the machine that runs the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<PathBuf>,
    /// Text of each card or board file that is named above and is not shipped.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// What a machine needs for a trial, for a scheduler to place it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialNeeds {
    /// Processor cores: a trial uses one.
    pub cores: u64,
    /// Memory in bytes: of the guest and of the program beside it.
    pub memory_bytes: u64,
    /// Room for temporary files in bytes, an estimate: card contents that do not fit in memory.
    pub disk_bytes: u64,
    /// About how long it takes, in seconds of wall time; none if no like trial was ever timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Whether an image of a read-only filesystem is built before it, or taken from the cache.
    pub image: bool,
}

impl TrialRequest {
    /// Name of its JSON document: the command that prints it.
    pub const DOCUMENT: &'static str = "study plan";
    /// Number of the schema of its JSON document.
    pub const SCHEMA: u32 = 1;
    /// What precedes the record of a trial in the log of a job, among other lines.
    pub const RECORD_MARK: &'static str = "WHICHFS-RECORD ";

    /// Where the identity of the same trial on this machine, `own`, differs from the planned one:
    /// the first difference in words, with the remedy; none if it does not.
    pub fn difference(&self, own: &Identity) -> Option<String> {
        if self.identity == *own {
            return None;
        }
        let fields = |identity: &Identity| match serde_json::to_value(identity) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (planned, own) = (fields(&self.identity), fields(own));
        let names: std::collections::BTreeSet<&String> = planned.keys().chain(own.keys()).collect();
        let differ = |name: &str| planned.get(name) != own.get(name);
        let of = |fields: &serde_json::Map<String, serde_json::Value>, name: &str| {
            let value = fields.get(name).map_or("none".to_owned(), |value| {
                let text = value.as_str().map(str::to_owned);
                text.unwrap_or_else(|| value.to_string())
            });
            // Of a digest the beginning tells it from another.
            match name.ends_with("sha256") {
                true => value.chars().take(12).collect(),
                false => value,
            }
        };
        let known = PARTS.iter().find(|(name, ..)| differ(name));
        let (name, what, remedy) = match known {
            Some((name, what, remedy)) => (*name, *what, *remedy),
            None => {
                let first = names.into_iter().find(|name| differ(name))?;
                (first.as_str(), first.as_str(), CHANGED)
            }
        };
        Some(format!(
            "{what} differs: {} in the plan, {} on this machine; {remedy}",
            of(&planned, name),
            of(&own, name)
        ))
    }
}

const SAME_BUILD: &str = "install the same package of whichfs on both machines, or make the plan \
                          anew with this one (`whichfs doctor` shows the parts)";
const CHANGED: &str = "the line was changed, or this build makes the trial otherwise: make the \
                       plan anew with the program that runs it";

/// What of an identity machines differ in, the reason of others first: field, what it is called,
/// remedy.
const PARTS: [(&str, &str, &str); 9] = [
    ("version", "the version of whichfs", SAME_BUILD),
    ("kernel", "the lab kernel", SAME_BUILD),
    ("kernel_sha256", "the build of the lab kernel", SAME_BUILD),
    ("agent_sha256", "the build of the agent", SAME_BUILD),
    ("userland_sha256", "the sealed userland", SAME_BUILD),
    (
        "cpu_features_sha256",
        "the set of CPU features",
        "programs pick code by them, so figures may differ: run it on a machine with the same \
         kind of processor, or make the plan on one like this",
    ),
    (
        "card_sha256",
        "the card's profile",
        "the card file or the shipped profile changed after the plan was made: make the plan anew",
    ),
    (
        "board_sha256",
        "the board's file",
        "it changed after the plan was made: make the plan anew",
    ),
    (
        "tree_sha256",
        "the tree of --tree",
        "copy the same directory to the same place on this machine",
    ),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A trial of ext4 on a shipped card, as it could be planned.
    fn planned() -> TrialRequest {
        let identity: Identity = serde_json::from_value(serde_json::json!({
            "card": "a1-32gb", "card_sha256": "aa", "card_state": "used", "board": "generic-1ghz",
            "board_sha256": "bb", "clock": "device", "kernel": "6.12.1", "kernel_sha256": "cc",
            "candidate": "ext4", "mkfs": [["mke2fs"]], "mount_options": "", "workload": "rootfs",
            "parameters": {"bytes": 1}, "tree_sha256": "", "partition_offset": 0,
            "partition_bytes": 1, "memory_mib": 64, "version": "0.1.0+6", "agent_sha256": "dd",
            "userland_sha256": "ee", "tools": {}, "cpu_features_sha256": "ff", "seed": 1,
        }))
        .unwrap();
        TrialRequest {
            id: identity.id(),
            label: "ext4, seed 1".to_owned(),
            identity,
            inputs: TrialInputs {
                card: "a1-32gb".to_owned(),
                board: "generic-1ghz".to_owned(),
                clock: "device".to_owned(),
                variant: Variant::default(),
                partition_bytes: None,
                tree: None,
                files: BTreeMap::new(),
            },
            needs: TrialNeeds {
                cores: 1,
                memory_bytes: 1,
                disk_bytes: 1,
                wall_s: None,
                image: false,
            },
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let planned = planned();
        let line = serde_json::to_string(&planned).unwrap();
        assert_eq!(
            serde_json::from_str::<TrialRequest>(&line).unwrap(),
            planned
        );
    }

    #[test]
    fn the_part_that_differs_is_named_with_its_remedy() {
        let planned = planned();
        assert_eq!(planned.difference(&planned.identity), None);
        let changed = |change: fn(&mut Identity)| {
            let mut own = planned.identity.clone();
            change(&mut own);
            planned.difference(&own).unwrap()
        };
        let other = changed(|own| {
            own.version = "0.2.0+7".to_owned();
            own.mkfs = Vec::new();
        });
        assert!(
            other.starts_with(
                "the version of whichfs differs: 0.1.0+6 in the plan, 0.2.0+7 on this machine"
            ),
            "the version comes before what it changes: {other}"
        );
        let said = [
            changed(|own| own.kernel_sha256 = "00".to_owned()),
            changed(|own| own.agent_sha256 = "00".to_owned()),
            changed(|own| own.userland_sha256 = None),
        ];
        assert!(said.iter().all(|said| said.contains("the same package")));
        assert!(said[2].contains("ee in the plan, none on this"), "{said:?}");
        let card = changed(|own| own.card_sha256 = "00".to_owned());
        assert!(card.contains("make the plan anew"), "{card}");
        let cpu = changed(|own| own.cpu_features_sha256 = "00".to_owned());
        assert!(cpu.contains("same kind of processor"), "{cpu}");
        let mount = changed(|own| own.mount_options = "sync".to_owned());
        assert!(mount.starts_with("mount_options differs"), "{mount}");
    }
}
