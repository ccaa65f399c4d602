//! Pinning: calendar and guest of one trial share one CPU, because waking a process on
//! another CPU costs ten times as much (68 µs against 600 µs a write).

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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
}
