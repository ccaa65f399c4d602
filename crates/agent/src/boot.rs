//! PID 1 of the guest: from an initramfs that holds only this program to a root
//! filesystem with programs.
//!
//! ```text
//! /proc /sys /dev      kernel filesystems, moved below /host before the chroot
//! /host                the sealed userland, or hostfs of the host's root; read-only; the new root
//! /host/tmp, run, mnt  tmpfs: writable, empty
//! /host/mnt/.host/NAME directories of the host that the kernel parameter names: images and
//!                      trees of the user, at one path wherever they are on the host
//! ```

use crate::error::AgentError;
use crate::steps::Context;
use rustix::fs::{Mode, symlink};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::system::{RebootCommand, reboot};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use whichfs_trial::{HOST_ROOT, ROOT, SHARED, shared_path};

/// Name of the kernel parameter that names the control disk.
const CONTROL: &str = "whichfs.control=";

/// Where shared directories of the host are below the new root.
const HOST: &str = "/mnt/.host";

/// Makes the guest usable and returns where things are and the path of the control disk.
///
/// # Errors
/// If a mount fails or the kernel command line names no control disk.
pub fn set_up_guest() -> Result<(Context, PathBuf), AgentError> {
    attach("proc", "/proc", MountFlags::empty())?;
    attach("sysfs", "/sys", MountFlags::empty())?;
    attach("devtmpfs", "/dev", MountFlags::empty())?;
    let command_line = fs::read_to_string("/proc/cmdline")
        .map_err(|error| AgentError::io("read", "/proc/cmdline", &error))?;
    let missing = || AgentError::new(format!("the kernel command line has no {CONTROL}DISK"));
    let control = disk(&command_line, CONTROL)?.ok_or_else(missing)?;
    attach_root(&command_line)?;
    for dir in ["/proc", "/sys", "/dev"] {
        let target = format!("/host{dir}");
        rustix::mount::mount_move(dir, target.as_str()).map_err(|errno| {
            AgentError::system("move mount", format!("{dir} to {target}"), errno)
        })?;
    }
    make_dir("/host/dev/shm")?;
    for dir in ["/host/tmp", "/host/run", "/host/dev/shm", "/host/mnt"] {
        if Path::new(dir).is_dir() {
            attach("tmpfs", dir, MountFlags::empty())?;
        }
    }
    attach_shared(&command_line)?;
    enter("/host")?;
    link_standard_streams()?;
    let context = Context {
        host_root: PathBuf::from(HOST),
        confinement: None,
    };
    Ok((context, control))
}

/// The disk that `parameter` in `command_line` names, if it is there.
fn disk(command_line: &str, parameter: &str) -> Result<Option<PathBuf>, AgentError> {
    let mut words = command_line.split_ascii_whitespace();
    let Some(name) = words.find_map(|word| word.strip_prefix(parameter)) else {
        return Ok(None);
    };
    if name.is_empty() || name.contains('/') {
        return Err(AgentError::new(format!(
            "{parameter}{name}: expected the kernel name of a disk, such as vdb"
        )));
    }
    Ok(Some(Path::new("/dev").join(name)))
}

/// Mounts the kernel's filesystem `kind` at `target`, which is made if missing.
fn attach(kind: &str, target: &str, flags: MountFlags) -> Result<(), AgentError> {
    make_dir(target)?;
    rustix::mount::mount("none", target, kind, flags, None)
        .map_err(|errno| AgentError::system("mount", format!("{kind} at {target}"), errno))
}

/// Mounts what `command_line` says is the root at `/host`.
fn attach_root(command_line: &str) -> Result<(), AgentError> {
    if let Some(disk) = disk(command_line, ROOT)? {
        return rustix::mount::mount(&disk, "/host", "iso9660", MountFlags::RDONLY, None).map_err(
            |errno| AgentError::system("mount the sealed userland of", disk.display(), errno),
        );
    }
    let mut names = (0..).zip(shared(command_line));
    match names.find(|(_, name)| *name == HOST_ROOT) {
        Some((at, _)) => attach_host(at, "/host"),
        None => Err(AgentError::new(format!(
            "the kernel command line has neither {ROOT}DISK nor the host's root"
        ))),
    }
}

