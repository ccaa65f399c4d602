//! What programs of a trial may do on a machine that is not the lab's guest.
//!
//! A program gets its job from a file that anybody may have written, and runs as root. The agent
//! itself lives in namespaces where only the place under test can be written
//! (`whichfs_device::sandbox`); it keeps the rights to mount and to set queues. A program has less:
//!
//! 1. mounts of its own, in which `/proc` shows its own processes and `/proc` and `/sys` are
//!    read-only;
//! 2. no capability but those about files, owners and priorities, and no new privileges;
//! 3. Landlock (Linux 5.19): it writes below the mount points of the trial and what the sandbox
//!    names, nowhere else;
//! 4. no open files of the agent.

use crate::error::AgentError;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Capabilities that programs keep (`linux/capability.h`): of files, owners and priorities. Device
/// nodes may be made (a root filesystem has some), because nothing that they may write opens them.
const KEPT: [(&str, u32); 11] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_IPC_LOCK", 14),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_SYS_NICE", 23),
    ("CAP_MKNOD", 27),
];
/// `CAP_SETFCAP`: archives of root filesystems hold file capabilities.
const SETFCAP: u32 = 31;
/// Highest number of a capability that a kernel may have.
const CAPABILITIES: u32 = 63;
/// `LANDLOCK_RULE_PATH_BENEATH` (`linux/landlock.h`).
const PATH_BENEATH: libc::c_int = 1;

/// What programs are confined by.
#[derive(Debug)]
pub struct Confinement {
    /// Rules of Landlock and the rights that they handle; none where the kernel has none.
    rules: Option<(OwnedFd, u64)>,
    /// Mounts below `/sys`, which programs see read-only.
    system: Vec<CString>,
    /// User and group that operations and programs run as; none: as the agent.
    user: Option<(u32, u32)>,
}

/// The filesystem's view of the calling thread as another user's, until this goes.
pub struct AsUser;

impl Drop for AsUser {
    fn drop(&mut self) {
        // SAFETY: numbers alone. Root's rights over files come back with its number.
        unsafe {
            libc::setfsuid(0);
            libc::setfsgid(0);
        }
    }
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

impl Confinement {
    /// As `text` says: the number of the ruleset's descriptor and the rights that it handles, as
    /// in `3:4094`, or `none`. The descriptor was inherited. `user` is the user and group that
    /// operations and programs run as, as in `1000:1000`.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str, user: Option<&str>) -> Result<Confinement, AgentError> {
        let user = user.map(|user| {
            let numbers = user
                .split_once(':')
                .and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
            numbers.ok_or_else(|| AgentError::new(format!("--confine {text} {user}: not UID:GID")))
        });
        let rules = match text.split_once(':') {
            None if text == "none" => None,
            Some((fd, handled)) => {
                let wrong = || AgentError::new(format!("--confine {text}: not FD:RIGHTS or none"));
                let fd: RawFd = fd.parse().map_err(|_| wrong())?;
                let handled = handled.parse().map_err(|_| wrong())?;
                // SAFETY: the sandbox passes a descriptor that nobody else here uses.
                let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)
                    .map_err(|errno| AgentError::system("take", "the rules of Landlock", errno))?;
                Some((fd, handled))
            }
            None => {
                return Err(AgentError::new(format!(
                    "--confine {text}: not FD:RIGHTS or none"
                )));
            }
        };
        let table = std::fs::read_to_string("/proc/self/mountinfo");
        let table =
            table.map_err(|error| AgentError::io("read", "/proc/self/mountinfo", &error))?;
        let system = table.lines().filter_map(|line| line.split(' ').nth(4));
        let system = system.filter(|place| *place == "/sys" || place.starts_with("/sys/"));
        let system = system
            .filter_map(|place| CString::new(place).ok())
            .collect();
        Ok(Confinement {
            rules,
            system,
            user: user.transpose()?,
        })
    }

    /// Has the calling thread work with files as the user that trials run as, if that is not the
    /// agent's own, until the result goes.
    pub fn as_user(&self) -> Option<AsUser> {
        let (user, group) = self.user?;
        // SAFETY: numbers alone.
        unsafe {
            libc::setfsgid(group);
            libc::setfsuid(user);
        }
        Some(AsUser)
    }

    /// Lets programs write below `place`, which has just been mounted.
    ///
    /// # Errors
    /// The kernel refuses the rule.
    pub fn allow(&self, place: &str) -> Result<(), AgentError> {
        let Some((rules, handled)) = &self.rules else {
            return Ok(());
        };
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let open = rustix::fs::open(place, flags, rustix::fs::Mode::empty());
        let open = open.map_err(|errno| AgentError::system("open", place, errno))?;
        let rule = PathBeneath {
            allowed_access: *handled,
            parent_fd: open.as_raw_fd(),
        };
        // SAFETY: the kernel reads the rule, which outlives the call.
        let done = unsafe {
            let rules = rules.as_raw_fd();
            libc::syscall(
                libc::SYS_landlock_add_rule,
                rules,
                PATH_BENEATH,
                &raw const rule,
                0,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(AgentError::io(
                "allow writes below",
                place,
                &io::Error::last_os_error(),
            )),
        }
    }

    /// Has `command` confine itself before its program starts.
    pub fn put_on(&self, command: &mut Command) {
        let rules = self.rules.as_ref().map(|(rules, _)| rules.as_raw_fd());
        let (system, user) = (self.system.clone(), self.user);
        // SAFETY: system calls alone, on memory that was made before; the child shares nothing
        // that they change.
        unsafe {
            command.pre_exec(move || {
                own_view(&system)?;
                close_others()?;
                drop_capabilities()?;
                restrict(rules)?;
                user.map_or(Ok(()), become_user)
            });
        }
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Mounts of the calling process's own: its own `/proc`, and that and `/sys` read-only.
fn own_view(system: &[CString]) -> io::Result<()> {
    const QUIET: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    const READ_ONLY: libc::c_ulong = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | QUIET;
    let (proc, none) = (c"proc".as_ptr(), std::ptr::null::<libc::c_char>());
    let place = c"/proc".as_ptr();
    // SAFETY: all strings end with NUL and outlive the calls.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        done(libc::mount(
            proc,
            place,
            proc,
            libc::MS_RDONLY | QUIET,
            none.cast(),
        ))?;
        let (null, log) = (c"/dev/null".as_ptr(), c"/dev/kmsg".as_ptr());
        // Where it is not there, nothing is to be covered.
        if libc::access(log, libc::F_OK) == 0 {
            done(libc::mount(null, log, none, libc::MS_BIND, none.cast()))?;
        }
        for place in system {
            // One that another mount covers cannot be named, nor reached by the program.
            let _ = libc::mount(none, place.as_ptr(), none, READ_ONLY, none.cast());
        }
        // The one that has to work.
        done(libc::mount(
            none,
            c"/sys".as_ptr(),
            none,
            READ_ONLY,
            none.cast(),
        ))
    }
}

