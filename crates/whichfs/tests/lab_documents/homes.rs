//! A home in which commands of a document find the files and results that they name.

use super::lines::{Line, Needs};
use std::path::Path;
use std::process::{Command, Stdio};

/// Files by the name in the documents, and the shell that makes them. `CARDS` are the profiles.
const MADE: [(&str, &str); 10] = [
    (
        "rootfs",
        "mkdir -p rootfs/etc rootfs/boot && echo card > rootfs/etc/hostname",
    ),
    ("files/", "mkdir -p files && echo a > files/a"),
    ("mycard.toml", "cp \"$CARDS\"/a1-32gb.toml mycard.toml"),
    (
        "flashbench.log",
        "whichfs card curves class4-4gb --flashbench > flashbench.log",
    ),
    (
        "my-job.fio",
        "printf '[w]\\nrw=write\\nsize=1m\\nend_fsync=1\\n' > my-job.fio",
    ),
    // The jobs of the study with less data, which take half a minute.
    (
        "choose --for fio",
        "sed 's/^bytes = .*/bytes = 5242880/; \
         s/^io_bytes = .*/io_bytes = 1048576\\nlarge_block = 1048576/' \
         \"$CARDS\"/../needs/fio.toml > fio.toml",
    ),
    (
        "/srv/app.tar",
        "tar -cf app.tar -C \"$CARDS\" class4-4gb.toml class10-16gb.toml",
    ),
    (
        "sdcard.img",
        "whichfs format sdcard.img --size 1G --fs ext4 --card a1-32gb",
    ),
    (
        "tables",
        "mkdir -p tables && printf 'fs,what,kB/s\\next2,write,5000\\n' > tables/mine.csv",
    ),
    (
        "report before after",
        "whichfs choose --for logger --fs ext4 --seeds 1 --out before
        for copy in after v1 v2 v3; do cp -r before $copy; done",
    ),
];

/// `mine.toml` of documents about trials, small enough for a real device.
const TRIALS: &str = r#"
name = "mine"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["a1-32gb"]
boards = ["generic-1ghz"]
seeds = 1
candidates = ["ext2", "ext4"]
[[workloads]]
name = "tree"
workload = "tree"
parameters = { bytes = 8000000, files = 100 }
"#;

/// What it has beside, where a folder of tables is given.
const PUBLISHED: &str = r#"
[[published]]
file = "mine.csv"
candidate_column = "fs"
metric_columns = ["what"]
value_column = "kB/s"
[published.metrics]
write = { workload = "tree", metric = "tree_write", factor = 0.001 }
"#;

/// `mine.toml` of the document about power cuts.
const CUTS: &str = r#"
name = "mine"
kind = "crash"
title = "t"
source = "s"
method = "m"
card = "a1-32gb"
board = "generic-1ghz"
partition_mib = 256
cuts = 1
filesystems = ["ext4"]
[[mounts]]
name = "default"
[[faults]]
name = "honest card"
[[workloads]]
name = "a file"
workload = "onefile"
parameters = { bytes = 1000000 }
"#;

/// Directories that no run shares with another or with the user; there `whichfs` is this program.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    /// One with nothing but the program.
    pub fn new() -> Home {
        // Guests see what is there; below /tmp, where a checkout may lie, they see nothing.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_whichfs"), bin.join("whichfs")).unwrap();
        Home { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the script `text`.
    ///
    /// # Errors
    /// It does not end well: the end of what was said.
    pub fn run(&self, text: &str) -> Result<(), String> {
        let home = self.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-c", text])
            .current_dir(home)
            .env("PATH", format!("{}:{path}", home.join("bin").display()))
            .env("HOME", home)
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env(
                "CARDS",
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cards"),
            )
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if std::env::var_os("WHICHFS_TIMES").is_some() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let commands = said.lines().filter(|line| line.starts_with("+ "));
            crate::skip::skip(commands.collect::<Vec<_>>().join("\n"));
        }
        if output.status.success() {
            return Ok(());
        }
        let [out, err] = [&output.stdout, &output.stderr].map(|text| {
            let text = String::from_utf8_lossy(text);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(30)..].join("\n")
        });
        Err(format!("{}\n{out}\n{err}", output.status))
    }

    /// Makes what `lines` of the document `name` name and no command of it makes; what stands for
    /// which placeholder.
    pub fn prepare(&self, name: &str, lines: &[Line]) -> Vec<(&'static str, String)> {
        let named = |what: &str| {
            let runs = |line: &&Line| !matches!(line.needs, Needs::Board | Needs::Elsewhere);
            lines
                .iter()
                .filter(runs)
                .any(|line| line.code.contains(what))
        };
        let made = if super::as_it_stands(name) {
            &[][..]
        } else {
            &MADE[..]
        };
        for (_, shell) in made.iter().filter(|(what, _)| named(what)) {
            self.must(name, shell);
        }
        if named("study run") {
            let study = match name {
                "crash.md" => CUTS.to_owned(),
                _ if named("--published") => format!("{TRIALS}{PUBLISHED}"),
                _ => TRIALS.to_owned(),
            };
            std::fs::write(self.path().join("mine.toml"), study).unwrap();
        }
        if named("operations.jsonl") {
            let operations = operations(name);
            std::fs::write(self.path().join("operations.jsonl"), operations).unwrap();
        }
        let mut places = vec![(
            "/srv/app.tar",
            self.path().join("app.tar").display().to_string(),
        )];
        if named("3f2a91") {
            places.push(("3f2a91", self.trial()));
        }
        if named("3f9a0c51d2e7-17") {
            places.push(("3f9a0c51d2e7-17", self.bad_cut()));
        }
        places
    }

    fn must(&self, name: &str, shell: &str) {
        let done = self.run(&format!("set -eu\n{shell}"));
        done.unwrap_or_else(|why| panic!("what {name} names: {shell}: {why}"));
    }

    /// The id of a trial of the report `before`.
    fn trial(&self) -> String {
        let text = std::fs::read(self.path().join("before/results.json")).unwrap();
        let results: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let id = results[0]["trial"].as_str().unwrap();
        id.to_owned()
    }

    /// The id of a cut that broke a promise.
    fn bad_cut(&self) -> String {
        let run = "whichfs crash run --fs ext4 --card emmc-8gb --faults flush-lies --cuts 12 \
                   --size 16M --json > cuts.json || test $? = 1";
        self.must("crash.md", run);
        let text = std::fs::read(self.path().join("cuts.json")).unwrap();
        let found: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let worst = &found["worst"][0];
        assert_eq!(worst["broken"], true, "no cut of 12 broke a promise");
        let replay = worst["replay"].as_str().unwrap();
        replay.rsplit(' ').next().unwrap().to_owned()
    }
}

/// The script that a document shows, its only block of JSON.
fn operations(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(docs.join(name)).unwrap();
    let begin = text.split("```json\n").nth(1).unwrap();
    begin.split("```").next().unwrap().to_owned()
}
