//! Faults of this machine end a series: exit status 3, the remedy, and what was done is kept.

use crate::skip;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Cuts of the series: enough to be in the midst of it.
const CUTS: usize = 30;

/// A directory for data and one for what can be made anew.
struct Home(tempfile::TempDir);

impl Home {
    /// None where there is no lab.
    fn new() -> Option<Home> {
        let missing = |name: &&str| std::env::var_os(name).is_none();
        if ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
            .iter()
            .any(missing)
        {
            skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
            return None;
        }
        let home = Home(tempfile::tempdir().unwrap());
        std::fs::create_dir(home.cache()).unwrap();
        Some(home)
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    fn spill(&self) -> PathBuf {
        self.cache().join("whichfs/spill")
    }

    /// A series by `program` and its arguments before the command's.
    fn series(&self, program: &[&str]) -> Child {
        let cuts = CUTS.to_string();
        let arguments = [
            "crash", "run", "--fs", "ext4", "--size", "16M", "--jobs", "1",
        ];
        Command::new(program[0])
            .args(&program[1..])
            .args(arguments)
            .args(["--cuts", &cuts])
            .env("XDG_DATA_HOME", self.0.path().join("data"))
            .env("XDG_CACHE_HOME", self.cache())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Results of the one series that is kept.
    fn kept(&self) -> usize {
        let series = std::fs::read_dir(self.0.path().join("data/whichfs/crash"));
        let files = series.into_iter().flatten().flatten();
        let whole = files.filter(|file| file.path().extension().is_some_and(|e| e == "jsonl"));
        let texts = whole.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        let results = texts.map(|text| text.matches('\n').count().saturating_sub(1));
        results.sum()
    }
}

/// Exit status and standard error.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

/// Waits until `done`, for a minute at most.
fn wait(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn replace_by_file(directory: &Path) {
    std::fs::rename(directory, directory.with_extension("away")).unwrap();
    std::fs::write(directory, "").unwrap();
}

#[test]
fn lab_a_spill_directory_that_goes_away_ends_a_series_that_then_goes_on() {
    let Some(home) = Home::new() else { return };
    let program = env!("CARGO_BIN_EXE_whichfs");
    let running = home.series(&[program]);
    wait(|| home.kept() >= 2);
    replace_by_file(&home.spill());
    let (status, said) = ended(running);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("whichfs/spill"), "{said}");
    let kept = home.kept();
    assert!((2..CUTS).contains(&kept), "{kept}");
    std::fs::remove_file(home.spill()).unwrap();
    let (status, said) = ended(home.series(&[program]));
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains(&format!("{kept} of {CUTS} cuts were made before")),
        "{said}"
    );
    assert_eq!(home.kept(), CUTS);
}

/// The spill directory lies on a filesystem of 4 MiB, in a namespace of its own.
#[test]
fn lab_a_full_spill_directory_ends_a_series_with_the_remedy() {
    let Some(home) = Home::new() else { return };
    let mount = "mount -t tmpfs -o size=4m none \"$0\" || exit 77; exec \"$@\"";
    let cache = home.cache();
    let program = env!("CARGO_BIN_EXE_whichfs");
    let inside = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        mount,
    ];
    let all = [&inside[..], &[cache.to_str().unwrap(), program]].concat();
    let (status, said) = ended(home.series(&all));
    if said.contains("unshare") || status == Some(77) {
        skip::skip(format!("no namespaces here: {said}"));
        return;
    }
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("free room there"), "{said}");
}
