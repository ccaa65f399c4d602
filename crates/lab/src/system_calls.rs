//! The system calls that the process of a guest may make. Guests are x86-64 code: on other
//! processors there is no filter, and so no guest.

use seccompiler::BpfProgram;
use std::io;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn filter() -> io::Result<BpfProgram> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::filter;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{BpfProgram, io};
    use seccompiler::{
        SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };
    use std::collections::BTreeMap;

    /// System calls of the x32 interface have this bit set in their number.
    const X32: i64 = 0x4000_0000;

    /// System calls that a guest's process never needs.
    const REFUSED: &[i64] = &[
        // Mounts and namespaces.
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_unshare,
        libc::SYS_setns,
        // The host's kernel.
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_userfaultfd,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_syslog,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_adjtimex,
        libc::SYS_clock_adjtime,
        // Rights.
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_setuid,
        libc::SYS_setgid,
        libc::SYS_setreuid,
        libc::SYS_setregid,
        libc::SYS_setresuid,
        libc::SYS_setresgid,
        libc::SYS_setgroups,
        libc::SYS_capset,
        libc::SYS_pidfd_getfd,
        libc::SYS_process_madvise,
        // Files of the host: UML opens, reads and maps what it needs.
        libc::SYS_chmod,
        libc::SYS_fchmodat,
        libc::SYS_fchmodat2,
        libc::SYS_chown,
        libc::SYS_fchown,
        libc::SYS_lchown,
        libc::SYS_fchownat,
        libc::SYS_link,
        libc::SYS_linkat,
        libc::SYS_mknod,
        libc::SYS_mknodat,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
        libc::SYS_utimensat,
    ];

    /// The filter of system calls.
    pub(crate) fn filter() -> io::Result<BpfProgram> {
        let fail = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
        let network = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            libc::AF_UNIX as u64,
        )
        .and_then(|not_unix| SeccompRule::new(vec![not_unix]))
        .map_err(|error| fail(&error))?;
        // The kernel makes the file that is its memory executable by this very call.
        let mode = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0o777)
            .and_then(|other| SeccompRule::new(vec![other]))
            .map_err(|error| fail(&error))?;
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED
            .iter()
            .flat_map(|&call| [(call, Vec::new()), (call | X32, Vec::new())])
            .collect();
        refused.insert(libc::SYS_socket, vec![network.clone()]);
        refused.insert(libc::SYS_socket | X32, vec![network]);
        refused.insert(libc::SYS_fchmod, vec![mode.clone()]);
        refused.insert(libc::SYS_fchmod | X32, vec![mode]);
        let (otherwise, refuse) = (SeccompAction::Allow, SeccompAction::Trace(0));
        SeccompFilter::new(refused, otherwise, refuse, TargetArch::x86_64)
            .and_then(BpfProgram::try_from)
            .map_err(|error| fail(&error))
    }
}
