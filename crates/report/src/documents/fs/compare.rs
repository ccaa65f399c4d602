//! Two filesystems side by side.

use super::{limit_cells, power};
use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_fs::{Candidate, Matter};

/// A line: what, and how it is with both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FsComparison {
    what: String,
    values: [String; 2],
    /// Where both are written; null where that is not known.
    sources: [Option<String>; 2],
}

/// A value that nobody stated.
const NOT_KNOWN: &str = "not known";

impl Document for FsComparison {
    const NAME: &'static str = "fs compare";
}

/// What differs between the filesystems of `pair`, or with `all` everything.
pub fn fs_comparison(pair: [&'static Candidate; 2], all: bool) -> Vec<FsComparison> {
    let mut lines = lines(pair);
    lines.retain(|line| all || line.values[0] != line.values[1]);
    lines
}

/// The `lines` about the filesystems called `names`, in lines of at most `width` columns; with
/// `sources` also where each is written.
pub fn fs_comparison_text(
    lines: &[FsComparison],
    names: [&str; 2],
    sources: bool,
    width: usize,
) -> String {
    let mut out = Lines::new(width);
    if lines.is_empty() {
        out.line("nothing differs; --all shows everything");
        return out.text();
    }
    let rows = lines.iter().map(|line| {
        let [first, second] = line.values.clone();
        vec![line.what.clone(), first, second]
    });
    out.table(&["", names[0], names[1]], rows.collect());
    if !sources {
        out.line("--sources says where each is written");
        return out.text();
    }
    out.line("");
    for line in lines {
        out.paragraph(&written(line, names), 2);
    }
    out.text()
}

/// Where a line is written: once, if both are in one place.
fn written(line: &FsComparison, names: [&str; 2]) -> String {
    let [first, second] = line.sources.each_ref();
    let told = |source: &Option<String>| source.clone().unwrap_or_else(|| NOT_KNOWN.to_owned());
    let (first, second) = (told(first), told(second));
    match first == second {
        true => format!("{}: {first}", line.what),
        false => format!(
            "{}: {}: {first}; {}: {second}",
            line.what, names[0], names[1]
        ),
    }
}

fn lines(pair: [&'static Candidate; 2]) -> Vec<FsComparison> {
    let known = |text: String| (!text.is_empty()).then_some(text);
    let line = |what: String, both: [(String, String); 2]| {
        let [first, second] = both;
        let value = |text| known(text).unwrap_or_else(|| NOT_KNOWN.to_owned());
        FsComparison {
            what,
            values: [value(first.0), value(second.0)],
            sources: [known(first.1), known(second.1)],
        }
    };
    let [first, second] = pair.map(limit_cells);
    let limits = first.into_iter().zip(second).map(|(first, second)| {
        let what = first.0.to_owned();
        line(what, [(first.1, first.2), (second.1, second.2)])
    });
    let [first, second] = pair.map(promises);
    let power = first.into_iter().zip(second).map(|(first, second)| {
        let what = format!("power cut: {}", first.0);
        line(what, [(first.1, first.2), (second.1, second.2)])
    });
    let care = Matter::ALL.into_iter().map(|matter| {
        let of = |one: &Candidate| {
            let care = whichfs_fs::care(one.name).get(&matter);
            care.map_or_else(Default::default, |care| {
                (told(matter, care), care.source.clone())
            })
        };
        line(matter.words().to_owned(), pair.map(of))
    });
    limits.chain(power).chain(care).collect()
}

/// What is promised over a power cut, with the options of the measured mount left at their
/// defaults: what, whether, and where that is written.
fn promises(candidate: &'static Candidate) -> Vec<(&'static str, String, String)> {
    // What is said of one to which nothing is written has the lines of another.
    let any = whichfs_crash::contract("ext4", "");
    match whichfs_crash::contract(candidate.name, "") {
        Some(own) => power::lines(&own)
            .into_iter()
            .map(|(what, held)| {
                let promised = if held { "promised" } else { "not promised" };
                (what, promised.to_owned(), own.source.clone())
            })
            .collect(),
        None => any
            .iter()
            .flat_map(power::lines)
            .map(|(what, _)| {
                let source = candidate.source_of("read-only").to_owned();
                (what, "nothing is written".to_owned(), source)
            })
            .collect(),
    }
}

/// A line of care in a cell: whether, and how.
pub fn told(matter: Matter, care: &whichfs_fs::Care) -> String {
    match matter {
        Matter::Licence => care.how.clone(),
        _ => format!("{}: {}", care.can.word(), care.how),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_line_has_both() {
        let find = |name| whichfs_fs::find(name).unwrap();
        let lines = lines([find("ext4"), find("vfat")]);
        let line = |what: &str| lines.iter().find(|line| line.what == what).unwrap();
        assert_eq!(line("symbolic links").values, ["yes", "no"]);
        assert_eq!(line("freeze").values[1], "no: the driver has no freeze_fs");
        assert!(
            lines
                .iter()
                .all(|line| line.values.iter().all(|value| !value.is_empty()))
        );
        let promise = line("power cut: it mounts and is whole without fsck");
        assert_eq!(promise.values, ["promised", "not promised"]);
    }

    #[test]
    fn each_line_has_the_source_of_its_own_claim() {
        let find = |name| whichfs_fs::find(name).unwrap();
        let of_vfat = lines([find("ext4"), find("vfat")]);
        let line = |what: &str| of_vfat.iter().find(|line| line.what == what).unwrap();
        for source in line("kernel options").sources.iter().flatten() {
            assert!(source.contains("Kconfig"), "{source}");
        }
        let said = written(line("smallest partition"), ["ext4", "vfat"]);
        assert!(
            said.contains("vfat: Microsoft FAT specification: FAT16"),
            "{said}"
        );
        for candidate in whichfs_fs::candidates() {
            for line in lines([candidate, find("ext4")]) {
                let [own, _] = line.values;
                let known = line.sources[0].is_some();
                assert_eq!(known, own != NOT_KNOWN, "{}: {}", candidate.name, line.what);
            }
        }
    }
}
