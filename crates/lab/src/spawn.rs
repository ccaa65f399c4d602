//! Starts a program without copying this process.
//!
//! `fork` copies the page tables of a process that may hold gigabytes of cards' contents, and
//! every page that is written next costs a fault. A child that only starts a program can share the
//! memory until then, while its parent stands still, as in posix_spawn(3); that cannot do all
//! that a guest needs done before its start.

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::ffi::{CString, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::ptr::null;

/// Bytes of the child's stack: it makes some system calls.
const STACK: usize = 64 << 10;

/// A program to be started.
pub struct Program<'a> {
    /// Path of the executable, as execve(2) takes it.
    pub path: &'a Path,
    /// Its arguments, without its name.
    pub arguments: &'a [String],
    /// All of its environment.
    pub environment: &'a [(&'a str, OsString)],
    /// Its working directory.
    pub directory: &'a Path,
    /// Where it prints.
    pub output: BorrowedFd<'a>,
}

/// A child of this process.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    ended: Option<ExitStatus>,
}

/// What the child reads, and where it says why it failed.
struct Start<'a> {
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: *const c_char,
    input: c_int,
    output: c_int,
    before: &'a dyn Fn() -> io::Result<()>,
    error: c_int,
}

/// Starts `program`; the child calls `before` right before it.
///
/// # Safety
/// `before` runs while the child shares this process' memory, with the thread that calls this
/// standing still: it may make system calls and nothing else that is not safe in a signal handler.
///
/// # Errors
/// What the child could not do, or that there is none.
pub unsafe fn spawn(
    program: &Program<'_>,
    before: &dyn Fn() -> io::Result<()>,
) -> io::Result<Child> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
    let path = text(program.path.as_os_str().as_bytes())?;
    let directory = text(program.directory.as_os_str().as_bytes())?;
    let arguments = program.arguments.iter().map(|word| text(word.as_bytes()));
    let arguments: Vec<CString> = arguments.collect::<io::Result<_>>()?;
    let environment = program.environment.iter();
    let environment: Vec<CString> = environment
        .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<io::Result<_>>()?;
    let input = File::open("/dev/null")?;
    let arguments = pointers([&path].into_iter().chain(&arguments));
    let environment = pointers(&environment);
    let mut start = Start {
        path: path.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        directory: directory.as_ptr(),
        input: input.as_raw_fd(),
        output: program.output.as_raw_fd(),
        before,
        error: 0,
    };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let signals = Signals::block()?;
    // SAFETY: the stack, which grows down from its end, and `start` outlive the child's use of
    // them: this thread goes on when the child has started the program or ended. Signals are
    // blocked, so that no handler runs in the child, on this process' memory.
    let pid = unsafe {
        let end = stack.as_mut_ptr_range().end;
        libc::clone(child, end.cast(), flags, (&raw mut start).cast::<c_void>())
    };
    let cloned = io::Error::last_os_error();
    drop(signals);
    let pid = if pid > 0 { Pid::from_raw(pid) } else { None };
    let Some(pid) = pid else {
        return Err(cloned);
    };
    let mut child = Child { pid, ended: None };
    // SAFETY: the child wrote there before this thread went on.
    match unsafe { (&raw const start.error).read_volatile() } {
        0 => Ok(child),
        error => {
            child.wait()?;
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Pointers to `words`, and the null pointer that ends such a list.
fn pointers<'a>(words: impl IntoIterator<Item = &'a CString>) -> Vec<*const c_char> {
    let words = words.into_iter().map(|word| word.as_ptr());
    words.chain([null()]).collect()
}

/// The child's life until the program starts: on its own stack, in its parent's memory.
extern "C" fn child(start: *mut c_void) -> c_int {
    // SAFETY: `spawn` gave it, and waits.
    let start = unsafe { &mut *start.cast::<Start<'_>>() };
    let error = run(start);
    start.error = error.raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: ends the child alone, without what exit(3) does to the memory.
    unsafe { libc::_exit(127) }
}

/// Starts the program; returns why that failed.
fn run(start: &Start<'_>) -> io::Error {
    if let Err(error) = (start.before)() {
        return error;
    }
    // SAFETY: system calls with numbers and with pointers that `spawn` keeps valid. The program
    // begins as any does: no signal is blocked, and SIGPIPE, which Rust ignores, ends it.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        let failed = libc::chdir(start.directory) < 0
            || libc::dup2(start.input, 0) < 0
            || libc::dup2(start.output, 1) < 0
            || libc::dup2(start.output, 2) < 0
            || libc::signal(libc::SIGPIPE, libc::SIG_DFL) == libc::SIG_ERR
            || libc::sigemptyset(&raw mut none) < 0
            || libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) < 0;
        if !failed {
            libc::execve(start.path, start.arguments, start.environment);
        }
    }
    io::Error::last_os_error()
}

/// All signals of this thread are blocked until this is dropped.
struct Signals(libc::sigset_t);

