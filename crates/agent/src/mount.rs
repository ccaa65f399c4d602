//! Mounting: options as in fstab become flags and data of mount(2).

use crate::confine::Confinement;
use crate::error::AgentError;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs;

/// Options of a mount, as the kernel takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Flags that every filesystem has.
    pub flags: MountFlags,
    /// Options of the filesystem itself, comma-separated.
    pub data: String,
}

/// What an option of fstab does to the flags.
enum Effect {
    Set(MountFlags),
    Clear(MountFlags),
    /// For mount(8), not for the kernel.
    None,
}

/// The flag options of mount(8), as its manual has them.
fn effect(option: &str) -> Option<Effect> {
    use Effect::{Clear, Set};
    Some(match option {
        "ro" => Set(MountFlags::RDONLY),
        "rw" => Clear(MountFlags::RDONLY),
        "sync" => Set(MountFlags::SYNCHRONOUS),
        "async" => Clear(MountFlags::SYNCHRONOUS),
        "dirsync" => Set(MountFlags::DIRSYNC),
        "noatime" => Set(MountFlags::NOATIME),
        "atime" => Clear(MountFlags::NOATIME),
        "nodiratime" => Set(MountFlags::NODIRATIME),
        "diratime" => Clear(MountFlags::NODIRATIME),
        "relatime" => Set(MountFlags::RELATIME),
        "norelatime" => Clear(MountFlags::RELATIME),
        "strictatime" => Set(MountFlags::STRICTATIME),
        "nostrictatime" => Clear(MountFlags::STRICTATIME),
        "lazytime" => Set(MountFlags::LAZYTIME),
        "nolazytime" => Clear(MountFlags::LAZYTIME),
        "nosuid" => Set(MountFlags::NOSUID),
        "suid" => Clear(MountFlags::NOSUID),
        "nodev" => Set(MountFlags::NODEV),
        "dev" => Clear(MountFlags::NODEV),
        "noexec" => Set(MountFlags::NOEXEC),
        "exec" => Clear(MountFlags::NOEXEC),
        "nosymfollow" => Set(MountFlags::NOSYMFOLLOW),
        "symfollow" => Clear(MountFlags::NOSYMFOLLOW),
        "silent" => Set(MountFlags::SILENT),
        "loud" => Clear(MountFlags::SILENT),
        "" | "defaults" | "auto" | "noauto" | "nofail" | "nouser" | "_netdev" => Effect::None,
        other if other.starts_with("x-") || other.starts_with("X-") => Effect::None,
        _ => return None,
    })
}

/// Splits `options`, written as in fstab, into flags and data; a later option wins.
pub fn parse_options(options: &str) -> MountOptions {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in split_commas(options) {
        match effect(option) {
            Some(Effect::Set(flag)) => flags.insert(flag),
            Some(Effect::Clear(flag)) => flags.remove(flag),
            Some(Effect::None) => {}
            None => data.push(option),
        }
    }
    MountOptions {
        flags,
        data: data.join(","),
    }
}

/// Splits at commas that are not inside double quotes (`context="a,b"`).
fn split_commas(options: &str) -> Vec<&str> {
    let mut quoted = false;
    options
        .split(move |c: char| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .map(str::trim)
        .collect()
}

/// Mounts `source` at `target`, which is made if it is missing. Where programs are confined, they
/// may write there; devices and set-user-ID programs that are on it are ordinary files.
pub fn mount(
    source: &str,
    target: &str,
    kernel_fs: &str,
    options: &str,
    confinement: Option<&Confinement>,
) -> Result<(), AgentError> {
    fs::create_dir_all(target)
        .map_err(|error| AgentError::io("make mount point", target, &error))?;
    let mut parsed = parse_options(options);
    if confinement.is_some() {
        parsed.flags |= MountFlags::NODEV | MountFlags::NOSUID;
    }
    let what = format!("{source} at {target} as {kernel_fs} with {options:?}");
    let data = CString::new(parsed.data)
        .map_err(|_| AgentError::new(format!("mount {what}: the options hold a NUL byte")))?;
    rustix::mount::mount(source, target, kernel_fs, parsed.flags, data.as_c_str())
        .map_err(|errno| AgentError::system("mount", what, errno))?;
    confinement.map_or(Ok(()), |confinement| confinement.allow(target))
}

/// Unmounts `target`; whatever the filesystem still holds is written by then.
pub fn unmount(target: &str) -> Result<(), AgentError> {
    loop {
        match rustix::mount::unmount(target, UnmountFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(AgentError::system("unmount", target, errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(options: &str, flags: MountFlags, data: &str) {
        let parsed = parse_options(options);
        assert_eq!(parsed.flags, flags, "flags of {options:?}");
        assert_eq!(parsed.data, data, "data of {options:?}");
    }

    #[test]
    fn options_as_in_fstab() {
        let none = MountFlags::empty();
        check("", none, "");
        check("defaults", none, "");
        check("rw", none, "");
        check("ro", MountFlags::RDONLY, "");
        check("ro,rw", none, "");
        check("rw,ro", MountFlags::RDONLY, "");
        check(
            "noatime,compress=zstd",
            MountFlags::NOATIME,
            "compress=zstd",
        );
        check("noatime,atime", none, "");
        check(
            "nosuid,nodev,noexec",
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
            "",
        );
        check(
            "sync,dirsync,lazytime",
            MountFlags::SYNCHRONOUS | MountFlags::DIRSYNC | MountFlags::LAZYTIME,
            "",
        );
        check(
            "relatime,nodiratime",
            MountFlags::RELATIME | MountFlags::NODIRATIME,
            "",
        );
        check("strictatime", MountFlags::STRICTATIME, "");
        check("nofail,x-systemd.automount,_netdev,noauto", none, "");
        check("data=journal, commit=30", none, "data=journal,commit=30");
        check(
            "context=\"a,b\",noatime",
            MountFlags::NOATIME,
            "context=\"a,b\"",
        );
        check(
            "lowerdir=/a:/b,upperdir=/c",
            none,
            "lowerdir=/a:/b,upperdir=/c",
        );
        // An unknown option is the filesystem's: it says so itself if it has no such.
        check("nobarrier,discard", none, "nobarrier,discard");
    }

    #[test]
    fn an_impossible_mount_names_everything() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let target = dir.path().join("t").display().to_string();
        let error = mount("/dev/nothing", &target, "no_such_fs", "noatime,a=b", None)
            .expect_err("there is no such filesystem")
            .to_string();
        for part in ["/dev/nothing", &target, "no_such_fs", "noatime,a=b"] {
            assert!(error.contains(part), "{part} is missing in {error}");
        }
    }
}
