//! What a posterior says of cards that are known here.
#![allow(clippy::unwrap_used)]

use crate::posterior::SUMMARY;
use crate::shipped::SHIPPED;
use crate::{
    Bound, InferError, InferenceOptions, Knowledge, Observation, Population, Posterior, infer,
    posterior_key, shipped_key, shipped_knowledge,
};
use whichfs_card::{Card, Family, Interface, Profile, builtin};
use whichfs_fit::{CurvePlace, PointOrder};
use whichfs_logs::{Operation, Order as Access};
use whichfs_units::{KIB, MIB};

const GB_8: u64 = 8_000_000_000 / MIB * MIB;

fn options() -> InferenceOptions {
    InferenceOptions {
        samples: 96,
        ..InferenceOptions::default()
    }
}

fn place(operation: Operation, access: Access, bytes: u64) -> CurvePlace {
    CurvePlace {
        order: PointOrder::Host(operation, access),
        aus: 1,
        bytes,
    }
}

fn observed(place: CurvePlace, per_s: f64) -> Observation {
    Observation {
        place,
        ns: 1e9 / per_s,
        noise: 0.1,
        bound: Bound::Exact,
        label: format!("{}, {} bytes", place.name(), place.bytes),
    }
}

fn inferred(knowledge: &Knowledge) -> Posterior {
    infer(&Population::shipped().unwrap(), knowledge, &options()).unwrap()
}

fn card() -> Knowledge {
    Knowledge::of("a card", Interface::Sd, GB_8)
}

/// Width of the 80 % interval of random writes of 4 KiB, as a factor.
fn width(posterior: &Posterior) -> f64 {
    let of = place(Operation::Write, Access::Random, 4 * KIB);
    let cost = posterior
        .costs
        .iter()
        .find(|cost| cost.place == of)
        .unwrap();
    cost.posterior_ns[2] / cost.posterior_ns[0]
}

#[test]
fn the_shipped_population_is_one_and_reads_back() {
    let population = Population::shipped().unwrap();
    assert!(population.members.len() > 200);
    let text = population.text();
    assert_eq!(Population::parse(&text).unwrap().text(), text);
    for (_, family) in Family::NAMES {
        let of = |member: &&crate::Member| member.profile.family() == family;
        assert!(
            population.members.iter().filter(of).count() > 10,
            "{family:?}"
        );
    }
    let sum: f64 = population.members.iter().map(|member| member.weight).sum();
    let cards: std::collections::BTreeSet<&str> = population
        .members
        .iter()
        .map(|member| member.card.as_str())
        .collect();
    assert!(
        (sum / cards.len() as f64 - 1.0).abs() < 0.01,
        "each card counts once"
    );
}

#[test]
fn equal_knowledge_gives_equal_samples_and_all_are_cards_of_the_size() {
    let found = inferred(&card());
    assert_eq!(found, inferred(&card()));
    for sample in found.samples() {
        assert_eq!(sample.capacity_bytes(), GB_8);
        Card::fresh(sample).verify().unwrap();
    }
    let sum: f64 = found.families().iter().map(|(_, share)| share).sum();
    assert!((sum - 1.0).abs() < 1e-9);
}

#[test]
fn a_posterior_narrows_with_every_observation() {
    let mut known = card();
    let mut widths = vec![width(&inferred(&known))];
    known.mark("class 10").unwrap();
    for (of, per_s) in [
        (place(Operation::Write, Access::Sequential, 512 * KIB), 22.0),
        (place(Operation::Write, Access::Random, 4 * KIB), 50.0),
    ] {
        known.observations.push(observed(of, per_s));
        widths.push(width(&inferred(&known)));
    }
    assert!(widths.is_sorted_by(|a, b| a > b), "{widths:?}");
    // Five seeds give 1.68 to 1.98.
    assert!(widths[2] < 2.1, "{widths:?}");
}

