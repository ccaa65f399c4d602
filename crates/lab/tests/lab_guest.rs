//! Guests that boot: these need the lab kernel and the static agent.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use whichfs_card::{Card, Contents, Profile, builtin};
use whichfs_lab::{Agent, BlockGeometry, Disk, GuestSpec, Kernel, Life, Limits, run};
use whichfs_trial::{BlockQueue, Event, Job, Step};
use whichfs_units::Nanos;

fn kernel_and_agent() -> Option<(Kernel, Agent)> {
    let of = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
    let (Some(kernel), Some(agent)) = (of("WHICHFS_KERNEL"), of("WHICHFS_AGENT")) else {
        eprintln!("skipped: WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
        return None;
    };
    Some((Kernel::open(&kernel).unwrap(), Agent::open(&agent).unwrap()))
}

fn disk() -> Disk {
    let (name, text) = builtin()[0];
    let profile = Profile::parse(name, text).unwrap();
    let offset = 4 << 20;
    Disk {
        card: Card::fresh(&profile),
        contents: Contents::new(profile.capacity_bytes()),
        offset,
        geometry: BlockGeometry {
            bytes: profile.capacity_bytes() - offset,
            segments_max: 128,
            write_cache: false,
            discard_bytes: None,
        },
        request_cost: Nanos::from_micros(50),
    }
}

fn queue(disk: &str) -> BlockQueue {
    BlockQueue {
        disk: disk.into(),
        rotational: false,
        scheduler: "mq-deadline".into(),
        max_request_kib: 512,
        requests: 64,
        read_ahead_kib: 128,
    }
}

fn command(argv: &[&str]) -> Step {
    Step::Run {
        phase: None,
        argv: argv.iter().map(|s| (*s).to_owned()).collect(),
        env: BTreeMap::from([("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())]),
        dir: "/".into(),
        show: true,
        any_status: false,
    }
}

fn live(steps: Vec<Step>, cpu_ps_per_block: u64) -> Option<Life> {
    let (kernel, agent) = kernel_and_agent()?;
    let job = Job {
        seed: 1,
        queues: vec![queue("vda")],
        steps,
    };
    let spec = GuestSpec {
        kernel: &kernel,
        agent: &agent,
        memory_mib: 256,
        cpu_ps_per_block,
        job: &job,
        core: Some(whichfs_lab::available_cores()[0]),
        limits: Limits::default(),
    };
    Some(run(&spec, vec![disk()], &AtomicBool::new(false), &mut |_| {}).unwrap())
}

fn text_of(life: &Life) -> String {
    let outputs = life.events.iter().filter_map(|stamped| match &stamped.event {
        Event::Output { text, .. } => Some(text.as_str()),
        _ => None,
    });
    outputs.collect()
}

#[test]
fn lab_ext4_is_made_mounted_and_written() {
    let steps = vec![
        command(&["mkfs.ext4", "-q", "-F", "-b", "4096", "/dev/vda"]),
        Step::Mount {
            phase: Some("mount".into()),
            source: "/dev/vda".into(),
            target: "/mnt/test".into(),
            kernel_fs: "ext4".into(),
            options: "noatime".into(),
        },
        command(&["dd", "if=/dev/zero", "of=/mnt/test/x", "bs=1M", "count=64", "conv=fsync"]),
        Step::Unmount {
            phase: None,
            target: "/mnt/test".into(),
        },
    ];
    let Some(life) = live(steps, 10_000) else {
        return;
    };
    eprintln!("{}\n{}", text_of(&life), life.console.join("\n"));
    life.result.as_ref().unwrap();
    eprintln!("{} requests, {} of virtual time", life.requests, life.time);
    assert!(text_of(&life).contains("64+0 records out"));
    assert!(life.disks[0].figures().write_bytes > 64 << 20);
}

#[test]
fn tmp_speed() {
    let steps = vec![command(&[
        "dd", "if=/dev/zero", "of=/dev/vda", "bs=4k", "count=50000", "oflag=direct",
    ])];
    let t = std::time::Instant::now();
    let Some(life) = live(steps, 0) else { return };
    let wall = t.elapsed();
    life.result.as_ref().unwrap();
    eprintln!("{} {} {:?} per write {:?}", text_of(&life), life.requests, wall, wall / 50000);
}
