//! What a board's shell is asked to do, and which build of the agent suits it. Pure but for where
//! the builds are looked for.

use crate::refusal::Refusal;
use std::path::PathBuf;
use std::process::Command;

/// Builds of the agent: what its file is called by, and what `uname -m` says on such boards.
pub const ARCHITECTURES: [(&str, &[&str]); 3] = [
    ("x86_64", &["x86_64", "amd64"]),
    ("aarch64", &["aarch64", "arm64"]),
    // A 64-bit kernel that shows itself as 32-bit says armv8l.
    ("armv7", &["armv7l", "armv7hl", "armv8l"]),
];

/// What a session is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kit {
    /// The program that connects.
    pub ssh: PathBuf,
    /// The Python with labgrid that connects by a serial console.
    pub python: PathBuf,
    /// Directory of the builds of the agent; the files are `whichfs-agent-ARCHITECTURE`.
    pub agents: PathBuf,
}

impl Kit {
    /// The build for a board whose `uname -m` says `machine`.
    ///
    /// # Errors
    /// There is no such build, or it was not made.
    pub fn agent(&self, machine: &str) -> Result<Vec<u8>, Refusal> {
        let known = ARCHITECTURES
            .iter()
            .find(|(_, says)| says.contains(&machine));
        let Some((name, _)) = known else {
            let names = ARCHITECTURES.map(|(name, _)| name).join(", ");
            return Err(Refusal::environment(format!(
                "its processor is {machine:?} (uname -m), and there is no agent for it, only for \
                 {names}: take another board, or put the card into this machine"
            )));
        };
        let path = self.agents.join(format!("whichfs-agent-{name}"));
        std::fs::read(&path).map_err(|error| {
            Refusal::environment(format!(
                "no agent for its processor ({name}): {}: {error}; make agents builds it",
                path.display()
            ))
        })
    }

    /// Checks that the Python has labgrid.
    ///
    /// # Errors
    /// It has not, or is none.
    pub fn has_labgrid(&self) -> Result<(), Refusal> {
        let mut python = Command::new(&self.python);
        let output = python.args(["-c", "import labgrid; print('yes')"]).output();
        let said = match output {
            Ok(output) if output.stdout.starts_with(b"yes") => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        let said = said.lines().last().unwrap_or("it is no Python").to_owned();
        Err(Refusal::environment(format!(
            "a serial console needs a Python with labgrid, and {} is none: {said}; pip install \
             labgrid for it, or name another Python in WHICHFS_PYTHON",
            self.python.display()
        )))
    }
}

/// What [`LOOK`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// What `uname -m` says.
    pub machine: String,
    /// Whether commands need `sudo -n`.
    pub sudo: bool,
    /// Number of the boot, if the kernel tells it.
    pub boot: String,
}

/// Says of a board what is needed before anything is copied to it.
pub(crate) const LOOK: &str = "uname -m; cat /proc/sys/kernel/random/boot_id || echo unknown; \
     if [ \"$(id -u)\" = 0 ]; then echo root; \
     elif sudo -n true 2>/dev/null; then echo sudo; else echo none; fi";

/// What the output of [`LOOK`] says.
///
/// # Errors
/// It is not of such a board, or its user is nobody who may do that.
pub(crate) fn looked(output: &str) -> Result<Look, Refusal> {
    // A login file may have said something before.
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let [.., machine, boot, who] = lines[..] else {
        return Err(Refusal::environment(format!(
            "its shell answers {output:?}, which is not what uname -m, boot_id and id say: a Linux \
             with a POSIX shell is needed"
        )));
    };
    let sudo = match who {
        "root" => false,
        "sudo" => true,
        _ => {
            return Err(Refusal::environment(
                "its user is not root and has no sudo without a password: name root@HOST, or \
                 allow sudo there (NOPASSWD)",
            ));
        }
    };
    Ok(Look {
        machine: machine.to_owned(),
        sudo,
        boot: boot.to_owned(),
    })
}

/// Directories in which the agent may lie, those that are in memory first: they are empty after
/// a restart, and nothing is written to a card that is not meant.
const BASES: &str = "/run /dev/shm /tmp /var/tmp";

/// Status of the script that finds no place for the agent.
pub(crate) const NO_PLACE: i32 = 9;
/// Status of [`join`] where the agent is not there any more.
pub(crate) const GONE: i32 = 7;

