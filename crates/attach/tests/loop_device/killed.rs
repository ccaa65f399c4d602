//! A process that dies by SIGKILL leaves nothing that `clean` does not remove.

use crate::common::{Direct, alone, installed, options, sh};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use whichfs_attach::{Speed, attach, clean, list};

/// Set for the process that is to be killed.
const CHILD: &str = "WHICHFS_ATTACH_TEST_CHILD";

/// Not a test: what the killed process does. It ends when nobody kills it for a minute.
#[test]
#[ignore = "a part of the other tests"]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let attached = attach(options("a1-32gb", 128, Speed::Max)).unwrap();
    println!("device={}", attached.device().display());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Starts this test program as a process that attaches a card.
fn start() -> (Child, PathBuf) {
    start_by(&["env"])
}

/// The same by another program.
fn start_by(program: &[&str]) -> (Child, PathBuf) {
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child", "--ignored", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let device = lines
        .map(Result::unwrap)
        .find_map(|line| Some(PathBuf::from(line.split_once("device=")?.1)))
        .unwrap();
    (child, device)
}

fn kill(mut child: Child) -> u32 {
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    pid
}

fn nothing_is_left(device: &Path, pid: u32) {
    let name = device.file_name().unwrap().to_str().unwrap();
    assert!(!device.exists(), "{device:?}");
    for ending in ["json", "sock"] {
        let path = format!("/run/whichfs/attach/{name}.{ending}");
        assert!(!Path::new(&path).exists(), "{path}");
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mounts.contains(&format!("{} ", device.display())),
        "{mounts}"
    );
    assert!(list().unwrap().iter().all(|record| record.pid != pid));
}

#[test]
fn loop_killed_processes_leave_nothing_after_clean() {
    let Some(_lock) = alone("loop_killed") else {
        return;
    };
    let (child, device) = start();
    // Dirty pages in the kernel when it dies.
    std::fs::File::options()
        .write(true)
        .open(&device)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &vec![7; 8 << 20]))
        .unwrap();
    assert!(
        clean().unwrap().is_empty(),
        "a living process is left alone"
    );
    Direct::open(&device).write(0, &[1; 512]);
    let pid = kill(child);
    let left = clean().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!((left[0].record.pid, left[0].remains.as_ref()), (pid, None));
    nothing_is_left(&device, pid);
    assert!(clean().unwrap().is_empty(), "and nothing the second time");
}

#[test]
fn loop_killed_under_a_mounted_filesystem_leaves_nothing_after_clean() {
    let test = "loop_killed_under_a_mounted_filesystem";
    let Some(_lock) = alone(test).filter(|_| installed(test, "mkfs.ext4")) else {
        return;
    };
    let (child, device) = start();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display().to_string();
    sh(&format!(
        "mkfs.ext4 -q -F {0} && mount {0} {at}",
        device.display()
    ));
    sh(&format!("head -c 4000000 /dev/urandom > {at}/x"));
    let pid = kill(child);
    let left = clean().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].mounts, [at]);
    assert_eq!(left[0].remains, None);
    nothing_is_left(&device, pid);
}

#[test]
fn loop_a_next_start_cleans_up_first() {
    let Some(_lock) = alone("loop_a_next_start_cleans_up_first") else {
        return;
    };
    let (child, device) = start();
    let pid = kill(child);
    let attached = attach(options("a1-32gb", 64, Speed::Max)).unwrap();
    let cleaned = attached.cleaned();
    assert_eq!(cleaned.len(), 1, "{cleaned:?}");
    assert_eq!(
        (cleaned[0].record.pid, cleaned[0].record.device()),
        (pid, device)
    );
    attached.detach().unwrap();
}

#[test]
fn loop_devices_of_others_are_not_cleaned() {
    let test = "loop_devices_of_others_are_not_cleaned";
    let Some(_lock) = alone(test).filter(|_| installed(test, "losetup")) else {
        return;
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let other = sh(&format!("losetup -f --show {}", file.path().display()));
    let other = other.trim();
    // A record of a dead process that names the other's device, as if a number was used again.
    let number: u32 = other.strip_prefix("/dev/loop").unwrap().parse().unwrap();
    let mut record = serde_json::json!({"pid": 4_194_305, "start_time": 1, "made": true});
    let namespace = std::fs::metadata("/proc/self/ns/pid").unwrap();
    record["namespace"] = std::os::unix::fs::MetadataExt::ino(&namespace).into();
    record["number"] = number.into();
    record["card"] = "x".into();
    record["capacity_bytes"] = 1.into();
    std::fs::create_dir_all("/run/whichfs/attach").unwrap();
    let file = format!("/run/whichfs/attach/loop{number}.json");
    std::fs::write(file, record.to_string()).unwrap();
    let left = clean().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].taken && left[0].remains.is_none(), "{left:?}");
    let still = sh("losetup -n -O NAME");
    assert!(still.lines().any(|line| line.trim() == other), "{still}");
    sh(&format!("losetup -d {other}"));
}

#[test]
fn loop_a_card_of_another_pid_namespace_is_not_judged() {
    let test = "loop_a_card_of_another_pid_namespace";
    let Some(_lock) = alone(test).filter(|_| installed(test, "unshare")) else {
        return;
    };
    let (mut child, device) =
        start_by(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    let left = clean().unwrap();
    assert!(left.is_empty(), "{left:?}");
    Direct::open(&device).write(0, &[1; 512]);
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody here can say whether it lives: the test, which knows, removes it.
    sh(&format!("sleep 0.3; losetup -d {}", device.display()));
    let name = device.file_name().unwrap().to_str().unwrap();
    for ending in ["json", "sock"] {
        std::fs::remove_file(format!("/run/whichfs/attach/{name}.{ending}")).unwrap();
    }
}

#[test]
fn loop_a_mount_of_the_user_over_the_dead_one_stays() {
    let test = "loop_a_mount_of_the_user_over_the_dead_one";
    let Some(_lock) = alone(test).filter(|_| installed(test, "mkfs.ext4")) else {
        return;
    };
    let (child, device) = start();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display().to_string();
    sh(&format!(
        "mkfs.ext4 -q -F {0} && mount {0} {at} && mount -t tmpfs mine {at}",
        device.display()
    ));
    let pid = kill(child);
    // Also after the kernel has forgotten what the dead server said of its file.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let left = clean().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].mounts, [""; 0]);
    let why = left[0].remains.clone().unwrap_or_default();
    assert!(why.contains(&format!("umount {at}")), "{why}");
    let top = sh(&format!("findmnt -n -o SOURCE {at} | tail -1"));
    sh(&format!("umount {at}"));
    assert_eq!(top.trim(), "mine");
    let left = clean().unwrap();
    assert_eq!(
        (left[0].mounts.as_slice(), &left[0].remains),
        (&[at][..], &None)
    );
    nothing_is_left(&device, pid);
}
