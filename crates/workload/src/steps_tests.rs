//! How the steps of trials are composed.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::{every, find};

fn candidate(image: Option<&str>) -> StepCandidate {
    StepCandidate {
        before: Vec::new(),
        mkfs: vec![vec!["mkfs.ext4".into(), "/dev/vda".into()]],
        env: BTreeMap::new(),
        device: "/dev/vda".into(),
        disk: None,
        check: vec!["e2fsck".into(), "-n".into(), "/dev/vda".into()],
        image: image.map(str::to_owned),
        kernel_fs: "ext4".into(),
        mount_options: "noatime".into(),
        mount_point: "/mnt/test".into(),
        helper: None,
        modules: Vec::new(),
        upper: None,
    }
}

fn spec(name: &str) -> WorkloadSpec {
    WorkloadSpec {
        name: name.into(),
        parameters: BTreeMap::new(),
        tree: None,
        unix: true,
        script: None,
        input: None,
    }
}

/// One word a step: its kind, with the phase if it has one.
fn words(steps: &[Step]) -> Vec<String> {
    let with = |word: &str, phase: &Option<String>| match phase {
        Some(phase) => format!("{word}:{phase}"),
        None => word.to_owned(),
    };
    let word = |step: &Step| match step {
        Step::Run { phase, .. } => with("run", phase),
        Step::Mount { phase, .. } => with("mount", phase),
        Step::Unmount { phase, .. } => with("unmount", phase),
        Step::DropCaches => "drop".into(),
        Step::Deploy { phase, .. } => format!("deploy:{phase}"),
        Step::LoadModules { phase, modules } => format!("{phase}:{}", modules.join("+")),
        Step::Operate { phase, .. } => phase.clone(),
        Step::Space { .. } => "space".into(),
        other => panic!("{other:?}"),
    };
    steps.iter().map(word).collect()
}

#[test]
fn rootfs_on_a_writable_filesystem() {
    let steps = steps(
        find("rootfs").unwrap(),
        &spec("rootfs"),
        1,
        &candidate(None),
    )
    .unwrap();
    let expected = "run:mkfs mount tree_write space unmount:unmount drop mount:mount boot_read \
                    unmount:unmount_2 drop mount tree_read rewrite database_write \
                    random_update delete unmount:unmount_3";
    assert_eq!(words(&steps).join(" "), expected);
}

#[test]
fn rootfs_on_a_read_only_filesystem() {
    let candidate = candidate(Some("/tmp/image"));
    let steps = steps(find("rootfs").unwrap(), &spec("rootfs"), 1, &candidate).unwrap();
    let expected = "deploy:deploy drop mount:mount space boot_read unmount:unmount drop mount \
                    tree_read unmount:unmount_2";
    assert_eq!(words(&steps).join(" "), expected);
}

#[test]
fn a_helper_runs_while_it_is_mounted_or_mounts_itself() {
    let with = |mounts| StepCandidate {
        helper: Some(StepHelper {
            start: vec!["start".into()],
            mounts,
            stop: vec!["stop".into()],
        }),
        ..candidate(None)
    };
    let steps = |mounts| steps(find("tree").unwrap(), &spec("tree"), 1, &with(mounts)).unwrap();
    let beside = words(&steps(false)).join(" ");
    let expected = "run:mkfs mount run tree_write space run unmount:unmount drop mount:mount \
                    run tree_read";
    assert!(beside.starts_with(expected), "{beside}");
    assert!(beside.ends_with("run unmount:unmount_2"), "{beside}");
    let alone = words(&steps(true)).join(" ");
    let expected = "run:mkfs run run tree_write space unmount:unmount drop run:mount tree_read";
    assert!(alone.starts_with(expected), "{alone}");
    let kernels = |step: &&Step| matches!(step, Step::Mount { .. });
    assert_eq!(
        steps(true).iter().filter(kernels).count(),
        0,
        "no kernel driver"
    );
}

#[test]
fn every_workload_times_one_mount_of_its_data() {
    for workload in every().filter(|one| one.input_flag().is_none() && !one.takes_script()) {
        let all = steps(workload, &spec(workload.name()), 1, &candidate(None)).unwrap();
        let all = words(&all);
        let timed = |word: &&String| *word == "mount:mount";
        let count = all.iter().filter(timed).count();
        assert_eq!(count, 1, "{}: {all:?}", workload.name());
        assert!(all.last().unwrap().starts_with("unmount:"), "{all:?}");
    }
    let camera = steps(
        find("camera").unwrap(),
        &spec("camera"),
        1,
        &candidate(None),
    )
    .unwrap();
    let expected = "run:mkfs mount camera_bursts space unmount:unmount drop mount:mount \
                    unmount:unmount_2";
    assert_eq!(words(&camera).join(" "), expected);
}

#[test]
fn what_needs_the_device_alone_has_it() {
    let mkfs = |candidate: &StepCandidate| {
        words(&steps(find("mkfs").unwrap(), &spec("mkfs"), 1, candidate).unwrap()).join(" ")
    };
    let checked = "run:mkfs run:threads_before mount run:empty space fill unmount:unmount drop \
                   run:fsck_clean drop mount:mount first_read unmount:unmount_2";
    assert_eq!(mkfs(&candidate(None)), checked);
    let mut unchecked = candidate(None);
    unchecked.check.clear();
    let without = "run:mkfs run:threads_before mount run:empty space fill unmount:unmount drop \
                   mount:mount first_read unmount:unmount_2";
    assert_eq!(mkfs(&unchecked), without);
}

