//! Programs of the host that trials run: where they are, and which.

use crate::digest::sha256;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use whichfs_workload::PATH;

/// Configuration that changes what a tool does, by tool name.
const CONFIGURATION: [(&str, &str); 4] = [
    ("mkfs.ext2", "/etc/mke2fs.conf"),
    ("mkfs.ext3", "/etc/mke2fs.conf"),
    ("mkfs.ext4", "/etc/mke2fs.conf"),
    ("mke2fs", "/etc/mke2fs.conf"),
];

/// Where `tool`, a name or an absolute path, is.
pub fn find(tool: &str) -> Option<PathBuf> {
    PATH.split(':')
        .map(|dir| PathBuf::from(dir).join(tool))
        .find(|path| path.is_file())
}

/// Hashes of programs, computed once each: tool → `sha256:…` (with its configuration).
#[derive(Default)]
pub struct Versions {
    known: BTreeMap<String, String>,
}

impl Versions {
    /// The hashes of `tools`; one that is not there is left out.
    pub fn of(&mut self, tools: &[&str]) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for &tool in tools {
            if let Some(version) = self.version(tool) {
                found.insert(tool.to_owned(), version);
            }
        }
        found
    }

    fn version(&mut self, tool: &str) -> Option<String> {
        if let Some(known) = self.known.get(tool) {
            return Some(known.clone());
        }
        let mut bytes = std::fs::read(find(tool)?).ok()?;
        let configuration = CONFIGURATION.iter().find(|(name, _)| *name == tool);
        if let Some((_, path)) = configuration {
            bytes.extend(std::fs::read(path).unwrap_or_default());
        }
        let version = format!("sha256:{}", &sha256(&bytes)[..16]);
        self.known.insert(tool.to_owned(), version.clone());
        Some(version)
    }
}

/// SHA-256 of the host CPU's feature flags: tools choose code by them.
pub fn cpu_features_sha256() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    sha256(flags.as_bytes())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_one_version_and_a_missing_one_has_none() {
        let mut versions = Versions::default();
        let found = versions.of(&["sh", "no-such-tool"]);
        assert_eq!(found.len(), 1);
        assert_eq!(found, versions.of(&["sh"]));
    }
}
