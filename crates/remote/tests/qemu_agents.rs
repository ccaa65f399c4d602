//! The agents for boards: their size, and that each does the same job with the same results: the
//! one for this machine by itself, those for Arm under qemu-user, on an ext4 of a loop device.
//! Root, loop devices, qemu-user and the agents (`make agents`) are needed; for the size, only
//! these.
#![allow(clippy::unwrap_used)]

use whichfs_testkit::skip;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use whichfs_remote::ARCHITECTURES;
use whichfs_trial::{Content, Event, Job, Op, StampedEvent, Step, WorkloadSpec};

/// Most bytes of an agent for boards.
const SIZE_MAX: u64 = 3 << 20;

/// Bytes of the longest file that a script may write.
const FAR: u64 = 1 << 30;

fn agent(architecture: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().unwrap();
    let beside = beside.ancestors().nth(2).unwrap().to_owned();
    let directory = std::env::var_os("WHICHFS_AGENTS").map_or(beside, PathBuf::from);
    let path = directory.join(format!("whichfs-agent-{architecture}"));
    if path.is_file() {
        return Some(path);
    }
    skip::skip(format!(
        "no agent for {architecture} is built (make agents)"
    ));
    None
}

#[test]
fn an_agent_for_boards_is_small_and_needs_nothing() {
    let machines = [("x86_64", 62), ("aarch64", 183), ("armv7", 40)];
    for (architecture, machine) in machines {
        let Some(path) = agent(architecture) else {
            continue;
        };
        let bytes = std::fs::read(&path).unwrap();
        let len = bytes.len() as u64;
        assert!(len <= SIZE_MAX, "{architecture}: {len} bytes");
        assert_eq!(bytes[..4], *b"\x7fELF");
        assert_eq!(
            u16::from_le_bytes([bytes[18], bytes[19]]),
            machine,
            "{architecture}"
        );
        let loader = b"/ld-linux";
        let is_static = !bytes[..4096]
            .windows(loader.len())
            .any(|part| part == loader);
        assert!(is_static, "{architecture} asks for a dynamic loader");
    }
    assert_eq!(
        machines.map(|(name, _)| name),
        ARCHITECTURES.map(|(name, _)| name)
    );
}

/// A loop device of 96 MiB.
struct Card {
    device: String,
    home: tempfile::TempDir,
}

