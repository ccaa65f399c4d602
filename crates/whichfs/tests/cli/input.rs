//! Bad usage and input: exit code 2, and what would be right.

use super::sandbox::Sandbox;

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    Sandbox::new().run(arguments).fails(2, words);
}

#[test]
fn a_dry_run_wants_a_device() {
    for card in ["a1-32gb", "/dev/null"] {
        let words = ["whichfs: --dry-run is of a real device: name it with --on"];
        refused(&["choose", "--dry-run", "--card", card], &words);
    }
}

#[test]
fn an_unknown_card_offers_the_nearest() {
    for command in [
        &["choose", "--card"][..],
        &["card", "show"],
        &["fs", "show", "ext4", "--card"],
    ] {
        let arguments = [command, &["a1-32g"]].concat();
        refused(
            &arguments,
            &[
                "unknown card 'a1-32g'",
                "; did you mean 'a1-32gb'? `whichfs card list` lists all",
            ],
        );
    }
    let exec = [
        "lab", "exec", "--fs", "ext4", "--card", "emmc", "--", "true",
    ];
    refused(&exec, &["did you mean 'emmc-8gb'"]);
}

#[test]
fn a_name_far_from_all_others_is_told_where_they_are_listed() {
    for (command, told) in [
        (
            "card show zzz",
            "unknown card 'zzz'; `whichfs card list` lists all",
        ),
        (
            "board show zzz",
            "unknown board 'zzz'; `whichfs board list` lists all",
        ),
        (
            "fs show zzz",
            "unknown filesystem 'zzz'; `whichfs fs list` lists all",
        ),
        (
            "study show zzz",
            "unknown study 'zzz'; `whichfs study list` lists all",
        ),
        (
            "workload show zzz",
            "unknown workload 'zzz'; `whichfs workload list` lists all",
        ),
        (
            "choose --for zzz",
            "unknown need 'zzz'; `whichfs need list` lists all",
        ),
        (
            "crash run --fs ext4 --faults zzz",
            "unknown fault 'zzz'; `whichfs crash faults` lists all",
        ),
        (
            "format x.img --layout zzz",
            "unknown layout 'zzz'; there are ab, boot-root, boot-root-data",
        ),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        refused(&words, &[told]);
    }
}

#[test]
fn a_real_device_is_not_taken_for_a_profile() {
    refused(
        &[
            "lab",
            "exec",
            "--fs",
            "ext4",
            "--card",
            "/dev/null",
            "--",
            "true",
        ],
        &[
            "/dev/null is a device",
            "whichfs probe /dev/null",
            "card list",
        ],
    );
    // `choose` takes one, if it is a disk.
    refused(
        &["choose", "--card", "/dev/null"],
        &["/dev/null is a character device", "lsblk"],
    );
}

#[test]
fn an_unknown_candidate_offers_the_nearest() {
    refused(
        &["choose", "--fs", "ext4,btfs"],
        &["'btfs'", "did you mean 'btrfs'?"],
    );
    refused(&["fs", "show", "f2f"], &["'f2f'", "did you mean 'f2fs'?"]);
}

#[test]
fn an_unknown_need_offers_the_nearest() {
    refused(
        &["choose", "--for", "loger"],
        &["'loger'", "did you mean 'logger'?"],
    );
    refused(
        &["choose", "--for", "./none.toml"],
        &["--for ./none.toml", "No such file"],
    );
}

#[test]
fn a_bad_change_of_the_need_says_what_is_legal() {
    for (given, words) in [
        ("windows", &["--need windows", "KEY=VALUE"][..]),
        ("windoze=yes", &["did you mean 'windows'?"]),
        ("windows=maybe", &["yes, no or any"]),
        ("power_loss=often", &["matters or tolerated or none"]),
        ("weight.tree_red=1", &["did you mean 'tree_read'?"]),
        ("weight.tree_read=-1", &["0 to 1000"]),
        ("max_file_bytes=8XB", &["whole number"]),
    ] {
        refused(&["choose", "--need", given], words);
    }
}

#[test]
fn a_bad_need_file_names_file_and_line() {
    let sandbox = Sandbox::new();
    let text = "name = \"mine\"\ntitle = \"mine\"\nworkload = 3\n[weights]\n";
    sandbox.file("mine.toml", text);
    sandbox
        .run(&["choose", "--for", "mine.toml"])
        .fails(2, &["mine.toml:3:", "expected"]);
}

#[test]
fn a_need_file_with_an_unknown_workload_offers_the_nearest() {
    let sandbox = Sandbox::new();
    let weight = "[weights.mount]\nweight = 1\nbecause = \"a test\"\n";
    let text = format!("name = \"mine\"\ntitle = \"mine\"\nworkload = \"rotfs\"\n{weight}");
    sandbox.file("mine.toml", text);
    let words = ["unknown workload 'rotfs'", "did you mean 'rootfs'?"];
    sandbox
        .run(&["choose", "--for", "mine.toml"])
        .fails(2, &words);
}