/// Mounts the shared directories that `command_line` names below the new root.
fn attach_shared(command_line: &str) -> Result<(), AgentError> {
    make_dir(&format!("/host{HOST}"))?;
    let names = (0..).zip(shared(command_line));
    for (at, name) in names.filter(|(_, name)| *name != HOST_ROOT) {
        let target = format!("/host{HOST}/{name}");
        make_dir(&target)?;
        attach_host(at, &target)?;
    }
    Ok(())
}

/// Mounts the inherited directory `at` of the host.
fn attach_host(at: i32, target: &str) -> Result<(), AgentError> {
    let fail = |errno| AgentError::system("mount", format!("hostfs at {target}"), errno);
    let data = CString::new(shared_path(at)).map_err(|_| fail(Errno::INVAL))?;
    let data = data.as_c_str();
    rustix::mount::mount("none", target, "hostfs", MountFlags::RDONLY, data).map_err(fail)
}

/// The names of shared directories in `command_line`.
fn shared(command_line: &str) -> impl Iterator<Item = &str> {
    let names = command_line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix(SHARED));
    names.into_iter().flat_map(|names| names.split(','))
}

fn make_dir(path: &str) -> Result<(), AgentError> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        // On the read-only host the directory is there or it cannot be made.
        Err(Errno::ROFS) if Path::new(path).is_dir() => Ok(()),
        Err(errno) => Err(AgentError::system("make directory", path, errno)),
    }
}

/// Makes `root` the root directory.
fn enter(root: &str) -> Result<(), AgentError> {
    rustix::process::chroot(root).map_err(|errno| AgentError::system("chroot to", root, errno))?;
    rustix::process::chdir("/")
        .map_err(|errno| AgentError::system("change directory to", "/", errno))
}

/// What udev would make: shells and many programs want these names.
fn link_standard_streams() -> Result<(), AgentError> {
    let links = [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    for (target, name) in links {
        match symlink(target, name) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(AgentError::system("link", name, errno)),
        }
    }
    Ok(())
}

/// Unmounts what is still mounted below `/mnt`, deepest first; what is busy stays.
fn unmount_all() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for target in mounts_below_mnt(&mounts).iter().rev() {
        // Nobody is left to be told: the guest ends, and the data were synced.
        let _busy = crate::mount::unmount(target);
    }
}

/// Mount points below `/mnt` in the order of mounting, without hostfs.
fn mounts_below_mnt(mounts: &str) -> Vec<String> {
    mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(|target| target.replace("\\040", " "))
        .filter(|target| target.starts_with("/mnt/") && !target.starts_with(HOST))
        .collect()
}

/// Writes what is cached, unmounts and switches the machine off; PID 1 only.
pub fn power_off(clean: bool) -> ! {
    if clean {
        rustix::fs::sync();
        unmount_all();
    }
    let failure = reboot(RebootCommand::PowerOff);
    // A PID 1 that returns panics the kernel: the last way to end the guest.
    panic!("power off: {failure:?}");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn disks_are_on_the_command_line() {
        let line = "mem=512M quiet whichfs.control=vdc con=null whichfs.root=vdd\n";
        let found = |parameter| disk(line, parameter).unwrap();
        assert_eq!(found(CONTROL).as_deref(), Some(Path::new("/dev/vdc")));
        assert_eq!(found(ROOT).as_deref(), Some(Path::new("/dev/vdd")));
        assert_eq!(disk("quiet", ROOT).unwrap(), None);
        for bad in ["whichfs.control=", "whichfs.control=../x"] {
            assert!(disk(bad, CONTROL).is_err(), "{bad}");
        }
    }

    #[test]
    fn shared_directories_are_on_the_command_line() {
        let names = |line| shared(line).collect::<Vec<_>>();
        assert_eq!(
            names("quiet whichfs.shared=tree,images x"),
            ["tree", "images"]
        );
        assert!(names("quiet").is_empty());
    }

    #[test]
    fn only_what_is_below_mnt_is_unmounted() {
        let mounts = "none / hostfs ro 0 0\nnone /mnt tmpfs rw 0 0\n\
                      none /mnt/.host/tree hostfs ro 0 0\n/dev/vda /mnt/test ext4 rw 0 0\n\
                      /dev/vdb /mnt/a\\040b ext4 rw 0 0\n";
        assert_eq!(mounts_below_mnt(mounts), ["/mnt/test", "/mnt/a b"]);
    }
}
