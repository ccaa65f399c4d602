//! What the report says of card, environment and reproduction.

use crate::bench::{Bench, Work};
use crate::cards::partition_offset;
use crate::shell::quoted_os;
use crate::tools::package_versions;
use whichfs_card::Profile;
use whichfs_report::{Item, Page};
use whichfs_study::Verdict;
use whichfs_units::Bytes;

/// The report's page.
pub fn page(bench: &Bench, work: &Work, verdict: &Verdict, reused: usize) -> Page {
    Page {
        verdict: verdict.clone(),
        card: card_items(bench),
        environment: environment(bench, work, reused),
        reproduce: vec![command_line()],
    }
}

/// How unsure the profile's figures are, as a fraction: the median of those that vary.
pub fn card_uncertainty(profile: &Profile) -> f64 {
    let mut all: Vec<u64> = profile
        .figures()
        .map(|f| f.uncertainty_percent)
        .filter(|&percent| percent > 0)
        .collect();
    all.sort_unstable();
    all.get(all.len() / 2)
        .map_or(0.0, |&percent| percent as f64 / 100.0)
}

fn item(label: &str, value: impl ToString, source: &str) -> Item {
    Item {
        label: label.to_owned(),
        value: value.to_string(),
        source: source.to_owned(),
    }
}

fn card_items(bench: &Bench) -> Vec<Item> {
    let profile = &bench.card.profile;
    let kind = if profile.composed() {
        "composed of several sources"
    } else {
        "one card"
    };
    let mut items = vec![
        item(
            "profile",
            format!("{}: {}", bench.card.name, profile.title()),
            kind,
        ),
        item("state at the start", bench.card_state.name(), ""),
        item(
            "partition begins at",
            Bytes(partition_offset(profile)),
            "first AU at or after 4 MiB",
        ),
    ];
    items.extend(profile.figures().map(|figure| {
        let value = format!("{} (±{} %)", figure.value, figure.uncertainty_percent);
        item(
            figure.path,
            value,
            figure.source.as_deref().unwrap_or("default of the model"),
        )
    }));
    items
}

fn environment(bench: &Bench, work: &Work, reused: usize) -> Vec<Item> {
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
        item(
            "clock",
            clock,
            "virtual time; CPU factor is not calibrated yet",
        ),
        item("workload", work.workload.name(), ""),
    ];
    items.extend(
        work.parameters
            .iter()
            .map(|(name, value)| item(name, value, "parameter")),
    );
    if reused > 0 {
        items.push(item("trials reused from the store", reused, ""));
    }
    let mut packages: Vec<&str> = whichfs_fs::candidates()
        .iter()
        .flat_map(|c| c.facts().packages)
        .copied()
        .collect();
    packages.sort_unstable();
    packages.dedup();
    for (package, version) in package_versions(&packages) {
        items.push(item(&package, version, "Debian package"));
    }
    items
}

/// This run's command, without the output options.
fn command_line() -> String {
    // Names of files need not be text.
    let quoted = std::env::args_os().skip(1).map(|word| quoted_os(&word));
    ["whichfs".to_owned()]
        .into_iter()
        .chain(quoted)
        .collect::<Vec<_>>()
        .join(" ")
}
