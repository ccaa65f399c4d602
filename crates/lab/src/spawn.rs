//! Starts a process without copying this one's memory map.
//!
//! `std::process::Command` forks where code is to run before the program does, and a fork of a
//! process of hundreds of megabytes copies its page tables, then faults on each page that either
//! side writes. Here the child shares the memory until it is the program, as after vfork(2), on a
//! stack of its own, and the calling thread waits meanwhile.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitStatus;

/// Bytes of the child's stack until it is the program: it makes system calls and nothing else.
const STACK_BYTES: usize = 64 << 10;

/// What a process is started with.
pub struct Program<'a> {
    /// The program.
    pub path: &'a Path,
    /// Arguments after its name.
    pub arguments: &'a [String],
    /// `NAME=value`, all that its environment has.
    pub environment: &'a [CString],
    /// Its working directory.
    pub directory: RawFd,
    /// Its standard input, output and error.
    pub streams: [&'a File; 3],
    /// Runs in the child before the program does, with all signals blocked: system calls that are
    /// async-signal-safe, no memory from the allocator.
    pub before: &'a dyn Fn() -> io::Result<()>,
}

/// A child of this process that was started here.
pub struct Process {
    id: libc::pid_t,
    ended: Option<ExitStatus>,
}

/// What the child needs, in memory that both have.
struct Start<'a> {
    path: CString,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    directory: RawFd,
    streams: [RawFd; 3],
    before: &'a dyn Fn() -> io::Result<()>,
    /// Signals that the program is to have blocked: none.
    unblocked: libc::sigset_t,
    /// What failed in the child; 0 if it became the program.
    errno: i32,
}

impl Process {
    /// Starts `program`, and returns when it is running.
    ///
    /// # Errors
    /// As the call that failed, here or in the child.
    pub fn start(program: &Program) -> io::Result<Process> {
        let path = c_string(program.path.as_os_str())?;
        let mut words = vec![path.clone()];
        for argument in program.arguments {
            words.push(c_string(OsStr::new(argument))?);
        }
        let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
            let all = words.iter().map(|word| word.as_ptr());
            all.chain([std::ptr::null()]).collect()
        };
        let mut start = Start {
            path,
            arguments: pointers(&words),
            environment: pointers(program.environment),
            directory: program.directory,
            streams: program.streams.map(AsRawFd::as_raw_fd),
            before: program.before,
            unblocked: signals(libc::sigemptyset),
            errno: 0,
        };
        let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
        let mut before = signals(libc::sigemptyset);
        let all = signals(libc::sigfillset);
        // No handler of ours may run in the child while it shares our memory.
        // SAFETY: both sets are whole and live through the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack's upper end, aligned to 16 bytes, belongs to the child alone, and
        // CLONE_VFORK keeps this thread, and so `stack`, `start` and all that it points to, where
        // they are until the child has called execve or _exit.
        let id = unsafe {
            libc::clone(
                become_program,
                stack.as_mut_ptr_range().end.cast(),
                flags,
                (&raw mut start).cast(),
            )
        };
        let failed = io::Error::last_os_error();
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        if id < 0 {
            return Err(failed);
        }
        let mut process = Process { id, ended: None };
        // SAFETY: a plain read of what the child, which has left our memory, wrote there.
        match unsafe { std::ptr::read_volatile(&raw const start.errno) } {
            0 => Ok(process),
            errno => {
                process.wait();
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }

    /// Its process id, which is its own until it has been waited for.
    pub fn id(&self) -> u32 {
        self.id.unsigned_abs()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.look(libc::WNOHANG)
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        self.look(0)
    }

    fn look(&mut self, options: i32) -> Option<ExitStatus> {
        use std::os::unix::process::ExitStatusExt;
        while self.ended.is_none() {
            let mut status = 0;
            // SAFETY: `id` is a child of ours that has not been waited for.
            match unsafe { libc::waitpid(self.id, &mut status, options) } {
                0 => return None,
                id if id == self.id => self.ended = Some(ExitStatus::from_raw(status)),
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
        self.ended
    }
}

/// A set of signals as `fill` makes it.
fn signals(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> i32) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset and sigfillset write all of the set.
    unsafe {
        fill(set.as_mut_ptr());
        set.assume_init()
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// The child's life until it is the program.
extern "C" fn become_program(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `Process::start` gave a pointer to its `Start`, and waits.
    let start = unsafe { &mut *start.cast::<Start>() };
    start.errno = match prepare(start) {
        // execve returns only if it fails.
        Ok(()) => errno(&io::Error::last_os_error()),
        Err(error) => errno(&error),
    };
    // SAFETY: ends this process without running what its parent left to be run at its end.
    unsafe { libc::_exit(127) }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}

/// Makes this process the program; returns `Ok` only where the last call failed.
fn prepare(start: &Start) -> io::Result<()> {
    let checked = |result: i32| match result {
        failed if failed < 0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: plain system calls on numbers, and on strings and tables that end as they should.
    unsafe {
        checked(libc::fchdir(start.directory))?;
        for (at, &stream) in (0..).zip(&start.streams) {
            checked(libc::dup2(stream, at))?;
        }
        (start.before)()?;
        // Rust ignores it, and what is ignored stays so.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_SETMASK, &start.unblocked, std::ptr::null_mut());
        libc::execve(
            start.path.as_ptr(),
            start.arguments.as_ptr(),
            start.environment.as_ptr(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Seek};

    fn started(path: &str, words: &[&str], output: &File) -> io::Result<Process> {
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.unwrap();
        let root = File::open("/").unwrap();
        let arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Process::start(&Program {
            path: Path::new(path),
            arguments: &arguments,
            environment: &[c"A=1".to_owned()],
            directory: root.as_raw_fd(),
            streams: [&null, output, &null],
            before: &|| Ok(()),
        })
    }

    #[test]
    fn a_program_has_what_it_was_given_and_nothing_else() {
        let mut output = tempfile::tempfile().unwrap();
        let script = "pwd; env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=; trap; exit 7";
        let mut process = started("/bin/sh", &["-c", script], &output).unwrap();
        assert_eq!(process.wait().and_then(|status| status.code()), Some(7));
        assert_eq!(process.ended().and_then(|status| status.code()), Some(7));
        let mut said = String::new();
        output.rewind().unwrap();
        output.read_to_string(&mut said).unwrap();
        assert_eq!(said, "/\nA=1\n");
    }

    #[test]
    fn what_is_not_there_is_not_started() {
        let output = tempfile::tempfile().unwrap();
        let failed = started("/no/such/program", &[], &output).err();
        assert_eq!(failed.unwrap().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_fails_before_the_program_is_told() {
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.unwrap();
        let failed = Process::start(&Program {
            path: Path::new("/bin/true"),
            arguments: &[],
            environment: &[],
            directory: null.as_raw_fd(),
            streams: [&null, &null, &null],
            before: &|| Ok(()),
        });
        assert_eq!(failed.err().unwrap().raw_os_error(), Some(libc::ENOTDIR));
    }
}
