//! The command of one trial of `choose`, with all that decides what comes out.

use crate::cli::{ChooseArgs, HereArgs, MachineArgs, PlaceArgs};
use std::path::Path;
use whichfs_decide::POWER_LOSS;
use whichfs_engine::cards::CardState;
use whichfs_engine::crash::inputs::WALL_LIMIT;
use whichfs_engine::shell::quoted_os;
use whichfs_units::arguments::told;
use whichfs_units::shell_word;

/// The command of one trial of the run with `args`. In its last options, from `--fs` on,
/// CANDIDATE and SEED stand for what they say. What was left to a default is written out, files
/// are named from the root on, and the answer goes to a directory of its own: pasted anywhere, it
/// gives the same trial and overwrites no report. No device's data are given up: it is asked for.
pub fn line(args: &ChooseArgs) -> String {
    // A new option must be put into one of these groups.
    let ChooseArgs {
        place,
        needs,
        need,
        size,
        tree,
        fio,
        command,
        second_card,
        device,
        candidates: _,
        seeds: _,
        first_seed: _,
        cuts: _,
        jobs: _,
        out: _,
        run: _,
        store: _,
        fresh: _,
        emit: _,
        layout: _,
        json: _,
    } = args;
    let mut words = vec!["whichfs choose".to_owned()];
    let mut option = |name: &str, value: String| words.push(format!("{name} {value}"));
    option("--for", shell_word(&whole_path(needs)));
    // That no cut may hurt excludes after the trials, and has cuts made.
    let strict = format!("{POWER_LOSS}=none");
    for change in need.iter().filter(|change| **change != strict) {
        option("--need", shell_word(&whole_value(change)));
    }
    let PlaceArgs { card, machine } = place;
    let MachineArgs {
        card_state,
        board,
        clock,
        wall_limit,
    } = machine;
    // A device has its own state, board and clock.
    if let Some(device) = args.measured_on() {
        option("--on", shell_word(&whole_path(device)));
    } else {
        option("--card", shell_word(&whole_path(card)));
        option(
            "--card-state",
            CardState::from(*card_state).name().to_owned(),
        );
        option("--board", shell_word(&whole_path(board)));
        option("--clock", shell_word(&whole_clock(clock)));
    }
    if *wall_limit != WALL_LIMIT.as_secs() {
        option("--wall-limit", wall_limit.to_string());
    }
    if let Some(bytes) = size {
        option("--size", told(*bytes));
    }
    if let Some(tree) = tree {
        option("--tree", whole_file(tree));
    }
    if let Some(job) = fio {
        option("--fio", whole_file(job));
    }
    if let Some(command) = command {
        option("--command", shell_word(command));
    }
    if let Some(card) = second_card {
        option("--second-card", shell_word(&whole_path(card)));
    }
    if args.measured_on().is_some() {
        words.extend(on_device(&device.device));
    }
    let part = "--fs CANDIDATE --first-seed SEED --seeds 1 --fresh --out \
                repeat-CANDIDATE-SEED";
    words.push(part.to_owned());
    words.join(" ")
}

/// Options of trials on the device itself.
fn on_device(args: &HereArgs) -> Vec<String> {
    let HereArgs {
        destroy: _,
        max_write: _,
        profile,
        au,
        settle,
        max_size,
        internal,
        board_timeout: _,
    } = args;
    let valued = [
        (
            "--profile",
            profile.as_deref().map(|name| shell_word(&whole_path(name))),
        ),
        ("--au", au.map(|bytes| bytes.to_string())),
        ("--settle", settle.map(|seconds| seconds.to_string())),
        ("--max-size", max_size.map(|bytes| bytes.to_string())),
    ];
    let given = (valued.into_iter()).filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    let mut words: Vec<String> = given.collect();
    if *internal {
        words.push("--internal".to_owned());
    }
    words
}

/// A name as it is; a file's with its whole path.
fn whole_path(given: &str) -> String {
    let is_file = given.contains('/') || given.ends_with(".toml");
    match is_file.then(|| std::path::absolute(given)) {
        Some(Ok(path)) => path.display().to_string(),
        _ => given.to_owned(),
    }
}

/// `KEY=FILE` with the whole path, where it names one (kernel_options).
fn whole_value(change: &str) -> String {
    match change.split_once('=') {
        Some((key @ "kernel_options", value)) if value.contains('/') => {
            format!("{key}={}", whole_path(value))
        }
        _ => change.to_owned(),
    }
}

fn whole_clock(clock: &str) -> String {
    match clock.split_once(':') {
        Some((kind, board)) => format!("{kind}:{}", whole_path(board)),
        None => clock.to_owned(),
    }
}

/// A file's whole name, which may be no text.
fn whole_file(path: &Path) -> String {
    let whole = std::path::absolute(path);
    quoted_os(whole.as_deref().map_or(path.as_os_str(), Path::as_os_str))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn parsed(line: &str) -> ChooseArgs {
        match Cli::try_parse_from(line.split_whitespace())
            .unwrap()
            .command
        {
            Command::Choose(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    const PART: &str = "--fs CANDIDATE --first-seed SEED --seeds 1 --fresh --out \
                        repeat-CANDIDATE-SEED";

    #[test]
    fn what_decides_is_kept_or_written_out_and_the_rest_left_out() {
        let given = "whichfs choose --card class4-4gb --for logger --seeds 9 --out=here --json \
                     --fs ext4,xfs --need windows=any --need power_loss=none --size 3M \
                     --emit bsp --store t.sqlite --jobs 1 --cuts 7";
        assert_eq!(
            line(&parsed(given)),
            format!(
                "whichfs choose --for logger --need windows=any --card class4-4gb --card-state \
                 used --board generic-1ghz --clock cpu --size 3M {PART}"
            )
        );
    }

    #[test]
    fn the_line_is_a_command_with_the_same_line() {
        for given in [
            "whichfs choose",
            "whichfs choose --for logger --clock device --card-state fresh --wall-limit 20",
            "whichfs choose --fio job.fio --need kernel_options=CONFIG_EXT4_FS",
            "whichfs choose --on /dev/sdX --destroy ID --au 4M --settle 0 --internal",
        ] {
            let once = line(&parsed(given));
            let again = once.replace("SEED", "7").replace("CANDIDATE", "ext4");
            let args = parsed(&again);
            assert_eq!(line(&args), once);
            assert_eq!(
                (args.first_seed, args.seeds, args.candidates.as_slice()),
                (7, Some(1), &["ext4".to_owned()][..])
            );
            assert!(args.fresh && args.out.as_deref() == Some(Path::new("repeat-ext4-7")));
        }
    }

    #[test]
    fn files_are_named_from_the_root_on_and_no_data_are_given_up() {
        let here = std::env::current_dir().unwrap();
        let line = super::line(&parsed("whichfs choose --tree src --for Cargo.toml"));
        let shown = here.display();
        assert!(line.contains(&format!("--tree {shown}/src")), "{line}");
        assert!(
            line.contains(&format!("--for {shown}/Cargo.toml")),
            "{line}"
        );
        let device = "whichfs choose --card /dev/sdX --here --destroy ID --max-write 1G";
        let line = super::line(&parsed(device));
        assert_eq!(
            line,
            format!("whichfs choose --for rootfs --on /dev/sdX {PART}")
        );
        // In the lab a device's profile stands for it.
        let mut args = parsed("whichfs choose --card /dev/sdX --write --confirm");
        args.place.card = "/profiles/p.toml".to_owned();
        let line = super::line(&args);
        assert!(
            !line.contains("--write") && !line.contains("/dev/sdX"),
            "{line}"
        );
    }
}
