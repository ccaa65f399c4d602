//! Jobs done by the real agent on a loop device: what is told, and that nothing is left. Root, loop
//! devices, mkfs.ext4 and a built agent (`WHICHFS_AGENT`) are needed.
//!
//! tidy: long: a list of attacks
#![allow(clippy::unwrap_used)]

use whichfs_testkit::skip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use whichfs_device::sandboxed_agent::{AgentEnd, AgentRun, SandboxedAgent, run};
use whichfs_device::{DestroyLimits, Roots, TargetDisk};
use whichfs_trial::{Conditions, DeviceFigures, Event, Job, Step};
use whichfs_units::Nanos;

/// A loop device on a file of 128 MiB, detached when it goes.
struct Card {
    path: PathBuf,
    agent: PathBuf,
    home: tempfile::TempDir,
}

impl Card {
    fn new() -> Option<Card> {
        let beside = std::env::current_exe().unwrap();
        let beside = beside
            .ancestors()
            .nth(2)
            .map(|dir| dir.join("whichfs-agent.static"));
        let agent = std::env::var_os("WHICHFS_AGENT")
            .map(PathBuf::from)
            .or(beside);
        let Some(agent) = agent.filter(|agent| agent.is_file()) else {
            skip::skip("no agent is built (make build)");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("card.img");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(128 << 20)
            .unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&file)
            .output();
        let Some(output) = losetup.ok().filter(|output| output.status.success()) else {
            skip::skip("root and loop devices are needed");
            return None;
        };
        Some(Card {
            path: String::from_utf8_lossy(&output.stdout).trim().into(),
            agent,
            home,
        })
    }

    fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    fn place(&self) -> String {
        self.home.path().join("place").display().to_string()
    }

