//! Where things are on this machine (XDG base directories).

use crate::error::{Error, Outcome};
use crate::parts::{self, Part, Sought};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use whichfs_lab::{Agent, Kernel, Modules, Userland};
use whichfs_remote::Kit;

/// Directory for what can be made again: kernel, card snapshots, images.
pub fn cache() -> Outcome<PathBuf> {
    below("XDG_CACHE_HOME", ".cache")
}

/// File of the store.
pub fn store() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("store.sqlite"))
}

/// Directory of the series of power cuts.
pub fn crashes() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("crash"))
}

/// Directory for data of the user that a capacity check has overwritten for a while.
pub fn put_back() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("put-back"))
}

/// Directory of the journals of what was formatted.
pub fn journals() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("format"))
}

/// Directory of the profiles of devices that were probed.
pub fn profiles() -> Outcome<PathBuf> {
    Ok(below("XDG_DATA_HOME", ".local/share")?.join("cards"))
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
            Error::environment(format!("{what}: set one of them"))
        })
}

/// Checks that guests can run on the processor that this program is built for.
///
/// # Errors
/// They cannot.
pub fn require_lab() -> Outcome {
    lab_on(std::env::consts::ARCH)
}

fn lab_on(architecture: &str) -> Outcome {
    match architecture {
        "x86_64" => Ok(()),
        other => Err(Error::environment(format!(
            "the lab runs on x86-64 only, and this whichfs is for {other}: run the command on a \
             PC; what measures on a device reaches this board from there by --on ssh://…"
        ))),
    }
}

/// Opens the lab kernel.
///
/// # Errors
/// There is none, it is damaged, or there is no lab on this processor.
pub fn kernel() -> Outcome<Kernel> {
    require_lab()?;
    open_kernel(&part(&Sought::kernel())?)
}

/// Where `sought` is on this machine.
///
/// # Errors
/// It would be in the cache, and there is none; the manifest of an installed whichfs is broken.
pub fn part(sought: &Sought) -> Outcome<Part> {
    parts::find(sought, cache())
}

fn open_kernel(part: &Part) -> Outcome<Kernel> {
    part.open(Kernel::open, |kernel| &kernel.sha256)
}

/// Opens the lab kernel of the series `version` (`6.1`): the one that the lab runs by itself if it
/// is of that series, else the one last built of it. With the name of other options behind a hyphen
/// (`6.12-squashfs-4k`) it is the one last built with these.
pub fn kernel_of(version: &str) -> Outcome<Kernel> {
    require_lab()?;
    let series = version.split('-').next().unwrap_or(version);
    if let Ok(own) = kernel()
        && is_of(&own.release, version)
    {
        return Ok(own);
    }
    let part = part(&Sought::kernel_of(version, false))?;
    let path = &part.path;
    let remedy = format!(
        "`whichfs lab kernel --build --version {version}` builds it from Debian's package \
         linux-source-{series}"
    );
    let found = open_kernel(&part).map_err(|failure| {
        let what = format!("there is no lab kernel {version} at {}", path.display());
        part.or_remedy(failure, &what, &remedy)
    })?;
    match is_of(&found.release, series) {
        true => found.for_userland().map_err(Error::environment),
        false => Err(Error::environment(format!(
            "{} is a kernel {}, not {version}: {remedy}",
            path.display(),
            found.release
        ))),
    }
}

/// The series of a kernel of this `release`: `6.12` of `6.12.117`.
pub fn series(release: &str) -> String {
    let parts: Vec<&str> = release.splitn(3, '.').take(2).collect();
    parts.join(".")
}

/// Opens the lab kernel with modules of `series` (`6.12`) that was last built into the cache.
pub fn kernel_with_modules(series: &str) -> Outcome<(Kernel, Modules)> {
    require_lab()?;
    let part = part(&Sought::kernel_of(series, true))?;
    let path = &part.path;
    let remedy = format!(
        "`whichfs lab kernel --build --modules --version {series}` builds it in about five minutes"
    );
    let found = open_kernel(&part).map_err(|failure| {
        let path = path.display();
        let what = format!("there is no lab kernel {series} with modules at {path}");
        part.or_remedy(failure, &what, &remedy)
    })?;
    if !is_of(&found.release, series) {
        return Err(Error::environment(format!(
            "{} is a kernel {}, not {series}: {remedy}",
            path.display(),
            found.release
        )));
    }
    let found = found.for_userland().map_err(Error::environment)?;
    let modules = Modules::of(&found).map_err(Error::environment)?;
    Ok((found, modules))
}

