//! `whichfs store`: what it has, whether it is whole, merging, importing, exporting,
//! deleting.

use super::trial::filter;
use crate::cli::{StoreArgs, StoreExportArgs, StoreGcArgs, StoreImportArgs, StoreMergeArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use std::path::Path;
use whichfs_engine::json_lines::NumberedLines;
use whichfs_engine::places;
use whichfs_engine::record_import::{self, ImportRules, planned_ids};
use whichfs_engine::stores::{self, Unwanted};
use whichfs_engine::trial_cache::now_unix;
use whichfs_engine::trial_lookup::existing;
use whichfs_report::TrialTable;
use whichfs_report::documents::planned::{ImportRefusal, StoreImported, imported_text};
use whichfs_report::documents::store::{
    StoreChanged, StoreChecked, StoreFault, StoreInfo, changed_text, checked_text, store_text,
};
use whichfs_store::Filter;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs store info
  whichfs store export ext4.sqlite --fs ext4
  whichfs store export - --fs ext4 > records.jsonl
  whichfs store export figures.csv               a table, a row a figure; also .json
  whichfs store merge ext4.sqlite other.sqlite
  whichfs store import worker1.jsonl worker2.jsonl --plan trials.jsonl
  lavacli jobs logs --raw 1234 | whichfs store import -
  whichfs store gc --failed --other-versions --dry-run";

/// What the store has.
pub fn info(args: &StoreArgs) -> Outcome<u8> {
    let (store, found) = stores::trials(args.store.as_deref(), &Filter::default())?;
    let trials = found.iter().map(|one| &one.trial);
    let document = StoreInfo::new(store.path(), bytes(store.path()), trials);
    match args.json {
        true => output::document(&document)?,
        false => output::text(&store_text(&document))?,
    }
    Ok(0)
}

/// Puts the trials of other stores into this one.
pub fn merge(args: &StoreMergeArgs) -> Outcome<u8> {
    let (store, new) = stores::merge(args.of.store.as_deref(), &args.others)?;
    changed("merged", new, store.path(), args.of.json)
}

/// Puts records of trials from files into this one.
pub fn import(args: &StoreImportArgs) -> Outcome<u8> {
    let plan = args.plan.as_deref().map(NumberedLines::open).transpose()?;
    let rules = ImportRules {
        other_versions: args.other_versions,
        plan: plan.map(planned_ids).transpose()?,
        now_unix: now_unix(),
    };
    let sources = args.records.iter().map(|path| NumberedLines::open(path));
    let sources = sources.collect::<Outcome<Vec<_>>>()?;
    let (store, counts) = record_import::import(args.of.store.as_deref(), sources, &rules)?;
    let refusals = counts.listed.into_iter().map(|line| ImportRefusal {
        source: line.source,
        line: line.line,
        why: line.why,
    });
    let document = StoreImported {
        store: store.path().to_owned(),
        new: counts.new,
        replaced: counts.replaced,
        known: counts.known,
        refused: counts.refused,
        refusals: refusals.collect(),
        missing: counts.missing,
    };
    match args.of.json {
        true => output::document(&document)?,
        false => output::text(&imported_text(&document))?,
    }
    Ok(match (document.refused, document.missing) {
        (0, None | Some(0)) => 0,
        (0, Some(_)) => exit_code(Kind::No),
        _ => exit_code(Kind::Input),
    })
}

/// Puts trials into a new store, or prints their records.
pub fn export(args: &StoreExportArgs) -> Outcome<u8> {
    let from = args.of.store.as_deref();
    if args.out.as_os_str() == "-" {
        let (_, found) = stores::trials(from, &filter(&args.filter))?;
        found.iter().try_for_each(output::json_line)?;
        return Ok(0);
    }
    let extension = args
        .out
        .extension()
        .and_then(|extension| extension.to_str());
    if let Some(table) = extension.and_then(TrialTable::of_extension) {
        let trials = stores::trials(from, &filter(&args.filter))?.1;
        let text = table.text(trials.iter().map(|one| &one.trial));
        places::write_new(&args.out, text.as_bytes())?;
        return changed("exported", trials.len(), &args.out, args.of.json);
    }
    let (store, count) = stores::export(from, &filter(&args.filter), &args.out)?;
    changed("exported", count, store.path(), args.of.json)
}

/// Deletes the trials that are not wanted.
pub fn gc(args: &StoreGcArgs) -> Outcome<u8> {
    let unwanted = Unwanted {
        failed: args.failed,
        other_versions: args.other_versions,
    };
    let (store, count) = stores::gc(args.of.store.as_deref(), unwanted, args.dry_run)?;
    let what = if args.dry_run {
        "would be deleted"
    } else {
        "deleted"
    };
    changed(what, count, store.path(), args.of.json)
}

fn changed(what: &'static str, count: usize, store: &Path, json: bool) -> Outcome<u8> {
    let document = StoreChanged {
        what,
        trials: count as u64,
        store: store.to_owned(),
        bytes: bytes(store),
    };
    match json {
        true => output::document(&document)?,
        false => output::text_line(&changed_text(&document))?,
    }
    Ok(0)
}

fn bytes(store: &Path) -> u64 {
    std::fs::metadata(store).map_or(0, |meta| meta.len())
}

/// Runs `whichfs store check`.
pub fn check(args: &StoreArgs) -> Outcome<u8> {
    let store = existing(args.store.as_deref())?;
    let checked = store.check().map_err(Failure::environment)?;
    let faults = checked.faults.iter();
    let document = StoreChecked {
        store: store.path().to_owned(),
        ok: checked.is_whole(),
        whole: checked.whole,
        versions: checked.versions.clone(),
        without_userland: checked.unsealed,
        faults: faults
            .map(|fault| StoreFault {
                id: fault.id.clone(),
                why: fault.why.clone(),
            })
            .collect(),
        damage: checked.damage.clone(),
    };
    match args.json {
        true => output::document(&document)?,
        false => output::text(&checked_text(&document))?,
    }
    match document.ok {
        true => Ok(0),
        false => Ok(exit_code(Kind::No)),
    }
}
