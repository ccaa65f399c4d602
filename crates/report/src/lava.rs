//! Job definitions of LAVA, whose boards run a study and tell its trials as LAVA's test cases.

use crate::ktap::KTAP_FIGURE;
use serde::Serialize;
use serde_norway::Value;
use std::time::Duration;
use whichfs_study::TrialRequest;
use whichfs_units::shell_word;

/// Directory of the files of the study on the board.
const OUT: &str = "whichfs-lava";
/// Time of a job beside that of its trials: deployment, boot, set-up, the last trial.
const BESIDE: Duration = Duration::from_secs(3600);
/// How LAVA reaches a board that runs already.
const SSH_ACTIONS: &str = "- deploy: {to: ssh, os: debian, timeout: {minutes: 5}}\n\
    - boot: {method: ssh, connection: ssh, prompts: ['# ', '\\$ '], timeout: {minutes: 5}}\n";

/// A study as a job of LAVA.
#[derive(Clone, Copy, Debug)]
pub struct LavaJob<'a> {
    /// Name of the study, or its file on the board.
    pub study: &'a str,
    /// Whether its quick form runs.
    pub quick: bool,
    /// LAVA's name of the kind of board.
    pub device_type: &'a str,
    /// Path of the card on the board.
    pub device: &'a str,
    /// ID of the card, which is erased; none in a directory.
    pub destroy: Option<&'a str>,
    /// Time after which no trial begins.
    pub budget: Duration,
    /// Command lines that run before, as they are given.
    pub setup: &'a [String],
    /// Actions that deploy and boot the board, as YAML; none for one that runs, reached by ssh.
    pub actions: Option<&'a str>,
}

#[derive(Serialize)]
struct Job {
    device_type: String,
    job_name: String,
    timeouts: Timeouts,
    priority: &'static str,
    visibility: &'static str,
    actions: Vec<Value>,
}

#[derive(Serialize)]
struct Timeouts {
    job: Minutes,
    action: Minutes,
    connection: Minutes,
}

#[derive(Serialize)]
struct Minutes {
    minutes: u64,
}

#[derive(Serialize)]
struct TestAction<'a> {
    test: Test<'a>,
}

#[derive(Serialize)]
struct Test<'a> {
    timeout: Minutes,
    definitions: [Definition<'a>; 1],
}

#[derive(Serialize)]
struct Definition<'a> {
    from: &'static str,
    name: &'static str,
    path: &'static str,
    repository: Repository<'a>,
}

#[derive(Serialize)]
struct Repository<'a> {
    metadata: Metadata<'a>,
    run: Steps,
}

#[derive(Serialize)]
struct Metadata<'a> {
    format: &'static str,
    name: &'static str,
    description: &'a str,
}

#[derive(Serialize)]
struct Steps {
    steps: Vec<String>,
}

impl LavaJob<'_> {
    /// The job definition.
    ///
    /// # Errors
    /// The actions are no YAML list.
    pub fn yaml(&self) -> Result<String, String> {
        let own: Vec<Value> = serde_norway::from_str(self.actions.unwrap_or(SSH_ACTIONS))
            .map_err(|error| format!("{error}; expected LAVA's deploy and boot actions, a list"))?;
        if own.is_empty() {
            return Err("it is empty; expected LAVA's deploy and boot actions, a list".to_owned());
        }
        let minutes = |time: Duration| Minutes {
            minutes: time.as_secs().div_ceil(60),
        };
        let test = TestAction {
            test: Test {
                timeout: minutes(self.budget + BESIDE / 2),
                definitions: [Definition {
                    from: "inline",
                    name: "whichfs",
                    path: "inline/whichfs.yaml",
                    repository: Repository {
                        metadata: Metadata {
                            format: "Lava-Test Test Definition 1.0",
                            name: "whichfs",
                            description: self.study,
                        },
                        run: Steps {
                            steps: self.steps(),
                        },
                    },
                }],
            },
        };
        let test = serde_norway::to_value(test).map_err(|error| error.to_string())?;
        let job = Job {
            device_type: self.device_type.to_owned(),
            job_name: format!("whichfs study {}", self.study),
            timeouts: Timeouts {
                job: minutes(self.budget + BESIDE),
                action: minutes(BESIDE / 4),
                connection: minutes(BESIDE / 30),
            },
            priority: "medium",
            visibility: "public",
            actions: own.into_iter().chain([test]).collect(),
        };
        serde_norway::to_string(&job).map_err(|error| error.to_string())
    }

    /// Command lines of the test, in one shell.
    fn steps(&self) -> Vec<String> {
        let mut run = vec!["whichfs", "study", "run", self.study];
        run.extend(self.quick.then_some("--quick"));
        let budget = format!("{}s", self.budget.as_secs());
        run.extend(["--on", self.device, "--budget", &budget, "--out", OUT]);
        run.extend(self.destroy.iter().flat_map(|id| ["--destroy", id]));
        let run: Vec<String> = run.into_iter().map(shell_word).collect();
        let run = run.join(" ");
        let mut steps = self.setup.to_vec();
        steps.extend([
            // The records of this job alone.
            "export XDG_DATA_HOME=\"$PWD/whichfs-data\"".to_owned(),
            // Not by --shell, which evaluates its words once more.
            format!("if {run}; then result=pass; else result=fail; fi"),
            "lava-test-case whichfs-study-run --result \"$result\"".to_owned(),
            format!("{} {OUT}/results.ktap | sh", signals()),
            format!(
                "whichfs store export - | sed 's/^/{}/'",
                TrialRequest::RECORD_MARK
            ),
        ]);
        steps
    }
}

