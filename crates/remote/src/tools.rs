//! Programs that trials run: where they are, and which.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use whichfs_workload::PATH;

/// Configuration that changes what a tool does, by tool name.
const CONFIGURATION: [(&str, &str); 4] = [
    ("mkfs.ext2", "/etc/mke2fs.conf"),
    ("mkfs.ext3", "/etc/mke2fs.conf"),
    ("mkfs.ext4", "/etc/mke2fs.conf"),
    ("mke2fs", "/etc/mke2fs.conf"),
];

/// SHA-256 of `bytes`, in hex.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

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
        // As x86 and as Arm call them.
        .find(|line| line.starts_with("flags") || line.starts_with("Features"))
        .unwrap_or_default();
    sha256(flags.as_bytes())
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
