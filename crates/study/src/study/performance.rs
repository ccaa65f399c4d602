//! Studies of the kind `performance`: a matrix of trials, cards × boards × workloads ×
//! candidates × variants, each with some seeds.

use super::compare::{Compare, CompareFile, compare};
use super::kernels::{kernels, on_each};
use super::keys::{BOARDS, CARDS, LoadFile, full, loads, names, opens, own_name, within};
use super::published::{MappingFile, mappings};
use super::variant::{VariantFile, variants};
use super::{Known, Mapping, StudyWorkload, Variant};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use whichfs_decide::{FileError, Position};
use whichfs_units::{KIB, MIB};

/// Legal numbers of seeds.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=1000;
/// Which times count.
const CLOCKS: [&str; 2] = ["cpu", "device"];

/// An experiment with trials.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PerformanceStudy {
    /// Name as after `study run`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the experiment comes from.
    pub source: String,
    /// How it is made, and how that differs from the source.
    pub method: String,
    /// Cards: names or profile files.
    pub cards: Vec<String>,
    /// Boards: names or board files.
    pub boards: Vec<String>,
    /// `cpu` or `device`.
    pub clock: String,
    /// Versions of the lab kernel; empty for the lab's own.
    #[serde(rename = "kernel", skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// Architecture of the Debian kernel whose modules' sizes stand in the first table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// Repeats: each draws card and workload anew.
    pub seeds: u64,
    /// Repeats of the quick form.
    pub quick_seeds: u64,
    /// The workload's data are those of the first seed in each repeat, and the card alone is drawn
    /// anew: where images of one tree are what takes long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub same_data: bool,
    /// Candidates of the catalogue.
    pub candidates: Vec<String>,
    /// Ways to mount them; at least one.
    pub variants: Vec<Variant>,
    /// What is measured.
    pub workloads: Vec<StudyWorkload>,
    /// What is compared with what, if the question is about differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// Whether the smallest partition of each candidate is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest: Option<Smallest>,
    /// Published tables that figures are set beside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Mapping>,
}

/// The smallest partition on which a workload of the study comes to its end, by bisection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Smallest {
    /// Name of the workload in the study.
    pub workload: String,
    /// Sizes are multiples of this.
    pub resolution_bytes: u64,
    /// Larger ones are not tried.
    pub largest_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SmallestFile {
    workload: Spanned<String>,
    resolution_kib: Spanned<u64>,
    largest_mib: Spanned<u64>,
}

/// Legal steps and sizes of a search for the smallest partition.
const RESOLUTION_KIB: std::ops::RangeInclusive<u64> = 1..=1_048_576;
const LARGEST_MIB: std::ops::RangeInclusive<u64> = 1..=1_048_576;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PerformanceFile {
    name: Spanned<String>,
    #[serde(rename = "kind")]
    _kind: String,
    title: Spanned<String>,
    source: Spanned<String>,
    method: Spanned<String>,
    cards: Spanned<Vec<Spanned<String>>>,
    boards: Spanned<Vec<Spanned<String>>>,
    clock: Option<Spanned<String>>,
    kernel: Option<Spanned<Vec<Spanned<String>>>>,
    modules: Option<Spanned<String>>,
    seeds: Spanned<u64>,
    quick_seeds: Option<Spanned<u64>>,
    #[serde(default)]
    same_data: bool,
    candidates: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    variants: Vec<VariantFile>,
    workloads: Spanned<Vec<LoadFile>>,
    compare: Option<CompareFile>,
    smallest: Option<SmallestFile>,
    #[serde(default)]
    published: Vec<MappingFile>,
}

