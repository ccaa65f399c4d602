//! The steps of a trial in a directory of a filesystem that is there and stays mounted. Pure.

use crate::phase::Phase;
use crate::steps::{SYNC, nth, step_in};
use crate::workload::{Workload, WorkloadError};
use whichfs_trial::{Step, WorkloadSpec};

/// What no trial in a directory yields, whatever its workload.
const NEVER: [&str; 4] = ["mkfs", "mount", "unmount", "space"];

/// The steps of `workload` in `dir`: its phases, with caches forgotten where it asks for a cold
/// mount, and at the end what is kept back is written. Phases that need the device are left out.
///
/// # Errors
/// If `spec` is not legal.
pub fn steps_inside(
    workload: &dyn Workload,
    spec: &WorkloadSpec,
    seed: u64,
    dir: &str,
) -> Result<Vec<Step>, WorkloadError> {
    workload.check(spec)?;
    let mut steps = Vec::new();
    let mut syncs = 0;
    let mut sync = || {
        syncs += 1;
        Step::Sync {
            phase: nth(SYNC, syncs),
            dir: dir.to_owned(),
        }
    };
    for phase in workload.phases() {
        let Some(step) = step_in(workload, phase, spec, seed, dir)? else {
            continue;
        };
        if phase.cold {
            steps.push(sync());
            steps.push(Step::Forget {
                dir: dir.to_owned(),
            });
        }
        steps.push(step);
    }
    steps.push(sync());
    Ok(steps)
}

/// What a trial of `workload` in a directory does not yield, by name.
pub fn not_inside(workload: &dyn Workload) -> Vec<&'static str> {
    let phases = workload.phases().iter();
    let own = phases.filter(|phase| matches!(workload.phase(phase), Phase::OnDevice(_)));
    NEVER
        .into_iter()
        .chain(own.map(|phase| phase.name))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{every, find};
    use std::collections::BTreeMap;

    fn words(name: &str) -> Vec<String> {
        let spec = WorkloadSpec {
            name: name.into(),
            parameters: BTreeMap::new(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        let steps = steps_inside(find(name).unwrap(), &spec, 1, "/card/trial").unwrap();
        let word = |step: &Step| match step {
            Step::Run { phase, dir, .. } => {
                assert_eq!(dir, "/card/trial");
                phase.clone().unwrap_or_default()
            }
            Step::Operate { phase, dir, .. } | Step::Sync { phase, dir } => {
                assert_eq!(dir, "/card/trial");
                phase.clone()
            }
            Step::Forget { .. } => "forget".into(),
            other => panic!("{other:?} is not for a directory"),
        };
        steps.iter().map(word).collect()
    }

    #[test]
    fn the_phases_run_without_a_device_and_cold_where_they_ask_for_it() {
        let expected = "tree_write sync forget boot_read sync_2 forget tree_read rewrite \
                        database_write random_update delete sync_3";
        assert_eq!(words("rootfs").join(" "), expected);
    }

    #[test]
    fn what_needs_the_device_is_left_out_by_name() {
        let mkfs = find("mkfs").unwrap();
        let left_out = not_inside(mkfs);
        assert!(left_out.contains(&"fsck_clean"), "{left_out:?}");
        for name in words("mkfs") {
            assert!(!left_out.contains(&name.as_str()), "{name}");
        }
        assert_eq!(not_inside(find("rootfs").unwrap()), NEVER);
    }

    #[test]
    fn no_workload_has_a_phase_of_our_name_and_all_end_with_it() {
        for workload in every().filter(|one| one.input_flag().is_none() && !one.takes_script()) {
            let names = workload.phases().iter();
            assert!(
                names
                    .clone()
                    .all(|phase| !crate::steps::is_unmount(phase.name))
            );
            assert!(words(workload.name()).last().unwrap().starts_with(SYNC));
        }
    }
}
