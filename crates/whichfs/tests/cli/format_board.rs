//! `format --board`, and identifiers, from outside: images only, no root, no guest.

use super::format::{has, one_line, refused};
use super::sandbox::Sandbox;

#[test]
fn a_card_is_laid_out_as_its_board_boots() {
    let home = Sandbox::new();
    let format = |more: &[&str]| {
        let all = [
            "format", "--card", "a1-32gb", "--fs", "ext4", "--emit", "bsp",
        ];
        home.run(&[&all[..], more].concat())
    };
    let pi = format(&["--board", "raspberry-pi-3", "--json"]);
    assert_eq!(pi.code, 0, "{}", pi.stderr);
    let found: serde_json::Value = serde_json::from_str(&pi.stdout).unwrap();
    assert_eq!(
        (&found["table"], &found["board"]),
        (&"mbr".into(), &"raspberry-pi-3".into())
    );
    assert!(
        found["board_notes"].to_string().contains("bootcode.bin"),
        "{found}"
    );
    let bone = format(&["--board", "beaglebone-black"]);
    let told = one_line(&bone);
    assert!(
        told.contains("MBR with") && told.contains("must hold MLO, u-boot.img"),
        "{told}"
    );
    for (more, words) in [
        (
            &["--board", "raspberry-pi-3", "--table", "gpt"][..],
            &["GPT", "--table mbr"][..],
        ),
        (
            &["--board", "raspberry-pi-3", "--layout", "./l.toml"],
            &["none of role boot", "vfat"],
        ),
        (
            &["--board", "imx8m", "--layout", "./over.toml"],
            &["place of U-Boot's environment"],
        ),
        (
            &["--board", "pandora"],
            &["does not say how it boots", "raspberry-pi-4"],
        ),
        (&["--board", "raspberry-pi"], &["did you mean"]),
    ] {
        let root =
            "[[partition]]\nname = \"root\"\nrole = \"root\"\nsize = \"rest\"\nmount = \"/\"\n";
        home.file("l.toml", root);
        home.file("over.toml", format!("{root}start = \"4M\"\n"));
        refused(&format(more), words);
    }
}

/// Two products whose cards have the same identifiers are taken for each other.
#[test]
fn each_image_has_identifiers_of_its_own() {
    if !has("sfdisk") || !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    let partuuid = |image: &str, more: &[&str]| {
        let make = ["format", image, "--fs", "ext4", "--size", "64M", "--json"];
        let made = home.run(&[&make[..], more].concat());
        let found: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
        found["partitions"][0]["partuuid"].to_string()
    };
    assert_ne!(partuuid("a.img", &[]), partuuid("b.img", &[]));
    let seed = ["--seed", "7"];
    assert_eq!(partuuid("c.img", &seed), partuuid("d.img", &seed));
}