impl PerformanceStudy {
    /// Reads a study file; `file` is only for messages.
    ///
    /// # Errors
    /// [`FileError`] with line, key and what is legal.
    pub fn parse(file: &str, text: &str, known: &Known) -> Result<PerformanceStudy, FileError> {
        let at = Position { file, text };
        let raw: PerformanceFile = at.read(
            "name, kind, title, source, method, cards, boards, seeds, candidates, [[workloads]], \
             and as wanted clock, kernel, modules, quick_seeds, same_data, [[variants]], \
             [compare], [smallest], [[published]] as in studies/linuxplanet.toml and \
             studies/alignment.toml",
        )?;
        let candidates = names(
            &at,
            "candidates",
            raw.candidates.get_ref(),
            known.candidates,
        )?;
        let seeds = within(&at, "seeds", &raw.seeds, SEEDS)?;
        let quick_seeds = match &raw.quick_seeds {
            Some(quick) => within(&at, "quick_seeds", quick, 1..=seeds)?,
            None => 1,
        };
        let variants = variants(&at, &raw.variants, &candidates, known)?;
        let mounts: Vec<&str> = variants
            .iter()
            .map(|variant| variant.name.as_str())
            .collect();
        let given = raw.kernel.as_ref();
        let kernels = kernels(&at, given.map_or(&[], |given| given.get_ref()))?;
        let mut workloads = loads(&at, raw.workloads.get_ref(), &mounts, known)?;
        let variants = on_each(&kernels, variants, &mut workloads);
        let mut study = PerformanceStudy {
            name: at.filled("name", &raw.name)?,
            title: at.filled("title", &raw.title)?,
            source: at.filled("source", &raw.source)?,
            method: at.filled("method", &raw.method)?,
            cards: texts(&at, "cards", raw.cards.get_ref())?,
            boards: texts(&at, "boards", raw.boards.get_ref())?,
            clock: clock(&at, raw.clock.as_ref())?,
            seeds,
            quick_seeds,
            same_data: raw.same_data,
            workloads,
            kernels,
            modules: modules(&at, raw.modules.as_ref())?,
            variants,
            candidates,
            compare: None,
            smallest: None,
            published: Vec::new(),
        };
        for card in raw.cards.get_ref() {
            opens(&at, "cards", card, known.card, CARDS)?;
        }
        for board in raw.boards.get_ref() {
            opens(&at, "boards", board, known.board, BOARDS)?;
        }
        full(&at, "cards", &raw.cards)?;
        full(&at, "boards", &raw.boards)?;
        full(&at, "candidates", &raw.candidates)?;
        full(&at, "workloads", &raw.workloads)?;
        if let Some(given) = given {
            full(&at, "kernel", given)?;
        }
        let given = raw.compare.as_ref();
        study.compare = given
            .map(|raw| compare(&at, raw, &study, known))
            .transpose()?;
        if let (Some(kernel), true) = (&raw.kernel, raw.smallest.is_some()) {
            let legal = "one of them: the smallest partition is looked for on the lab's own kernel";
            return Err(at.error(kernel, "kernel", "beside [smallest]", legal));
        }
        let given = raw.smallest.as_ref();
        study.smallest = given.map(|raw| smallest(&at, raw, &study)).transpose()?;
        study.published = mappings(&at, &raw.published, &study, known)?;
        Ok(study)
    }

    /// The quick form: the same shape with less of everything.
    #[must_use]
    pub fn quick(mut self) -> PerformanceStudy {
        self.seeds = self.quick_seeds;
        for load in &mut self.workloads {
            load.parameters = load.quick_parameters();
        }
        self
    }
}

fn clock(at: &Position, given: Option<&Spanned<String>>) -> Result<String, FileError> {
    let Some(clock) = given else {
        return Ok(CLOCKS[0].to_owned());
    };
    match CLOCKS.contains(&clock.get_ref().as_str()) {
        true => Ok(clock.get_ref().clone()),
        false => Err(at.error(
            clock,
            "clock",
            format!("'{}'", clock.get_ref()),
            &CLOCKS.join(" or "),
        )),
    }
}

/// The architecture whose modules are wanted; they are known of some.
fn modules(at: &Position, given: Option<&Spanned<String>>) -> Result<Option<String>, FileError> {
    let known: Vec<&str> = whichfs_fs::kernels()
        .iter()
        .map(|kernel| kernel.architecture.as_str())
        .collect();
    let found = names(
        at,
        "modules",
        given.map_or(&[], std::slice::from_ref),
        &known,
    )?;
    Ok(found.into_iter().next())
}

/// Texts that are not empty, each once.
fn texts(at: &Position, key: &str, given: &[Spanned<String>]) -> Result<Vec<String>, FileError> {
    let mut found: Vec<String> = Vec::new();
    for text in given {
        let others: Vec<&str> = found.iter().map(String::as_str).collect();
        found.push(own_name(at, key, text, &others)?);
    }
    Ok(found)
}

