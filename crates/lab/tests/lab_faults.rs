//! Guests that go wrong: each ends with its reason, and nothing of it is left.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::program::{self, agent_of};
use common::traces::{Lookout, own_session, wait_until};
use common::{Trial, command, kernel, mount, one_at_a_time, shell};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use whichfs_card::{CHUNK_BYTES, Contents, Spill};
use whichfs_lab::{GuestLimits, GuestRun, LabError};
use whichfs_trial::Step;

/// Runs `trial` and checks that nothing of it is left.
fn end_of(trial: Trial) -> GuestRun {
    let lookout = Lookout::for_seed(trial.seed);
    let life = trial.run();
    lookout.nothing_is_left();
    life
}

/// A guest whose first program is `code`.
fn with_program(seed: u64, code: &[u8]) -> Option<Trial> {
    Some(Trial::with_agent(
        seed,
        agent_of(code),
        kernel()?,
        Vec::new(),
    ))
}

fn limits(change: impl FnOnce(&mut GuestLimits)) -> GuestLimits {
    let mut limits = GuestLimits {
        wall: Duration::from_secs(20),
        ..GuestLimits::default()
    };
    change(&mut limits);
    limits
}

#[test]
fn lab_a_panic_is_the_kernels_own_line() {
    let _one = one_at_a_time();
    let Some(trial) = with_program(101, program::EXIT) else {
        return;
    };
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    assert!(matches!(&error, LabError::Panic { .. }), "{error}");
    assert!(
        error.to_string().contains("Attempted to kill init"),
        "{error}"
    );
    let tail = life.console.join("\n");
    assert!(
        tail.contains("Kernel panic"),
        "the console's tail is kept: {tail}"
    );
}

#[test]
fn lab_a_guest_that_powers_off_early_was_not_done() {
    let _one = one_at_a_time();
    let Some(trial) = with_program(102, program::POWER_OFF) else {
        return;
    };
    let error = end_of(trial).result.unwrap_err();
    assert!(matches!(error, LabError::NotDone), "{error}");
}

#[test]
fn lab_a_first_program_that_spins_is_stopped() {
    let _one = one_at_a_time();
    let Some(mut trial) = with_program(103, program::SPIN) else {
        return;
    };
    trial.limits = limits(|l| l.silent_cpu = Duration::from_secs(1));
    let error = end_of(trial).result.unwrap_err();
    assert!(matches!(error, LabError::Spins(_)), "{error}");
    assert!(error.to_string().contains("1 s of CPU time"), "{error}");
}

#[test]
fn lab_a_program_of_the_job_that_spins_is_stopped() {
    let _one = one_at_a_time();
    let Some(mut trial) = Trial::new(104, vec![shell("while :; do :; done")]) else {
        return;
    };
    trial.limits = limits(|l| l.silent_cpu = Duration::from_secs(1));
    let error = end_of(trial).result.unwrap_err();
    assert!(matches!(error, LabError::Spins(_)), "{error}");
}

#[test]
fn lab_the_wall_limit_ends_a_trial_that_works_on() {
    let _one = one_at_a_time();
    let writes =
        shell("while :; do dd if=/dev/zero of=/dev/vda bs=4k count=1000 oflag=direct; done");
    let Some(mut trial) = Trial::new(105, vec![writes]) else {
        return;
    };
    trial.limits = limits(|l| l.wall = Duration::from_secs(1));
    let error = end_of(trial).result.unwrap_err();
    assert!(matches!(error, LabError::WallLimit(_)), "{error}");
    assert!(error.to_string().contains("the wall limit"), "{error}");
}

#[test]
fn lab_the_wall_limit_ends_a_guest_that_speaks_seldom() {
    let _one = one_at_a_time();
    // Some 20 ms of CPU between requests: never silent for long, never many messages.
    let steps = vec![shell(
        "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; \
         dd if=/dev/zero of=/dev/vda bs=4k count=1 oflag=direct 2>/dev/null; done",
    )];
    let Some(mut trial) = Trial::new(106, steps) else {
        return;
    };
    trial.limits = limits(|l| l.wall = Duration::from_secs(1));
    let begin = std::time::Instant::now();
    let error = end_of(trial).result.unwrap_err();
    assert!(matches!(error, LabError::WallLimit(_)), "{error}");
    let late = begin.elapsed().as_secs();
    assert!(late < 20, "the limit was 1 s, the end came after {late} s");
}

#[test]
fn lab_a_first_program_that_waits_for_nothing_sleeps_for_ever() {
    let _one = one_at_a_time();
    let Some(trial) = with_program(107, program::PAUSE) else {
        return;
    };
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    assert!(
        is_asleep(&error),
        "{error} after {} s of virtual time",
        life.time.as_secs_f64()
    );
}

