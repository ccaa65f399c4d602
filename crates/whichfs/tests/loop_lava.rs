//! A job that `emit lava` prints runs in LAVA's own dispatcher, without a server, on this machine
//! reached by ssh; its log is read back. Root, loop devices, sshd, the agent and Debian's
//! lava-dispatcher are needed.
#![allow(clippy::unwrap_used)]

use crate::loop_inside::Card;
use crate::skip;
use crate::sshd::{Sshd, program};

use std::path::Path;
use std::process::{Command, Stdio};

/// How LAVA reaches the board; what it has from its server otherwise.
fn device(sshd: &Sshd) -> String {
    let (port, key) = sshd.port_and_key();
    let key = key.display();
    format!(
        "actions:\n  deploy:\n    connections: {{serial: {{}}}}\n    methods:\n      \
         ssh: {{host: 127.0.0.1, port: {port}, user: root, identity_file: {key}}}\n  \
         boot:\n    connections: {{serial: {{}}}}\n    methods: {{ssh: {{}}}}\n\
         constants:\n  default-shell-prompt: 'lava-test: # '\n  failure_retry: 1\n  \
         boot_retry: 1\n  posix: {{lava_test_results_dir: /tmp/whichfs-lava-%s, \
         lava_test_sh_cmd: /bin/sh}}\n"
    )
}

#[test]
fn loop_lava_a_job_runs_in_the_dispatcher_and_its_log_has_all_records() {
    let Some(dispatcher) = program("lava-run") else {
        skip::skip("lava-run is missing (apt-get install --no-install-recommends lava-dispatcher)");
        return;
    };
    let (Some(card), Some(sshd)) = (Card::new(200), Sshd::new()) else {
        return;
    };
    let home = card.home.path();
    let file = |name: &str| home.join(name).display().to_string();
    // The board needs whichfs and its agent.
    let own = Path::new(env!("CARGO_BIN_EXE_whichfs")).parent().unwrap();
    let agent = std::env::var("WHICHFS_AGENT").map(|path| format!("WHICHFS_AGENT={path} "));
    let setup = format!(
        "export {}PATH={}:$PATH",
        agent.unwrap_or_default(),
        own.display()
    );
    let study = file("mini.toml");
    let place = card.place.display().to_string();
    let emit = [
        "emit",
        "lava",
        &study,
        "--device-type",
        "ssh",
        "--on",
        &place,
    ];
    let job = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(emit)
        .args(["--setup", &setup])
        .output()
        .unwrap();
    std::fs::write(home.join("job.yaml"), job.stdout).unwrap();
    std::fs::write(home.join("device.yaml"), device(&sshd)).unwrap();
    std::fs::write(home.join("dispatcher.yaml"), "dispatcher_ip: 127.0.0.1\n").unwrap();
    let id = std::process::id().to_string();
    let output = Command::new(dispatcher)
        .args(["--job-id", &id, "--output-dir", &file("out")])
        .args(["--device", &file("device.yaml"), "--dispatcher"])
        .args([file("dispatcher.yaml"), file("job.yaml")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    for left in std::fs::read_dir("/tmp").unwrap().flatten() {
        let name = left.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("whichfs-lava-{id}")) {
            let path = left.path();
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
    }
    assert!(output.status.success(), "{log}");

    // Two seeds of ext4: the filesystem in which the directory is decides.
    let results = log.lines().filter(|line| line.contains("\"results\""));
    let results: Vec<&str> = results.filter(|line| line.contains("seed-")).collect();
    for seed in ["seed-1", "seed-2"] {
        let of = |end: &str| {
            let case = format!("{seed}{end}\"");
            results.iter().find(|line| line.contains(&case)).copied()
        };
        assert!(of("").unwrap().contains("\"result\": \"pass\""), "{log}");
        let figure = of(".tree_write").unwrap();
        assert!(figure.contains("\"measurement\""), "{figure}");
    }
    std::fs::write(home.join("log"), &log).unwrap();
    let (code, out, err) = card.run(&["store", "import", &file("log")]);
    // Also the reference runs, before and after.
    let all = out.contains("4 new") && out.contains("0 refused");
    assert!(code == 0 && all, "{out}{err}");
}
