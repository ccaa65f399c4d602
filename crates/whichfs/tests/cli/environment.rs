//! Faults of the environment: exit code 3, and the remedy.

use super::sandbox::{Run, Sandbox};

#[test]
fn no_kernel_says_how_to_get_one() {
    let sandbox = Sandbox::new();
    let words = ["no lab kernel at", "no-kernel", "make kernel"];
    sandbox.run(&["choose"]).fails(3, &words);
    sandbox.run(&["lab", "kernel"]).fails(3, &words);
    sandbox
        .run(&["lab", "exec", "--fs", "ext4", "--", "true"])
        .fails(3, &words);
}

#[test]
fn without_a_named_kernel_the_cache_is_looked_into() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["lab", "kernel"]);
    let run = Run::of(command.env_remove("WHICHFS_KERNEL"));
    run.fails(3, &["cache/whichfs/kernel/linux-6.12", "make kernel"]);
}

#[test]
fn no_agent_or_a_dynamic_one_says_how_to_get_one() {
    let sandbox = Sandbox::new();
    let kernel = sandbox.file("kernel", "Linux version 6.12 ");
    let choose = |agent: &std::path::Path| {
        let mut command = sandbox.command(&["choose"]);
        Run::of(
            command
                .env("WHICHFS_KERNEL", &kernel)
                .env("WHICHFS_AGENT", agent),
        )
    };
    choose(&sandbox.path().join("none")).fails(3, &["no usable agent at", "none", "make build"]);
    let script = sandbox.file("script", "#!/bin/sh\n");
    choose(&script).fails(3, &["not an ELF program", "make build"]);
    // The program under test is linked dynamically.
    let program = std::path::PathBuf::from(env!("CARGO_BIN_EXE_whichfs"));
    choose(&program).fails(3, &["linked dynamically", "make build"]);
}

#[test]
fn a_kernel_is_shown_with_what_is_known_of_its_build() {
    let sandbox = Sandbox::new();
    let kernel = sandbox.file("linux", "Linux version 6.12.99 (whichfs@lab)");
    sandbox.file(
        "build-info.txt",
        "key 0123abcd\nrelease 6.12.99\npatch 0001.patch\n",
    );
    let show = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        Run::of(command.env("WHICHFS_KERNEL", &kernel))
    };
    let run = show(&["lab", "kernel"]);
    let text = run.succeeds();
    for word in ["6.12.99", "0123abcd", "0001.patch", "sha256"] {
        assert!(text.contains(word), "no {word}: {text}");
    }
    let run = show(&["lab", "kernel", "--json"]);
    let document: serde_json::Value = serde_json::from_str(run.succeeds()).unwrap();
    assert_eq!(document["build"]["key"], "0123abcd");
    assert_eq!(document["sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn without_home_and_xdg_directories_the_variable_is_named() {
    let sandbox = Sandbox::new();
    let bare = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        for variable in ["HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "WHICHFS_KERNEL"] {
            command.env_remove(variable);
        }
        Run::of(&mut command)
    };
    bare(&["choose"]).fails(3, &["neither XDG_DATA_HOME nor HOME", "set one of them"]);
    bare(&["lab", "kernel"]).fails(3, &["neither XDG_CACHE_HOME nor HOME"]);
    bare(&["card", "list"]).succeeds();
}

#[test]
fn a_relative_xdg_directory_counts_as_none() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["lab", "kernel"]);
    command
        .env_remove("WHICHFS_KERNEL")
        .env("XDG_CACHE_HOME", "relative");
    Run::of(&mut command).fails(3, &["home/.cache/whichfs/kernel"]);
}

#[test]
fn a_damaged_store_is_left_as_it_is_and_a_way_out_offered() {
    let sandbox = Sandbox::new();
    let store = sandbox.file(
        "store.sqlite",
        "this is no database, whatever its name says",
    );
    let before = std::fs::read(&store).unwrap();
    let run = sandbox.run(&["choose", "--store", store.to_str().unwrap()]);
    run.fails(3, &["store.sqlite", "damaged or is not a store", "mv "]);
    assert_eq!(std::fs::read(&store).unwrap(), before);
}

#[test]
fn a_locked_store_names_who_holds_it() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("store.sqlite");
    let _store = whichfs_store::Store::open(&path).unwrap();
    let lock = hold_exclusively(&path);
    let run = sandbox.run(&["choose", "--store", path.to_str().unwrap()]);
    run.fails(3, &["store.sqlite is locked", "--store PATH"]);
    drop(lock);
}