/// Turns KTAP into calls of `lava-test-case`: a case for each trial, one with a measurement for
/// each figure.
fn signals() -> String {
    let call = |line: &str, result: &str| {
        format!("-e 's/^{line}$/lava-test-case \\1 --result {result}/p'")
    };
    let figure = format!("{KTAP_FIGURE} \\([^ ]*\\) \\([^ ]*\\)");
    let measured = "pass --measurement \\2";
    [
        "sed -n".to_owned(),
        call(
            &format!("{figure} \\([^ ][^ ]*\\)"),
            &format!("{measured} --units \"\\3\""),
        ),
        call(&figure, measured),
        call("ok [0-9]* \\([^ ]*\\)", "pass"),
        call("ok [0-9]* \\([^ ]*\\) # SKIP.*", "skip"),
        call("not ok [0-9]* \\([^ ]*\\)", "fail"),
    ]
    .join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::junit::{Case, CaseResult};
    use std::process::{Command, Stdio};

    fn job() -> LavaJob<'static> {
        LavaJob {
            study: "pandora",
            quick: true,
            device_type: "bcm2711-rpi-4-b",
            device: "/dev/mmcblk0",
            destroy: Some("SD 1; reboot"),
            budget: Duration::from_secs(7200),
            setup: &[],
            actions: None,
        }
    }

    #[test]
    fn ids_are_quoted_and_actions_of_the_board_come_first() {
        let text = job().yaml().unwrap();
        assert!(text.contains("--destroy 'SD 1; reboot'"), "{text}");
        let actions = "- deploy: {to: tmpfs}\n- boot: {method: u-boot}\n";
        let setup = ["apt-get install -y ./whichfs.deb".to_owned()];
        let own = LavaJob {
            actions: Some(actions),
            setup: &setup,
            ..job()
        };
        let text = own.yaml().unwrap();
        let at = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("{words}: {text}"))
        };
        assert!(at("u-boot") < at("apt-get") && at("apt-get") < at("lava-test-case"));
        for wrong in ["deploy: {}", "- [", ""] {
            let wrong = LavaJob {
                actions: Some(wrong),
                ..job()
            };
            assert!(wrong.yaml().unwrap_err().contains("a list"));
        }
    }

    /// Debian's package `lava-common` checks definitions as LAVA's server does.
    #[test]
    fn lava_takes_the_definition() {
        let script = "import sys, yaml\nfrom lava_common.schemas import validate\n\
                      validate(yaml.safe_load(sys.stdin), strict=True)";
        let check = |text: &str| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("job.yaml");
            std::fs::write(&path, text).unwrap();
            let mut python = Command::new("/usr/bin/python3");
            let python = python
                .args(["-c", script])
                .stdin(std::fs::File::open(path).unwrap());
            let output = python.output().ok()?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (!said.contains("No module named")).then_some((output.status.success(), said))
        };
        let text = job().yaml().unwrap();
        let Some((taken, said)) = check(&text) else {
            whichfs_testkit::skip::skip("LAVA's schema is missing (apt-get install lava-common)");
            return;
        };
        assert!(taken, "{said}\n{text}");
        for (right, wrong) in [
            ("minutes:", "fortnights:"),
            ("from: inline", "from: nowhere"),
        ] {
            let (taken, said) = check(&text.replace(right, wrong)).unwrap();
            assert!(!taken, "{wrong}: {said}");
        }
    }

    #[test]
    fn results_become_calls_of_lava_test_case() {
        let case = |name: &str, told, output: &str| Case {
            class: "SD.tree".into(),
            name: name.into(),
            seconds: 0.0,
            told,
            output: output.into(),
        };
        let cases = [
            case(
                "ext4",
                CaseResult::Passed,
                "tree_write 12.5 MB/s\nspace 3 \nx_cpu 7 %\n",
            ),
            case("$(reboot)", CaseResult::Failed("a\nok 9 b".into()), ""),
            case("vfat", CaseResult::Skipped("small".into()), ""),
        ];
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("k"), crate::ktap(&cases)).unwrap();
        // A name with a hyphen is no function of every shell.
        let call = "call() { echo \"$@\"; }";
        let script = format!(
            "{call}; {} k | sed 's/^lava-test-case/call/' > s; . ./s",
            signals()
        );
        let mut sh = Command::new("sh");
        let sh = sh
            .args(["-c", &script])
            .current_dir(dir.path())
            .stdin(Stdio::null());
        let output = sh.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines,
            [
                "SD.tree.ext4.tree_write --result pass --measurement 12.5 --units MB/s",
                "SD.tree.ext4.space --result pass --measurement 3",
                "SD.tree.ext4.x_cpu --result pass --measurement 7 --units %",
                "SD.tree.ext4 --result pass",
                "SD.tree.__reboot_ --result fail",
                "SD.tree.vfat --result skip",
            ],
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
