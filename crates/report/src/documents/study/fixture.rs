//! Shipped studies to test with.
#![allow(clippy::unwrap_used)]

use whichfs_crash::Fault;
use whichfs_study::{CrashStudy, Known, PerformanceStudy, STUDIES, Study};

fn open(name: &str) -> Study {
    let names: Vec<&str> = whichfs_fs::candidates()
        .iter()
        .map(|one| one.name)
        .collect();
    let known = Known {
        candidates: &names,
        filesystems: &names,
        faults: &Fault::ALL.map(Fault::name),
        card: &|_| Ok(()),
        board: &|_| Ok(()),
        workload: &|_, _| Ok(()),
        metric: &|_, _| Ok(()),
    };
    let (_, text) = STUDIES.iter().find(|(known, _)| *known == name).unwrap();
    Study::parse(name, text, &known).unwrap()
}

/// The study `alignment`.
pub fn performance() -> PerformanceStudy {
    match open("alignment") {
        Study::Performance(study) => study,
        Study::Crash(_) => panic!("it has trials"),
    }
}

/// The study `sync-mounts`.
pub fn crash() -> CrashStudy {
    match open("sync-mounts") {
        Study::Crash(study) => study,
        Study::Performance(_) => panic!("it cuts power"),
    }
}
