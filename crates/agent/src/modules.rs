//! Loads modules of the kernel, as `insmod` does it, from memory.

use crate::error::AgentError;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use whichfs_trial::Counts;

/// A module that is in memory.
pub struct Module {
    file: PathBuf,
    image: Vec<u8>,
}

/// Reads the files of modules, so that loading them reads nothing.
///
/// # Errors
/// The first that cannot be read.
pub fn read(files: impl Iterator<Item = PathBuf>) -> Result<Vec<Module>, AgentError> {
    let read = |file: PathBuf| match std::fs::read(&file) {
        Ok(image) => Ok(Module { file, image }),
        Err(error) => Err(AgentError::io("read module", file.display(), &error)),
    };
    files.map(read).collect()
}

/// Loads `modules` in their order; counts their bytes.
///
/// # Errors
/// The first that the kernel refuses.
pub fn load(modules: &[Module]) -> Result<Counts, AgentError> {
    let mut counts = Counts::default();
    for module in modules {
        rustix::system::init_module(&module.image, c"")
            .map_err(|errno| refused(&module.file, errno))?;
        counts.operations += 1;
        counts.files += 1;
        counts.bytes += module.image.len() as u64;
    }
    Ok(counts)
}

fn refused(file: &Path, errno: Errno) -> AgentError {
    let file = file.display();
    match errno {
        Errno::NOSYS => AgentError::new(format!("load module {file}: this kernel has no modules")),
        Errno::EXIST => AgentError::new(format!("load module {file}: it is loaded already")),
        errno => AgentError::system("load module", file, errno),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_no_module_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("odd.ko");
        std::fs::write(&file, "no module").unwrap();
        let modules = read([file].into_iter()).unwrap();
        // Whoever may load modules is told that it is none; others that they may not.
        let error = load(&modules).unwrap_err().to_string();
        assert!(error.contains("odd.ko"), "{error}");
        let missing = read([dir.path().join("missing.ko")].into_iter());
        let error = missing.err().unwrap().to_string();
        assert!(error.contains("missing.ko"), "{error}");
    }

    #[test]
    fn a_kernel_without_modules_and_one_that_is_there_are_said() {
        let of = |errno| refused(Path::new("/modules/ext4.ko"), errno).to_string();
        assert!(of(Errno::NOSYS).contains("no modules"));
        assert!(of(Errno::EXIST).contains("loaded already"));
        assert!(of(Errno::NOEXEC).contains("ext4.ko"));
    }
}