/// Holds the lock that SQLite's writers take: a POSIX lock on its pending, reserved and
/// shared bytes (`os_unix.c`), as a process that is writing does.
fn hold_exclusively(path: &std::path::Path) -> std::fs::File {
    use std::os::fd::AsRawFd;
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0x4000_0000,
        l_len: 512,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open and `lock` outlives the call.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    file
}

#[test]
fn a_store_where_nothing_can_be_written_names_the_way_out() {
    let sandbox = Sandbox::new();
    sandbox.file("file", "");
    let run = sandbox.run(&["choose", "--store", "file/store.sqlite"]);
    run.fails(3, &["file/store.sqlite", "--store PATH"]);
}

#[test]
fn doctor_names_what_is_missing_and_makes_nothing() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["doctor"]);
    assert_eq!((run.code, run.stderr.as_str()), (3, ""), "{}", run.stdout);
    for word in [
        "MISSING lab kernel",
        "make kernel",
        "MISSING agent",
        "make build",
        "MISSING sealed userland",
        "make userland",
    ] {
        assert!(run.stdout.contains(word), "no '{word}': {}", run.stdout);
    }
    assert_eq!(
        std::fs::read_dir(sandbox.path()).unwrap().count(),
        0,
        "doctor made files"
    );
}

#[test]
fn doctor_finds_a_kernel_that_this_machine_cannot_run() {
    let sandbox = Sandbox::new();
    let foreign = sandbox.file("foreign", "\x7fELF\x02\x01\x01 for something else");
    let doctor = |kernel: &std::path::Path| {
        let mut command = sandbox.command(&["doctor"]);
        Run::of(command.env("WHICHFS_KERNEL", kernel)).stdout
    };
    assert!(doctor(&foreign).contains("is no x86-64 program"));
    // A program that is one, but may not be executed.
    let program = std::fs::read("/bin/true").unwrap();
    let plain = sandbox.file("plain", program);
    assert!(doctor(&plain).contains("cannot be run"));
}

#[test]
fn doctor_reports_a_damaged_store() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path().join("data/whichfs")).unwrap();
    sandbox.file(
        "data/whichfs/store.sqlite",
        "this is no database, whatever its name says",
    );
    let run = sandbox.run(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let checks = document["checks"].as_array().unwrap();
    let store = checks
        .iter()
        .find(|check| check["name"] == "store")
        .unwrap();
    assert_eq!(store["ok"], false);
    assert!(
        store["found"].as_str().unwrap().contains("damaged"),
        "{store}"
    );
}

/// `lab kernel --build` by a copy of the program in a source tree whose build script is
/// `script`; no tree at all without one. Another process makes the files: a program that
/// this one has open for writing while a test forks could not be started.
fn build_kernel(sandbox: &Sandbox, script: Option<&str>) -> Run {
    let make = "cp \"$1\" program && [ $# -eq 1 ] || { mkdir kernel && : > kernel/lab.config && \
                printf '%s' \"$2\" > kernel/build && chmod +x kernel/build; }";
    let mut arguments = vec!["-c", make, "sh", env!("CARGO_BIN_EXE_whichfs")];
    arguments.extend(script);
    let made = std::process::Command::new("sh")
        .args(arguments)
        .current_dir(sandbox.path())
        .status();
    assert!(made.unwrap().success());
    let mut command = assert_cmd::Command::new(sandbox.path().join("program"));
    let command = command.args(["lab", "kernel", "--build"]);
    Run::of(command.current_dir(sandbox.path()))
}

#[test]
fn a_kernel_is_built_by_the_script_of_the_source_tree() {
    let sandbox = Sandbox::new();
    sandbox.file("linux", "Linux version 6.12.99 (whichfs@lab)");
    let run = build_kernel(
        &sandbox,
        Some("#!/bin/sh\necho step >&2\necho \"$PWD/linux\"\n"),
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, "step\n"));
    assert!(run.stdout.contains("6.12.99"), "{}", run.stdout);
}

#[test]
fn a_build_that_fails_keeps_its_message() {
    let script = "#!/bin/sh\necho 'kernel: remedy: make setup' >&2\nexit 3\n";
    build_kernel(&Sandbox::new(), Some(script)).fails(3, &["make setup", "exit status: 3"]);
}

#[test]
fn without_a_source_tree_the_way_to_a_kernel_is_told() {
    build_kernel(&Sandbox::new(), None).fails(3, &["source tree", "make kernel"]);
}
