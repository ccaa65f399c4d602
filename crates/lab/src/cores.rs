//! Pinning: calendar and guest of one trial share one CPU, because waking a process on
//! another CPU costs ten times as much (68 µs against 600 µs a write).

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The CPUs that this process may use: as many as its control group gives CPU time for.
pub fn available_cores() -> Vec<usize> {
    let most = crate::GroupLimits::now().cpus.unwrap_or(usize::MAX);
    let Ok(set) = sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .take(most)
        .collect()
}

/// A CPU for one trial, which no other trial on this machine takes until the claim is dropped: also
/// none of another process, so that several calls of the program do not share one CPU while others
/// are idle. The claim is a name of an abstract socket, which the system frees however its owner
/// ends. If all CPUs are taken, or names are refused, it is a CPU without a claim.
pub struct CoreClaim {
    /// Number of the CPU.
    pub core: usize,
    _name: Option<UnixDatagram>,
}

impl CoreClaim {
    /// A CPU that is free, of those that this process may use; `first` is the place in their list
    /// that is asked for first.
    pub fn new(first: usize) -> CoreClaim {
        CoreClaim::of(&available_cores(), first, "whichfs-core")
    }

    /// A CPU of `cores` that is free by names that begin with `prefix`.
    fn of(cores: &[usize], first: usize, prefix: &str) -> CoreClaim {
        let mut order = (0..cores.len()).map(|next| cores[(first + next) % cores.len()]);
        let claim = |core: usize| {
            let name = SocketAddr::from_abstract_name(format!("{prefix}-{core}")).ok()?;
            let name = UnixDatagram::bind_addr(&name).ok()?;
            Some(CoreClaim {
                core,
                _name: Some(name),
            })
        };
        order.find_map(claim).unwrap_or_else(|| CoreClaim {
            core: cores.get(first % cores.len().max(1)).copied().unwrap_or(0),
            _name: None,
        })
    }
}

/// Keeps the calling thread on one CPU until dropped; processes it starts inherit that.
pub(crate) struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Pins to `core`; where that is not allowed the thread stays as it was.
    pub(crate) fn to(core: Option<usize>) -> Pinned {
        let before = core.and_then(|core| {
            let before = sched_getaffinity(None).ok()?;
            let mut one = CpuSet::new();
            one.set(core);
            sched_setaffinity(None, &one).ok()?;
            Some(before)
        });
        Pinned { before }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_ends_with_its_value() {
        let all = available_cores();
        {
            let _pinned = Pinned::to(Some(all[0]));
            assert_eq!(available_cores(), [all[0]]);
        }
        assert_eq!(available_cores(), all);
    }

    #[test]
    fn no_two_claims_are_of_one_core_unless_all_are_taken() {
        let prefix = format!("whichfs-test-{}", std::process::id());
        let claim = |first| CoreClaim::of(&[3, 5], first, &prefix);
        let one = claim(0);
        let two = claim(0);
        assert_eq!((one.core, two.core), (3, 5));
        assert_eq!(claim(1).core, 5, "all are taken: as asked for");
        drop(one);
        assert_eq!(claim(1).core, 3, "it is free again");
        assert_eq!(CoreClaim::of(&[], 7, &prefix).core, 0);
    }
}
