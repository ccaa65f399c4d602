//! What the process of a guest may do to this machine, however hostile the guest is.
//!
//! A guest runs programs that nobody here has read, as root of its own kernel. That kernel is an
//! ordinary process, so whoever takes it over has the rights of the user who started it. It is
//! therefore confined before its program starts, in layers that do not depend on each other:
//!
//! 1. The lab kernel itself changes no file of the host (`kernel/patches/0009`).
//! 2. **Landlock** (Linux 5.13, no root needed): nothing is written outside the guest's two
//!    private directories, nothing is read but what `host_view.rs` lists, no program but the
//!    kernel is started, no TCP port is used, no process outside is signalled.
//! 3. **seccomp**: system calls that no guest needs do not exist for it: mounts, namespaces,
//!    modules, BPF, io_uring, keys, foreign file handles, clocks, network sockets, changes of
//!    names, modes and owners of files.
//! 4. `no_new_privs`, no core dumps, and no file larger than the guest's memory and 64 MiB.
//!
//! The filter answers with `SECCOMP_RET_TRACE`: without a tracer that is "no such system call". The
//! stub processes, in which programs of the guest run, have a filter of their own whose answer (a
//! notification to the guest's kernel) takes precedence, so a program *in* the guest still mounts.
//! `SECCOMP_RET_ERRNO` would take precedence over theirs instead.

use crate::host_view::Readable;
use crate::system_calls::filter;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::fd::{AsRawFd, OwnedFd};
use seccompiler::BpfProgram;
use std::io;
use std::path::Path;
use whichfs_units::MIB;

/// What is known to this program of Landlock; an older kernel enforces what it has.
const LANDLOCK: ABI = ABI::V10;
/// Largest file beyond the guest's memory: its console.
const FILE_BYTES: u64 = 64 * MIB;
/// A confinement that is ready to be put on.
pub(crate) struct Confinement {
    /// Rules of Landlock; none where the host's kernel has no Landlock.
    rules: Option<OwnedFd>,
    filter: BpfProgram,
    file_bytes: u64,
}

/// What confines guests on this machine, for people: layers that are active, and those that the
/// host's kernel lacks.
pub fn confinement() -> (Vec<&'static str>, Vec<&'static str>) {
    let always = vec!["read-only hostfs", "seccomp", "no new privileges"];
    let has_landlock = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create)
        .is_ok();
    match has_landlock {
        true => ([always, vec!["Landlock"]].concat(), Vec::new()),
        false => (always, vec!["Landlock (Linux 5.13)"]),
    }
}

impl Confinement {
    /// The confinement of a guest with so much memory, which runs the program `kernel`, may
    /// write in the directories `writable` alone and read there and what is `readable`.
    ///
    /// # Errors
    /// A directory that cannot be opened.
    pub fn new(
        kernel: &Path,
        writable: &[&Path],
        readable: &Readable,
        memory_mib: u64,
    ) -> io::Result<Confinement> {
        Ok(Confinement {
            rules: rules(kernel, writable, readable)?,
            filter: filter()?,
            file_bytes: memory_mib * MIB + FILE_BYTES,
        })
    }

    /// Confines the calling process. Makes system calls alone, so it may run in a child that shares
    /// the memory of its parent.
    ///
    /// # Errors
    /// The host's kernel refuses a layer that it has.
    pub fn put_on(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: self.filter.len() as libc::c_ushort,
            filter: self.filter.as_ptr().cast_mut().cast(),
        };
        let limit = |bytes| libc::rlimit64 {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        let (files, none) = (limit(self.file_bytes), limit(0));
        // SAFETY: plain system calls; what they point to outlives them.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::setrlimit64(libc::RLIMIT_CORE, &raw const none) == 0
                && libc::setrlimit64(libc::RLIMIT_FSIZE, &raw const files) == 0
                && self.rules.as_ref().is_none_or(|rules| {
                    libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) == 0
                })
                && libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &raw const program,
                ) == 0
        };
        match done {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        }
    }
}