/// Whether a kernel of this `release` (`6.1.192`) is one of the series `version` (`6.1`).
fn is_of(release: &str, version: &str) -> bool {
    let rest = release.strip_prefix(version);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The Python that `WHICHFS_PYTHON` names, else `python3`: for Dask and labgrid.
pub fn python() -> OsString {
    std::env::var_os("WHICHFS_PYTHON").unwrap_or_else(|| "python3".into())
}

/// What a session with a board is made with: the `ssh` in `PATH`, [`python`], and the agents in
/// `WHICHFS_AGENTS` or beside the program.
pub fn kit() -> Outcome<Kit> {
    let ssh = "ssh".into();
    let agents = match std::env::var_os("WHICHFS_AGENTS") {
        Some(directory) => PathBuf::from(directory),
        None => part(&Sought::agent())?.path.with_file_name(""),
    };
    Ok(Kit {
        ssh,
        python: python().into(),
        agents,
    })
}

/// Opens the static agent.
///
/// # Errors
/// There is none, or it is damaged; packages for boards have none.
pub fn agent() -> Outcome<Agent> {
    let opened = part(&Sought::agent())?.open(Agent::open, |agent| &agent.sha256);
    opened.map_err(|failure| require_lab().err().unwrap_or(failure))
}

/// Opens the sealed userland.
///
/// # Errors
/// There is none, or it is damaged.
pub fn userland() -> Outcome<Userland> {
    require_lab()?;
    part(&Sought::userland())?.open(Userland::open, |userland| &userland.sha256)
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
        Error::environment(format!(
            "cannot make the directory {}: {e}; make what is above it writable, or name another \
             place",
            directory.display()
        ))
    })
}

/// Makes `directory` for a report, and finds out whether files can be made in it.
///
/// # Errors
/// It is a file, it cannot be made, or nothing can be written there.
pub fn make_out(directory: &Path) -> Outcome {
    let shown = directory.display();
    if std::fs::metadata(directory).is_ok_and(|meta| !meta.is_dir()) {
        return Err(Error::input(format!(
            "{shown}: this is a file, and a directory is expected: the report has several files; \
             name a directory, which is made if it is not there"
        )));
    }
    make(directory).map_err(|failure| Error::input(failure.message))?;
    let probe = directory.join(format!(".{}.part", std::process::id()));
    let written = std::fs::write(&probe, "").and_then(|()| std::fs::remove_file(&probe));
    written.map_err(|error| {
        Error::input(format!(
            "{shown}: cannot write there: {error}; name a directory that can be written"
        ))
    })
}

