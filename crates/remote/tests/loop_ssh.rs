//! Sessions with a board that is this machine, by an ssh server of the test's own, on a loop
//! device: what is done there, what is left, and what a lost connection or a restart costs. Root,
//! loop devices, sshd, mkfs.ext4 and the agent for boards (`make agents`) are needed.
#![allow(clippy::unwrap_used)]

use parking_lot::{Mutex, MutexGuard};
use whichfs_testkit::skip;
use whichfs_testkit::sshd;

use sshd::{Sshd, attendant, kill, sessions, users};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_device::{DestroyLimits, sandboxed_agent::AgentEnd};
use whichfs_format::Span;
use whichfs_remote::{
    Address, Answer, Ask, BoardSession, Cutting, Kit, MOUNT_POINT, Patience, Power, Refusal, Task,
    Why,
};
use whichfs_trial::{Event, Job, StampedEvent, Step};

/// Only one whichfs measures on a board.
static BOARD: Mutex<()> = Mutex::new(());

/// A board with a card of 64 MiB.
struct Bench {
    sshd: Sshd,
    device: String,
    file: PathBuf,
    kit: Kit,
    said: Arc<Mutex<Vec<String>>>,
    home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

fn agents() -> PathBuf {
    let beside = std::env::current_exe().unwrap();
    let beside = beside.ancestors().nth(2).unwrap().to_owned();
    std::env::var_os("WHICHFS_AGENTS").map_or(beside, PathBuf::from)
}

fn attach(file: &Path) -> Option<String> {
    std::fs::File::create(file)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let mut losetup = Command::new("losetup");
    let output = losetup.args(["-f", "--show"]).arg(file).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Bench {
    fn new() -> Option<Bench> {
        let alone = BOARD.lock();
        if !agents().join("whichfs-agent-x86_64").is_file() {
            skip::skip("no agent for boards is built (make agents)");
            return None;
        }
        let sshd = Sshd::new()?;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("card.img");
        let Some(device) = attach(&file) else {
            skip::skip("loop devices are needed");
            return None;
        };
        let kit = Kit {
            ssh: sshd.ssh(),
            python: "python3".into(),
            agents: agents(),
        };
        let bench = Bench {
            sshd,
            device,
            file,
            kit,
            said: Arc::default(),
            home,
            _alone: alone,
        };
        assert!(sessions().is_empty(), "left before: {:?}", sessions());
        Some(bench)
    }

    fn address(&self) -> Address {
        Address {
            host: "board".into(),
            port: None,
            path: self.device.clone(),
            place: None,
            console: false,
        }
    }

    fn open(&self, patience: Patience) -> Result<BoardSession, Refusal> {
        let (at, kit, said) = (self.address(), self.kit.clone(), Arc::clone(&self.said));
        let tell = move |text: &str| said.lock().push(text.to_owned());
        BoardSession::open(&at, kit, patience, Box::new(tell), None)
    }

    fn said(&self) -> String {
        self.said.lock().join("\n")
    }

    /// A session in which trials may begin.
    fn begun(&self, patience: Patience) -> BoardSession {
        let mut board = self.open(patience).unwrap();
        let (device, machine) = board.find(&DestroyLimits::default()).unwrap();
        assert_eq!(device.bytes, 64 << 20);
        assert!(machine.memory_mib > 0 && !machine.kernel.is_empty());
        let given = Some(device.id);
        board.request(&Ask::Confirm { given }).unwrap();
        let trials = "trials".to_owned();
        board.request(&Ask::Begin { trials }).unwrap();
        board
    }

    /// mkfs, mount, a line into the kernel's log, `then`, unmount.
    fn task(&self, then: &str) -> Ask {
        let partition = format!("{}p1", self.device);
        let mark = self.home.path().display();
        let script = format!("echo run of {mark} > /dev/kmsg; cd {MOUNT_POINT}; {then}");
        let steps = vec![
            program(&["mkfs.ext4", "-q", "-F", &partition], "mkfs"),
            Step::Mount {
                phase: Some("mount".into()),
                source: partition,
                target: MOUNT_POINT.into(),
                kernel_fs: "ext4".into(),
                options: "noatime".into(),
            },
            program(&["sh", "-c", &script], "work"),
            Step::Unmount {
                phase: Some("unmount".into()),
                target: MOUNT_POINT.into(),
            },
        ];
        let job = Job {
            seed: 1,
            queues: Vec::new(),
            steps,
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        };
        Ask::Trial(Box::new(Task {
            span: Span {
                start: 4 << 20,
                bytes: 32 << 20,
            },
            label: "ext4, repeat 1".into(),
            job,
            wall_limit_s: 60,
            write_limit: None,
            keeps: false,
        }))
    }

    /// How often the work of the trial was begun.
    fn times_run(&self) -> usize {
        let log = Command::new("dmesg").output().unwrap();
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        text.matches(&format!("run of {}", self.home.path().display()))
            .count()
    }

    /// Nothing of a session is left: no directory, no process, no mount, no user of the device.
    fn is_left_alone(&self) {
        let begun = Instant::now();
        loop {
            let left = [sessions(), users(&self.device)].concat();
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "left: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("partx").arg("-d").arg(&self.device).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

fn program(argv: &[&str], phase: &str) -> Step {
    let path = "/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
    Step::Run {
        phase: Some(phase.to_owned()),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        dir: "/".into(),
        stdin: String::new(),
        show: false,
        any_status: false,
        // The kernel's log is all that outlives a trial, and programs without rights lack it.
        keeps_rights: phase == "work",
    }
}

fn patient() -> Patience {
    Patience::default()
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// Waits until it is so, 40 s at most; whether it is.
fn wait_until(is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed().as_secs() < 40 {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn begins_work(told: &StampedEvent) -> bool {
    matches!(&told.event, Event::PhaseBegin { phase } if phase == "work")
}

/// The events without their times.
fn names(told: &[StampedEvent]) -> Vec<String> {
    let name = |told: &StampedEvent| match &told.event {
        Event::PhaseBegin { phase } => format!("{phase} begins"),
        Event::PhaseEnd { phase, .. } => format!("{phase} ends"),
        Event::Done => "done".to_owned(),
        _ => String::new(),
    };
    told.iter()
        .map(name)
        .filter(|name| !name.is_empty())
        .collect()
}

const WHOLE: [&str; 9] = [
    "mkfs begins",
    "mkfs ends",
    "mount begins",
    "mount ends",
    "work begins",
    "work ends",
    "unmount begins",
    "unmount ends",
    "done",
];

fn done(answer: &Answer) {
    let ended = AgentEnd::Done;
    assert_eq!(*answer, Answer::Ended { ended });
}

#[test]
fn loop_ssh_a_trial_is_done_on_the_board_in_little_memory_and_nothing_is_left() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(patient());
    let task = bench.task("dd if=/dev/zero of=a bs=1M count=8 conv=fsync");
    let mut heard = Vec::new();
    let result = board.ask(&task, &never(), &mut |one| heard.push(one.clone()));
    let (answer, told) = result.unwrap();
    done(&answer);
    assert_eq!(names(&told), WHOLE);
    assert_eq!(heard, told);
    let read: Vec<_> = told.iter().filter_map(|one| one.reading.as_ref()).collect();
    assert!(read[read.len() - 1].device.write_bytes > read[0].device.write_bytes);
    let Answer::Written { bytes } = board.request(&Ask::Written).unwrap() else {
        panic!("bytes");
    };
    assert!(bytes > 1 << 20, "{bytes}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", attendant().unwrap())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib <= 8 << 10, "{line}: an idle agent has at most 8 MiB");
    let names = vec!["sh".to_owned(), "no-such-tool".to_owned()];
    let Answer::Tools { versions } = board.request(&Ask::Tools { names }).unwrap() else {
        panic!("tools");
    };
    assert_eq!(versions.into_keys().collect::<Vec<_>>(), ["sh"]);
    board.request(&Ask::End).unwrap();
    drop(board);
    bench.is_left_alone();
    assert_eq!(bench.said(), "");
}

#[test]
fn loop_ssh_the_guards_hold_on_the_board() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.open(patient()).unwrap();
    let (device, _) = board.find(&DestroyLimits::default()).unwrap();
    assert_eq!(device.id, bench.file.display().to_string());
    let trials = "trials".to_owned();
    let error = board
        .request(&Ask::Begin {
            trials: trials.clone(),
        })
        .unwrap_err();
    assert!(
        error.message.contains("not to be asked now"),
        "without consent: {error}"
    );
    let given = Some("another".to_owned());
    let error = board.request(&Ask::Confirm { given }).unwrap_err();
    assert!(
        error.message.contains("on board: --destroy another"),
        "{error}"
    );
    assert!(board.request(&Ask::Begin { trials }).is_err());
    let limits = DestroyLimits {
        max_bytes: 1 << 20,
        internal: false,
    };
    let error = board.find(&limits).unwrap_err();
    assert!(error.message.contains("--max-size"), "{error}");
    let written = std::os::unix::fs::MetadataExt::blocks(&bench.file.metadata().unwrap());
    assert_eq!(written, 0, "written to without consent");
    // Somebody begins to use it between two steps.
    let given = Some(board.find(&DestroyLimits::default()).unwrap().0.id);
    board.request(&Ask::Confirm { given }).unwrap();
    let trials = "trials".to_owned();
    board.request(&Ask::Begin { trials }).unwrap();
    let swap = bench.home.path().join("link");
    std::os::unix::fs::symlink(&bench.device, &swap).unwrap();
    let holder = Command::new("losetup")
        .args(["-f", "--show"])
        .arg(&swap)
        .output()
        .unwrap();
    let holder = String::from_utf8_lossy(&holder.stdout).trim().to_owned();
    let error = board.ask(&bench.task("true"), &never(), &mut |_| ());
    Command::new("losetup")
        .args(["-d", &holder])
        .output()
        .unwrap();
    let error = error.unwrap_err();
    assert!(error.message.contains(&holder), "{error}");
    assert_eq!(bench.times_run(), 0);
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_dropped_connection_costs_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(patient());
    let mut cut = 0;
    let result = board.ask(&bench.task("sleep 3"), &never(), &mut |told| {
        if begins_work(told) {
            bench.sshd.cut();
            cut += 1;
        }
    });
    let (answer, told) = result.unwrap();
    done(&answer);
    assert_eq!(names(&told), WHOLE, "no event twice, none lost");
    assert_eq!((cut, bench.times_run()), (1, 1), "it went on");
    let said = bench.said();
    assert!(
        said.contains("is lost") && said.contains("connected to board again"),
        "{said}"
    );
    // The answer comes while nobody is connected, too.
    let result = board.ask(&bench.task("sleep 1"), &never(), &mut |told| {
        if begins_work(told) {
            bench.sshd.cut();
        }
    });
    done(&result.unwrap().0);
    assert_eq!(bench.times_run(), 2);
    board.request(&Ask::End).unwrap();
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_after_a_restart_of_the_board_the_lost_trial_begins_anew() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(patient());
    done(
        &board
            .ask(&bench.task("true"), &never(), &mut |_| ())
            .unwrap()
            .0,
    );
    let before = sessions();
    let sshd = Mutex::new(bench);
    let task = sshd.lock().task("sleep 2");
    let mut restarted = false;
    let result = board.ask(&task, &never(), &mut |told| {
        if begins_work(told) && !std::mem::replace(&mut restarted, true) {
            let mut bench = sshd.lock();
            wait_until(|| bench.times_run() == 2);
            // All processes end, what was in memory is gone, and the server is away for a while.
            kill(attendant().unwrap());
            bench.sshd.stop();
            std::fs::remove_dir_all(&before[0]).unwrap();
            std::thread::sleep(Duration::from_millis(500));
            bench.sshd.restart();
        }
    });
    let bench = sshd.into_inner();
    let (answer, told) = result.unwrap();
    done(&answer);
    assert_eq!(names(&told), WHOLE, "only of the run that was finished");
    assert_eq!(bench.times_run(), 3, "one before, one lost, one anew");
    assert!(bench.said().contains("begins anew"), "{}", bench.said());
    assert_ne!(sessions(), before);
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_board_that_restarts_again_and_again_is_told() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(Patience {
        restarts: 1,
        ..patient()
    });
    let mut runs = 0;
    let error = board.ask(&bench.task("sleep 5"), &never(), &mut |told| {
        if begins_work(told) {
            runs += 1;
            wait_until(|| bench.times_run() == runs);
            kill(attendant().unwrap());
        }
    });
    let error = error.unwrap_err();
    assert!(error.message.contains("restarted 2 times"), "{error}");
    assert_eq!((error.why, bench.times_run()), (Why::Trial, 2));
    drop(board);
    // What the killed ones left is removed by the next session.
    drop(bench.open(patient()).unwrap());
    bench.is_left_alone();
}

#[test]
fn loop_ssh_another_device_after_a_restart_is_not_touched() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(patient());
    let other = bench.home.path().join("other.img");
    let error = board.ask(&bench.task("sleep 3"), &never(), &mut |told| {
        if begins_work(told) {
            wait_until(|| bench.times_run() == 1);
            kill(attendant().unwrap());
            wait_until(|| users(&bench.device).is_empty());
            Command::new("partx")
                .arg("-d")
                .arg(&bench.device)
                .output()
                .unwrap();
            let file = std::fs::File::create(&other).unwrap();
            file.set_len(64 << 20).unwrap();
            let losetup = |arguments: &[&std::ffi::OsStr]| {
                let all = Command::new("losetup").args(arguments).output();
                all.unwrap()
            };
            // Who opens it meanwhile, to look at it, puts its end off.
            losetup(&["-d".as_ref(), bench.device.as_ref()]);
            let again = || losetup(&[bench.device.as_ref(), other.as_ref()]);
            assert!(wait_until(|| again().status.success()));
        }
    });
    let error = error.unwrap_err();
    assert!(
        error.message.contains("another device than before"),
        "{error}"
    );
    let written = std::os::unix::fs::MetadataExt::blocks(&other.metadata().unwrap());
    assert_eq!((written, bench.times_run()), (0, 1));
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_an_interrupted_trial_is_ended_and_nothing_is_left() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(patient());
    let asked = never();
    let error = board.ask(&bench.task("sleep 600"), &asked, &mut |told| {
        asked.fetch_or(begins_work(told), Ordering::Relaxed);
    });
    assert_eq!(error.unwrap_err().why, Why::Interrupted);
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_session_that_was_left_is_ended_by_the_next_one_which_waits_for_none_that_lives() {
    let Some(bench) = Bench::new() else { return };
    let living = bench.begun(patient());
    let error = bench.open(patient()).err().unwrap();
    assert!(
        error.message.contains("another whichfs measures"),
        "{error}"
    );
    assert_eq!(sessions().len(), 1, "the one that was refused left nothing");
    drop(living);
    bench.is_left_alone();
    let mut board = bench.begun(patient());
    let asked = never();
    // As of a program that was killed: its connection ends in the middle of a trial.
    let error = board.ask(&bench.task("sleep 600"), &asked, &mut |told| {
        if begins_work(told) {
            bench.sshd.forget_key();
            bench.sshd.cut();
            asked.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(error.unwrap_err().why, Why::Interrupted);
    std::mem::forget(board);
    assert_eq!(sessions().len(), 1, "it goes on");
    bench.sshd.know_key();
    let mut next = bench.begun(patient());
    done(
        &next
            .ask(&bench.task("true"), &never(), &mut |_| ())
            .unwrap()
            .0,
    );
    drop(next);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_board_that_cannot_be_reached_is_told_with_the_remedy() {
    let Some(bench) = Bench::new() else { return };
    bench.sshd.forget_key();
    let error = bench.open(patient()).err().unwrap();
    assert!(error.message.contains("ssh-copy-id board"), "{error}");
    bench.sshd.know_key();
    let mut board = bench.begun(Patience {
        lost: Duration::from_secs(3),
        restarts: 2,
    });
    let error = board.ask(&bench.task("sleep 3"), &never(), &mut |told| {
        if begins_work(told) {
            bench.sshd.forget_key();
            bench.sshd.cut();
        }
    });
    let error = error.unwrap_err();
    assert!(error.message.contains("no connection to board"), "{error}");
    bench.sshd.know_key();
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_a_board_that_keeps_its_power_is_told() {
    let Some(bench) = Bench::new() else { return };
    let mut board = bench.begun(patient());
    let cutting = Cutting {
        begins: &begins_work,
        after: Some(Duration::ZERO),
        power: Power::Here(&|| Ok(())),
        dies_within: Duration::from_secs(2),
    };
    let error = board.cut(&bench.task("sleep 600"), &cutting, &never(), &mut |_| ());
    let error = error.unwrap_err().message;
    assert!(error.contains("did not lose its power"), "{error}");
    drop(board);
    bench.is_left_alone();
}

#[test]
fn loop_ssh_without_a_build_for_the_board_nothing_is_copied() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    bench.kit.agents = bench.home.path().to_owned();
    let error = bench.open(patient()).err().unwrap();
    assert!(error.message.contains("make agents"), "{error}");
    assert_eq!(sessions(), Vec::<String>::new());
    std::fs::write(
        bench.home.path().join("whichfs-agent-x86_64"),
        "#!/bin/sh\nexit 3\n",
    )
    .unwrap();
    let error = bench.open(patient()).err().unwrap();
    assert!(
        error.message.contains("the agent cannot begin (status 3)"),
        "{error}"
    );
    bench.is_left_alone();
}