#[test]
fn lab_a_program_of_the_job_that_waits_for_nothing_sleeps_for_ever() {
    let _one = one_at_a_time();
    let Some(trial) = Trial::new(108, vec![shell("mkfifo /tmp/f; cat /tmp/f")]) else {
        return;
    };
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    assert!(
        is_asleep(&error),
        "{error} after {} s of virtual time",
        life.time.as_secs_f64()
    );
}

/// Kernel timers may go on where programs sleep: then virtual time passes the bound.
fn is_asleep(error: &LabError) -> bool {
    matches!(error, LabError::SleepsForever | LabError::NoProgress(_))
}

#[test]
fn lab_virtual_time_without_progress_is_bounded() {
    let _one = one_at_a_time();
    let Some(trial) = with_program(109, program::DOZE) else {
        return;
    };
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    let slept = life.time.as_secs_f64();
    assert!(
        matches!(error, LabError::NoProgress(86_400)),
        "{error} after {slept} s"
    );
    assert!(
        life.time.0 <= 86_400_000_000_000 + 1_000_000_000_000,
        "{}",
        life.time
    );
}

#[test]
fn lab_a_first_program_that_floods_the_console_is_stopped() {
    let _one = one_at_a_time();
    let Some(mut trial) = with_program(110, program::FLOOD) else {
        return;
    };
    trial.limits = limits(|l| l.console_bytes = 100_000);
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    assert!(matches!(error, LabError::ConsoleFlood(100_000)), "{error}");
    assert!(!life.console.is_empty(), "the tail is kept");
}

#[test]
fn lab_a_program_of_the_job_that_floods_the_console_is_stopped() {
    let _one = one_at_a_time();
    let Some(mut trial) = Trial::new(111, vec![shell("yes flood >/dev/console")]) else {
        return;
    };
    trial.limits = limits(|l| l.console_bytes = 100_000);
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    assert!(matches!(error, LabError::ConsoleFlood(_)), "{error}");
    assert!(
        life.console.iter().any(|line| line.contains("flood")),
        "{:?}",
        life.console
    );
}

#[test]
fn lab_a_guest_that_is_killed_says_by_what() {
    let _one = one_at_a_time();
    // At various instants, so that boot, waiting and the midst of a request are met.
    for (seed, after) in (120..).zip([3, 20, 60, 100, 150, 200, 300]) {
        let writes = command(&[
            "dd",
            "if=/dev/zero",
            "of=/dev/vda",
            "bs=4k",
            "count=200000",
            "oflag=direct",
        ]);
        let Some(trial) = Trial::new(seed, vec![writes]) else {
            return;
        };
        // A guest that the lookout missed would not be looked for afterwards.
        let lookout = Lookout::for_seed(seed);
        let seen = lookout.seen();
        let killer = std::thread::spawn(move || {
            let own = own_session();
            let guest = || seen.lock().unwrap().iter().copied().find(|&s| s != own);
            assert!(wait_until(Duration::from_secs(20), || guest().is_some()));
            std::thread::sleep(Duration::from_millis(after));
            let pid = Pid::from_raw(guest().unwrap() as i32).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        });
        let life = trial.run();
        lookout.nothing_is_left();
        let error = life.result.unwrap_err();
        killer.join().unwrap();
        let text = error.to_string();
        assert!(
            matches!(error, LabError::GuestEnded { .. }),
            "{after} ms: {text}"
        );
        assert!(text.contains("signal: 9"), "{after} ms: {text}");
    }
}

#[test]
fn lab_ctrl_c_ends_a_guest_at_any_moment() {
    let _one = one_at_a_time();
    for (seed, after) in (140..).zip([0, 1, 10, 40, 80, 120, 200, 400]) {
        let steps = vec![shell(
            "while :; do dd if=/dev/zero of=/dev/vda bs=4k count=1000; done",
        )];
        let Some(trial) = Trial::new(seed, steps) else {
            return;
        };
        let cancelled = Arc::new(AtomicBool::new(after == 0));
        let flag = Arc::clone(&cancelled);
        let finger = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            flag.store(true, Ordering::Relaxed);
        });
        let lookout = Lookout::for_seed(seed);
        let life = trial.run_with(&cancelled, &mut |_| {});
        finger.join().unwrap();
        lookout.nothing_is_left();
        let error = life.result.unwrap_err();
        assert!(
            matches!(error, LabError::Interrupted),
            "{after} ms: {error}"
        );
    }
}

#[test]
fn lab_ctrl_c_at_an_event_ends_the_guest() {
    let _one = one_at_a_time();
    // The sleep lets the agent, which shares the only CPU, pass the word on.
    let steps = vec![shell("echo begun; sleep 1; while :; do :; done")];
    let Some(trial) = Trial::new(160, steps) else {
        return;
    };
    let cancelled = AtomicBool::new(false);
    let lookout = Lookout::for_seed(160);
    let life = trial.run_with(&cancelled, &mut |_| {
        cancelled.store(true, Ordering::Relaxed)
    });
    lookout.nothing_is_left();
    let error = life.result.unwrap_err();
    assert!(matches!(error, LabError::Interrupted), "{error}");
    assert_eq!(life.events.len(), 1, "what was heard before is kept");
}