/// Makes the private directory `name`, puts the agent's `bytes` that come on standard input there,
/// and has it check itself by `sha256` and begin to attend. Prints the directory. Leaves nothing if
/// any of that fails.
pub(crate) fn set_up(name: &str, bytes: usize, sha256: &str) -> String {
    format!(
        "umask 077; for base in {BASES}; do d=$base/{name}; mkdir \"$d\" 2>/dev/null || continue; \
         trap 'rm -rf \"$d\"' HUP INT TERM; printf '#!/bin/sh\\n' > \"$d/try\"; \
         chmod 700 \"$d/try\"; if \"$d/try\" 2>/dev/null; then rm \"$d/try\"; break; fi; \
         rm -rf \"$d\"; d=; done; [ -n \"$d\" ] && [ -d \"$d\" ] || exit {NO_PLACE}; \
         a=\"$d/whichfs-agent\"; cat > \"$a\" && \
         [ \"$(wc -c < \"$a\")\" -eq {bytes} ] && chmod 700 \"$a\" && \
         \"$a\" --attend \"$d\" {sha256} \
         || {{ s=$?; rm -rf \"$d\"; exit $s; }}; echo \"$d\""
    )
}

/// Joins standard input and output to who attends in `directory`.
pub(crate) fn join(directory: &str) -> String {
    let agent = format!("{directory}/whichfs-agent");
    format!("[ -x {agent} ] || exit {GONE}; exec {agent} --link {directory}")
}

/// Removes `directory`, if who attended there could not do it.
pub(crate) fn sweep(directory: &str) -> String {
    format!("rm -rf {directory}")
}

/// `script` as a command for ssh, as root.
pub(crate) fn as_root(script: &str, sudo: bool) -> String {
    let shell = format!("sh -c {}", whichfs_units::shell_word(script));
    if sudo {
        format!("sudo -n {shell}")
    } else {
        shell
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn a_board_has_the_build_for_its_processor() {
        let home = tempfile::tempdir().unwrap();
        let kit = Kit {
            ssh: "ssh".into(),
            python: "python3".into(),
            agents: home.path().into(),
        };
        for (name, machines) in ARCHITECTURES {
            std::fs::write(home.path().join(format!("whichfs-agent-{name}")), name).unwrap();
            for machine in machines {
                assert_eq!(kit.agent(machine).unwrap(), name.as_bytes());
            }
        }
        for other in ["armv6l", "riscv64", "mips", ""] {
            let error = kit.agent(other).unwrap_err().message;
            assert!(error.contains(other) && error.contains("armv7"), "{error}");
        }
        std::fs::remove_file(home.path().join("whichfs-agent-armv7")).unwrap();
        let error = kit.agent("armv7l").unwrap_err().message;
        assert!(error.contains("make agents"), "{error}");
    }

    #[test]
    fn what_a_board_says_of_itself_is_understood() {
        let found = looked("Welcome!\naarch64\n0a1b\nsudo\n").unwrap();
        let expected = Look {
            machine: "aarch64".into(),
            sudo: true,
            boot: "0a1b".into(),
        };
        assert_eq!(found, expected);
        let error = looked("armv7l\n0a1b\nnone\n").unwrap_err().message;
        assert!(error.contains("root@HOST"), "{error}");
        assert!(looked("hello\n").unwrap_err().message.contains("POSIX"));
        let here = Command::new("sh").args(["-c", LOOK]).output().unwrap();
        let output = String::from_utf8(here.stdout).unwrap();
        assert_eq!(output.lines().count(), 3, "{output}");
    }

    /// Runs the set-up with `agent` as the agent; status, output, and whether anything is left.
    fn set_up_with(agent: &str, bytes: usize) -> (Option<i32>, String) {
        let name = format!("whichfs-test-{}-{}", std::process::id(), agent.len());
        let command = as_root(&set_up(&name, bytes, "abc"), false);
        let mut child = Command::new("sh")
            .args(["-c", &command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(agent.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let there = BASES
            .split(' ')
            .any(|base| std::path::Path::new(base).join(&name).exists() && !said.contains(base));
        assert!(!there, "something is left: {said}");
        (output.status.code(), said)
    }

    #[test]
    fn an_agent_is_put_in_a_private_directory_or_nothing_is_left() {
        let good = "#!/bin/sh\n[ \"$1 $3\" = '--attend abc' ] && [ -d \"$2\" ]\n";
        let (status, said) = set_up_with(good, good.len());
        assert_eq!(status, Some(0), "{said}");
        let directory = std::path::Path::new(said.trim());
        let mode = std::os::unix::fs::MetadataExt::mode(&directory.metadata().unwrap());
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(directory.read_dir().unwrap().count(), 1);
        std::fs::remove_dir_all(directory).unwrap();
        let (status, said) = set_up_with("#!/bin/sh\nexit 5\n", 17);
        assert_eq!((status, said.as_str()), (Some(5), ""));
        // A copy that was cut off: a shell takes an empty file for a script that does nothing.
        for part in ["", "#!/bin/sh\n"] {
            let (status, said) = set_up_with(part, good.len());
            assert_eq!((status, said.as_str()), (Some(1), ""));
        }
    }
}
