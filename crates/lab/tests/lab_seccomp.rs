//! Guest programs run under a seccomp filter, and under ptrace where the host has no such
//! filters for us: the nanoseconds are the same either way.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::traces::{processes, sessions_of};
use common::{Trial, agent, fingerprint, kernel, one_at_a_time, prices, shell};
use std::fs;
use std::sync::atomic::AtomicBool;
use whichfs_lab::Kernel;
use whichfs_trial::Step;

/// Picoseconds an instruction of the clock `cpu`.
const CPU: u64 = 2_400;

/// The same kernel, which traces its programs.
fn tracing(kernel: &Kernel) -> Kernel {
    Kernel {
        arguments: vec!["seccomp=off".into()],
        ..kernel.clone()
    }
}

/// What makes and ends processes, catches signals, faults, and asks the kernel much.
fn steps() -> Vec<Step> {
    vec![
        shell(
            "mkfs.ext4 -q -F -b 4096 -U 11111111-1111-4111-8111-111111111111 \
             -E hash_seed=22222222-2222-4222-8222-222222222222 /dev/vda 65536",
        ),
        common::mount("ext4", "noatime"),
        shell(
            "cd /mnt/test; trap 'echo caught >>log' USR1; i=0; \
             while [ $i -lt 20 ]; do kill -USR1 $$; echo $i | cat >>log; i=$((i+1)); done; \
             (sleep 9 & kill -9 $!; wait $!); sh -c 'kill -SEGV $$'; \
             dd if=/dev/urandom of=f bs=5000 count=300 2>/dev/null; sort f | cksum; \
             perl -e '$x = 1.5; for (1..9) { fork or exit; $x *= 1.1 } 1 while wait > 0; \
             print \"$x\\n\"'; cat log",
        ),
        common::unmount(),
    ]
}

#[test]
fn lab_ptrace_gives_the_same_nanoseconds() {
    let _one = one_at_a_time();
    let (Some(agent), Some(kernel)) = (agent(), kernel()) else {
        return;
    };
    let run = |kernel: Kernel| {
        let mut trial = Trial::with_agent(11, agent.clone(), kernel, steps());
        trial.cpu = prices(CPU);
        fingerprint(&trial.run())
    };
    let (traced, filtered) = (run(tracing(&kernel)), run(kernel));
    assert!(filtered.starts_with("done\n"), "{filtered}");
    assert!(filtered.contains("caught"), "{filtered}");
    assert_eq!(traced, filtered);
}

/// Whether each process of a guest's programs is traced.
fn traced(kernel: Kernel, seed: u64) -> Option<Vec<bool>> {
    let mut found = Vec::new();
    let mut look = || {
        let sessions = sessions_of(seed);
        let programs = processes()
            .into_iter()
            .filter(|p| sessions.contains(&p.session) && p.pid != p.session && p.state != "Z");
        found = programs
            .map(|p| {
                let status = fs::read_to_string(format!("/proc/{}/status", p.pid)).unwrap();
                !status.contains("TracerPid:\t0\n")
            })
            .collect();
    };
    let trial = Trial::with_agent(seed, agent()?, kernel, vec![shell("echo up")]);
    trial.run_with(&AtomicBool::new(false), &mut |_| look());
    Some(found)
}

/// Linux 5.0 has notifications of seccomp filters.
fn host_has_notifications() -> bool {
    const SECCOMP_GET_NOTIF_SIZES: libc::c_long = 3;
    let mut sizes = [0u16; 3];
    // SAFETY: the call writes three 16-bit numbers.
    unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &mut sizes) == 0 }
}

#[test]
fn lab_programs_are_traced_only_where_they_must_be() {
    let _one = one_at_a_time();
    let Some(kernel) = kernel() else {
        return;
    };
    let Some(without_filter) = traced(tracing(&kernel), 12) else {
        return;
    };
    assert!(without_filter.contains(&true), "seccomp=off");
    if host_has_notifications() {
        let with_filter = traced(kernel, 13).unwrap();
        assert!(!with_filter.is_empty() && !with_filter.contains(&true));
    }
}