#[test]
fn a_card_of_few_small_and_fewer_middle_writes_maps_no_pages() {
    // A Class 4 card with 33 writes/s of 4 KiB and 2/s of 16 KiB was taken for a page map.
    let mut known = card();
    known.mark("class 4").unwrap();
    known.observations.push(observed(
        place(Operation::Write, Access::Random, 4 * KIB),
        33.0,
    ));
    known.observations.push(observed(
        place(Operation::Write, Access::Random, 16 * KIB),
        2.0,
    ));
    let families = inferred(&known).families();
    let pages = families
        .iter()
        .find(|(family, _)| *family == Family::PageMap);
    assert!(pages.is_none_or(|(_, share)| *share < 0.2), "{families:?}");
}

#[test]
fn the_seeds_of_trials_take_families_in_proportion() {
    let mut known = card();
    known.mark("class 10").unwrap();
    known.observations.push(observed(
        place(Operation::Write, Access::Random, 4 * KIB),
        60.0,
    ));
    let found = inferred(&known);
    for (family, share) in found.families() {
        let of = |seed: &u64| found.sample(*seed).family() == family;
        let taken = (1..=32).filter(of).count() as f64 / 32.0;
        assert!(
            (taken - share).abs() < 0.08,
            "{family:?}: {taken} of {share}"
        );
    }
    let likeliest = found.families()[0].0;
    assert_eq!(found.representative().family(), likeliest);
}

#[test]
fn a_kept_posterior_is_the_same() {
    let found = inferred(&card());
    let text = toml::to_string(&found).unwrap();
    let kept: Posterior = toml::from_str(&text).unwrap();
    let canonical = |of: &Posterior| {
        of.samples()
            .iter()
            .map(Profile::canonical)
            .collect::<Vec<_>>()
    };
    assert_eq!(canonical(&kept), canonical(&found));
    assert_eq!(kept.families(), found.families());
    let other = kept.titled("another card of which as much is known".into());
    assert_eq!(other.representative().title(), other.title);
    assert_eq!(canonical(&other), canonical(&found));
}

#[test]
fn two_observations_of_the_same_requests_that_contradict_each_other_are_named() {
    let of = place(Operation::Write, Access::Random, 4 * KIB);
    let mut known = card();
    known.observations = vec![observed(of, 30.0), observed(of, 900.0)];
    known.observations[1].label = "the other".into();
    let error = infer(&Population::shipped().unwrap(), &known, &options()).unwrap_err();
    let InferError::Contradiction(one, other) = &error else {
        panic!("{error}");
    };
    assert!(
        one.contains("4096 bytes") && other == "the other",
        "{error}"
    );
}

#[test]
fn two_observations_that_no_card_has_at_once_are_named() {
    // Faster at random than in order, a hundred times.
    let mut known = card();
    known.observations = vec![
        observed(place(Operation::Write, Access::Sequential, 512 * KIB), 4.0),
        observed(place(Operation::Write, Access::Random, 512 * KIB), 80.0),
    ];
    let remarks = inferred(&known).remarks;
    assert!(
        remarks.iter().any(|remark| remark.contains("no card")),
        "{remarks:?}"
    );
}

#[test]
fn too_many_observations_are_refused_and_hundreds_are_not() {
    let of = place(Operation::Read, Access::Random, 4 * KIB);
    let mut known = card();
    known.observations = vec![observed(of, 1500.0); 300];
    let found = inferred(&known);
    assert!(found.remarks.is_empty(), "{:?}", found.remarks);
    known.observations = vec![observed(of, 1500.0); 1001];
    let error = infer(&Population::shipped().unwrap(), &known, &options()).unwrap_err();
    assert!(error.to_string().contains("card fit"), "{error}");
}

