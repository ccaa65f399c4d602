//! The command that runs a finished trial again.

use std::collections::BTreeMap;
use whichfs_decide::{Need, SUSTAINED, catalogue};
use whichfs_trial::Identity;
use whichfs_units::{MIB, shell_word};

/// The command that runs a trial like this one; with the same program, kernel and tools it has the
/// same id.
pub fn repeat_command(identity: &Identity) -> String {
    let needs = Need::builtin();
    let fitting = needs
        .iter()
        .find_map(|need| Some((need, size(need, identity)?)));
    let Some((need, size)) = fitting else {
        return format!(
            "no shipped need has the workload {} with these parameters: it is the trial of a need \
             file (its report has the command, under The trials and their commands), or a study's: \
             whichfs study list names the studies, and whichfs study run STUDY --fresh runs them \
             again",
            identity.workload
        );
    };
    let mut words = vec!["whichfs choose".to_owned()];
    let mut option = |name: &str, value: &str| words.push(format!("{name} {}", shell_word(value)));
    option("--for", &need.name);
    option("--card", &identity.card);
    // Sustained trials are beside those of a used card.
    let state = match identity.card_state.as_str() {
        SUSTAINED => "used",
        state => state,
    };
    option("--card-state", state);
    option("--board", &identity.board);
    if identity.clock == "device" {
        option("--clock", "device");
    }
    if let Some(mib) = size {
        option("--size", &format!("{mib}M"));
    }
    if !identity.tree_sha256.is_empty() {
        option("--tree", "THE-SAME-DIRECTORY");
    }
    match (&identity.input, identity.workload.as_str()) {
        (Some(command), "command") => option("--command", command),
        (Some(_), _) => option("--fio", "THE-SAME-FILE"),
        (None, _) => {}
    }
    if let Some(second) = &identity.second_card {
        option("--second-card", &second.card);
    }
    option("--fs", &identity.candidate);
    option("--first-seed", &identity.seed.to_string());
    option("--seeds", "1");
    // What the store has would not be run, and a report lies in the usual directory.
    words.push("--fresh".to_owned());
    let out = format!("repeat-{}-{}", identity.candidate, identity.seed);
    words.push(format!("--out {}", shell_word(&out)));
    words.join(" ")
}

/// Whether `need` has trials like this one: with which `--size`, if any.
fn size(need: &Need, identity: &Identity) -> Option<Option<u64>> {
    // `choose` puts nothing but journals on a second card.
    let second = identity.second_card.as_ref();
    if second.is_some_and(|second| second.holds != "journal") {
        return None;
    }
    if identity.workload == SUSTAINED && identity.card_state == SUSTAINED {
        let own = need.sustained.as_ref()?.parameters.iter();
        let same = |(name, value): (&String, &u64)| identity.parameters.get(name) == Some(value);
        return (own.into_iter().all(same) && !excludes(need, identity)).then_some(None);
    }
    if need.workload != identity.workload || excludes(need, identity) {
        return None;
    }
    let workload = whichfs_workload::find(&need.workload).ok()?;
    let defaults = workload.parameters().iter();
    let mut own: BTreeMap<String, u64> = defaults.map(|p| (p.name.to_owned(), p.default)).collect();
    own.extend(need.parameters.clone());
    if own == identity.parameters {
        return Some(None);
    }
    let (before, bytes) = (*own.get("bytes")?, *identity.parameters.get("bytes")?);
    own.insert("bytes".to_owned(), bytes);
    if let Some(files) = own.get_mut("files") {
        *files = (*files * bytes / before.max(1)).max(1);
    }
    (own == identity.parameters && bytes % MIB == 0).then_some(Some(bytes / MIB))
}

/// Whether a rule of `need` excludes the trial's candidate.
fn excludes(need: &Need, identity: &Identity) -> bool {
    let Ok(candidate) = whichfs_fs::find_of_trial(&identity.candidate) else {
        return false;
    };
    let facts = [catalogue::of(candidate)];
    let (_, excluded) = whichfs_decide::exclude(need, identity.partition_bytes, &facts);
    !excluded.is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn identity(workload: &str, candidate: &str, parameters: &[(&str, u64)]) -> Identity {
        let text = format!(
            r#"{{"card":"a1-32gb","card_sha256":"","card_state":"used","board":"generic-1ghz",
            "board_sha256":"","clock":"cpu:generic-1ghz","kernel":"6.12","kernel_sha256":"",
            "candidate":"{candidate}","mkfs":[],"mount_options":"noatime","workload":"{workload}",
            "parameters":{{}},"tree_sha256":"","partition_offset":4194304,
            "partition_bytes":32000000000,"memory_mib":512,"version":"0.1","agent_sha256":"",
            "tools":{{}},"cpu_features_sha256":"","seed":7}}"#
        );
        let mut identity: Identity = serde_json::from_str(&text).unwrap();
        let defaults = whichfs_workload::find(workload)
            .unwrap()
            .parameters()
            .iter();
        identity.parameters = defaults.map(|p| (p.name.to_owned(), p.default)).collect();
        for (name, value) in parameters {
            identity.parameters.insert((*name).to_owned(), *value);
        }
        identity
    }

    #[test]
    fn a_trial_is_run_again_with_its_need_candidate_and_seed() {
        assert_eq!(
            repeat_command(&identity("rootfs", "ext4", &[])),
            "whichfs choose --for rootfs --card a1-32gb --card-state used --board generic-1ghz \
             --fs ext4 --first-seed 7 --seeds 1 --fresh \
             --out repeat-ext4-7"
        );
        let read_only = repeat_command(&identity("rootfs", "squashfs-zstd", &[]));
        assert!(read_only.contains("--for rootfs-readonly "), "{read_only}");
    }

    #[test]
    fn another_size_is_told_and_other_parameters_belong_to_a_study() {
        let of = |name: &str| identity("rootfs", "ext4", &[]).parameters[name];
        let half = [("bytes", of("bytes") / 2), ("files", of("files") / 2)];
        let line = repeat_command(&identity("rootfs", "ext4", &half));
        let mib = of("bytes") / 2 / MIB;
        assert!(line.contains(&format!("--size {mib}M --fs")), "{line}");
        let odd = repeat_command(&identity("rootfs", "ext4", &[("files", 1)]));
        assert!(odd.contains("whichfs study run STUDY"), "{odd}");
    }
}