impl Card {
    fn new() -> Option<Card> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(96 << 20)
            .unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&file)
            .output();
        let Some(output) = losetup.ok().filter(|output| output.status.success()) else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Some(Card { device, home })
    }

    /// The workload `tree` on ext4, what is on the filesystem after it, and blocks at the end of
    /// a long file.
    fn job(&self) -> Job {
        let place = self.home.path().join("place").display().to_string();
        let mkfs: Vec<String> = ["mkfs.ext4", "-q", "-F", &self.device]
            .map(str::to_owned)
            .into();
        let workload = whichfs_workload::find("tree").unwrap();
        let spec = WorkloadSpec {
            name: "tree".into(),
            parameters: BTreeMap::from([("bytes".into(), 8_000_000), ("files".into(), 200)]),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        let candidate = whichfs_workload::StepCandidate {
            upper: None,
            before: Vec::new(),
            mkfs: vec![mkfs],
            env: BTreeMap::from([("PATH".into(), whichfs_workload::PATH.into())]),
            check: Vec::new(),
            device: self.device.clone(),
            disk: None,
            image: None,
            kernel_fs: "ext4".into(),
            mount_options: "noatime".into(),
            mount_point: place.clone(),
            helper: None,
            modules: Vec::new(),
        };
        let mut steps = whichfs_workload::steps(workload, &spec, 1, &candidate).unwrap();
        // What it wrote is looked at.
        let removes =
            |step: &Step| matches!(step, Step::Operate { phase, .. } if phase == "tree_remove");
        steps.retain(|step| !removes(step));
        steps.push(Step::Mount {
            phase: None,
            source: self.device.clone(),
            target: place.clone(),
            kernel_fs: "ext4".into(),
            options: "noatime".into(),
        });
        steps.push(Step::Inspect {
            dir: place.clone(),
            sectors: Vec::new(),
        });
        steps.push(Step::Exercise { dir: place.clone() });
        steps.push(far(&place));
        let script = "stat -c %s far && tail -c 65536 far | sha256sum && rm far && \
                      find . -type f | sort | xargs -d '\\n' sha256sum | sha256sum; find . | wc -l";
        steps.push(Step::Run {
            phase: None,
            argv: vec!["sh".into(), "-c".into(), script.into()],
            env: BTreeMap::from([("PATH".into(), whichfs_workload::PATH.into())]),
            dir: place.clone(),
            stdin: String::new(),
            show: true,
            any_status: false,
            keeps_rights: false,
        });
        steps.push(Step::Unmount {
            phase: None,
            target: place,
        });
        Job {
            seed: 1,
            queues: Vec::new(),
            steps,
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        }
    }

    /// What the agent tells when it does the job: by itself, or run by `emulator`.
    fn told_by(&self, agent: &Path, emulator: Option<&str>) -> Vec<StampedEvent> {
        let mut command = match emulator {
            None => Command::new(agent),
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(agent);
                command
            }
        };
        let disk = self.device.trim_start_matches("/dev/");
        let mut child = command
            .args(["--watch", disk, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let job = serde_json::to_vec(&self.job()).unwrap();
        child.stdin.take().unwrap().write_all(&job).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let told: Vec<StampedEvent> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(output.status.success(), "{emulator:?}: {:?}", told.last());
        told
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let place = self.home.path().join("place");
        let _ = Command::new("umount").arg("-q").arg(place).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

/// Blocks that are written, announced and read at the end of a long file with a hole.
fn far(place: &str) -> Step {
    let (path, offset, len, block) = ("far".to_owned(), FAR - (64 << 10), 64 << 10, 16 << 10);
    let content = Content::Generated { level: 0, seed: 7 };
    let ops = vec![
        Op::WriteAt {
            path: path.clone(),
            offset,
            len,
            block,
            direct: false,
            content,
        },
        Op::WillRead {
            path: path.clone(),
            offset,
            len,
        },
        Op::ReadAt {
            path,
            offset,
            len,
            block,
            direct: false,
        },
    ];
    Step::Operate {
        phase: "script".into(),
        workload: WorkloadSpec {
            name: "script".into(),
            parameters: BTreeMap::new(),
            tree: None,
            unix: true,
            script: Some(ops),
            input: None,
        },
        dir: place.to_owned(),
    }
}

/// The events without what is of a clock, and without the space that ext4 takes: where it puts
/// directories is by chance (the seed of its hashes).
fn results(told: &[StampedEvent]) -> Vec<String> {
    let result = |told: &StampedEvent| match &told.event {
        Event::PhaseEnd { phase, counts, .. } => format!("{phase} ends: {counts:?}"),
        other => format!("{other:?}"),
    };
    let is_space =
        |told: &&StampedEvent| matches!(&told.event, Event::Metric { name, .. } if name == "space");
    told.iter()
        .filter(|told| !is_space(told))
        .map(result)
        .collect()
}

#[test]
fn loop_qemu_the_agents_for_arm_do_the_same_job_with_the_same_results() {
    let Some(own) = agent("x86_64") else { return };
    let Some(card) = Card::new() else { return };
    let expected = results(&card.told_by(&own, None));
    assert!(expected.len() > 6, "{expected:?}");
    for (architecture, emulator) in [("aarch64", "qemu-aarch64"), ("armv7", "qemu-arm")] {
        let Some(path) = agent(architecture) else {
            continue;
        };
        let is_there = Command::new(emulator).arg("--version").output().is_ok();
        if !is_there {
            skip::skip(format!("{emulator} is missing (apt-get install qemu-user)"));
            continue;
        }
        let found = card.told_by(&path, Some(emulator));
        assert_eq!(results(&found), expected, "{architecture}");
        let reading = found.iter().find_map(|told| told.reading.as_ref()).unwrap();
        assert!(
            !reading.threads.is_empty(),
            "{architecture} reads the machine's counters"
        );
    }
}