#[test]
fn a_need_that_weighs_what_nobody_measures_is_refused_before_any_trial() {
    let sandbox = Sandbox::new();
    let text = "name = \"mine\"\ntitle = \"mine\"\nworkload = \"rootfs\"\n\
                [weights.random_updates]\nweight = 1\nbecause = \"fsync\"\n";
    sandbox.file("mine.toml", text);
    let words = [
        "mine.toml",
        "unknown metric 'random_updates'",
        "did you mean 'random_update'?",
    ];
    sandbox
        .run(&["choose", "--for", "mine.toml"])
        .fails(2, &words);
}

#[test]
fn a_size_that_does_not_work_out_is_refused_before_any_trial() {
    refused(
        &["choose", "--size", "4M"],
        &["--size 4M:", "does not hold"],
    );
    refused(
        &["choose", "--size", "8M"],
        &["--size 8M:", "does not hold"],
    );
    refused(
        &["choose", "--size", "32001M"],
        &["--size 32001M:", "files ="],
    );
}

#[test]
fn impossible_parameters_of_a_need_are_refused_before_any_arithmetic() {
    let head = "name = \"mine\"\ntitle = \"mine\"\n[weights.mount]\nweight = 1\nbecause = \"x\"\n";
    for (workload, parameters, words) in [
        ("rootfs", "bytes = 0", "bytes = 0 is not legal"),
        (
            "rootfs",
            "files = 9223372036854775807",
            "files = 9223372036854775807 is not legal",
        ),
        (
            "logger",
            "record_min = 500",
            "record_min = 500 is above record_max",
        ),
        ("exchange", "photo_max = 5", "is above photo_max = 5"),
    ] {
        let sandbox = Sandbox::new();
        let text = format!("workload = \"{workload}\"\n{head}[parameters]\n{parameters}\n");
        sandbox.file("mine.toml", &text);
        let arguments = ["choose", "--for", "mine.toml"];
        sandbox.run(&arguments).fails(2, &["mine.toml", words]);
        if workload == "rootfs" {
            let sized = [&arguments[..], &["--size", "64M"]].concat();
            sandbox.run(&sized).fails(2, &["mine.toml", words]);
        }
    }
}

#[test]
fn an_unknown_board_offers_the_nearest() {
    let words = ["unknown board 'pandorra'", "did you mean 'pandora'?"];
    refused(&["choose", "--board", "pandorra"], &words);
    refused(
        &["choose", "--board", "rpi4"],
        &["did you mean 'raspberry-pi-4'?"],
    );
    refused(&["choose", "--clock", "cpu:pandorra"], &words);
}

#[test]
fn an_absurd_board_names_key_and_range() {
    let sandbox = Sandbox::new();
    let board = include_str!("../../../../boards/generic-1ghz.toml");
    let absurd = board.replace("mib = 512", "mib = 1");
    assert_ne!(absurd, board);
    sandbox.file("mine.toml", absurd);
    let words = ["mine", "memory.mib = 1 is not legal: 64 to 65536"];
    sandbox
        .run(&["choose", "--board", "./mine.toml"])
        .fails(2, &words);
}

#[test]
fn an_unknown_workload_offers_the_nearest() {
    refused(
        &["workload", "show", "rotfs"],
        &[
            "did you mean 'rootfs'?",
            "`whichfs workload list` lists all",
        ],
    );
}

#[test]
fn a_bad_clock_says_what_is_legal() {
    for clock in ["real", "cpu:", "", "device:pandora"] {
        refused(
            &["choose", "--clock", clock],
            &["clock ", "'device', 'cpu' or 'cpu:BOARD'"],
        );
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (flag, value) in [
        ("--seeds", "0"),
        ("--seeds", "101"),
        ("--jobs", "0"),
        ("--jobs", "many"),
        ("--size", "0"),
        ("--wall-limit", "0"),
        ("--first-seed", "-1"),
    ] {
        refused(&["choose", &format!("{flag}={value}")], &[flag, value]);
    }
}

#[test]
fn a_size_for_a_workload_without_one_is_refused() {
    refused(
        &["choose", "--for", "logger", "--size", "64M"],
        &["--size", "logger"],
    );
}

#[test]
fn a_tree_that_is_no_directory_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.file("file", "");
    sandbox
        .run(&["choose", "--tree", "none"])
        .fails(2, &["tree none", "No such file"]);
    sandbox
        .run(&["choose", "--tree", "file"])
        .fails(2, &["tree file", "not a directory"]);
}

#[test]
fn unknown_flags_and_commands_are_bad_usage() {
    refused(&["choose", "--cart", "x"], &["--cart", "--card"]);
    refused(&["chose"], &["chose", "choose"]);
    refused(&[], &["Usage"]);
    refused(&["lab", "exec", "--fs", "ext4"], &["CMD"]);
    refused(&["choose", "--card-state", "old"], &["used", "fresh"]);
}