/// The rules of Landlock, as far as the host's kernel has them.
fn rules(kernel: &Path, writable: &[&Path], readable: &Readable) -> io::Result<Option<OwnedFd>> {
    let fail = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let writes = AccessFs::from_write(LANDLOCK);
    let runs: BitFlags<AccessFs> = AccessFs::Execute.into();
    let names: BitFlags<AccessFs> = AccessFs::ReadDir.into();
    let reads = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes | runs | reads)
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(|error| fail(&error))?;
    let mut allow = |path: &Path, access: BitFlags<AccessFs>| -> io::Result<()> {
        let path = PathFd::new(path).map_err(|error| fail(&error))?;
        let rule = PathBeneath::new(path, access);
        (&mut rules).add_rule(rule).map_err(|error| fail(&error))?;
        Ok(())
    };
    for directory in writable {
        allow(directory, writes | reads)?;
    }
    for (paths, access) in [(&readable.files, reads), (&readable.names, names)] {
        // What is not there, or not for this user, is not read either.
        for path in paths.iter().filter(|path| path.exists()) {
            let access = if path.is_dir() {
                access
            } else {
                access & AccessFs::ReadFile
            };
            allow(path, access)?;
        }
    }
    allow(Path::new("/dev/null"), AccessFs::WriteFile.into())?;
    allow(kernel, runs | AccessFs::ReadFile)?;
    // The kernel is linked dynamically: its loader is started with it.
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    if loader.exists() {
        allow(loader, runs | AccessFs::ReadFile)?;
    }
    Ok(rules.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::{Program, spawn};
    use rustix::fd::AsFd;
    use std::io::{Read, Seek};

    /// What programs of this machine need to start.
    fn system() -> Readable {
        let paths = [
            "/usr",
            "/lib",
            "/lib64",
            "/bin",
            "/etc",
            "/dev/null",
            "/proc",
        ];
        Readable {
            files: paths.map(Into::into).to_vec(),
            names: Vec::new(),
        }
    }

    /// What a shell with `script` prints, confined to `writable` or free.
    fn shell(script: &str, writable: Option<&Path>) -> String {
        let mut output = tempfile::tempfile().expect("a temporary file");
        let shell = std::fs::canonicalize("/bin/sh").expect("a shell");
        let confinement = writable.map(|path| {
            Confinement::new(&shell, &[path], &system(), 64).expect("the host has what it needs")
        });
        let program = Program {
            path: &shell,
            arguments: &["-c".to_owned(), script.to_owned()],
            environment: &[("PATH", "/usr/bin:/bin:/usr/sbin:/sbin".into())],
            directory: writable.unwrap_or(Path::new("/")),
            output: output.as_fd(),
        };
        // SAFETY: system calls alone.
        let child = unsafe {
            spawn(&program, &|| {
                confinement.as_ref().map_or(Ok(()), Confinement::put_on)
            })
        };
        child.expect("it starts").wait().expect("it ends");
        let mut text = String::new();
        output.rewind().expect("a file");
        output.read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn attack_a_confined_process_writes_in_its_directory_alone() {
        let (own, other) = (tempfile::tempdir(), tempfile::tempdir());
        let (own, other) = (own.expect("a directory"), other.expect("a directory"));
        let script = format!(
            "echo a > mine && echo own; echo b > {0}/theirs && echo escaped; \
             read line < /etc/passwd && echo reads",
            other.path().display()
        );
        let confined = shell(&script, Some(own.path()));
        assert!(
            confined.contains("own\n") && confined.contains("reads\n"),
            "{confined}"
        );
        if confinement().1.is_empty() {
            assert!(!confined.contains("escaped"), "{confined}");
            assert!(!other.path().join("theirs").exists());
        }
        // The planted fault: without the confinement the same script escapes.
        assert!(shell(&script, None).contains("escaped\n"));
    }

    /// What a guest that has taken over its kernel would ask of the host, in Perl: `$own` is its
    /// directory, `$theirs` another's, `$other` a process.
    const TAKEN_OVER: &str = r#"
        my ($own, $theirs, $other) = @ARGV;
        my ($file, $x) = ("$theirs/file", "x" x 256);
        $other += 0;
        sub call {
            my ($name, $number, @words) = @_;
            print "$name\n" if syscall($number, @words) >= 0;
        }
        open(F, '>', "$own/mine") and print "own\n";
        open(F, '<', $file) and print "reads\n";
        open(G, '>', "$theirs/new") and print "open\n";
        open(G, '>>', $file) and print "append\n";
        open(G, '+<', '/dev/mem') and print "mem\n";
        call('truncate', 76, $file, 0);
        call('rename', 82, $file, "$theirs/moved");
        call('rename in', 82, $file, "$own/moved");
        call('mkdir', 83, "$theirs/directory", 0755);
        call('rmdir', 84, "$theirs/empty");
        call('link', 86, $file, "$own/linked");
        call('unlink', 87, $file);
        call('symlink', 88, '/', "$theirs/link");
        call('chmod', 90, $file, 04755);
        call('fchmod', 91, fileno(F), 04755);
        call('chown', 92, $file, 1, 1);
        call('fchown', 93, fileno(F), 1, 1);
        call('mknod', 133, "$theirs/node", 0010644, 0);
        call('utimensat', 280, -100, $file, 0, 0);
        call('fsetxattr', 190, fileno(F), 'user.x', $x, 1, 0);
        call('mount', 165, 'none', $own, 'tmpfs', 0, 0);
        call('umount', 166, $own, 2);
        call('chroot', 161, $own);
        call('unshare', 272, 0x10000000);
        call('setns', 308, fileno(F), 0);
        call('ptrace', 101, 16, $other, 0, 0);
        call('pidfd_getfd', 438, fileno(F), 1, 0);
        call('inet', 41, 2, 1, 0);
        call('packet', 41, 17, 3, 0);
        call('netlink', 41, 16, 3, 0);
        call('io_uring', 425, 8, $x);
        call('bpf', 321, 0, $x, 72);
        call('perf', 298, $x, 0, -1, -1, 0);
        call('init_module', 175, $x, 256, $x);
        call('kexec', 246, 0, 0, 0, 0);
        call('keyctl', 250, 0, -3, 1);
        call('add_key', 248, 'user', 'x', $x, 1, -3);
        call('open_by_handle', 304, 3, $x, 0);
        call('userfaultfd', 323, 0);
        call('swapon', 167, $file, 0);
        call('iopl', 172, 3);
        call('sethostname', 170, $x, 1);
        call('setuid', 105, 1);
        call('syslog', 103, 2, $x, 256);
        call('kill', 62, $other, 9);
        exec('/bin/true') or print "end\n";
    "#;

    /// What Perl prints of [`TAKEN_OVER`], confined or free.
    fn taken_over(own: &Path, theirs: &Path, is_confined: bool) -> Vec<String> {
        std::fs::write(theirs.join("file"), "what was there").expect("a file");
        std::fs::create_dir_all(theirs.join("empty")).expect("a directory");
        let mut other = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("sleep");
        let perl = std::fs::canonicalize("/usr/bin/perl").expect("Perl");
        // Free, it leaves the machine itself alone.
        let own_files = |line: &&str| {
            let machine = [
                "mount",
                "kexec",
                "sethostname",
                "swapon",
                "module",
                "mem'",
                "syslog",
            ];
            is_confined || !machine.iter().any(|word| line.contains(word))
        };
        let lines: Vec<&str> = TAKEN_OVER.lines().filter(own_files).collect();
        let script = lines.join("\n");
        let confinement =
            Confinement::new(&perl, &[own], &system(), 64).expect("the host has what it needs");
        let output = tempfile::tempfile().expect("a temporary file");
        let path = |path: &Path| path.display().to_string();
        let program = Program {
            path: &perl,
            arguments: &[
                "-e".to_owned(),
                script,
                path(own),
                path(theirs),
                other.id().to_string(),
            ],
            environment: &[],
            directory: own,
            output: output.as_fd(),
        };
        let before = || match is_confined {
            true => confinement.put_on(),
            false => Ok(()),
        };
        // SAFETY: system calls alone.
        let child = unsafe { spawn(&program, &before) };
        child.expect("it starts").wait().expect("it ends");
        let _ = other.kill();
        let _ = other.wait();
        let mut text = String::new();
        let mut output = output;
        output.rewind().expect("a file");
        output.read_to_string(&mut text).expect("text");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn attack_a_guest_that_has_taken_over_its_kernel_changes_nothing() {
        let directories = [tempfile::tempdir(), tempfile::tempdir()];
        let [own, theirs] = directories.map(|one| one.expect("a directory"));
        let did = taken_over(own.path(), theirs.path(), true);
        if confinement().1.is_empty() {
            assert_eq!(did, ["own", "end"]);
            let left = std::fs::read_to_string(theirs.path().join("file"));
            assert_eq!(left.expect("it is there"), "what was there");
        }
        // The planted fault: without the confinement it does change what it is after.
        let did = taken_over(own.path(), theirs.path(), false);
        for way in [
            "open", "append", "truncate", "rename", "mkdir", "fchmod", "ptrace", "inet",
        ] {
            assert!(did.iter().any(|done| done == way), "{way}: {did:?}");
        }
    }

    #[test]
    fn attack_a_confined_process_starts_nothing_and_has_no_refused_calls() {
        let own = tempfile::tempdir().expect("a directory");
        let script = "/bin/ls / && echo started; ulimit -c; grep -E 'NoNewPrivs|Seccomp:' \
                      /proc/self/status";
        let free = shell(script, None);
        assert!(free.contains("started\n"), "{free}");
        let builtin = "while read name value rest; do case $name in NoNewPrivs:|Seccomp:) echo \
                       $name $value;; esac; done < /proc/self/status; ulimit -c; /bin/ls / && \
                       echo started";
        let confined = shell(builtin, Some(own.path()));
        assert!(confined.contains("NoNewPrivs: 1\n"), "{confined}");
        assert!(confined.contains("Seccomp: 2\n"), "{confined}");
        assert!(confined.contains("\n0\n"), "no core dumps: {confined}");
        if confinement().1.is_empty() {
            assert!(!confined.contains("started"), "{confined}");
        }
    }
}
