//! States that go on, and states that no device has.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::options::Writing;

fn state() -> ProbeEvidence {
    ProbeEvidence {
        capacity_bytes: 1 << 30,
        ..ProbeEvidence::begin("a card", ProbeOptions::default())
    }
}

#[test]
fn a_state_goes_on_with_its_seed_and_what_is_asked_for_now() {
    let mut kept = state();
    kept.options.seed = 5;
    kept.done.push(Stage::Align);
    let options = ProbeOptions {
        seed: 9,
        writing: Writing::Destroy,
        ..ProbeOptions::default()
    };
    let on = kept.go_on(options);
    assert_eq!((on.done.len(), on.options.seed), (1, 5));
    assert_eq!(on.options.writing, Writing::Destroy);
}

#[test]
fn a_file_that_lacks_the_result_of_a_stage_or_the_device_is_refused() {
    let mut whole = state();
    whole.done = vec![Stage::Flush, Stage::Reading];
    whole.flush = Some(FlushTest::default());
    whole.reads = Some(Streams::default());
    whole.random_reads = Some(RandomTimes::default());
    assert_eq!(whole.check(), Ok(()));
    let without = |field: &str| {
        let mut json = serde_json::to_value(&whole).unwrap();
        json.as_object_mut().unwrap().remove(field).unwrap();
        serde_json::from_value::<ProbeEvidence>(json)
    };
    for (field, stage) in [("flush", "Flush"), ("random_reads", "Reading")] {
        let error = without(field).unwrap().check().unwrap_err();
        assert!(error.contains("found") && error.contains(stage), "{error}");
    }
    assert!(without("identity").is_err());
}

#[test]
fn figures_that_no_device_has_are_refused() {
    assert_eq!(state().check(), Ok(()));
    let boundary = |bytes: u64, factor: u64| Boundary {
        rise: Rise {
            bytes,
            ..Rise::default()
        },
        factor: Some(factor),
        quarters: Vec::new(),
        doubt: None,
        score: 9.0,
    };
    let with = |change: &dyn Fn(&mut ProbeEvidence)| {
        let mut state = state();
        change(&mut state);
        state.check()
    };
    let align = |boundary: Boundary| AlignTest {
        boundaries: vec![boundary],
        ..AlignTest::default()
    };
    let open = |limit: u32, filled: u64| OpenAuTest {
        limits: vec![limit],
        filled: vec![filled],
        ..OpenAuTest::default()
    };
    let by_writes = |bytes: u64| AuByWrites {
        au_bytes: Some(bytes),
        ..AuByWrites::default()
    };
    with(&|s| s.align = Some(align(boundary(4096, 3)))).unwrap();
    with(&|s| s.open_linear = Some(open(3, 0))).unwrap();
    let wrong: [&dyn Fn(&mut ProbeEvidence); 8] = [
        &|s| s.align = Some(align(boundary(4096, 0))),
        &|s| s.align = Some(align(boundary(4096, u64::MAX))),
        &|s| s.open_linear = Some(open(u32::MAX, 0)),
        &|s| s.open_linear = Some(open(0, 0)),
        &|s| s.open_random = Some(open(3, 1 << 30)),
        &|s| s.au_by_writes = Some(by_writes(0)),
        &|s| s.au_by_writes = Some(by_writes(1 << 40)),
        &|s| {
            s.reads = Some(Streams {
                rates: [(0, vec![1.0])].into(),
            })
        },
    ];
    for change in wrong {
        let error = with(change).unwrap_err();
        assert!(
            error.contains("found") && error.contains("expected"),
            "{error}"
        );
    }
}
