//! The lab kernel with modules, for workloads that load them.

use crate::places;
use crate::shared::MODULES;
use std::path::PathBuf;
use whichfs_fs::Recipe;
use whichfs_lab::{Kernel, KernelModule, Modules};
use whichfs_trial::Identity;

/// A kernel none of whose filesystems is built in.
pub struct WithModules {
    /// The lab kernel that loads modules.
    pub kernel: Kernel,
    modules: Modules,
}

/// What a trial loads.
pub struct ToLoad {
    /// The kernel that they are of.
    pub kernel: Kernel,
    /// Where their files are on this machine.
    pub directory: PathBuf,
    /// They, in the order in which they are loaded.
    modules: Vec<KernelModule>,
}

impl WithModules {
    /// The one of the same series as `kernel`.
    ///
    /// # Errors
    /// Why there is none, with the remedy.
    pub fn open(kernel: &Kernel) -> Result<WithModules, String> {
        let (kernel, modules) = places::kernel_with_modules(&places::series(&kernel.release))
            .map_err(|failure| failure.message)?;
        Ok(WithModules { kernel, modules })
    }

    /// What is loaded to mount `recipe`.
    ///
    /// # Errors
    /// If no module is for it.
    pub fn to_load(&self, recipe: &Recipe) -> Result<ToLoad, String> {
        let found = self.modules.mounting(recipe.kernel_fs);
        let found = found.map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err(format!(
                "the lab kernel has no module for {}",
                recipe.kernel_fs
            ));
        }
        Ok(ToLoad {
            kernel: self.kernel.clone(),
            directory: self.modules.directory.clone(),
            modules: found.into_iter().cloned().collect(),
        })
    }
}

impl ToLoad {
    /// Their files as the guest knows them.
    pub fn in_guest(&self) -> Vec<String> {
        let files = self.modules.iter().map(KernelModule::file);
        files.map(|file| format!("/{MODULES}/{file}")).collect()
    }

    /// Puts kernel and modules into what decides a trial.
    pub fn identify(&self, identity: &mut Identity) {
        identity.kernel.clone_from(&self.kernel.release);
        identity.kernel_sha256.clone_from(&self.kernel.sha256);
        let named =
            |module: &KernelModule| (format!("module {}", module.name), module.sha256.clone());
        identity.tools.extend(self.modules.iter().map(named));
    }
}
