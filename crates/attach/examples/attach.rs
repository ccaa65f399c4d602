//! Attaches a card, runs a command with `$dev` set, prints the figures:
//! `cargo run --release -p whichfs-attach --example attach -- PROFILE.toml MIB SPEED COMMAND`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use whichfs_attach::{AttachOptions, BeginState, HostQueue, Transport, attach};
use whichfs_card::Profile;
use whichfs_units::Nanos;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, mib, speed, command] = args.as_slice() else {
        eprintln!("usage: attach PROFILE.toml MIB SPEED COMMAND");
        std::process::exit(2);
    };
    let text = std::fs::read_to_string(file).expect("a profile");
    let whole = Profile::parse(file, &text).unwrap_or_else(|error| panic!("{error}"));
    let bytes = mib.parse::<u64>().expect("a size in MiB") << 20;
    let options = AttachOptions {
        name: file.clone(),
        profile: whole.with_capacity(bytes).expect("a legal size"),
        state: BeginState::Used(1),
        speed: speed.parse().expect("a speed"),
        transport: Transport::Auto,
        queue: HostQueue {
            scheduler: "mq-deadline".into(),
            rotational: false,
            nr_requests: 128,
            read_ahead_kib: 128,
            largest_request_kib: 512,
        },
        request_cost: Nanos::ZERO,
        memory_bytes: bytes.min(4 << 30),
        directory: PathBuf::from("/var/tmp"),
    };
    let attached = attach(options).unwrap_or_else(|error| panic!("{error}"));
    let status = attached
        .run(command, Stdio::inherit(), &AtomicBool::new(false))
        .expect("a shell");
    match attached.detach() {
        Ok(figures) => println!("{}", serde_json::to_string_pretty(&figures).expect("JSON")),
        Err(refused) => {
            eprintln!("{}", refused.error);
            std::process::exit(1);
        }
    }
    std::process::exit(status.code().unwrap_or(1));
}
