//! Where things are on this machine (XDG base directories).

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use whichfs_lab::{Agent, Kernel, LabError};

/// Directory for what can be made again: kernel, card snapshots, images.
pub fn cache() -> Outcome<PathBuf> {
    below("XDG_CACHE_HOME", ".cache")
}

/// File of the store.
pub fn store() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("store.sqlite"))
}

/// Directory for data of the user that a capacity check has overwritten for a while.
pub fn put_back() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("put-back"))
}

fn below(variable: &str, in_home: &str) -> Outcome<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    absolute(variable)
        .or_else(|| absolute("HOME").map(|home| home.join(in_home)))
        .map(|base| base.join("whichfs"))
        .ok_or_else(|| {
            let what = format!("neither {variable} nor HOME names a directory");
            Failure::environment(format!("{what}: set one of them"))
        })
}

/// The lab kernel: `WHICHFS_KERNEL`, or the one last built into the cache.
pub fn kernel_path() -> Outcome<PathBuf> {
    match std::env::var_os("WHICHFS_KERNEL") {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(cache()?.join("kernel/linux-6.12")),
    }
}

/// Opens the lab kernel.
pub fn kernel() -> Outcome<Kernel> {
    Kernel::open(&kernel_path()?).map_err(Failure::environment)
}

/// The static agent: `WHICHFS_AGENT`, or the file beside the program.
pub fn agent_path() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("WHICHFS_AGENT") {
        return Ok(PathBuf::from(path));
    }
    let program = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|e| Failure::environment(format!("cannot tell where this program is: {e}")))?;
    Ok(program.with_file_name("whichfs-agent.static"))
}

/// Opens the static agent.
pub fn agent() -> Outcome<Agent> {
    Agent::open(&agent_path()?).map_err(|error: LabError| Failure::environment(error))
}

/// Makes a directory of the cache.
pub fn cache_directory(name: &str) -> Outcome<PathBuf> {
    let directory = cache()?.join(name);
    make(&directory)?;
    Ok(directory)
}

/// Makes `directory` and its parents.
pub fn make(directory: &Path) -> Outcome {
    std::fs::create_dir_all(directory).map_err(|e| {
        Failure::environment(format!(
            "cannot make the directory {}: {e}",
            directory.display()
        ))
    })
}

/// Writes `bytes` to `path` so that the file is whole or not there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Outcome {
    let temporary = path.with_extension(format!("{}.part", std::process::id()));
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        Failure::environment(format!("cannot write {}: {e}", path.display()))
    })
}
