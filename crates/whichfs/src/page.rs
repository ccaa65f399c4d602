//! What the report says of card, environment and reproduction.

use whichfs_decide::Verdict;
use whichfs_engine::board::Board;
use whichfs_engine::cards::partition_offset;
use whichfs_engine::clock::Clock;
use whichfs_engine::device::DeviceExecutor;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::shell::quoted_os;
use whichfs_engine::tools::package_versions;
use whichfs_engine::trial_lookup::show_line;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_lab::Userland;
use whichfs_report::{Item, Page, RunStamp, card_items, devices, figure, item, trial_lines};
use whichfs_trial::{REAL, Trial};
use whichfs_units::Bytes;

/// The report's page; `repeat` is the command of one trial ([`crate::repeat::line`]).
pub fn page(
    bench: &LabExecutor,
    work: &WorkloadRun,
    verdict: &Verdict,
    reused: usize,
    trials: &[Trial],
    repeat: String,
) -> Page {
    Page {
        run: RunStamp::default(),
        verdict: verdict.clone(),
        card_figures: card_items(
            &bench.card.name,
            &bench.card.profile,
            bench.card_state.name(),
            partition_offset(&bench.card.profile),
        ),
        environment: environment(bench, work, reused),
        reproduce: vec![command_line()],
        trials_of: trial_lines(trials, &repeat),
        repeat,
        show: show_line(std::env::args_os().skip(1)),
        cuts: Vec::new(),
        devices: devices(trials),
    }
}

/// The report's page of what was measured on the device of `site`, as [`page`].
pub fn measured(
    site: &DeviceExecutor,
    work: &WorkloadRun,
    verdict: &Verdict,
    reused: usize,
    trials: &[Trial],
    repeat: String,
) -> Page {
    let (medium, machine) = (&site.medium, &site.machine);
    let mut environment = vec![
        item("whichfs", env!("CARGO_PKG_VERSION"), ""),
        item("kernel", &machine.kernel, "this machine's"),
        item("machine", &machine.name, ""),
        item("memory", format!("{} MiB", machine.memory_mib), ""),
        item("clock", REAL, "this machine's"),
        item("workload", work.workload.name(), ""),
    ];
    environment.extend(parameters(work));
    if reused > 0 {
        environment.push(item("trials reused from the store", reused, ""));
    }
    environment.extend(packages());
    Page {
        run: RunStamp::default(),
        verdict: verdict.clone(),
        card_figures: vec![
            item("device", site.id(), &site.device.identity),
            item("size", Bytes(site.device.bytes), ""),
            item(
                "allocation unit",
                Bytes(medium.unit.bytes),
                &medium.unit.why,
            ),
            item("state at the start", "as found", ""),
        ],
        environment,
        reproduce: vec![command_line()],
        trials_of: trial_lines(trials, &repeat),
        repeat,
        show: show_line(std::env::args_os().skip(1)),
        cuts: Vec::new(),
        devices: devices(trials),
    }
}

fn environment(bench: &LabExecutor, work: &WorkloadRun, reused: usize) -> Vec<Item> {
    let board = &bench.board;
    let clock = bench.clock.name(board);
    let mut items = vec![
        item("whichfs", env!("CARGO_PKG_VERSION"), ""),
        item(
            "kernel",
            &bench.kernel.release,
            &format!("sha256 {}", &bench.kernel.sha256[..16]),
        ),
        item(
            "board",
            format!("{}: {}", board.name, board.file.title),
            "one core modelled",
        ),
        item("memory", format!("{} MiB", board.file.memory.mib), ""),
        item("clock", clock, &clock_source(&bench.clock, board)),
        item("workload", work.workload.name(), ""),
    ];
    items.extend(parameters(work));
    if reused > 0 {
        items.push(item("trials reused from the store", reused, ""));
    }
    items.extend(bench.userland.iter().flat_map(userland));
    items.extend(digests(bench));
    items
}

/// What decides figures beside the options, each with its digest.
pub fn digests(bench: &LabExecutor) -> impl Iterator<Item = Item> {
    let all = bench.digests().into_iter();
    all.map(|(part, sha256)| item(&format!("sha256 of the {part}"), sha256, ""))
}

/// What is known of the clock's CPU time, as `board show` says it.
fn clock_source(clock: &Clock, board: &Board) -> String {
    match clock {
        Clock::Device => "virtual time of the card alone: CPU time costs nothing".to_owned(),
        Clock::Cpu => {
            let cpu = &board.file.cpu;
            let ns = |ps: u64| figure(ps as f64 / 1e3, "");
            format!(
                "virtual time; a kernel instruction is taken for {} ns ({} to {}), {}: `whichfs \
                 board show {}` has every price with its source",
                ns(cpu.instruction_ps),
                ns(cpu.instruction_ps_low),
                ns(cpu.instruction_ps_high),
                cpu.basis.words(),
                board.name
            )
        }
    }
}

fn parameters(work: &WorkloadRun) -> impl Iterator<Item = Item> {
    let all = work.parameters.iter();
    all.map(|(name, value)| item(name, value, "parameter"))
}

/// The packages of the candidates' tools on this machine.
fn packages() -> impl Iterator<Item = Item> {
    let versions = package_versions(&tool_packages()).into_iter();
    versions.map(|(package, version)| item(&package, version, "Debian package"))
}

/// The sealed userland, and in it the packages of the candidates' tools.
fn userland(userland: &Userland) -> Vec<Item> {
    let packages = tool_packages();
    let digest = format!("sha256 {}", &userland.sha256[..16]);
    let versions = userland.packages.iter();
    let versions = versions.filter(|(name, _)| packages.contains(&name.as_str()));
    let versions = versions.map(|(name, version)| item(name, version, "package in it"));
    let image = item("sealed userland", digest, "programs of all trials");
    [image].into_iter().chain(versions).collect()
}

/// The packages of the candidates' tools, by name.
fn tool_packages() -> Vec<&'static str> {
    let mut packages: Vec<&str> = whichfs_fs::candidates()
        .iter()
        .flat_map(|c| c.facts().packages)
        .copied()
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// This run's command.
pub fn command_line() -> String {
    // Names of files need not be text.
    let words = std::env::args_os().skip(1).map(|word| quoted_os(&word));
    let words: Vec<String> = ["whichfs".to_owned()].into_iter().chain(words).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_clock_says_what_is_known_of_its_board() {
        let board = Board::open("generic-1ghz").unwrap();
        let said = clock_source(&Clock::Cpu, &board);
        for part in [
            "4.00 ns (2.00 to 10.0), estimated",
            "board show generic-1ghz",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let measured = Board::open("beaglebone-black").unwrap();
        let said = clock_source(&Clock::Cpu, &measured);
        assert!(said.contains("from lmbench"), "{said}");
        assert!(clock_source(&Clock::Device, &board).contains("card alone"));
    }
}
