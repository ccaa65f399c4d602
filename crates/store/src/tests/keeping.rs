//! Trials go in whole and come out whole.
use super::{failed, trial};
use crate::{Filter, Put, Store, StoreError};
use whichfs_decide::FigureRow;

fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a/b/store.sqlite")).unwrap();
    (dir, store)
}

#[test]
fn a_trial_comes_out_as_it_went_in() {
    let (dir, mut store) = fresh();
    let trial = trial("ext4", u64::MAX, 0.1 + 0.2);
    assert_eq!(
        store.put(&trial, u64::MAX, 1_700_000_000).unwrap(),
        Put::New
    );
    let id = trial.identity.id();
    drop(store);
    let store = Store::open(&dir.path().join("a/b/store.sqlite")).unwrap();
    let stored = store.get(&id).unwrap().unwrap();
    assert_eq!((stored.trial, stored.wall_ns), (trial.clone(), u64::MAX));
    assert_eq!(stored.finished_at_unix, 1_700_000_000);
    assert_eq!(
        store.rows(&Filter::default()).unwrap(),
        FigureRow::of_trial(&trial)
    );
    assert_eq!(store.get("no such id").unwrap(), None);
}

#[test]
fn trials_are_found_by_the_beginning_of_their_ids() {
    let (_dir, mut store) = fresh();
    for seed in 1..=40 {
        store.put(&trial("ext4", seed, 1.0), 1, 1).unwrap();
    }
    let id = trial("ext4", 7, 1.0).identity.id();
    let found = |digits: &str, most| -> Vec<u64> {
        let found = store.beginning(digits, most).unwrap();
        found
            .iter()
            .map(|stored| stored.trial.identity.seed)
            .collect()
    };
    assert_eq!(found(&id, 9), [7]);
    assert_eq!(found(&id[..12], 9), [7]);
    assert_eq!(found("", 9).len(), 9, "no more than asked");
    assert!(found("%", 9).is_empty() && found("zz", 9).is_empty());
}

/// A record of a program that recorded no series has none, and one without is written as before.
#[test]
fn a_trial_without_a_series_stays_readable() {
    let (_dir, mut store) = fresh();
    let old = trial("ext4", 1, 1.0);
    let text = serde_json::to_string(&old).unwrap();
    assert!(!text.contains("series"), "{text}");
    store.put(&old, 1, 1).unwrap();
    let read = store.get(&old.identity.id()).unwrap().unwrap();
    assert_eq!(read.trial.outcome.series, None);
}

#[test]
fn filters_restrict_and_seeds_keep_64_bits() {
    let (_dir, mut store) = fresh();
    for (candidate, seed) in [("xfs", 1), ("ext4", u64::MAX), ("ext4", 1)] {
        store.put(&trial(candidate, seed, 1.0), 1, 1).unwrap();
    }
    store.put(&failed("jfs", 1), 1, 1).unwrap();
    let found = |filter: Filter| -> Vec<(String, u64)> {
        let stored = store.find(&filter).unwrap().into_iter();
        stored
            .map(|s| (s.trial.identity.candidate, s.trial.identity.seed))
            .collect()
    };
    assert_eq!(found(Filter::default()).len(), 4);
    let ext4 = Filter {
        candidate: Some("ext4".into()),
        ..Filter::default()
    };
    assert_eq!(found(ext4.clone()).len(), 2);
    let last = Filter {
        seed: Some(u64::MAX),
        ..ext4
    };
    assert_eq!(found(last.clone()), [("ext4".to_owned(), u64::MAX)]);
    assert_eq!(store.rows(&last).unwrap()[0].seed, u64::MAX);
    let failures = Filter {
        done: Some(false),
        ..Filter::default()
    };
    assert_eq!(found(failures), [("jfs".to_owned(), 1)]);
    let elsewhere = Filter {
        card: Some("other".into()),
        ..Filter::default()
    };
    assert!(found(elsewhere).is_empty());
}

#[test]
fn repeating_a_trial_is_harmless() {
    let (_dir, mut store) = fresh();
    let trial = trial("ext4", 1, 1.0);
    assert_eq!(store.put(&trial, 1, 1).unwrap(), Put::New);
    assert_eq!(store.put(&trial, 2, 2).unwrap(), Put::Known);
    assert_eq!(store.rows(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn a_success_with_other_bytes_is_a_determinism_alarm() {
    let (_dir, mut store) = fresh();
    let first = trial("ext4", 1, 1.0);
    store.put(&first, 1, 1).unwrap();
    let error = store.put(&trial("ext4", 1, 1.5), 1, 1).unwrap_err();
    assert!(matches!(error, StoreError::Determinism { .. }), "{error}");
    assert!(error.to_string().contains("\"value\":1.5"), "{error}");
    let kept = store.get(&first.identity.id()).unwrap().unwrap();
    assert_eq!(kept.trial, first, "the first result is kept");
}

#[test]
fn a_failure_gives_way_to_a_success_and_never_the_reverse() {
    let (_dir, mut store) = fresh();
    assert_eq!(store.put(&failed("ext4", 1), 1, 1).unwrap(), Put::New);
    let success = trial("ext4", 1, 2.0);
    assert_eq!(store.put(&success, 1, 1).unwrap(), Put::Replaced);
    assert_eq!(
        store.put(&failed("ext4", 1), 1, 1).unwrap(),
        Put::SuccessKept
    );
    let rows = store.rows(&Filter::default()).unwrap();
    assert_eq!(
        rows,
        FigureRow::of_trial(&success),
        "no rows of the failure are left"
    );
}

#[test]
fn a_figure_that_is_no_number_is_refused() {
    let (_dir, mut store) = fresh();
    let error = store.put(&trial("ext4", 1, f64::NAN), 1, 1).unwrap_err();
    assert!(matches!(error, StoreError::NotFinite { .. }));
    assert!(store.find(&Filter::default()).unwrap().is_empty());
}

#[test]
fn merging_is_harmless_and_counts_what_is_new() {
    let (_one, mut one) = fresh();
    let (_two, mut two) = fresh();
    one.put(&trial("ext4", 1, 1.0), 1, 1).unwrap();
    one.put(&failed("xfs", 1), 1, 1).unwrap();
    two.put(&trial("ext4", 1, 1.0), 9, 9).unwrap();
    two.put(&trial("xfs", 1, 3.0), 1, 1).unwrap();
    assert_eq!(one.merge(&two).unwrap(), 1);
    assert_eq!(one.merge(&two).unwrap(), 0);
    assert_eq!(one.rows(&Filter::default()).unwrap().len(), 2);
}