#[test]
fn a_disk_is_parted_before_and_all_of_it_is_the_filesystems_space() {
    let parted = StepCandidate {
        before: vec![vec!["addpart".into()]],
        device: "/dev/vda1".into(),
        disk: Some("/dev/vda".into()),
        ..candidate(None)
    };
    let steps = steps(find("rootfs").unwrap(), &spec("rootfs"), 1, &parted).unwrap();
    assert!(words(&steps).join(" ").starts_with("run run:mkfs mount "));
    let mut spaces = steps.iter().filter_map(|step| match step {
        Step::Space { device, .. } => Some(device.as_str()),
        _ => None,
    });
    assert_eq!(spaces.next(), Some("/dev/vda"));
}

fn upper(device: &str) -> StepUpper {
    StepUpper {
        mkfs: Vec::new(),
        device: device.into(),
        kernel_fs: if device.is_empty() { "tmpfs" } else { "ext4" }.into(),
        mount_options: String::new(),
        mount_point: "/mnt/upper".into(),
        lower_point: "/mnt/lower".into(),
    }
}

#[test]
fn a_layer_lies_over_what_was_filled() {
    let on = |device: &str, image| {
        let candidate = StepCandidate {
            upper: Some(upper(device)),
            ..candidate(image)
        };
        steps(find("rootfs").unwrap(), &spec("rootfs"), 1, &candidate).unwrap()
    };
    // What is mounted of what, and unmounted, by target.
    let mounts = |steps: &[Step]| {
        let told = steps.iter().filter_map(|step| match step {
            Step::Mount {
                source,
                target,
                options,
                ..
            } => Some(format!("{source} on {target} {options}")),
            Step::Unmount { target, .. } => Some(format!("- {target}")),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let all = on("/dev/vdb", None);
    let told = mounts(&all);
    let layers = "lowerdir=/mnt/lower,upperdir=/mnt/upper/upper,workdir=/mnt/upper/work";
    let right = [
        "/dev/vda on /mnt/test noatime",
        "- /mnt/test",
        "/dev/vda on /mnt/lower ro,noatime",
        "/dev/vdb on /mnt/upper ",
        &format!("none on /mnt/test {layers}"),
        "- /mnt/test",
        "- /mnt/upper",
        "- /mnt/lower",
    ];
    assert_eq!(told[..8], right);
    assert!(words(&all).last().unwrap().starts_with("unmount:unmount_"));
    let ram = mounts(&on("", None));
    let of_ram = ram
        .iter()
        .filter(|told| told.contains("none on /mnt/upper"));
    assert_eq!(of_ram.count(), 1, "it stays mounted: {ram:?}");
    assert!(!ram.contains(&"- /mnt/upper".to_owned()), "{ram:?}");
    let image = words(&on("", Some("/tmp/image"))).join(" ");
    assert!(
        !image.contains("tree_write") && image.contains("rewrite") && image.contains("delete"),
        "an image has its tree, and can be changed: {image}"
    );
    let layered = StepCandidate {
        upper: Some(upper("")),
        ..candidate(None)
    };
    let refused = steps(find("camera").unwrap(), &spec("camera"), 1, &layered);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("no phase after a cold mount"), "{refused}");
}

#[test]
fn modules_are_loaded_before_anything_is_mounted() {
    let boot = |candidate: &StepCandidate| {
        words(&steps(find("boot").unwrap(), &spec("boot"), 1, candidate).unwrap()).join(" ")
    };
    let with = |image| StepCandidate {
        modules: vec!["/m/jbd2.ko".into(), "/m/ext4.ko".into()],
        ..candidate(image)
    };
    let rest = "run:mkfs mount tree_write unmount:unmount drop mount:mount first_read \
                unmount:unmount_2";
    let load = "module_load:/m/jbd2.ko+/m/ext4.ko";
    assert_eq!(boot(&with(None)), format!("{load} {rest}"));
    assert_eq!(boot(&candidate(None)), rest, "none are known");
    let read_only =
        format!("{load} deploy:deploy drop mount:mount space first_read unmount:unmount");
    assert_eq!(boot(&with(Some("/i"))), read_only);
}

#[test]
fn every_phase_has_a_name_of_its_own() {
    for workload in every().filter(|one| one.input_flag().is_none() && !one.takes_script()) {
        let mut two = candidate(None);
        two.mkfs.push(vec!["tune2fs".into()]);
        let steps = steps(workload, &spec(workload.name()), 1, &two).unwrap();
        let mut phases: Vec<String> = words(&steps);
        phases.retain(|word| !["mount", "unmount", "drop", "space"].contains(&word.as_str()));
        let count = phases.len();
        phases.sort();
        phases.dedup();
        assert_eq!(phases.len(), count, "{}: {phases:?}", workload.name());
    }
}

#[test]
fn unmounts_are_known_by_their_names() {
    for at in [1, 2, 10] {
        assert!(is_unmount(&nth(UNMOUNT, at)), "{at}");
    }
    for other in ["mount", "unmounted", "unmount_", "unmount_x"] {
        assert!(!is_unmount(other), "{other}");
    }
}

#[test]
fn an_illegal_specification_has_no_steps() {
    let mut bad = spec("rootfs");
    bad.parameters.insert("files".into(), 0);
    assert!(steps(find("rootfs").unwrap(), &bad, 1, &candidate(None)).is_err());
}