    /// mkfs, mount, then `last`.
    fn job(&self, last: Vec<Step>) -> Job {
        let device = self.path.display().to_string();
        let mut steps = vec![
            self.program(&["mkfs.ext4", "-q", "-F", &device], Some("mkfs")),
            Step::Mount {
                phase: Some("mount".into()),
                source: device,
                target: self.place(),
                kernel_fs: "ext4".into(),
                options: "noatime".into(),
            },
        ];
        steps.extend(last);
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

    fn program(&self, argv: &[&str], phase: Option<&str>) -> Step {
        let path = "/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
        Step::Run {
            phase: phase.map(str::to_owned),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::from([("PATH".to_owned(), path)]),
            dir: "/".into(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        }
    }

    fn sandboxed<'a>(&'a self, job: &'a Job, wall_limit: Duration) -> SandboxedAgent<'a> {
        SandboxedAgent {
            agent: &self.agent,
            job,
            disk: self.name(),
            writable: std::slice::from_ref(&self.path),
            directory: None,
            write_limit: None,
            wall_limit,
        }
    }

    /// Nobody uses it any more, seen from here.
    fn is_free(&self) {
        let roots = Roots::default();
        let limits = DestroyLimits::default();
        let begun = Instant::now();
        let found = loop {
            match TargetDisk::find(&self.path, &limits, &roots).map(|disk| disk.check(&roots)) {
                Ok(Ok(())) => return,
                _ if begun.elapsed() < Duration::from_secs(20) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                other => break other,
            }
        };
        panic!("{} is in use: {found:?}", self.path.display());
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

const LONG: Duration = Duration::from_secs(120);

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

fn is_running(mark: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines =
        entries.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines
        .into_iter()
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[test]
fn loop_a_job_is_told_with_what_the_disk_did_and_leaves_no_mount() {
    let Some(card) = Card::new() else { return };
    let write = format!(
        "dd if=/dev/zero of={}/a bs=1M count=8 conv=fsync",
        card.place()
    );
    let job = card.job(vec![
        card.program(&["sh", "-c", &write], Some("write")),
        Step::Unmount {
            phase: Some("unmount".into()),
            target: card.place(),
        },
    ]);
    let life = run(&card.sandboxed(&job, LONG), &never(), &mut |_| ()).unwrap();
    assert_eq!(life.ended, AgentEnd::Done, "{:?}", life.told.last());
    let of = |begins: bool| {
        let found = life.told.iter().find(|told| match &told.event {
            Event::PhaseBegin { phase } => begins && phase == "write",
            Event::PhaseEnd { phase, .. } => !begins && phase == "write",
            _ => false,
        });
        found.unwrap().clone()
    };
    let (begin, end) = (of(true), of(false));
    assert!(begin.at < end.at);
    let (before, after) = (begin.reading.unwrap(), end.reading.unwrap());
    let written = after.device.write_bytes - before.device.write_bytes;
    assert!((8 << 20..16 << 20).contains(&written), "{written}");
    assert!(after.system >= before.system && after.kernel_since(&before) > Nanos(0));
    card.is_free();
}

#[test]
fn loop_a_job_that_takes_too_long_or_is_interrupted_leaves_nothing() {
    let Some(card) = Card::new() else { return };
    let mark = format!("sleep 3{}", std::process::id());
    let sleeping = format!("exec 3>{}/held; {mark}", card.place());
    let job = card.job(vec![card.program(&["sh", "-c", &sleeping], Some("sleep"))]);
    let limit = Duration::from_secs(3);
    let life = run(&card.sandboxed(&job, limit), &never(), &mut |_| ()).unwrap();
    assert_eq!(life.ended, AgentEnd::TooLong(limit));
    card.is_free();

    let asked = never();
    let life = run(&card.sandboxed(&job, LONG), &asked, &mut |told| {
        let sleeps = matches!(&told.event, Event::PhaseBegin { phase } if phase == "sleep");
        asked.fetch_or(sleeps, Ordering::Relaxed);
    });
    assert_eq!(life.unwrap().ended, AgentEnd::Interrupted);
    card.is_free();
    assert!(!is_running(&mark), "a program of the job is left");
}

#[test]
fn loop_a_step_that_fails_is_told_and_unmounted() {
    let Some(card) = Card::new() else { return };
    let job = card.job(vec![
        card.program(&["sh", "-c", "echo broken >&2; exit 7"], None),
    ]);
    let life = run(&card.sandboxed(&job, LONG), &never(), &mut |_| ()).unwrap();
    let AgentEnd::Failed { message, .. } = life.ended else {
        panic!("{:?}", life.ended);
    };
    assert!(
        message.contains("status 7") && message.contains("broken"),
        "{message}"
    );
    card.is_free();
}

#[test]
fn loop_an_agent_that_dies_or_is_none_is_told() {
    let Some(card) = Card::new() else { return };
    let job = card.job(Vec::new());
    let sandboxed = SandboxedAgent {
        agent: Path::new("/bin/false"),
        ..card.sandboxed(&job, LONG)
    };
    let life = run(&sandboxed, &never(), &mut |_| ()).unwrap();
    let AgentEnd::Failed { message, .. } = life.ended else {
        panic!("{:?}", life.ended);
    };
    assert!(message.contains("ended early with status 1"), "{message}");
    let sandboxed = SandboxedAgent {
        agent: Path::new("/no/such/agent"),
        ..card.sandboxed(&job, LONG)
    };
    let error = run(&sandboxed, &never(), &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot work here"), "{error}");
}

/// What a program of a trial could do to a machine, each as a script. `$V` is a directory of
/// somebody, `$D` another disk, `$P` a process, `$S` a socket of a service.
const WAYS_OUT: [&str; 33] = [
    "echo x > $V/new",
    "rm -rf $V/kept",
    "echo x >> $V/kept/file",
    "chmod 4755 $V/kept/file",
    "chown 12345 $V/kept/file",
    "ln $V/kept/file $V/linked",
    "mv $V/kept $V/moved",
    "touch -d 2000-01-01 $V/kept/file",
    "mkdir $V/directory",
    "ln -s / $V/link",
    "mknod $V/pipe p",
    "truncate -s 0 $V/kept/file",
    "mount -o remount,rw / && echo x > $V/new",
    "mount -o remount,bind,rw / && echo x > $V/new",
    "umount -l /tmp && echo x > $V/new",
    "dd if=/dev/zero of=$D bs=4k count=1 conv=notrunc",
    "mknod /tmp/disk b $(cat /sys/class/block/${D#/dev/}/dev | tr : ' ') && \
     dd if=/dev/zero of=/tmp/disk bs=4k count=1 conv=notrunc",
    "mknod $M/disk b $(cat /sys/class/block/${D#/dev/}/dev | tr : ' ') && \
     dd if=/dev/zero of=$M/disk bs=4k count=1 conv=notrunc",
    "mount -t devtmpfs none $M && dd if=/dev/zero of=$M/${D#/dev/} bs=4k count=1 conv=notrunc",
    "blkdiscard -f $D",
    "losetup -d $D",
    "echo 4 > /sys/class/block/${D#/dev/}/queue/nr_requests",
    "echo 77 > /proc/sys/kernel/printk_ratelimit_burst",
    "sysctl -w kernel.printk_ratelimit_burst=77",
    "kill -9 $P",
    "echo x > /proc/1/root$V/new",
    "for p in /proc/[0-9]*; do echo x > $p/root$V/new; echo x > $p/cwd$V/new; done",
    "for f in /proc/[0-9]*/fd/*; do echo x > $f/../../../../../../../..$V/new; \
     echo x > $f$V/new; done",
    "nsenter -t 1 -m -- sh -c \"echo x > $V/new\"",
    "unshare -Ur mount -o remount,rw / && echo x > $V/new",
    "hostname whichfs-was-here",
    "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => $ENV{S})->print(\"x\")'",
    "perl -e 'open D, q(<), $ENV{V}; chroot q(/); for (3..64) { open(F, q(>&=), $_) and \
     chdir(F) and system(q(echo x > ../../../../../../../..).$ENV{V}.q(/new)) }'",
];

/// A machine that programs could harm: a directory, a disk, a process, a service, settings.
struct Victim {
    /// The settings are the machine's, so there is one victim at a time.
    _alone: MutexGuard<'static, ()>,
    home: tempfile::TempDir,
    disk: PathBuf,
    process: std::process::Child,
    service: std::os::unix::net::UnixListener,
    burst: String,
    name: String,
}

const BURST: &str = "/proc/sys/kernel/printk_ratelimit_burst";
const NAME: &str = "/proc/sys/kernel/hostname";
static SETTINGS: Mutex<()> = Mutex::new(());

impl Victim {
    /// It lies in `/var`, where nothing of a trial is.
    fn new() -> Option<Victim> {
        let alone = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
        let home = tempfile::tempdir_in("/var/lib").ok()?;
        let kept = home.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("file"), "what was there").unwrap();
        let image = tempfile::Builder::new().tempfile_in("/var/lib").unwrap();
        let (file, image) = image.keep().unwrap();
        file.set_len(8 << 20).unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&image)
            .output();
        let losetup = losetup.unwrap();
        // The device keeps it.
        std::fs::remove_file(image).unwrap();
        let disk: PathBuf = String::from_utf8_lossy(&losetup.stdout).trim().into();
        let service = home.path().join("socket");
        let service = std::os::unix::net::UnixListener::bind(service).unwrap();
        service.set_nonblocking(true).unwrap();
        let victim = Victim {
            _alone: alone,
            home,
            disk,
            process: Command::new("sleep").arg("1000").spawn().unwrap(),
            service,
            burst: std::fs::read_to_string(BURST).unwrap(),
            name: std::fs::read_to_string(NAME).unwrap(),
        };
        victim.restore();
        Some(victim)
    }

    fn environment(&self, mounted: &str) -> BTreeMap<String, String> {
        let path = |path: &Path| path.display().to_string();
        BTreeMap::from([
            (
                "PATH".to_owned(),
                "/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            ),
            ("V".to_owned(), path(self.home.path())),
            ("D".to_owned(), path(&self.disk)),
            ("P".to_owned(), self.process.id().to_string()),
            ("S".to_owned(), path(&self.home.path().join("socket"))),
            ("M".to_owned(), mounted.to_owned()),
        ])
    }

    /// All that could have been changed.
    fn state(&mut self) -> Vec<String> {
        use std::os::unix::fs::MetadataExt;
        let mut found = Vec::new();
        let mut places = vec![self.home.path().to_path_buf()];
        while let Some(place) = places.pop() {
            let meta = std::fs::symlink_metadata(&place).unwrap();
            let what = (meta.mode(), meta.uid(), meta.mtime(), meta.nlink());
            let text = match meta.is_file() {
                true => std::fs::read_to_string(&place).unwrap(),
                false => String::new(),
            };
            found.push(format!("{} {what:?} {text}", place.display()));
            if meta.is_dir() {
                let entries = std::fs::read_dir(&place).unwrap().flatten();
                places.extend(entries.map(|entry| entry.path()));
            }
        }
        found.sort();
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let queue = Path::new("/sys/class/block").join(self.disk.file_name().unwrap());
        let mut sector = vec![0; 4096];
        let read = std::fs::File::open(&self.disk)
            .and_then(|mut disk| std::io::Read::read_exact(&mut disk, &mut sector));
        found.push(format!("{read:?} {:?}", &sector[..8]));
        found.push(text(&queue.join("queue/nr_requests").display().to_string()));
        found.extend([text(BURST), text(NAME)]);
        found.push(format!("{:?}", self.process.try_wait()));
        found.push(format!("called: {}", self.service.accept().is_ok()));
        found
    }

    /// Makes the settings and the disk what they were.
    fn restore(&self) {
        let pattern = vec![0x5a; 4096];
        let disk = std::fs::File::options().write(true).open(&self.disk);
        std::io::Write::write_all(&mut disk.unwrap(), &pattern).unwrap();
        std::fs::write(BURST, &self.burst).unwrap();
        std::fs::write(NAME, &self.name).unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = std::fs::write(BURST, &self.burst);
        let _ = std::fs::write(NAME, &self.name);
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("losetup").arg("-d").arg(&self.disk).status();
    }
}

/// `$way` with nothing on its standard input, for at most ten seconds.
fn attempt(way: &str, environment: BTreeMap<String, String>) -> Step {
    Step::Run {
        phase: None,
        argv: ["timeout", "10", "sh", "-c", way]
            .map(str::to_owned)
            .to_vec(),
        env: environment,
        dir: "/".into(),
        stdin: String::new(),
        show: false,
        any_status: true,
        keeps_rights: false,
    }
}

#[test]
fn loop_attack_a_program_of_a_trial_finds_no_way_out() {
    let Some(card) = Card::new() else { return };
    let Some(mut victim) = Victim::new() else {
        return skip::skip("/var/lib cannot be written");
    };
    let environment = victim.environment(&card.place());
    let ways = WAYS_OUT.iter().map(|way| attempt(way, environment.clone()));
    let mut steps: Vec<Step> = ways.collect();
    // What they are there for works all the same.
    let write = "echo x > $M/file && mkdir $M/a && mv $M/file $M/a && mknod $M/null c 1 3";
    let Step::Run {
        argv,
        env,
        dir,
        stdin,
        ..
    } = attempt(write, environment)
    else {
        unreachable!();
    };
    steps.push(Step::Run {
        phase: None,
        argv,
        env,
        dir,
        stdin,
        show: false,
        any_status: false,
        keeps_rights: false,
    });
    let job = card.job(steps);
    let before = victim.state();
    let life = run(&card.sandboxed(&job, LONG), &never(), &mut |_| ()).unwrap();
    assert_eq!(life.ended, AgentEnd::Done, "{:?}", life.told.last());
    assert_eq!(victim.state(), before);
    card.is_free();
}

/// The planted fault: without the sandbox most of the same scripts do change the machine. Those
/// that are meant for what the sandbox puts in the way change nothing here.
#[test]
fn loop_attack_planted_fault_the_ways_lead_out_without_the_sandbox() {
    if Card::new().is_none() {
        return;
    }
    let mut out = 0;
    // Left out: what would unmount or remount this machine's own directories.
    let harmless = |way: &&&str| !way.contains("mount") && !way.contains("losetup -d");
    for way in WAYS_OUT.iter().filter(harmless) {
        let Some(mut victim) = Victim::new() else {
            return skip::skip("/var/lib cannot be written");
        };
        let place = victim.home.path().display().to_string();
        let environment = victim.environment(&place);
        let before = victim.state();
        let mut command = Command::new("timeout");
        command
            .args(["10", "sh", "-c", way])
            .env_clear()
            .envs(environment);
        let _ = command.stdin(std::process::Stdio::null()).output().unwrap();
        out += usize::from(victim.state() != before);
        let _ = std::fs::remove_file("/tmp/disk");
    }
    assert!(out >= 20, "{out} of {} led out", WAYS_OUT.len());
}

/// The phase `name` of `life`: what the disk did in it.
fn in_phase(life: &AgentRun, name: &str) -> DeviceFigures {
    let readings = life.told.iter().filter_map(|told| match &told.event {
        Event::PhaseBegin { phase } | Event::PhaseEnd { phase, .. } if phase == name => {
            told.reading.as_ref()
        }
        _ => None,
    });
    let all: Vec<_> = readings.collect();
    all[1].device.since(&all[0].device)
}

#[test]
fn loop_requests_of_a_phase_are_told_by_direction_and_size() {
    let Some(card) = Card::new() else { return };
    let device = card.path.display();
    let small = format!("dd if=/dev/zero of={device} bs=4096 count=37 oflag=direct");
    let large = format!("dd if={device} of=/dev/null bs=65536 count=11 iflag=direct");
    let step = |command: &str, phase: &str| {
        card.program(&command.split(' ').collect::<Vec<_>>(), Some(phase))
    };
    let mut job = card.job(Vec::new());
    job.steps = vec![step(&small, "small"), step(&large, "large")];
    let life = run(&card.sandboxed(&job, LONG), &never(), &mut |_| ()).unwrap();
    assert_eq!(life.ended, AgentEnd::Done);
    let last = life
        .told
        .iter()
        .rev()
        .find_map(|told| told.reading.as_ref());
    if let Some(why) = &last.unwrap().sizes_unknown {
        return skip::skip(why);
    }
    let (small, large) = (in_phase(&life, "small"), in_phase(&life, "large"));
    assert_eq!(small.write_sizes.get(&4096), Some(&37), "{small:?}");
    assert_eq!(large.read_sizes.get(&65536), Some(&11), "{large:?}");
    assert!(large.write_sizes.is_empty(), "another phase's: {large:?}");
    // Both ways to count agree.
    let all = |sizes: &BTreeMap<u64, u64>| sizes.values().sum::<u64>();
    assert_eq!(all(&small.write_sizes), small.writes);
    assert_eq!(all(&large.read_sizes), large.reads);
    // Nothing of it is left in the kernel.
    card.is_free();
}

#[test]
fn loop_an_agent_that_is_stopped_says_for_how_long() {
    let Some(card) = Card::new() else { return };
    let mark = format!("{}", 7_000_000 + std::process::id() % 1_000_000);
    let wait = format!("sleep 3; : {mark}");
    let mut job = card.job(Vec::new());
    job.steps = vec![card.program(&["sh", "-c", &wait], Some("wait"))];
    let group = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries.into_iter().find_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let is_it = String::from_utf8_lossy(&line).contains(&mark);
            is_it.then(|| rustix::process::getpgid(rustix::process::Pid::from_raw(pid)).ok())?
        })
    };
    let life = std::thread::scope(|scope| {
        let life = scope.spawn(|| run(&card.sandboxed(&job, LONG), &never(), &mut |_| ()).unwrap());
        let group = loop {
            if let Some(group) = group() {
                break group;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        use rustix::process::{Signal, kill_process_group};
        kill_process_group(group, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        kill_process_group(group, Signal::CONT).unwrap();
        life.join().unwrap()
    });
    assert_eq!(life.ended, AgentEnd::Done);
    let readings = life.told.iter().filter_map(|told| told.reading.as_ref());
    let found = Conditions::of(readings).unwrap();
    assert!(found.stopped > Nanos(1_000_000_000), "{found:?}");
    assert!(found.disturbed().unwrap().contains("stopped"), "{found:?}");
}

#[test]
fn loop_attack_a_directory_is_left_by_nobody_and_worked_in_as_its_owner() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};
    use whichfs_device::sandboxed_agent::Directory;
    let Some(card) = Card::new() else { return };
    let dir = card.home.path().join("dir");
    std::fs::create_dir(&dir).unwrap();
    chown(&dir, Some(65534), Some(65534)).unwrap();
    let open = rustix::fd::OwnedFd::from(std::fs::File::open(&dir).unwrap());
    // What its path leads to later on does not matter.
    let victim = card.home.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::rename(&dir, card.home.path().join("moved")).unwrap();
    symlink(&victim, &dir).unwrap();
    let script = "id -u > user && id -G >> user; for out in ../x /run/x /etc/x /tmp/../x; do \
                  ! echo data > $out || exit 1; done";
    let mut step = card.program(&["sh", "-c", script], None);
    if let Step::Run { dir, .. } = &mut step {
        *dir = whichfs_device::SANDBOX_DIRECTORY.to_owned();
    }
    let mut job = card.job(Vec::new());
    job.steps = vec![step];
    let sandboxed = SandboxedAgent {
        writable: &[],
        directory: Some(Directory {
            open: &open,
            user: Some((65534, 65534)),
        }),
        ..card.sandboxed(&job, Duration::from_secs(60))
    };
    let ended = run(&sandboxed, &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!(ended.ended, AgentEnd::Done, "{:?}", ended.told);
    let file = card.home.path().join("moved/user");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "65534\n65534\n");
    assert_eq!(std::fs::metadata(&file).unwrap().uid(), 65534);
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
}
