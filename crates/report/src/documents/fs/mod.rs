//! The catalogue of filesystems: all of them, and one of them tuned to a card.

mod compare;
mod power;
mod standing;
mod why;

pub use compare::{FsComparison, fs_comparison, fs_comparison_text};
pub use standing::Here;
pub use why::{FsWhy, FsWhyDocument, fs_why_text};

use crate::document::Document;
use crate::text::{folded, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_decide::{Sourced, catalogue};
use whichfs_fs::{Candidate, Care, Facts, FilesystemModule, Helper, Matter, Recipe, Unfit, apply};
use whichfs_units::Bytes;

/// A line of `fs list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FsLine {
    name: &'static str,
    title: &'static str,
    good_for: &'static str,
    crash_class: &'static str,
    read_only: bool,
    missing_tools: Vec<&'static str>,
    packages: &'static [&'static str],
}

/// The document of `fs show`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FsShown {
    #[serde(skip)]
    candidate: &'static Candidate,
    #[serde(flatten)]
    line: FsLine,
    card: String,
    /// Why it cannot be used on this card; null if it can.
    unfit: Option<Why>,
    /// Null if it cannot be used on this card.
    commands: Option<Commands>,
    tuning: Vec<Tuning>,
    limits: Limits,
    /// What survives a power cut, and which mount options change that; null where nothing is
    /// ever written.
    power_cut: Option<power::Power>,
    /// Kernel options that its driver needs.
    kernel_options: Vec<&'static str>,
    /// Kernel options that only extended attributes and access control lists need.
    optional_kernel_options: Vec<&'static str>,
    /// How large its module is in Debian's kernels for Arm, where they have one.
    modules: Vec<ModuleOf>,
    /// What one does with it over its life.
    care: &'static BTreeMap<Matter, Care>,
    /// What it is good and bad at on this card.
    here: Here,
    sources: Vec<Source>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ModuleOf {
    architecture: &'static str,
    package: &'static str,
    version: &'static str,
    #[serde(flatten)]
    module: &'static FilesystemModule,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Why {
    reason: String,
    source: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Commands {
    /// Command lines in order: make (or build and copy), mount, the fstab line.
    apply: Vec<String>,
    /// Checks without changing anything; null where there is no checker.
    fsck_check: Option<String>,
    /// Repairs; null where nothing can be repaired.
    fsck_repair: Option<String>,
    /// A process that belongs to it while it is mounted.
    helper: Option<String>,
    /// That process mounts it, by FUSE, in place of the kernel's driver.
    helper_mounts: bool,
    /// What is missing from figures that were taken without that process.
    without_helper: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tuning {
    option: String,
    why: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Limits {
    min_bytes: u64,
    max_file_bytes: u64,
    last_year: u64,
    unix_permissions: bool,
    symlinks: bool,
    hard_links: bool,
    xattrs: bool,
    case_sensitive: bool,
    windows: bool,
    macos: bool,
    compression: bool,
    snapshots: bool,
    mounts_after_cut: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Source {
    claim: &'static str,
    source: &'static str,
}

impl Document for FsLine {
    const NAME: &'static str = "fs list";
}

impl Document for FsShown {
    const NAME: &'static str = "fs show";
}

/// A table of all filesystems, of at most `width` columns.
pub fn fs_table(lines: &[FsLine], width: usize) -> String {
    let rows = lines.iter().map(|fs| {
        vec![
            fs.name.to_owned(),
            fs.title.to_owned(),
            fs.good_for.to_owned(),
            fs.crash_class.to_owned(),
            yes(fs.read_only).to_owned(),
            tools_text(fs),
        ]
    });
    let head = ["name", "filesystem", "good for", "power cut", "ro", "tools"];
    table(&head, rows.collect(), width)
}

impl FsLine {
    /// The line of `candidate`; `missing_tools` are not on this machine.
    pub fn new(candidate: &Candidate, missing_tools: Vec<&'static str>) -> FsLine {
        let facts = candidate.facts();
        FsLine {
            name: candidate.name,
            title: candidate.title,
            good_for: facts.good_for,
            crash_class: facts.crash_class.word(),
            read_only: facts.read_only,
            missing_tools,
            packages: facts.packages,
        }
    }
}

fn tools_text(line: &FsLine) -> String {
    match line.missing_tools.is_empty() {
        true => "installed".to_owned(),
        false => format!("missing: apt-get install {}", line.packages.join(" ")),
    }
}

/// All of `candidate` on the card of `here`, which `recipe` is for; `missing_tools` are not on this
/// machine.
pub fn fs_shown(
    candidate: &'static Candidate,
    here: Here,
    missing_tools: Vec<&'static str>,
    recipe: Result<Recipe, Unfit>,
) -> FsShown {
    let facts = candidate.facts();
    let (recipe, unfit) = match recipe {
        Ok(recipe) => (Some(recipe), None),
        Err(Unfit { reason, source }) => (None, Some(Why { reason, source })),
    };
    let tuning = recipe.iter().flat_map(|recipe| recipe.tuning.clone());
    FsShown {
        candidate,
        line: FsLine::new(candidate, missing_tools),
        card: here.card.clone(),
        here,
        unfit,
        commands: recipe
            .as_ref()
            .map(|recipe| commands(candidate.name, recipe)),
        tuning: tuning.map(|(option, why)| Tuning { option, why }).collect(),
        limits: limits(facts),
        power_cut: power::of(
            candidate.name,
            recipe.as_ref().map_or("", |recipe| &recipe.mount_options),
        ),
        kernel_options: facts.needed_options().collect(),
        optional_kernel_options: facts.xattr_options().chain(facts.acl_options()).collect(),
        care: whichfs_fs::care(candidate.name),
        modules: modules(candidate.name),
        sources: facts
            .sources
            .iter()
            .map(|&(claim, source)| Source { claim, source })
            .collect(),
    }
}

fn modules(name: &str) -> Vec<ModuleOf> {
    let kernels = whichfs_fs::kernels().iter();
    kernels
        .filter_map(|kernel| {
            Some(ModuleOf {
                architecture: &kernel.architecture,
                package: &kernel.package,
                version: &kernel.version,
                module: kernel.of(name)?,
            })
        })
        .collect()
}

fn commands(name: &str, recipe: &Recipe) -> Commands {
    let checked = |argv: &[String]| {
        (!argv.is_empty()).then(|| argv.join(" ").replace(Recipe::DEVICE, "$DEV"))
    };
    let helper = recipe.helper.as_ref();
    Commands {
        apply: apply::of_recipe(recipe, "/mnt"),
        fsck_check: checked(&recipe.fsck_check),
        fsck_repair: checked(&recipe.fsck_repair),
        helper: helper
            .and_then(|helper| checked(&helper.argv))
            .map(|line| line.replace(Helper::MOUNT, "/mnt"))
            .map(|line| line.replace(Helper::OPTIONS, &recipe.mount_options)),
        helper_mounts: helper.is_some_and(|helper| helper.mounts),
        without_helper: whichfs_fs::never_reclaims(name).map(|care| care.how.as_str()),
    }
}

fn limits(facts: &Facts) -> Limits {
    Limits {
        min_bytes: facts.min_bytes,
        max_file_bytes: facts.max_file_bytes,
        last_year: facts.y2038,
        unix_permissions: facts.unix_permissions,
        symlinks: facts.symlinks,
        hard_links: facts.hard_links,
        xattrs: facts.xattrs,
        case_sensitive: facts.case_sensitive,
        windows: facts.windows,
        macos: facts.macos,
        compression: facts.compression,
        snapshots: facts.snapshots,
        mounts_after_cut: facts.mounts_after_cut,
    }
}

/// All of it for a terminal of `width` columns; commands are never broken.
pub fn fs_text(fs: &FsShown, width: usize) -> String {
    let line = &fs.line;
    let title = format!("{}: {}, good for {}", line.name, line.title, line.good_for);
    let title = folded(&title, 2, width);
    let mut text = format!("{title}\nTools: {}\n", tools_text(line));
    if let Some(Why { reason, source }) = &fs.unfit {
        let why = format!("Not for {}: {reason} ({source})", fs.card);
        let _ = writeln!(text, "\n{}", folded(&why, 2, width));
    }
    if let Some(commands) = &fs.commands {
        let _ = writeln!(text, "\nOn {}:", fs.card);
        let check = commands
            .fsck_check
            .as_ref()
            .map(|line| format!("{line}   # check"));
        let repair = commands
            .fsck_repair
            .as_ref()
            .map(|line| format!("{line}   # repair"));
        let helper = commands
            .helper
            .as_ref()
            .map(|line| match commands.helper_mounts {
                true => format!("{line}   # by FUSE, instead of mount"),
                false => format!("{line}   # while mounted"),
            });
        let lines = commands
            .apply
            .iter()
            .chain(&helper)
            .chain(&check)
            .chain(&repair);
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
        if check.is_none() {
            text.push_str("  # there is no checker\n");
        }
        if let Some(without) = commands.without_helper {
            let _ = writeln!(
                text,
                "  # the lab runs it in studies that ask for it: {without}"
            );
        }
    }
    text.push_str(&power::text(fs.power_cut.as_ref(), width));
    text.push_str(&standing::text(&fs.here, width));
    let tuning: Vec<Vec<String>> = fs
        .tuning
        .iter()
        .map(|tuned| vec![tuned.option.clone(), tuned.why.clone()])
        .collect();
    if !tuning.is_empty() {
        let _ = writeln!(text, "\n{}", table(&["tuning", "because"], tuning, width));
    }
    let _ = writeln!(
        text,
        "\n{}",
        table(&["limit", ""], limit_rows(fs.candidate), width)
    );
    let modules = fs.modules.iter().map(|of| {
        vec![
            Bytes(of.module.bytes).to_string(),
            of.module.modules.join(", "),
            format!("Debian {} {}, {}", of.package, of.version, of.architecture),
        ]
    });
    if !fs.modules.is_empty() {
        let head = ["module", "with", "kernel"];
        let _ = writeln!(text, "\n{}", table(&head, modules.collect(), width));
    }
    let care = fs.care.iter().map(|(matter, care)| {
        let told = compare::told(*matter, care);
        vec![matter.words().to_owned(), told, care.source.clone()]
    });
    let head = ["care", "", "source"];
    let _ = writeln!(text, "\n{}", table(&head, care.collect(), width));
    let sources = fs
        .sources
        .iter()
        .map(|s| vec![s.claim.to_owned(), s.source.to_owned()]);
    let _ = write!(
        text,
        "\n{}",
        table(&["claim", "source"], sources.collect(), width)
    );
    text
}

fn limit_rows(candidate: &Candidate) -> Vec<Vec<String>> {
    let cells = limit_cells(candidate).into_iter();
    cells
        .map(|(what, value, _)| vec![what.to_owned(), value])
        .collect()
}

/// What, its value, and where that is written.
fn limit_cells(candidate: &Candidate) -> Vec<(&'static str, String, String)> {
    let facts = catalogue::of(candidate);
    let flag = |what, one: &Sourced<bool>| (what, yes(one.value).to_owned(), one.source.clone());
    let of = |what, value: String, source: &str| (what, value, source.to_owned());
    let list = |options: Vec<&'static str>| match options.is_empty() {
        true => "none".to_owned(),
        false => options.join(", "),
    };
    let own = candidate.facts();
    vec![
        of(
            "smallest partition",
            Bytes(facts.min_bytes.value).to_string(),
            &facts.min_bytes.source,
        ),
        of(
            "largest file",
            Bytes(facts.max_file_bytes.value).to_string(),
            &facts.max_file_bytes.source,
        ),
        of(
            "last year of a time stamp",
            own.y2038.to_string(),
            &facts.last_year.source,
        ),
        of(
            "power cut",
            facts.crash_class.value.word().to_owned(),
            &facts.crash_class.source,
        ),
        flag("owners and modes", &facts.unix_permissions),
        flag("symbolic links", &facts.symlinks),
        flag("hard links", &facts.hard_links),
        flag("extended attributes", &facts.xattrs),
        flag("a and A are two files", &facts.case_sensitive),
        flag("Windows reads and writes it", &facts.windows),
        flag("macOS reads it", &facts.macos),
        flag("read-only", &facts.read_only),
        flag("compression", &facts.compression),
        flag("snapshots", &facts.snapshots),
        flag("mounts after a power cut", &facts.mounts_after_cut),
        of(
            "kernel options",
            list(own.needed_options().collect()),
            catalogue::KERNEL_OPTIONS_SOURCE,
        ),
        of(
            "kernel options for extended attributes and ACLs",
            list(own.xattr_options().chain(own.acl_options()).collect()),
            catalogue::KERNEL_OPTIONS_SOURCE,
        ),
    ]
}

fn yes(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_fs::{Geometry, Purpose};

    #[test]
    fn every_filesystem_shows_commands_on_every_card_or_why_not() {
        for au_bytes in [1 << 20, 3 << 20, 4 << 20, 8 << 20] {
            let geometry = Geometry {
                partition_bytes: au_bytes * 500,
                page_bytes: 8 << 10,
                write_unit_bytes: 32 << 10,
                au_bytes,
                discard: true,
                flush: false,
            };
            for candidate in whichfs_fs::candidates() {
                let recipe = candidate.recipe(&geometry, Purpose::User);
                let here = Here::of(candidate.name, "a card", &[]);
                let fs = fs_shown(candidate, here, Vec::new(), recipe);
                assert!(
                    fs.commands.is_some() != fs.unfit.is_some(),
                    "{}",
                    candidate.name
                );
                let text = fs_text(&fs, 80);
                assert!(!text.contains(Recipe::DEVICE), "{text}");
            }
        }
    }
}
