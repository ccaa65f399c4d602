//! Data files: every figure of a board has its source, the packages' table is whole, one MSRV.

use std::collections::BTreeSet;

use crate::{RuleBreak, SourceFile};

/// Applies the rules of this module to one file.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    if file.path.starts_with("boards/") && file.path.ends_with(".toml") {
        check_board(file)
    } else if file.path == "setup/packages.tsv" {
        check_packages(file)
    } else {
        Vec::new()
    }
}

/// The tables of a board file that hold figures.
const BOARD_TABLES: [&str; 3] = ["cpu", "memory", "host"];

fn check_board(file: &SourceFile) -> Vec<RuleBreak> {
    let board: toml::Table = match file.text.parse() {
        Ok(board) => board,
        Err(error) => return vec![RuleBreak::new(&file.path, 0, format!("not TOML: {error}"))],
    };
    let mut figures = BTreeSet::new();
    for table in BOARD_TABLES {
        if let Some(value) = board.get(table) {
            collect_figures(table, value, &mut figures);
        }
    }
    let mut sources = named_sources("", board.get("sources"));
    // How it boots is a table of its own with its sources, because no trial depends on it.
    if let Some(boot) = board.get("boot").and_then(toml::Value::as_table) {
        let facts = boot.keys().filter(|key| *key != "sources");
        figures.extend(facts.map(|key| format!("boot.{key}")));
        sources.extend(named_sources("boot.", boot.get("sources")));
    }
    let unsourced = figures
        .difference(&sources)
        .map(|key| format!("{key} has no source"));
    let unused = sources
        .difference(&figures)
        .map(|key| format!("source of {key}: no such figure"));
    unsourced
        .chain(unused)
        .map(|message| RuleBreak::new(&file.path, 0, message))
        .collect()
}

/// What a table of sources names, each behind `prefix`; an empty source is none.
fn named_sources(prefix: &str, table: Option<&toml::Value>) -> BTreeSet<String> {
    let named = table.and_then(toml::Value::as_table).into_iter().flatten();
    named
        .filter(|(_, source)| source.as_str().is_some_and(|text| !text.trim().is_empty()))
        .map(|(key, _)| format!("{prefix}{key}"))
        .collect()
}

/// Collects the dotted names of all values below `value`.
fn collect_figures(name: &str, value: &toml::Value, figures: &mut BTreeSet<String>) {
    match value.as_table() {
        Some(table) => {
            for (key, value) in table {
                collect_figures(&format!("{name}.{key}"), value, figures);
            }
        }
        None => {
            figures.insert(name.to_owned());
        }
    }
}

fn check_packages(file: &SourceFile) -> Vec<RuleBreak> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut complain = |message: String| {
            findings.push(RuleBreak::new(&file.path, index + 1, message));
        };
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, check, need, _, _] = columns[..] else {
            complain(format!(
                "{} columns; 5, separated by tabs, are expected",
                columns.len()
            ));
            continue;
        };
        if columns.iter().any(|column| column.trim().is_empty()) {
            complain("an empty column".to_owned());
        }
        if !["bin:", "file:", "cargo:"]
            .iter()
            .any(|kind| check.starts_with(kind))
        {
            complain(format!("check {check}: bin:, file: or cargo: is expected"));
        }
        if !["essential", "candidate", "extra"].contains(&need) {
            complain(format!(
                "need {need}: essential, candidate or extra is expected"
            ));
        }
    }
    findings
}

/// The table of packages asks for the same Rust as the workspace's manifest.
pub fn check_msrv(files: &[SourceFile]) -> Vec<RuleBreak> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let (Some(manifest), Some(packages)) = (find("Cargo.toml"), find("setup/packages.tsv")) else {
        return vec![RuleBreak::new(
            "Cargo.toml",
            0,
            "or setup/packages.tsv is missing",
        )];
    };
    let workspace = manifest.text.parse::<toml::Table>().ok();
    let wanted = workspace.as_ref().and_then(|table| {
        table
            .get("workspace")?
            .get("package")?
            .get("rust-version")?
            .as_str()
    });
    let asked = packages
        .text
        .split(['\t', '\n'])
        .find_map(|word| word.strip_prefix("cargo:"));
    if wanted.is_some() && wanted == asked {
        return Vec::new();
    }
    let message = format!("asks for cargo {asked:?}, Cargo.toml's rust-version is {wanted:?}");
    vec![RuleBreak::new(&packages.path, 0, message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile::new(path, text))
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn a_board_figure_without_source_is_found() {
        let figures = "[cpu]\ncores = 1\n[host.mmc]\nsegments = 64\n";
        let sources = "[sources]\n\"cpu.cores\" = \"a\"\n\"host.mmc.segments\" = \"b\"\n";
        assert!(messages("boards/a.toml", &format!("{figures}{sources}")).is_empty());
        assert_eq!(messages("boards/a.toml", figures).len(), 2);
        let empty = sources.replace("\"b\"", "\" \"");
        let found = messages("boards/a.toml", &format!("{figures}{empty}"));
        assert_eq!(found, ["host.mmc.segments has no source"]);
        let stale = format!("{figures}{sources}\"cpu.mhz\" = \"c\"\n");
        assert_eq!(
            messages("boards/a.toml", &stale),
            ["source of cpu.mhz: no such figure"]
        );
        let boot = format!("{figures}{sources}[boot]\ntables = [\"mbr\"]\nreader = \"x\"\n");
        assert_eq!(messages("boards/a.toml", &boot).len(), 2);
        let told = format!("{boot}[boot.sources]\ntables = \"a\"\n");
        assert_eq!(
            messages("boards/a.toml", &told),
            ["boot.reader has no source"]
        );
        assert!(messages("boards/a.toml", "[cpu")[0].contains("not TOML"));
    }

    #[test]
    fn a_broken_row_of_packages_is_found() {
        let path = "setup/packages.tsv";
        assert!(messages(path, "# a\ngcc\tbin:gcc\tessential\tcompiles\tnothing\n").is_empty());
        for row in [
            "gcc bin:gcc essential compiles nothing",
            "gcc\tgcc\tessential\tcompiles\tnothing",
            "gcc\tbin:gcc\tneeded\tcompiles\tnothing",
            "gcc\tbin:gcc\tessential\tcompiles\t",
        ] {
            assert_eq!(messages(path, row).len(), 1, "{row}");
        }
    }

    #[test]
    fn two_minimal_versions_of_rust_are_found() {
        let manifest = |version: &str| {
            let text = format!("[workspace.package]\nrust-version = \"{version}\"\n");
            SourceFile::new("Cargo.toml", text)
        };
        let packages = SourceFile::new("setup/packages.tsv", "cargo-web\tcargo:1.89\tx\n");
        assert!(check_msrv(&[manifest("1.89"), packages.clone()]).is_empty());
        assert_eq!(check_msrv(&[manifest("1.90"), packages.clone()]).len(), 1);
        assert_eq!(check_msrv(&[packages]).len(), 1);
    }
}