#[test]
fn flags_that_would_be_ignored_are_refused() {
    let capacity = ["probe", "a1-32gb", "--write", "--capacity"];
    let from = ["probe", "--from", "x.log"];
    let like_flashbench = ["probe", "a1-32gb", "--flashbench-compatible"];
    let report = ["card", "fit", "x.log", "--report"];
    let cases: [(&[&str], &[&[&str]]); 4] = [
        (
            &capacity,
            &[
                &["--budget", "1M"],
                &["--save", "x.toml"],
                &["--plot", "x.svg"],
                &["--resume", "x.json"],
            ],
        ),
        (
            &from,
            &[
                &["--write"],
                &["--capacity"],
                &["--budget", "1M"],
                &["--seed", "2"],
                &["--save", "x.toml"],
                &["--resume", "x.json"],
            ],
        ),
        (
            &like_flashbench,
            &[
                &["--plot", "x.svg"],
                &["--resume", "x.json"],
                &["--budget", "1M"],
                &["--json"],
            ],
        ),
        (
            &report,
            &[
                &["--block-sizes", "4096"],
                &["--out", "x.toml"],
                &["--json"],
            ],
        ),
    ];
    for (command, flags) in cases {
        for flag in flags {
            refused(&[command, flag].concat(), &["cannot be used with", flag[0]]);
        }
    }
}

#[test]
fn a_file_without_end_is_refused_by_every_command_that_reads_one() {
    for command in [
        &["study", "show", "/dev/zero"][..],
        &["choose", "--for", "/dev/zero"],
        &["choose", "--fio", "/dev/zero"],
        &["choose", "--board", "/dev/zero"],
        &["card", "fit", "/dev/zero"],
        &["probe", "--from", "/dev/zero"],
    ] {
        refused(command, &["/dev/zero", "larger than 64 MiB"]);
    }
}

/// A job file of fio with `lines` in its only section, for `choose --fio`.
fn job(lines: &str) -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("job.fio");
    std::fs::write(&path, format!("[global]\nsize=1m\n[a]\n{lines}\n")).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (home, path)
}

#[test]
fn a_job_file_that_cannot_work_is_refused_with_its_line() {
    for (lines, word) in [
        ("filename=/dev/mmcblk0", "made on the card under test"),
        ("ioengine=exec", "one of falloc"),
        ("filename_format=/dev/loop1", "made on the card under test"),
        ("bsx=4k", "did you mean 'bs'?"),
    ] {
        let (_home, path) = job(lines);
        refused(&["choose", "--fio", &path], &[&path, "line 4", word]);
    }
    refused(
        &["choose", "--fio", "/none.fio"],
        &["--fio /none.fio", "No such file"],
    );
    refused(
        &["choose", "--for", "fio-job"],
        &["it needs a job file of fio: --fio FILE"],
    );
    let (_home, path) = job("rw=write");
    refused(
        &["choose", "--for", "logger", "--fio", &path],
        &["workload logger", "leave out --fio"],
    );
}

/// What fio itself refuses, where it is installed.
#[test]
fn fio_judges_a_job_before_anything_runs() {
    let (_home, path) = job("bs=4z");
    let words = match std::path::Path::new("/usr/bin/fio").exists() {
        true => [path.as_str(), "line 4: bs: 'z' suffix"],
        false => ["fio is not on this machine", "apt-get install fio"],
    };
    let ended = Sandbox::new().run(&["choose", "--fio", &path]);
    ended.fails(if words[0] == path { 2 } else { 3 }, &words);
}

#[test]
fn power_is_not_cut_under_programs() {
    refused(
        &["choose", "--for", "fio", "--cuts", "5"],
        &["power cuts cannot be made under fio", "leave out --cuts"],
    );
    refused(
        &["crash", "run", "--fs", "ext4", "--workload", "fio"],
        &["its phases are programs", "a script of your own"],
    );
}

#[test]
fn a_size_without_a_unit_is_asked_about() {
    for (command, meant) in [
        ("choose --size 512", "512M"),
        ("crash run --fs ext4 --size 32", "32M"),
        ("card attach a1-32gb --size 512", "512M"),
        ("format x.img --fs ext4 --size 512", "512M"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        refused(&words, &[&format!("did you mean {meant}?")]);
    }
}

#[test]
fn old_spellings_are_taken_and_mean_the_same() {
    for (old, new) in [
        ("choose --candidates ext5", "choose --fs ext5"),
        ("card rank --cards zzz", "card rank --card zzz"),
        (
            "card rank --candidates ext5 --card a1-32gb",
            "card rank --fs ext5 --card a1-32gb",
        ),
        (
            "study run elc2015 --only-fs zzz",
            "study run elc2015 --fs zzz",
        ),
        (
            "study run pandora --only-card zzz",
            "study run pandora --card zzz",
        ),
    ] {
        let told = |command: &str| {
            let words: Vec<&str> = command.split(' ').collect();
            let run = Sandbox::new().run(&words);
            (run.code, run.stderr)
        };
        assert_eq!(told(old), told(new), "{old}");
        assert_eq!(told(new).0, 2, "{new}: {}", told(new).1);
    }
}