/// Closes what the agent has open when the program starts.
fn close_others() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    /// Descriptors that an agent may have, for kernels before 5.11.
    const MOST: RawFd = 1024;
    // SAFETY: numbers alone.
    unsafe {
        let flag = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, flag) == 0 {
            return Ok(());
        }
        for fd in FIRST.cast_signed()..MOST {
            // Most are not open.
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

/// Leaves the calling process the capabilities of [`KEPT`], for good.
fn drop_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`.
    const VERSION: u32 = 0x2008_0522;
    let is_kept = |number: u32| number == SETFCAP || KEPT.iter().any(|&(_, kept)| kept == number);
    for number in (0..=CAPABILITIES).filter(|&number| !is_kept(number)) {
        // SAFETY: numbers alone. A kernel that does not know the number has nothing to drop.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
    }
    let low = (0..32).filter(|&number| is_kept(number));
    let low = low.fold(0_u32, |set, number| set | 1 << number);
    let header = [VERSION, 0];
    // Effective, permitted, inheritable: the low 32, then the high ones.
    let sets = [low, low, 0, 0, 0, 0];
    // SAFETY: both arrays have the layout of the kernel's structures and outlive the calls.
    unsafe {
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let set = libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
        done(i32::from(set != 0))
    }
}

/// Puts the rules of Landlock on the calling process.
fn restrict(rules: Option<RawFd>) -> io::Result<()> {
    let Some(rules) = rules else { return Ok(()) };
    // SAFETY: numbers alone.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) };
    done(i32::from(result != 0))
}

/// Makes the calling process one of `user` and `group` for good; its capabilities go with that.
fn become_user((user, group): (u32, u32)) -> io::Result<()> {
    // SAFETY: numbers alone, and no list of groups.
    unsafe {
        done(libc::setgroups(0, std::ptr::null()))?;
        done(libc::setresgid(group, group, group))?;
        done(libc::setresuid(user, user, user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_sandbox_writes_is_read() {
        assert!(Confinement::parse("none", None).is_ok_and(|one| one.rules.is_none()));
        for text in ["", "3", "x:1", "3:x", "None"] {
            let error = Confinement::parse(text, None).expect_err("no such thing");
            assert!(error.to_string().contains("--confine"), "{error}");
        }
        let user = Confinement::parse("none", Some("1000:100"));
        assert!(user.is_ok_and(|one| one.user == Some((1000, 100))));
        assert!(Confinement::parse("none", Some("root")).is_err());
    }

    #[test]
    fn rights_over_the_machine_are_dropped() {
        // SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, SYS_BOOT, SYS_TIME, NET_ADMIN, BPF.
        for number in [16, 17, 19, 21, 22, 25, 12, 39] {
            assert!(number != SETFCAP && KEPT.iter().all(|&(_, kept)| kept != number));
        }
    }
}
