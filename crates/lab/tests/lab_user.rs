//! Who runs a trial, from where and with which environment changes nothing in it.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Trial, command, fingerprint, mount, one_at_a_time, prices, shell, unmount};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for the process that runs the trial: where its fingerprint goes.
const OUT: &str = "WHICHFS_TEST_FINGERPRINT";
/// `nobody` on Debian.
const NOBODY: u32 = 65_534;

fn trial() -> Option<Trial> {
    let steps = vec![
        command(&[
            "mkfs.ext4",
            "-q",
            "-F",
            "-b",
            "4096",
            "-U",
            "8d6f3a7c-0001-4000-8000-000000000001",
            "-E",
            "hash_seed=8d6f3a7c-0002-4000-8000-000000000002",
            "/dev/vda",
        ]),
        mount("ext4", "noatime"),
        shell("cp -r /usr/lib/x86_64-linux-gnu/perl-base /mnt/test/ && sync && ls -l /mnt/test"),
        shell("head -c 16 /dev/urandom | od -x"),
        unmount(),
    ];
    let mut trial = Trial::new(31, steps)?;
    trial.userland = Some(common::userland()?);
    trial.cpu = prices(2_400);
    Some(trial)
}

/// Not a test by itself: the process that runs the trial as somebody else.
#[test]
fn lab_helper_writes_a_fingerprint() {
    let Some(out) = std::env::var_os(OUT) else {
        return;
    };
    let life = trial().expect("kernel and agent were given").run();
    fs::write(out, fingerprint(&life)).unwrap();
}

/// A place that everybody can read and write, with this program, kernel and agent.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let place = Place { directory };
        let of = |name: &str| PathBuf::from(std::env::var_os(name).unwrap());
        let userland = fs::canonicalize(of("WHICHFS_USERLAND")).unwrap();
        let files = [
            ("test", std::env::current_exe().unwrap()),
            ("linux", of("WHICHFS_KERNEL")),
            ("agent", of("WHICHFS_AGENT")),
            ("image", userland.clone()),
            ("sha256", userland.with_file_name("sha256")),
            ("packages", userland.with_file_name("packages")),
            ("programs", userland.with_file_name("programs")),
        ];
        for (name, from) in files {
            fs::copy(from, place.path(name)).unwrap();
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The fingerprint of the trial that `change` runs differently.
    fn fingerprint(&self, change: impl FnOnce(&mut Command)) -> String {
        let out = self.path("out");
        let _ = fs::remove_file(&out);
        let mut command = Command::new(self.path("test"));
        command
            .args(["--exact", "lab_user::lab_helper_writes_a_fingerprint"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("WHICHFS_KERNEL", self.path("linux"))
            .env("WHICHFS_AGENT", self.path("agent"))
            .env("WHICHFS_USERLAND", self.path("image"))
            .env(OUT, &out)
            .current_dir("/");
        change(&mut command);
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success(), "{said}");
        let text = fs::read_to_string(out).unwrap();
        assert!(text.starts_with("done\n"), "{text}");
        text
    }
}

fn assert_equal(ours: &str, theirs: &str, what: &str) {
    for (index, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(a, b, "{what}: line {index} of the fingerprint");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

#[test]
fn lab_an_ordinary_user_gets_the_same_trial() {
    let _one = one_at_a_time();
    let Some(trial) = trial() else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        common::skip::skip("only root can become another user (this user's guests run)");
        return;
    }
    let ours = fingerprint(&trial.run());
    let theirs = Place::new().fingerprint(|command| {
        command.uid(NOBODY).gid(NOBODY);
    });
    assert_equal(&ours, &theirs, "root and nobody");
}

#[test]
fn lab_environment_and_directories_do_not_matter() {
    let _one = one_at_a_time();
    let Some(trial) = trial() else {
        return;
    };
    let ours = fingerprint(&trial.run());
    let place = Place::new();
    let long = place.path(&"long".repeat(40)).join("x".repeat(200));
    fs::create_dir_all(&long).unwrap();
    let theirs = place.fingerprint(|command| {
        command
            .env("TMPDIR", &long)
            .env("HOME", "/nonexistent")
            .env("LANG", "de_DE.UTF-8")
            .env("TZ", "Asia/Tokyo")
            .env("MALLOC_ARENA_MAX", "1")
            .env("LOTS", "y".repeat(9000))
            .current_dir(Path::new("/usr"));
    });
    assert_equal(&ours, &theirs, "another environment");
}
