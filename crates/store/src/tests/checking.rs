//! Forgetting trials, and finding what is wrong with a store.

use super::trial;
use crate::{Store, StoreCheck};
use std::path::Path;

/// A store with three trials, and its file.
fn store(directory: &Path) -> (Store, Vec<String>) {
    let mut store = Store::open(&directory.join("store.sqlite")).unwrap();
    let ids = [1, 2, 3].map(|seed| {
        let trial = trial("ext4", seed, 1.0);
        store.put(&trial, 1, 1).unwrap();
        trial.identity.id()
    });
    (store, ids.to_vec())
}

/// What a check finds after `sql` changed the store.
fn after(sql: &str) -> StoreCheck {
    let directory = tempfile::tempdir().unwrap();
    let (store, ids) = store(directory.path());
    let sql = sql.replace("$ID", &ids[0]);
    store.connection.execute_batch(&sql).unwrap();
    store.check().unwrap()
}

#[test]
fn a_forgotten_trial_is_gone_with_its_figures_and_the_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, ids) = store(directory.path());
    assert!(store.forget(&ids[1]).unwrap());
    assert!(!store.forget(&ids[1]).unwrap());
    assert_eq!(store.get(&ids[1]).unwrap(), None);
    assert_eq!(store.rows(&crate::Filter::default()).unwrap().len(), 2);
    let checked = store.check().unwrap();
    assert!(checked.is_whole(), "{checked:?}");
    assert_eq!((checked.whole, checked.unsealed), (2, 2));
    assert_eq!(checked.versions.get("0.1.0"), Some(&2));
}

#[test]
fn every_planted_fault_of_a_store_is_found() {
    assert!(after("").is_whole());
    for (sql, why) in [
        (
            "UPDATE trial SET json = '{}' WHERE id = '$ID'",
            "cannot be read",
        ),
        (
            "UPDATE trial SET json = replace(json, '6.12.57', '6.12.58') WHERE id = '$ID'",
            "it was changed",
        ),
        ("UPDATE trial SET seed = 9 WHERE id = '$ID'", "columns"),
        ("UPDATE metric SET value = 2 WHERE trial = '$ID'", "figures"),
        ("DELETE FROM metric WHERE trial = '$ID'", "figures"),
    ] {
        let checked = after(sql);
        assert_eq!((checked.whole, checked.faults.len()), (2, 1), "{sql}");
        assert!(checked.faults[0].why.contains(why), "{:?}", checked.faults);
    }
    let orphan = "PRAGMA foreign_keys = OFF; DELETE FROM trial WHERE id = '$ID'";
    assert_eq!(after(orphan).damage.len(), 1);
}