#[test]
fn a_composed_card_of_each_family_is_recognised_by_its_curves() {
    // The modelled card measures itself: what is known is true, and the family comes out.
    for (name, family) in [
        ("class4-4gb", Family::LogBlock),
        ("ncard-8gb", Family::PageMap),
    ] {
        let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
        let profile = Profile::parse(name, text).unwrap();
        let places: Vec<CurvePlace> = [1, 2, 5]
            .into_iter()
            .map(|aus| CurvePlace {
                order: PointOrder::Linear,
                aus,
                bytes: 64 * KIB,
            })
            .collect();
        let times =
            crate::likelihood::times(&profile, &places, &crate::knowledge::replay(3)).unwrap();
        let mut known = Knowledge::of(name, Interface::Sd, profile.capacity_bytes());
        let of = |(place, ns): (CurvePlace, f64)| observed(place, 1e9 / ns);
        known.observations = places.into_iter().zip(times).map(of).collect();
        let families = inferred(&known).families();
        assert_eq!(families[0].0, family, "{name}: {families:?}");
    }
}

/// A knowledge file or the population changed: `make posteriors`.
#[test]
fn the_shipped_posteriors_are_of_the_shipped_knowledge() {
    for (name, text) in shipped_knowledge() {
        let knowledge = Knowledge::parse(name, text).unwrap();
        assert_eq!(
            shipped_key(name),
            Some(posterior_key(&knowledge)),
            "{name}: make posteriors"
        );
        let (_, profile) = builtin().iter().find(|(of, _)| of == name).unwrap();
        let typical = Profile::parse(name, profile).unwrap();
        assert!(typical.composed(), "{name} was measured: fit it");
        let found = Posterior::shipped(name).unwrap().unwrap();
        let found = found.completed_by(&typical).unwrap();
        assert!(found.samples().iter().all(|sample| {
            sample.capacity_bytes() == typical.capacity_bytes()
                && sample.cache.bytes.value == typical.cache.bytes.value
                && sample.interface() == typical.interface()
        }));
        assert_eq!(found.costs.len(), SUMMARY.len(), "{name}");
        let small = typical.with_capacity(512 * MIB).unwrap();
        let wrong = found.completed_by(&small).unwrap_err();
        assert!(wrong.contains("correct the one"), "{wrong}");
    }
    assert!(Posterior::shipped("class4-4gb").unwrap().is_none());
}

/// No sequence of observations goes to the first AUs.
#[test]
fn first_aus_that_were_measured_are_those_of_all_cards() {
    let name = "class10-16gb";
    let (_, text) = builtin().iter().find(|(of, _)| *of == name).unwrap();
    let measured = text.replace("composed = true", "composed = false");
    let judged = measured.replace("\"flash.md 2.5", "\"composed: flash.md 2.5");
    let counts = |text: &str| {
        let typical = Profile::parse(name, text).unwrap();
        let found = Posterior::shipped(name).unwrap().unwrap();
        let found = found.completed_by(&typical).unwrap();
        let counts = found.samples().iter().map(|card| card.fat_aus());
        counts.collect::<std::collections::BTreeSet<u64>>()
    };
    assert_eq!(counts(&measured), [2].into());
    assert!(counts(&judged).len() > 1 && counts(text).len() > 1);
}

#[test]
fn what_ships_of_a_posterior_is_what_was_inferred() {
    let name = "pqi-class10-32gb";
    let (_, text) = shipped_knowledge()
        .iter()
        .find(|(of, _)| *of == name)
        .unwrap();
    let knowledge = Knowledge::parse(name, text).unwrap();
    let options = InferenceOptions::default();
    let found = infer(&Population::shipped().unwrap(), &knowledge, &options).unwrap();
    let form = found.shipped_form(name, posterior_key(&knowledge));
    assert!(SHIPPED.contains(&form), "{name}: make posteriors");
    // A few samples keep the shares of the families and the places of the costs.
    let few = Posterior::shipped(name).unwrap().unwrap();
    for (family, share) in found.families() {
        let kept = few.families();
        let kept = kept.iter().find(|(of, _)| *of == family);
        let kept = kept.map_or(0.0, |(_, share)| *share);
        assert!((kept - share).abs() < 0.04, "{family:?} {kept} {share}");
    }
}
