//! Memory of a process and all that it started.

/// Proportional set size of process `root` and its descendants, in KiB.
pub fn memory_kib(root: u32) -> u64 {
    let mut family = vec![root];
    let mut at = 0;
    while at < family.len() {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", family[at]));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        at += 1;
    }
    family.into_iter().map(pss_kib).sum()
}

fn pss_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}