/// A host whose disk is full after `room` slots.
struct Full {
    room: u64,
}

impl Spill for Full {
    fn write_slot(&self, slot: u64, _: &[u8]) -> io::Result<()> {
        if slot < self.room {
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(28)) // ENOSPC
    }

    fn read_slot(&self, _: u64, _: usize, chunk: &mut [u8]) -> io::Result<()> {
        chunk.fill(0);
        Ok(())
    }
}

#[test]
fn lab_a_full_disk_of_the_host_names_the_disk_and_a_way_out() {
    let _one = one_at_a_time();
    // Zeros would take no room.
    let writes = shell("yes | dd of=/dev/vdb bs=1M count=8 iflag=fullblock oflag=direct");
    let Some(mut trial) = Trial::new(161, vec![writes]) else {
        return;
    };
    let full = common::sd();
    let capacity = full.contents().capacity_bytes();
    let contents = Contents::bounded(capacity, 4 * CHUNK_BYTES, Box::new(Full { room: 3 }));
    let full = full.with_contents(contents);
    trial.disks = vec![common::sd(), full];
    trial.queues.push(common::queue("vdb"));
    let error = end_of(trial).result.unwrap_err();
    assert!(
        matches!(&error, LabError::Contents { disk: 1, .. }),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("disk 1") && text.contains("No space left"),
        "{text}"
    );
    assert!(
        !text.contains("TMPDIR"),
        "where is for the spill to say: {text}"
    );
}

#[test]
fn lab_a_program_that_prints_without_end_is_stopped() {
    let _one = one_at_a_time();
    let Some(mut trial) = Trial::new(107, vec![shell("yes")]) else {
        return;
    };
    trial.limits = limits(|l| l.output_bytes = 1 << 20);
    let life = end_of(trial);
    let error = life.result.unwrap_err();
    assert!(matches!(error, LabError::OutputFlood(_)), "{error}");
    assert!(error.to_string().contains("/dev/null"), "{error}");
    let kept = life.events.iter().map(|stamped| match &stamped.event {
        whichfs_trial::Event::Output { text, .. } => text.len(),
        _ => 0,
    });
    assert!(kept.sum::<usize>() < 2 << 20);
}

#[test]
fn lab_a_mkfs_that_fails_is_quoted() {
    let _one = one_at_a_time();
    let step = Step::Run {
        phase: Some("mkfs".into()),
        argv: ["mkfs.ext4", "-b", "12345", "/dev/vda"]
            .map(str::to_owned)
            .to_vec(),
        env: common::path_only(),
        dir: "/".into(),
        stdin: String::new(),
        show: false,
        any_status: false,
        keeps_rights: false,
    };
    let Some(trial) = Trial::new(162, vec![step]) else {
        return;
    };
    let error = end_of(trial).result.unwrap_err();
    let text = error.to_string();
    assert!(matches!(&error, LabError::Agent { .. }), "{text}");
    assert!(
        text.contains("mkfs.ext4 -b 12345") && text.contains("too big for system"),
        "{text}"
    );
}

#[test]
fn lab_a_program_that_is_missing_is_named() {
    let _one = one_at_a_time();
    let Some(trial) = Trial::new(163, vec![command(&["mkfs.none", "/dev/vda"])]) else {
        return;
    };
    let text = end_of(trial).result.unwrap_err().to_string();
    assert!(
        text.contains("mkfs.none") && text.contains("No such file"),
        "{text}"
    );
}

#[test]
fn lab_an_unknown_filesystem_is_named_with_the_kernel_log() {
    let _one = one_at_a_time();
    let Some(trial) = Trial::new(164, vec![mount("zfs", "")]) else {
        return;
    };
    let error = end_of(trial).result.unwrap_err();
    let LabError::Agent {
        message,
        kernel_log,
    } = error
    else {
        panic!("{error}");
    };
    assert!(message.contains("zfs"), "{message}");
    assert!(!kernel_log.is_empty(), "the tail of the kernel log is kept");
}

#[test]
fn lab_mounting_what_is_no_filesystem_shows_the_kernels_words() {
    let _one = one_at_a_time();
    let Some(trial) = Trial::new(165, vec![mount("ext4", "")]) else {
        return;
    };
    let Err(LabError::Agent { kernel_log, .. }) = end_of(trial).result else {
        panic!("nothing is on that card");
    };
    let log = kernel_log.join("\n");
    assert!(
        log.contains("EXT4-fs (vda)") && log.contains("Can't find ext4"),
        "{log}"
    );
}