impl Signals {
    fn block() -> io::Result<Signals> {
        // SAFETY: a set of signals is a plain value, which these calls fill.
        let (error, before) = unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            let error = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            (error, before)
        };
        match error {
            0 => Ok(Signals(before)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the call that blocked them.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

impl Child {
    /// Process ID of the child on the host.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// If somebody else has waited for it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wait_with(WaitOptions::NOHANG)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    pub fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wait_with(WaitOptions::empty())
    }

    fn wait_with(&mut self, options: WaitOptions) -> io::Result<Option<ExitStatus>> {
        while self.ended.is_none() {
            match waitpid(Some(self.pid), options) {
                Ok(Some((_, status))) => {
                    self.ended = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(None) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(self.ended)
    }

    /// Kills it; its number is used only while nobody has waited for it.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use std::os::fd::AsFd;

    /// How a shell with `script` ended, and what it printed.
    fn shell(script: &str, before: &dyn Fn() -> io::Result<()>) -> (ExitStatus, String) {
        let mut output = tempfile::tempfile().expect("a temporary file");
        let program = Program {
            path: Path::new("/bin/sh"),
            arguments: &["-c".to_owned(), script.to_owned()],
            environment: &[("WORD", "a b".into()), ("N", "2".into())],
            directory: Path::new("/proc"),
            output: output.as_fd(),
        };
        // SAFETY: what the tests do there are system calls.
        let mut child = unsafe { spawn(&program, before) }.expect("a shell");
        let status = child.wait().expect("nobody else waits").expect("it ended");
        assert_eq!(child.try_wait().expect("known"), Some(status));
        let mut text = String::new();
        output.rewind().expect("a file");
        output.read_to_string(&mut text).expect("UTF-8");
        (status, text)
    }

    #[test]
    fn it_has_its_arguments_environment_directory_and_files() {
        let script = "echo $WORD $N; pwd; echo to stderr >&2; read line || echo nothing; exit 3";
        let (status, text) = shell(script, &|| Ok(()));
        assert_eq!(status.code(), Some(3));
        assert_eq!(text, "a b 2\n/proc\nto stderr\nnothing\n");
    }

    #[test]
    fn no_signal_is_blocked_and_a_broken_pipe_ends_it() {
        let script = "grep -E 'Sig(Blk|Ign)' self/status; kill -PIPE $$; echo no";
        let (status, text) = shell(script, &|| Ok(()));
        let sets = text
            .split_whitespace()
            .filter_map(|word| u64::from_str_radix(word, 16).ok());
        let sets: Vec<u64> = sets.collect();
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert!(
            sets.len() == 2 && sets[0] == 0 && sets[1] & pipe == 0,
            "{text}"
        );
        assert_eq!(status.signal(), Some(libc::SIGPIPE));
        // Those of this thread are as they were.
        let own = std::fs::read_to_string("/proc/thread-self/status").expect("procfs");
        assert!(own.contains("SigBlk:\t0000000000000000"), "{own}");
    }

    #[test]
    fn what_comes_before_is_done_in_the_child_alone() {
        // SAFETY: a plain system call.
        let (status, text) = shell("umask", &|| match unsafe { libc::umask(0o35) } {
            0o35 => Err(io::ErrorKind::Other.into()),
            _ => Ok(()),
        });
        assert_eq!((status.code(), text.trim()), (Some(0), "0035"));
        // SAFETY: as above; the tests of a process run in threads, but none needs it.
        let own = unsafe { libc::umask(0o22) };
        assert_ne!(own, 0o35);
    }

    #[test]
    fn what_fails_in_the_child_is_the_callers_error() {
        let output = tempfile::tempfile().expect("a temporary file");
        let start = |path: &str, directory: &str, error: i32| {
            let program = Program {
                path: Path::new(path),
                arguments: &[],
                environment: &[],
                directory: Path::new(directory),
                output: output.as_fd(),
            };
            let before = || match error {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(error)),
            };
            // SAFETY: it makes an error from a number.
            let failed = unsafe { spawn(&program, &before) }.expect_err("it cannot start");
            failed.raw_os_error()
        };
        assert_eq!(start("/no/such", "/", 0), Some(libc::ENOENT));
        assert_eq!(start("/bin/sh", "/no/such", 0), Some(libc::ENOENT));
        assert_eq!(start("/etc/passwd", "/", 0), Some(libc::EACCES));
        assert_eq!(start("/bin/sh", "/", libc::EPERM), Some(libc::EPERM));
    }

    #[test]
    fn one_that_runs_on_can_be_killed() {
        let output = tempfile::tempfile().expect("a temporary file");
        let program = Program {
            path: Path::new("/bin/sleep"),
            arguments: &["60".to_owned()],
            environment: &[],
            directory: Path::new("/"),
            output: output.as_fd(),
        };
        // SAFETY: nothing is done there.
        let mut child = unsafe { spawn(&program, &|| Ok(())) }.expect("sleep is everywhere");
        assert_eq!(child.try_wait().expect("ours"), None);
        child.kill();
        let status = child.wait().expect("ours").expect("it ended");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        child.kill();
    }
}
