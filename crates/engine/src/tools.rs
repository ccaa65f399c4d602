//! Programs of the host that trials run: where they are, and which.

pub use whichfs_remote::{Versions, cpu_features_sha256, find};
pub use whichfs_workload::PATH;

/// Debian's versions of the packages that own `tools`, for the report; empty elsewhere.
pub fn package_versions(packages: &[&str]) -> Vec<(String, String)> {
    let output = std::process::Command::new("dpkg-query")
        .args(["-W", "-f", "${Package} ${Version}\n"])
        .args(packages)
        .output();
    let text = output
        .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        .unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(package, version)| (package.to_owned(), version.to_owned()))
        .collect()
}
