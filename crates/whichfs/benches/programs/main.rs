//! How well workloads stand for programs: the same phases of a trial once by the agent and once by
//! the real program, each in a guest of its own on the same card, filesystem and tree:
//! `cargo bench -p whichfs --bench programs [-- PROGRAM [FILESYSTEM]]` (the lab kernel,
//! `WHICHFS_AGENT` and the programs; a quarter of an hour). It prints the table of
//! docs/workloads.md.
//!
//! The clock is `device`: what a program computes in user space is not charged, so the CPU is free
//! for both sides. Figures are ours divided by the program's.
#![allow(missing_docs, clippy::unwrap_used)]

mod beside;

use beside::{Agreement, Pair, Tree, compare};
use whichfs_units::MIB;

/// One card of each family: page-map, log-block, update-block. Files, because the shipped cards of
/// these names are distributions.
const CARDS: [&str; 3] = [
    "../../cards/a1-32gb.toml",
    "../../cards/kingston-class10-u1-16gb.toml",
    "../../cards/sandisk-mobile-ultra-class10-16gb.toml",
];
const FILESYSTEMS: [&str; 7] = [
    "ext4",
    "f2fs",
    "btrfs",
    "xfs",
    "vfat",
    "squashfs-zstd",
    "erofs",
];
const TREE: &[(&str, u64)] = &[("bytes", 48 * MIB), ("files", 1_500)];

const PAIRS: [Pair; 5] = [
    Pair {
        program: "tar -x, tar -c, rm -r",
        workload: "tree",
        parameters: TREE,
        phases: &[
            ("tree_write", "tar -xf $T.tar && sync -f ."),
            ("tree_read", "tar -cf - . | cat > /dev/null"),
            ("tree_remove", "rm -r $(ls $T) && sync -f ."),
        ],
    },
    Pair {
        program: "cp -a",
        workload: "copies",
        parameters: &[
            ("bytes", 24 * MIB),
            ("files", 750),
            ("copies", 2),
            ("rounds", 1),
        ],
        phases: &[
            (
                "copies_write",
                "for at in 0 1; do mkdir copy-000$at && cp -a $T/copy-0000/. copy-000$at; done",
            ),
            ("copies_write_sync", "sync -f ."),
        ],
    },
    Pair {
        program: "rsync -r",
        workload: "tree",
        parameters: &[("bytes", 48 * MIB), ("files", 1_500), ("rsync", 1)],
        phases: &[
            ("tree_write", "rsync -r --perms $T/ . && sync -f ."),
            ("tree_read", "rsync -r . /tmp/copy && rm -r /tmp/copy"),
        ],
    },
    Pair {
        program: "git clone --shared",
        workload: "tree",
        parameters: TREE,
        phases: &[(
            "tree_write",
            "git -c safe.directory='*' clone -q -n --shared $T.git x && mv x/.git . && rmdir x && \
             git -c safe.directory='*' checkout -q -f HEAD && sync -f .",
        )],
    },
    Pair {
        program: "dpkg -i",
        workload: "packages",
        parameters: &[("bytes", 16 * MIB), ("files", 500)],
        phases: &[
            (
                "packages_prepare",
                "mkdir -p var/lib/dpkg && cp -r $T.dpkg/. var/lib/dpkg && sync -f .",
            ),
            (
                "packages_install",
                "dpkg --no-force-unsafe-io --root=. -i $T.debs/*.deb",
            ),
        ],
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` runs this too: then it only has to build.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let mut wanted = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    let (program, only) = (wanted.next(), wanted.next());
    let home = tempfile::tempdir().unwrap();
    println!("| program | filesystem | figure | {} |", CARDS.join(" | "));
    println!("|---|---|---|---|---|---|");
    for pair in &PAIRS {
        if program.is_some_and(|program| !pair.program.contains(program.as_str())) {
            continue;
        }
        let trees = [true, false].map(|unix| Tree::make(pair, unix, home.path()));
        for filesystem in FILESYSTEMS {
            if only.is_some_and(|only| only != filesystem) {
                continue;
            }
            let unix = filesystem != "vfat";
            let tree = &trees[usize::from(!unix)];
            let columns: Vec<Result<Vec<Agreement>, String>> = CARDS
                .iter()
                .map(|card| compare(pair, filesystem, card, tree))
                .collect();
            print(pair, filesystem, &columns);
        }
    }
}

fn print(pair: &Pair, filesystem: &str, columns: &[Result<Vec<Agreement>, String>]) {
    for (phase, _) in pair.phases {
        let cell = |column: &Result<Vec<Agreement>, String>| match column {
            Err(why) => why.lines().next().unwrap_or_default().to_owned(),
            Ok(all) => match all.iter().find(|one| one.phase == *phase) {
                None => "–".to_owned(),
                Some(one) => {
                    let mark = if one.is_good() { "" } else { " *" };
                    let [time, requests, bytes] = one.ratios;
                    format!(
                        "{time:.2} {requests:.2} {bytes:.2} ({:.2} s){mark}",
                        one.seconds
                    )
                }
            },
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        if cells.iter().all(|cell| cell == "–") {
            continue;
        }
        println!(
            "| {} | {filesystem} | {phase} | {} |",
            pair.program,
            cells.join(" | ")
        );
    }
}
