//! A virtual machine as the board of a labgrid place: labgrid's power driver kills QEMU and starts
//! it. Needs what `qemu_board` needs, and labgrid (from PyPI); skipped without
//! `WHICHFS_QEMU_BOARD`.
#![allow(clippy::unwrap_used)]

use crate::labgrid::{Lab, Switch};
use crate::qemu_board::{Board, ID, ready, run};

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Name of the place.
const PLACE: &str = "rack-q";
/// The program ssh of the test knows that host.
const EXPORTED: &str = "  NetworkService:\n    address: board\n    username: root\n";

/// The command on the board of the place, for the user ada.
fn whichfs(board: &Board, lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = board.whichfs_on(&format!("labgrid:{PLACE}/dev/vda"), arguments);
    lab.known_to(&mut command, "ada", &board.path("bin"));
    command
}

#[test]
fn qemu_board_of_a_labgrid_place_loses_its_power_by_the_labs_driver() {
    let Some(board) = ready() else { return };
    // How often the power still comes back.
    let lives = Arc::new(AtomicUsize::new(2));
    let (switch, left) = (board.switch(), Arc::clone(&lives));
    let switch: Switch = Box::new(move |is_on| {
        let take = |lives: usize| lives.checked_sub(1);
        let lives = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        switch(is_on && lives().is_ok());
    });
    let places = vec![(PLACE, EXPORTED.to_owned(), Some(switch))];
    let Some(lab) = Lab::new(Path::new(env!("CARGO_TARGET_TMPDIR")), places) else {
        return;
    };

    let study = ["study", "run", "./mini.toml", "--json", "--destroy", ID];
    let (code, out, err) = run(&mut whichfs(&board, &lab, &study));
    assert_eq!(code, 0, "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["done"].as_u64(), Some(1), "{told}");
    assert_eq!(lab.holder(PLACE), None);

    let crash = "crash run --fs ext4 --workload atomic --size 16M --partition 64M --json";
    let power = ["--power", "labgrid", "--power-off-time", "1s"];
    let cut = |more: &[&str]| {
        let crash: Vec<&str> = crash.split(' ').collect();
        let four = ["--cuts", "4", "--destroy", ID];
        run(&mut whichfs(
            &board,
            &lab,
            &[&crash[..], &power, &four, more].concat(),
        ))
    };
    // After the third cut the driver says that it is on, and nothing answers.
    let (code, _, err) = cut(&["--board-timeout", "20s"]);
    assert_eq!(code, 3, "{err}");
    for words in [
        "for 20 s (--board-timeout)",
        "labgrid-client -p rack-q acquire",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert_eq!(lab.holder(PLACE), None);
    assert_eq!(board.boots(), 3);
    assert_eq!(lab.cuts.load(Ordering::Relaxed), 3);

    // Repaired and switched on, the same command makes the two cuts that are missing.
    lives.store(3, Ordering::Relaxed);
    for arguments in [&["acquire"][..], &["power", "off"], &["release"]] {
        assert!(lab.client("ada", &[&["-p", PLACE], arguments].concat()).0);
    }
    let (code, out, err) = cut(&[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(board.boots(), 3 + 3);
    let document: Value = serde_json::from_str(&out).unwrap();
    let all = document["filesystems"][0]["cuts"].as_array().unwrap();
    assert_eq!(all.len(), 4);
    for cut in all {
        let condition = cut["condition"].as_str().unwrap();
        assert!(["clean", "recovered"].contains(&condition), "{cut:#}");
        assert!(cut["outcomes"]["right"].as_u64().unwrap() > 0, "{cut:#}");
    }
    assert_eq!(lab.holder(PLACE), None);
}
