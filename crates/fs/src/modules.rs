//! How large the modules of filesystems are in Debian's kernels for Arm: `data/modules.toml`, which
//! `setup/module-sizes` makes from the packages.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A kernel package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelModules {
    /// Debian's name of the architecture: `armhf`, `arm64`.
    pub architecture: String,
    /// Debian's package.
    pub package: String,
    /// Debian's, with the revision: `6.1.176-1`.
    pub version: String,
    /// What it has, by the kernel's names of filesystems.
    modules: BTreeMap<String, FilesystemModule>,
}

/// The module of a filesystem, with all that it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesystemModule {
    /// Bytes of all files, without debug information.
    pub bytes: u64,
    /// Names, its own first.
    pub modules: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    kernel: Vec<KernelModules>,
}

static ALL: LazyLock<Vec<KernelModules>> = LazyLock::new(|| {
    let text = include_str!("../data/modules.toml");
    let file: File = toml::from_str(text)
        .unwrap_or_else(|error| unreachable!("modules.toml is part of the program: {error}"));
    file.kernel
});

/// The kernels whose modules are known.
pub fn kernels() -> &'static [KernelModules] {
    &ALL
}

impl KernelModules {
    /// The module of the candidate called `name`; `None` where this kernel has none.
    pub fn of(&self, name: &str) -> Option<&FilesystemModule> {
        // Candidates are called as the kernel calls them, with what is special about them behind.
        self.modules.get(name.split('-').next().unwrap_or(name))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::catalogue::candidates;
    use crate::model::{Geometry, Purpose};
    use whichfs_units::{GIB, KIB, MIB};

    #[test]
    fn candidates_have_the_module_that_mounts_them() {
        let geometry = Geometry {
            partition_bytes: GIB,
            page_bytes: 8 * KIB,
            write_unit_bytes: 32 * KIB,
            au_bytes: 4 * MIB,
            discard: false,
            flush: false,
        };
        for candidate in candidates() {
            let recipe = candidate.recipe(&geometry, Purpose::User).unwrap();
            for kernel in kernels() {
                let module = kernel.modules.get(recipe.kernel_fs);
                assert_eq!(kernel.of(candidate.name), module, "{}", candidate.name);
            }
        }
    }

    #[test]
    fn sizes_are_of_files_that_are_named() {
        assert_eq!(kernels().len(), 2);
        for kernel in kernels() {
            assert!(kernel.package.starts_with("linux-image-") && !kernel.version.is_empty());
            assert!(kernel.of("ext4").is_some() && kernel.of("squashfs-xz").is_some());
            for (name, module) in &kernel.modules {
                assert!(
                    module.bytes > 10_000 && !module.modules.is_empty(),
                    "{name}"
                );
            }
            let ext4 = kernel.of("ext4").unwrap();
            assert!(
                ext4.modules.contains(&"jbd2".to_owned()),
                "its journal counts"
            );
        }
    }
}
