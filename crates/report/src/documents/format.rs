//! Partitions and tuned filesystems on a card or in an image.

use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use whichfs_layout::{Check, DiskPlan, Medium, fstab};
use whichfs_units::{Bytes, shell_word};

/// What became of one partition of the plan.
#[derive(Debug, Serialize, JsonSchema)]
struct FormattedPartition<'a> {
    number: usize,
    name: &'a str,
    start: u64,
    bytes: u64,
    fs: &'a str,
    label: &'a str,
    partuuid: &'a str,
    mount: &'a str,
    mount_options: &'a str,
    tuning: &'a [(String, String)],
}

/// What `format` did, or would do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Formatted<'a> {
    id: Option<&'a str>,
    capacity_bytes: u64,
    au_bytes: u64,
    au_why: &'a str,
    table: &'static str,
    partitions: Vec<FormattedPartition<'a>>,
    /// Board that boots from the card; null if none was named.
    board: Option<&'a str>,
    /// What the board needs beside partitions: what was changed for it, files, raw boot loaders.
    board_notes: Vec<String>,
    fstab: String,
    commands: &'a [String],
    checks: &'a [Check],
    files: &'a [String],
}

impl Document for Formatted<'_> {
    const NAME: &'static str = "format";
}

impl<'a> Formatted<'a> {
    /// The `plan` for the device called `id`: `commands` that would do it, or `checks` of what was
    /// done, and the `files` that were written.
    pub fn new(
        plan: &'a DiskPlan,
        id: Option<&'a str>,
        commands: &'a [String],
        checks: &'a [Check],
        files: &'a [String],
    ) -> Formatted<'a> {
        let told = |one: &'a whichfs_layout::PlannedPartition| FormattedPartition {
            number: one.number,
            name: &one.wanted.name,
            start: one.start,
            bytes: one.bytes,
            fs: one.candidate.name,
            label: &one.label,
            partuuid: &one.partuuid,
            mount: &one.wanted.mount,
            mount_options: &one.recipe.mount_options,
            tuning: &one.recipe.tuning,
        };
        let medium: &Medium = &plan.medium;
        Formatted {
            id,
            capacity_bytes: medium.capacity_bytes,
            au_bytes: medium.unit.bytes,
            au_why: &medium.unit.why,
            table: plan.table.word(),
            partitions: plan.partitions.iter().map(told).collect(),
            board: plan.board.as_ref().map(|board| board.name.as_str()),
            board_notes: plan.board_notes(),
            fstab: fstab(plan, "whichfs"),
            commands,
            checks,
            files,
        }
    }
}

/// What `document` says of `plan`, in lines of at most `width` columns: by which `version` of the
/// program, and the directory `emit` of the files.
pub fn format_text(
    document: &Formatted,
    plan: &DiskPlan,
    version: &str,
    emit: Option<&Path>,
    dry_run: bool,
    width: usize,
) -> String {
    let mut out = Lines::new(width);
    told_plan(&mut out, plan);
    if let Some(board) = document.board {
        out.line(&format!("\n{board}:"));
        for note in &document.board_notes {
            out.paragraph(&format!("  {note}"), 4);
        }
    }
    if !document.commands.is_empty() {
        out.line("\nCommands:");
        out.line(&document.commands.join("\n"));
    }
    if !document.checks.is_empty() {
        out.line("");
        checks_table(&mut out, document.checks);
    }
    out.line("\nfstab:");
    out.line(fstab(plan, &format!("whichfs {version}")).trim_end_matches('\n'));
    if let (Some(directory), false) = (emit, document.files.is_empty()) {
        let files = document.files.join(", ");
        out.paragraph(&format!("\nIn {}: {files}", directory.display()), 2);
    }
    if let Some(id) = document.id.filter(|_| dry_run) {
        out.line(&format!(
            "\nNothing was written. To erase the device: --destroy {}",
            shell_word(id)
        ));
    }
    out.text()
}

fn told_plan(out: &mut Lines, plan: &DiskPlan) {
    let medium = &plan.medium;
    out.paragraph(
        &format!(
            "{} with {}; allocation unit of {}: {}.",
            plan.table.word().to_uppercase(),
            Bytes(medium.capacity_bytes),
            Bytes(medium.unit.bytes),
            medium.unit.why
        ),
        2,
    );
    out.line("");
    let rows = plan.partitions.iter().map(|one| {
        vec![
            one.number.to_string(),
            one.wanted.name.clone(),
            Bytes(one.start).to_string(),
            Bytes(one.bytes).to_string(),
            one.candidate.name.to_owned(),
            one.label.clone(),
            one.wanted.mount.clone(),
        ]
    });
    let head = [
        "",
        "partition",
        "begins at",
        "size",
        "filesystem",
        "label",
        "mount",
    ];
    out.table(&head, rows.collect());
    for one in &plan.partitions {
        // What is mounted how is in fstab.
        let made = one
            .recipe
            .tuning
            .iter()
            .filter(|(what, _)| what != "noatime");
        for (what, why) in made {
            out.paragraph(&format!("  {}: {what}: {why}", one.wanted.name), 4);
        }
    }
}

/// Adds checks as a table.
pub(super) fn checks_table(out: &mut Lines, checks: &[Check]) {
    use whichfs_layout::CheckOutcome::{Bad, Good, Skipped};
    let rows = checks.iter().map(|check| {
        let (word, detail) = match &check.outcome {
            Good(detail) => ("good", detail),
            Skipped(detail) => ("not done", detail),
            Bad(detail) => ("WRONG", detail),
        };
        vec![check.what.clone(), word.to_owned(), detail.clone()]
    });
    out.table(&["check", "", ""], rows.collect());
}