fn smallest(
    at: &Position,
    raw: &SmallestFile,
    study: &PerformanceStudy,
) -> Result<Smallest, FileError> {
    let loads: Vec<&str> = study
        .workloads
        .iter()
        .map(|load| load.name.as_str())
        .collect();
    let given = std::slice::from_ref(&raw.workload);
    let found = names(at, "smallest.workload", given, &loads)?;
    let step = within(
        at,
        "smallest.resolution_kib",
        &raw.resolution_kib,
        RESOLUTION_KIB,
    )?;
    let most = within(at, "smallest.largest_mib", &raw.largest_mib, LARGEST_MIB)?;
    Ok(Smallest {
        workload: found.concat(),
        resolution_bytes: step * KIB,
        largest_bytes: most * MIB,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Spot;
    use super::*;

    fn known<'a>() -> Known<'a> {
        Known {
            candidates: &["ext4", "vfat", "erofs"],
            filesystems: &["ext4", "vfat"],
            faults: &[],
            card: &|name| match name {
                "a" | "b" => Ok(()),
                _ => Err(format!("unknown card '{name}'")),
            },
            board: &|name| match name {
                "p" => Ok(()),
                _ => Err(format!("unknown board '{name}'")),
            },
            workload: &|name, parameters| match (name, parameters.keys().next()) {
                ("rootfs", None) => Ok(()),
                ("rootfs", Some(key)) if key == "bytes" => Ok(()),
                _ => Err("workload rootfs with bytes".to_owned()),
            },
            metric: &|_, metric| match metric {
                "tree_write" => Ok(()),
                _ => Err("tree_write".to_owned()),
            },
        }
    }

    const TEXT: &str = r#"
name = "x"
kind = "performance"
title = "t"
source = "s"
method = "m"
cards = ["a", "b"]
boards = ["p"]
seeds = 3
candidates = ["ext4", "vfat"]

[[variants]]
name = "relatime"
without = ["noatime"]
add = "relatime"

[[variants]]
name = "flush"
add = "flush"
only = ["vfat"]

[[workloads]]
name = "small"
workload = "rootfs"
parameters = { bytes = 100 }
quick = { bytes = 10 }
"#;

    fn parse(text: &str) -> Result<PerformanceStudy, FileError> {
        PerformanceStudy::parse("x.toml", text, &known())
    }

    #[test]
    fn the_matrix_has_each_trial_once_and_a_seed_of_everything_first() {
        let study = parse(TEXT).unwrap();
        let spots = study.spots();
        // Three seeds, two cards, and ext4 has one variant, vfat two.
        assert_eq!(spots.len(), 3 * 2 * 3);
        assert!(spots[..6].iter().all(|spot| spot.seed == 1));
        for (at, spot) in spots.iter().enumerate() {
            assert!(!spots[..at].contains(spot), "{spot:?} twice");
        }
        let quick = study.quick();
        assert_eq!(quick.spots().len(), 6);
        assert_eq!(quick.workloads[0].parameters["bytes"], 10);
    }

    #[test]
    fn a_workload_can_be_for_some_mounts_only() {
        let text = TEXT.replace("bytes = 10 }", "bytes = 10 }\nonly_variants = [\"flush\"]");
        let study = parse(&text).unwrap();
        let spots = study.spots();
        assert_eq!(spots.len(), 3 * 2, "vfat alone has flush");
        assert!(spots.iter().all(|spot| spot.variant.name == "flush"));
    }

    #[test]
    fn kernels_multiply_the_variants() {
        let two = "seeds = 3\nkernel = [\"6.12\", \"6.1\"]";
        let text = TEXT.replace("seeds = 3", two);
        let narrow = "bytes = 10 }\nonly_variants = [\"relatime\"]";
        let study = parse(&text.replace("bytes = 10 }", narrow)).unwrap();
        let names: Vec<&str> = study.variants.iter().map(|v| v.name.as_str()).collect();
        let expected = [
            "relatime, 6.12",
            "relatime, 6.1",
            "flush, 6.12",
            "flush, 6.1",
        ];
        assert_eq!(names, expected);
        let spots = study.spots();
        assert_eq!(
            spots.len(),
            3 * 2 * 2 * 2,
            "seeds, cards, relatime's two candidates, kernels"
        );
        let kernels: Vec<Option<&str>> = spots[..4].iter().map(Spot::kernel).collect();
        let apart = [Some("6.12"), Some("6.12"), Some("6.1"), Some("6.1")];
        assert_eq!(kernels, apart, "trials of one kernel stand together");
        let bare = text.split("[[variants]]").next().unwrap().to_owned()
            + "[compare]\nvariant = \"6.12\"\n[[workloads]]"
            + text.split("[[workloads]]").nth(1).unwrap();
        let study = parse(&bare).unwrap();
        assert_eq!(study.variants[1].name, "6.1");
        assert_eq!(parse(TEXT).unwrap().spots()[0].kernel(), None);
    }

    #[test]
    fn a_variant_changes_the_options_of_the_catalogue() {
        let study = parse(TEXT).unwrap();
        let options = |at: usize, recipe| study.variants[at].options(recipe);
        assert_eq!(options(0, "noatime,discard"), "discard,relatime");
        assert_eq!(options(0, ""), "relatime");
        assert_eq!(options(1, "noatime"), "noatime,flush");
        assert_eq!(Variant::default().options("ro"), "ro");
    }

    #[test]
    fn faults_of_a_file_are_told_with_their_lines() {
        let wrong = |from: &str, to: &str| {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT, "{from}");
            parse(&text).unwrap_err().to_string()
        };
        let cases = [
            (
                "seeds = 3",
                "seeds = 0",
                "x.toml:9: seeds: 0; expected 1 to 1000",
            ),
            ("\"vfat\"]\n", "\"fat\"]\n", "x.toml:10: candidates: 'fat'"),
            (
                "[\"a\", \"b\"]",
                "[\"a\", \"a\"]",
                "x.toml:7: cards: 'a' twice",
            ),
            ("[\"p\"]", "[]", "boards: none; expected at least one"),
            ("\"b\"]", "\"c\"]", "x.toml:7: cards: unknown card 'c'"),
            ("[\"p\"]", "[\"q\"]", "x.toml:8: boards: unknown board 'q'"),
            (
                "add = \"flush\"",
                "add = \"flush\"\ntuned_for = \"z\"",
                "x.toml:20: variants.tuned_for: unknown card 'z'",
            ),
            (
                "\"flush\"\nadd",
                "\"relatime\"\nadd",
                "variants.name: 'relatime' twice",
            ),
            (
                "only = [\"vfat\"]",
                "only = [\"erofs\"]",
                "variants.only: 'erofs'",
            ),
            (
                "quick = { bytes",
                "quick = { byte",
                "workloads.workload: 'rootfs' with",
            ),
            ("seeds = 3", "seeds = 3\nclock = \"sun\"", "cpu or device"),
            (
                "seeds = 3",
                "seeds = 3\nmodules = \"arm\"",
                "x.toml:10: modules: 'arm'; ",
            ),
            (
                "seeds = 3",
                "seeds = 3\nkernel = [\"6\"]",
                "x.toml:10: kernel: '6'",
            ),
            (
                "seeds = 3",
                "seeds = 3\nkernel = []",
                "kernel: none; expected at least one",
            ),
            (
                "seeds = 3",
                "seeds = 3\nkernel = [\"6.1\"]\nsmallest = { workload = \"small\", \
                 resolution_kib = 4, largest_mib = 1 }",
                "kernel: beside [smallest]",
            ),
            (
                "seeds = 3",
                "seeds = 3\nkernel = [\"6.1\", \"6.1\"]",
                "kernel: '6.1' twice",
            ),
            ("seeds = 3", "seeds = 3\nquick_seeds = 4", "expected 1 to 3"),
            ("seeds = 3", "seed = 3", "the file"),
            ("seeds = 3", "seeds = 3\nsame_data = 1", "same_data"),
            (
                "seeds = 3",
                "seeds = 3\ncompare = { variant = \"sync\" }",
                "compare.variant: 'sync'; there are relatime, flush",
            ),
            (
                "seeds = 3",
                "seeds = 3\ncompare = { series = true }",
                "neither variant nor candidate",
            ),
            (
                "seeds = 3",
                "seeds = 3\ncompare = { workload = \"larg\" }",
                "compare.workload: 'larg'",
            ),
            (
                "seeds = 3",
                "seeds = 3\ncompare = { workload = \"small\", candidate = \"vfat\" }",
                "two of variant, candidate, workload",
            ),
            (
                "seeds = 3",
                "seeds = 3\ncompare = { workload = \"small\", series = true }",
                "series beside workload",
            ),
            (
                "seeds = 3",
                "seeds = 3\ncompare = { candidate = \"vfat\", metrics = [\"speed\"] }",
                "compare.metrics: 'speed'; expected tree_write",
            ),
            (
                "add = \"flush\"",
                "add = \"flush\"\noffset = \"100 B\"",
                "variants.offset: '100 B'; expected whole sectors",
            ),
            (
                "add = \"flush\"",
                "add = \"flush\"\njournal = { mib = 1, at = \"end\" }",
                "variants.journal: 1 MiB; expected 4 to",
            ),
            (
                "add = \"flush\"",
                "add = \"flush\"\njournal = { mib = 8, at = \"middle\" }",
                "x.toml:",
            ),
            (
                "add = \"flush\"",
                "add = \"flush\"\nsecond_card = { card = \"c\", holds = \"journal\" }",
                "variants.second_card: unknown card 'c'",
            ),
            (
                "add = \"flush\"",
                "add = \"flush\"\nsecond_card = { card = \"ram\", holds = \"journal\" }",
                "variants.second_card: a journal in ram; expected a card",
            ),
            (
                "seeds = 3",
                "seeds = 3\nsmallest = { workload = \"big\", resolution_kib = 4, largest_mib = 1 }",
                "smallest.workload: 'big'",
            ),
            (
                "parameters = { bytes = 100 }",
                "partition_mib = 0",
                "workloads.partition_mib: 0; expected 1 to",
            ),
            (
                "workload = \"rootfs\"",
                "workload = \"rootfs\"\nonly_variants = [\"sync\"]",
                "workloads.only_variants: 'sync'",
            ),
        ];
        for (from, to, said) in cases {
            let error = wrong(from, to);
            assert!(error.contains(said), "{error}");
        }
    }
}
