//! Any program of this machine on a formatted, mounted card in the lab.

use crate::error::{Error as Failure, Outcome};
use crate::guest_places::{DEVICE, MOUNT_POINT};
use crate::lab_executor::LabExecutor;
use crate::tools::find;
use std::collections::BTreeMap;
use whichfs_fs::{Purpose, Recipe};
use whichfs_trial::Step;
use whichfs_workload::environment;

/// A program, and the filesystem that it runs on.
#[derive(Clone, Copy, Debug)]
pub struct LabProgram<'a> {
    /// Filesystem to make and mount.
    pub fs: &'a str,
    /// A command line instead of the catalogue's mkfs; `{device}` stands for the device.
    pub mkfs: Option<&'a str>,
    /// Mount options instead of the catalogue's.
    pub mount: Option<&'a str>,
    /// Seed of identifiers.
    pub seed: u64,
    /// The program and its arguments.
    pub command: &'a [String],
}

impl LabProgram<'_> {
    /// Phase in which the program runs.
    pub const PHASE: &'static str = "program";

    /// mkfs, mount, the program, unmount.
    ///
    /// # Errors
    /// The filesystem is unknown or does not fit the card; a program is missing.
    pub fn steps(&self, bench: &LabExecutor) -> Outcome<Vec<Step>> {
        let args = self;
        let candidate = whichfs_fs::find(args.fs).map_err(Failure::input)?;
        let recipe = candidate
            .recipe(&bench.geometry(), Purpose::Lab { seed: args.seed })
            .map_err(|e| Failure::input(format!("{}: {e}", args.fs)))?;
        if recipe.image.is_some() && args.mkfs.is_none() {
            return Err(Failure::input(format!(
                "{}: a read-only filesystem is made from a tree: measure it with the need \
                 rootfs-readonly and a tree, or give the command that puts a finished image on \
                 {{device}}",
                args.fs
            )));
        }
        let mkfs = match args.mkfs {
            Some(line) => vec![line.split_whitespace().map(str::to_owned).collect()],
            None => recipe.mkfs.clone(),
        };
        let mut steps = Vec::new();
        for argv in &mkfs {
            let argv = Recipe::on_device(argv, DEVICE);
            require(argv.first())?;
            steps.push(program("mkfs", argv, &recipe.mkfs_env, "/", false));
        }
        steps.push(Step::Mount {
            phase: Some("mount".into()),
            source: DEVICE.into(),
            target: MOUNT_POINT.into(),
            kernel_fs: recipe.kernel_fs.into(),
            options: args.mount.map_or(recipe.mount_options, str::to_owned),
        });
        require(args.command.first())?;
        let argv = for_virtual_time(args.command);
        if hides_fio(args.command) {
            log::warn!(
                "the fio in this script takes the time from the host's processor, so its rates are \
                 wrong: give it --clocksource=clock_gettime"
            );
        }
        steps.push(program(
            LabProgram::PHASE,
            argv,
            &BTreeMap::new(),
            MOUNT_POINT,
            true,
        ));
        steps.push(Step::Unmount {
            phase: Some("unmount".into()),
            target: MOUNT_POINT.into(),
        });
        Ok(steps)
    }
}

fn program(
    phase: &str,
    argv: Vec<String>,
    env: &BTreeMap<String, String>,
    dir: &str,
    show: bool,
) -> Step {
    Step::Run {
        phase: Some(phase.into()),
        argv,
        env: environment(env),
        dir: dir.into(),
        stdin: String::new(),
        show,
        any_status: show,
        keeps_rights: false,
    }
}

/// The program must be one of this machine's.
fn require(program: Option<&String>) -> Outcome {
    let Some(program) = program.filter(|program| !program.is_empty()) else {
        return Err(Failure::input("an empty command: name a program"));
    };
    let there = match program.contains('/') {
        true => std::path::Path::new(program).is_file(),
        false => find(program).is_some(),
    };
    if there {
        return Ok(());
    }
    Err(Failure::environment(format!(
        "{program} is not on this machine (looked in {}): install it, or name its full path",
        crate::tools::PATH
    )))
}

/// fio reads the time-stamp counter, which is the host's, unless told otherwise.
fn for_virtual_time(command: &[String]) -> Vec<String> {
    let mut argv = command.to_vec();
    let is_fio = argv[0].rsplit('/').next() == Some("fio");
    if is_fio && !argv.iter().any(|word| word.starts_with("--clocksource")) {
        argv.insert(1, "--clocksource=clock_gettime".into());
    }
    argv
}

/// Whether `command` is a script that starts fio without telling it what clock to read.
fn hides_fio(command: &[String]) -> bool {
    let is_fio = |word: &str| word.rsplit('/').next() == Some("fio");
    let apart = |c: char| c.is_whitespace() || ";&|()`'\"".contains(c);
    let mut scripts = command.iter().filter(|word| word.contains(apart));
    scripts.any(|text| text.split(apart).any(is_fio) && !text.contains("--clocksource"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn fio_is_told_to_ask_the_kernel_for_the_time() {
        let argv = for_virtual_time(&words("/usr/bin/fio job.fio"));
        assert_eq!(argv[1], "--clocksource=clock_gettime");
        let own = words("fio --clocksource=cpu job.fio");
        assert_eq!(for_virtual_time(&own), own);
        assert_eq!(for_virtual_time(&words("ls -l")), words("ls -l"));
    }

    #[test]
    fn a_script_with_fio_in_it_is_found() {
        let script = |text: &str| vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()];
        assert!(hides_fio(&script("cd x; /usr/bin/fio --rw=write")));
        assert!(hides_fio(&script("(fio job.fio)")));
        assert!(!hides_fio(&script(
            "fio --clocksource=clock_gettime job.fio"
        )));
        assert!(!hides_fio(&script("cat job.fio")));
        assert!(!hides_fio(&words("fio job.fio")), "it gets the option");
    }

    #[test]
    fn a_missing_program_is_named() {
        assert!(require(Some(&"sh".into())).is_ok());
        for missing in ["no-such-program", "/no/such/program", ""] {
            assert!(require(Some(&missing.to_owned())).is_err(), "{missing}");
        }
    }
}
