//! The files for updaters, read by the updaters themselves.
#![allow(clippy::unwrap_used)]

use crate::common::{emit, have, path, plan, run};
use std::path::Path;
use std::process::{Command, Output};
use whichfs_layout::{DiskPlan, TableKind};

/// Runs `program`, which may fail; what it printed on both outputs.
fn said(dir: &Path, program: &str, arguments: &[&str]) -> (bool, String) {
    let output: Output = Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .env("PATH", path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.success(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

/// The plan for two roots, its files in `dir`, and an image of the first root.
fn prepared(dir: &Path, fs: &str) -> DiskPlan {
    let plan = plan("ab", TableKind::Gpt, fs, 1024, 4);
    emit(&plan, dir);
    run(dir, "sh", &["mkfs.sh", "--images", "."]);
    plan
}

fn replace(dir: &Path, file: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(dir.join(file)).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    std::fs::write(dir.join(file), text.replace(from, to)).unwrap();
}

#[test]
fn rauc_takes_the_system_and_the_manifest() {
    if !have(&[
        "rauc",
        "openssl",
        "mke2fs",
        "mkfs.f2fs",
        "mkfs.vfat",
        "mksquashfs",
    ]) {
        return;
    }
    for fs in ["ext4", "f2fs"] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        prepared(dir, fs);
        let keys = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=test";
        run(dir, "openssl", &keys.split(' ').collect::<Vec<_>>());
        std::fs::create_dir(dir.join("bundle")).unwrap();
        let copy = |from: &str, to: &str| std::fs::copy(dir.join(from), dir.join(to)).unwrap();
        copy("rauc-manifest.raucm", "bundle/manifest.raucm");
        let image = match fs {
            "ext4" => "bundle/root-a.ext4",
            _ => "bundle/root-a.f2fs.img",
        };
        copy(&format!("root-a.{fs}"), image);
        // An image of zeros alone is compressed to less than RAUC takes.
        run(
            dir,
            "sh",
            &["-c", &format!("head -c 100000 /dev/urandom >> {image}")],
        );
        let make = "--cert=cert.pem --key=key.pem bundle bundle x.raucb";
        run(dir, "rauc", &make.split(' ').collect::<Vec<_>>());
        let keyring = dir.join("cert.pem").display().to_string();
        replace(dir, "rauc-system.conf", "/etc/rauc/keyring.pem", &keyring);
        // The configuration is read whole before the bundle is.
        let info = ["--conf=rauc-system.conf", "info", "x.raucb"];
        let (done, text) = said(dir, "rauc", &info);
        assert!(done && text.contains("my-product"), "{text}");
        let slots = [
            "--conf=rauc-system.conf",
            "--override-boot-slot=A",
            "status",
        ];
        let (_, text) = said(dir, "rauc", &slots);
        assert!(!text.contains("Failed to load system config"), "{text}");
        // A slot that is none, planted.
        replace(dir, "rauc-system.conf", "bootname=B", "boot-name=B");
        let (done, text) = said(dir, "rauc", &info);
        assert!(!done, "{text}");
    }
}

#[test]
fn swupdate_takes_the_description_of_both_copies() {
    if !have(&["swupdate", "cpio", "openssl", "mke2fs", "mkfs.vfat"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    prepared(dir, "ext4");
    // Debian's takes signed archives alone, which name the digest of each image.
    let keys = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=test";
    run(dir, "openssl", &keys.split(' ').collect::<Vec<_>>());
    let digest = run(dir, "sha256sum", &["root-a.ext4"]).stdout;
    let digest = String::from_utf8_lossy(&digest[..64]).into_owned();
    replace(
        dir,
        "sw-description",
        "# sha256 = \"…\";",
        &format!("sha256 = \"{digest}\";"),
    );
    let pack = "openssl cms -sign -binary -outform DER -nosmimecap -signer cert.pem -inkey key.pem \
                -in sw-description -out sw-description.sig && \
                printf '%s\\n' sw-description sw-description.sig root-a.ext4 | \
                cpio -o -H crc > update.swu";
    let check = |copy: &str| {
        run(dir, "sh", &["-c", pack]);
        let arguments = [
            "-v",
            "-c",
            "-k",
            "cert.pem",
            "-H",
            "my-product:1.0",
            "-e",
            copy,
        ];
        said(
            dir,
            "swupdate",
            &[&arguments[..], &["-i", "update.swu"]].concat(),
        )
    };
    for copy in ["stable,copy1", "stable,copy2"] {
        let (done, text) = check(copy);
        assert!(done, "{text}");
    }
    let (done, text) = check("stable,copy3");
    assert!(!done, "no third copy: {text}");
    replace(dir, "sw-description", "type = \"raw\"", "type = ");
    let (done, text) = check("stable,copy1");
    assert!(!done, "planted: {text}");
}

#[test]
fn mender_reads_its_configuration() {
    if !have(&["mender"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let plan = plan("ab", TableKind::Mbr, "ext4", 1024, 4);
    emit(&plan, dir);
    let show = ["--config", "mender.conf", "--data", ".", "show-provides"];
    // On a machine that is no such board it says which roots it does not find.
    let (_, text) = said(dir, "mender", &show);
    for slot in &plan.partitions[1..=2] {
        assert!(
            text.contains(&format!("by-partuuid/{} ", slot.partuuid)),
            "{text}"
        );
    }
    replace(dir, "mender.conf", "\"RootfsPartB\"", "RootfsPartB");
    let (done, text) = said(dir, "mender", &show);
    assert!(!done && !text.contains("by-partuuid"), "planted: {text}");
}

#[test]
fn fstab_is_one_that_mount_takes() {
    if !have(&["findmnt"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    emit(&plan("ab", TableKind::Gpt, "ext4", 1024, 4), home.path());
    let verify = ["--verify", "--tab-file", "fstab"];
    let parse_errors = |text: &str| {
        let line = text.lines().find(|line| line.contains("parse error"));
        line.unwrap_or_default().to_owned()
    };
    // That partitions and directories are not on this machine are other errors.
    let (_, text) = said(home.path(), "findmnt", &verify);
    assert!(parse_errors(&text).starts_with("0 parse errors"), "{text}");
    replace(home.path(), "fstab", "\text4\t", "\t");
    let (_, text) = said(home.path(), "findmnt", &verify);
    assert!(
        !text.contains("0 parse errors, 0 errors"),
        "planted: {text}"
    );
}
