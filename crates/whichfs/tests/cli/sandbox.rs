//! A home of its own for each run of the program, and what a run gave.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Directories that no run shares with another or with the user.
pub struct Sandbox {
    directory: TempDir,
}

/// What a run gave.
pub struct Run {
    /// Exit status.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Sandbox {
    /// An empty home, no kernel and no agent.
    pub fn new() -> Sandbox {
        Sandbox {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// The same beside the build, where there is direct I/O more often than in `/tmp`.
    pub fn on_disk() -> Sandbox {
        Sandbox {
            directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        }
    }

    /// The sandbox's directory, where runs also begin.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file into the sandbox.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The program with `arguments`, not yet run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        Command::from_std(self.std_command(arguments))
    }

    /// The same, to be started and spoken to.
    pub fn std_command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command.current_dir(self.path()).args(arguments);
        for (variable, below) in [
            ("HOME", "home"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_DATA_HOME", "data"),
        ] {
            command.env(variable, self.path().join(below));
        }
        command
            .env("WHICHFS_KERNEL", self.path().join("no-kernel"))
            .env("WHICHFS_AGENT", self.path().join("no-agent"))
            .env("WHICHFS_USERLAND", self.path().join("no-userland"))
            .env_remove("COLUMNS");
        command
    }

    /// Runs the program with `arguments`.
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }
}

impl Run {
    /// Runs `command` to its end.
    pub fn of(command: &mut Command) -> Run {
        let output = command.output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts a failure: exit code, nothing on standard output but the document of the error where
    /// a program asked for one, every one of `words` in the message.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        if !self.stdout.is_empty() {
            let told: serde_json::Value = serde_json::from_str(&self.stdout).unwrap();
            assert_eq!(
                (&told["document"], &told["status"]),
                (&"error".into(), &code.into())
            );
        }
        for word in words {
            assert!(
                self.stderr.contains(word),
                "no '{word}' in: {}",
                self.stderr
            );
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// Asserts success with nothing to complain about, and gives standard output.
    #[track_caller]
    pub fn succeeds(&self) -> &str {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (0, ""),
            "{}",
            self.stdout
        );
        &self.stdout
    }
}