/// Refuses to write a file of ours over a disk: a slip in an argument must not cost a
/// filesystem.
pub fn refuse_device(path: &Path) -> Outcome {
    match std::fs::metadata(path) {
        Ok(meta) if meta.file_type().is_block_device() => Err(Error::input(format!(
            "{} is a block device, which is not written over; name a file",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes `bytes` to `path` so that the file is whole or not there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Outcome {
    WholeFile::new(path)?.write(bytes)
}

/// Writes `bytes` to `path`, where nothing may be yet.
///
/// # Errors
/// Something is there; it cannot be written.
pub fn write_new(path: &Path, bytes: &[u8]) -> Outcome {
    if path.exists() {
        let shown = path.display();
        return Err(Error::input(format!(
            "{shown} is there already; name another file, or remove it"
        )));
    }
    write_whole(path, bytes)
}

/// A file that will be written as a whole or not at all. That it can be written is known from
/// the beginning, before hours of measuring.
pub struct WholeFile {
    /// As the user named it.
    shown: PathBuf,
    /// Where it is, links followed.
    path: PathBuf,
    /// Where it is made, beside its place; none for what is no file (`/dev/stdout`).
    temporary: Option<PathBuf>,
}

impl WholeFile {
    /// What will be `path`.
    pub fn new(path: &Path) -> Outcome<WholeFile> {
        refuse_device(path)?;
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = std::fs::metadata(&real).is_ok_and(|meta| !meta.is_file());
        let mut temporary = real.clone().into_os_string();
        temporary.push(format!(".{}.part", std::process::id()));
        let file = WholeFile {
            shown: path.to_owned(),
            path: real,
            temporary: (!is_special).then(|| temporary.into()),
        };
        let made = match &file.temporary {
            Some(temporary) => std::fs::write(temporary, ""),
            None => File::options().write(true).open(&file.path).map(drop),
        };
        made.map_err(|error| file.failed(&error))?;
        Ok(file)
    }

    /// What will be `path`, with a remark if it replaces a file.
    ///
    /// # Errors
    /// As [`WholeFile::new`].
    pub fn told(path: &Path) -> Outcome<WholeFile> {
        let file = WholeFile::new(path)?;
        if file.is_file() && path.exists() {
            log::info!("note: {} will be replaced", path.display());
        }
        Ok(file)
    }

    /// Whether it is a file, or will be one: not a terminal, a pipe or the like.
    pub fn is_file(&self) -> bool {
        self.temporary.is_some()
    }

    /// Replaces the file by one that holds `bytes`.
    pub fn write(self, bytes: &[u8]) -> Outcome {
        self.fill(|file| file.write_all(bytes))
    }

    /// Writes it by `fill`, which gets it empty.
    pub fn fill(mut self, fill: impl FnOnce(&mut File) -> std::io::Result<()>) -> Outcome {
        let written = match self.temporary.take() {
            None => File::create(&self.path).and_then(|mut file| fill(&mut file)),
            Some(temporary) => put(fill, &temporary, &self.path)
                .inspect_err(|_| drop(std::fs::remove_file(&temporary))),
        };
        written.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let path = self.shown.display();
        Error::input(format!(
            "cannot write {path}: {error}; name a file that can be written"
        ))
    }
}

/// Puts what `fill` writes at `path` by way of `temporary`, so that a power cut leaves the old or
/// the new.
fn put(
    fill: impl FnOnce(&mut File) -> std::io::Result<()>,
    temporary: &Path,
    path: &Path,
) -> std::io::Result<()> {
    let mut file = File::create(temporary)?;
    fill(&mut file)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)?;
    let above = path.parent().unwrap_or(Path::new("/"));
    let directory = match above.as_os_str().is_empty() {
        true => Path::new("."),
        false => above,
    };
    // Not every filesystem can do that; the file itself is there.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_the_old_one_or_the_new_one_and_a_link_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a.toml"), directory.path().join("b"));
        write_whole(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        drop(WholeFile::new(&link).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        write_whole(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(link.is_symlink());
        assert_eq!(directory.path().read_dir().unwrap().count(), 2);
        write_whole(Path::new("/dev/null"), b"x").unwrap();
        let refused = write_whole(Path::new("/no/such/x"), b"").unwrap_err();
        assert!(refused.message.contains("/no/such/x"), "{refused}");
    }

    #[test]
    fn a_place_for_a_report_is_a_directory_that_can_be_written() {
        let place = tempfile::tempdir().unwrap();
        let new = place.path().join("a/b");
        make_out(&new).unwrap();
        assert_eq!(new.read_dir().unwrap().count(), 0);
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        let refused = make_out(&file).unwrap_err();
        assert!(
            refused.message.contains("a directory is expected"),
            "{refused}"
        );
        // Nobody may make a file there, root neither.
        let refused = make_out(Path::new("/proc/self")).unwrap_err();
        assert!(refused.message.contains("name a directory"), "{refused}");
    }

    #[test]
    fn a_board_has_no_lab_and_a_pc_has() {
        lab_on("x86_64").unwrap();
        let refused = lab_on("aarch64").unwrap_err().message;
        assert!(
            refused.contains("for aarch64: run the command on a PC"),
            "{refused}"
        );
    }

    #[test]
    fn a_series_of_kernels_is_no_other_that_begins_so() {
        assert!(is_of("6.1.192", "6.1") && is_of("6.1", "6.1") && is_of("6.12.117", "6.12"));
        assert!(!is_of("6.12.117", "6.1") && !is_of("6.1.192", "6.12"));
        assert_eq!(series("6.12.117"), "6.12");
        assert_eq!(series("6.1"), "6.1");
        let refused = kernel_of("1.0").err().unwrap().message;
        assert!(
            refused.contains("lab kernel --build --version 1.0"),
            "{refused}"
        );
    }

    #[test]
    fn no_file_of_ours_is_written_over_a_disk() {
        let entries = std::fs::read_dir("/dev").unwrap().flatten();
        let is_disk = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device())
        };
        // A machine without any has nothing to lose.
        for disk in entries.map(|entry| entry.path()).filter(is_disk) {
            let refused = WholeFile::new(&disk).err().unwrap();
            assert!(refused.message.contains("name a file"), "{refused}");
        }
    }
}
