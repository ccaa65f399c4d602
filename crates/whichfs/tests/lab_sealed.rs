//! The same trial whatever the host: packages, settings, libraries and tools of this machine change
//! no figure of a trial that runs in the sealed userland. The machine is changed in a mount
//! namespace alone.
#![allow(clippy::unwrap_used)]

use crate::choosing;

use choosing::{assert_same, can_run, done, skip, trials};
use std::path::Path;
use std::process::{Command, Output};

/// What is said when the machine is changed.
const CHANGED: &str = "the machine is changed";
/// Another cache of the loader, an empty list of libraries to be loaded first, other settings of
/// mkfs, other libraries and tools than before, another command line of the machine's kernel.
const CHANGES: &str = r#"
cp -a /etc "$PLACE/etc"
head -c 65536 /dev/zero >> "$PLACE/etc/ld.so.cache"
: > "$PLACE/etc/ld.so.preload"
printf '[defaults]\nblocksize = 1024\n' > "$PLACE/etc/mke2fs.conf"
mount --bind "$PLACE/etc" /etc
lib=/lib/x86_64-linux-gnu
for file in $lib/libc.so.6 $lib/libext2fs.so.2 $lib/libsqlite3.so.0 /usr/bin/sqlite3 \
    /usr/sbin/mkfs.ext4; do
    file=$(realpath "$file")
    cp "$file" "$PLACE/changed"
    head -c 65536 /dev/zero >> "$PLACE/changed"
    mv "$PLACE/changed" "$PLACE/$(basename "$file")"
    mount --bind "$PLACE/$(basename "$file")" "$file"
done
echo 'quiet mitigations=off transparent_hugepage=never' > "$PLACE/cmdline"
mount --bind "$PLACE/cmdline" /proc/cmdline
"#;
/// Another user, who can read none of root's files: what whichfs needs is copied for it.
const ANOTHER_USER: &str = r#"
for name in KERNEL USERLAND; do
    file=$(printenv "WHICHFS_$name")
    cp -r "$(dirname "$file")" "$PLACE/$name"
    export "WHICHFS_$name=$PLACE/$name/$(basename "$file")"
done
cp "$WHICHFS" "$WHICHFS_AGENT" "$PLACE/"
export "WHICHFS_AGENT=$PLACE/$(basename "$WHICHFS_AGENT")"
chown -R 65534:65534 "$PLACE"
WHICHFS="setpriv --reuid 65534 --regid 65534 --clear-groups $PLACE/whichfs"
"#;

/// What whichfs does with `arguments` after `changes` of the machine; `None` where mount namespaces
/// are not allowed.
fn run(home: &Path, changes: &str, arguments: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        skip::skip("mount namespaces need root");
        return None;
    }
    let script = format!("{changes}\necho {CHANGED} >&2\nexec $WHICHFS {arguments}");
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-ec", &script])
        .env("WHICHFS", env!("CARGO_BIN_EXE_whichfs"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("OUT", home.join("report"))
        .env("PLACE", home);
    if !changes.is_empty() {
        command.env("LANG", "de_DE.UTF-8").env("TZ", "Asia/Tokyo");
        command
            .env("LC_ALL", "de_DE.UTF-8")
            .env("HOME", "/nonexistent");
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains(CHANGED) {
        skip::skip(said);
        return None;
    }
    Some(output)
}

/// sqlite3 and mkfs, and an image that mksquashfs makes.
#[test]
fn loop_lab_sealed_trials_are_the_same_on_a_changed_machine_and_for_another_user() {
    if !can_run() {
        return;
    }
    for arguments in [
        "choose --for database --fs ext4 --seeds 1 --json --out \"$OUT\"",
        "choose --for rootfs-readonly --size 12M --fs squashfs-zstd,erofs-lz4hc --seeds 1 \
         --json --out \"$OUT\"",
    ] {
        let homes = [(); 2].map(|()| tempfile::tempdir_in("/var/tmp").unwrap());
        let changes = ["".to_owned(), format!("{CHANGES}{ANOTHER_USER}")];
        for (home, changes) in homes.iter().zip(&changes) {
            let Some(output) = run(home.path(), changes, arguments) else {
                return;
            };
            done(&output);
        }
        let [before, after] = homes.each_ref().map(|home| trials(home.path()));
        assert!(!before.is_empty());
        assert_same(&before, &after);
        assert!(
            before
                .values()
                .all(|trial| trial.contains("userland_sha256"))
        );
    }
}

/// The planted fault: with programs of the host the same changes are seen, and the id says so.
#[test]
fn loop_lab_a_trial_with_programs_of_the_host_is_another_on_a_changed_machine() {
    if !can_run() {
        return;
    }
    let arguments = "choose --command 'sqlite3 x \"create table t(a); insert into t values(1)\"' \
                     --fs ext4 --seeds 1 --json --out \"$OUT\"";
    let homes = [(); 2].map(|()| tempfile::tempdir_in("/var/tmp").unwrap());
    for (home, changes) in homes.iter().zip(["", CHANGES]) {
        let Some(output) = run(home.path(), changes, arguments) else {
            return;
        };
        done(&output);
    }
    let [before, after] = homes.each_ref().map(|home| trials(home.path()));
    assert!(before.keys().ne(after.keys()), "the id is the same");
    let outcome = |trials: &std::collections::BTreeMap<String, String>| {
        let trial = trials.values().next().unwrap();
        let trial: serde_json::Value = serde_json::from_str(trial).unwrap();
        assert!(trial["identity"]["userland_sha256"].is_null());
        trial["outcome"]["phases"].to_string()
    };
    assert_ne!(outcome(&before), outcome(&after), "no figure differs");
}

/// Programs of `lab exec` read what `--see` names and what programs need, and no secret.
#[test]
fn lab_exec_shows_what_is_named_and_no_secret() {
    if !can_run() || !whichfs_lab::confinement().1.is_empty() {
        return;
    }
    let homes = [(); 2].map(|()| tempfile::tempdir_in("/var/tmp").unwrap());
    let file = |home: &tempfile::TempDir, name: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, name).unwrap();
        path.display().to_string()
    };
    let (shown, other) = (file(&homes[0], "shown"), file(&homes[1], "other"));
    // In two parts: whole paths are refused before.
    let script = format!(
        "cat {shown}; cat '{}'*; perl -e 'print 5'; e=etc; cat /$e/shadow",
        &other[..other.len() - 1]
    );
    let exec = |see: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command
            .args(["lab", "exec", "--json", "--fs", "ext4"])
            .args(see);
        command.args(["--", "sh", "-c", &script]);
        command.env("XDG_CACHE_HOME", homes[0].path().join("cache"));
        let output = command.output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["stdout"].as_str().unwrap().to_owned()
    };
    let named = homes[0].path().to_str().unwrap();
    assert_eq!(exec(&["--see", named]), "shown5");
    // The planted fault: without the limit the other file is read too; the secret is not.
    assert_eq!(exec(&[]), "shownother5");
}
