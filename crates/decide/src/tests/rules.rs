//! Rules of every kind, needs that contradict themselves, and what nobody measured.
use super::{able, can, evidence, sample, two_metrics};
use crate::{
    Can, CandidateFacts, Condition, Evidence, Fact, Failure, HardRule, Matter, Need, SeenMemory,
    exclude, judge, not_known,
};

/// A need with one rule.
fn with_rule(fact: Fact, condition: Condition) -> Need {
    let mut need = two_metrics();
    need.rules = vec![HardRule {
        fact,
        condition,
        unless: None,
        because: "it is wanted".into(),
        source: "a test".into(),
    }];
    need
}

/// The candidate with what breaks `fact`, and a condition that it then breaks.
fn planted(fact: Fact) -> (CandidateFacts, Condition) {
    let mut bad = able("bad");
    let is = |good: bool| Condition::Is(good);
    let condition = match fact {
        Fact::UnixPermissions => (bad.unix_permissions.value = false, is(true)).1,
        Fact::Symlinks => (bad.symlinks.value = false, is(true)).1,
        Fact::HardLinks => (bad.hard_links.value = false, is(true)).1,
        Fact::Xattrs => (bad.xattrs.value = false, is(true)).1,
        Fact::CaseSensitive => (bad.case_sensitive.value = false, is(true)).1,
        Fact::Windows => (bad.windows.value = false, is(true)).1,
        Fact::Macos => (bad.macos.value = false, is(true)).1,
        Fact::ReadOnly => (bad.read_only.value = true, is(false)).1,
        Fact::MountsAfterCut => (bad.mounts_after_cut.value = false, is(true)).1,
        Fact::InCurrentLinux => (bad.in_current_linux.value = false, is(true)).1,
        Fact::Compression => (bad.compression.value = true, is(false)).1,
        Fact::Snapshots => (bad.snapshots.value = true, is(false)).1,
        Fact::MaxFileBytes => (bad.max_file_bytes.value = 9, Condition::AtLeast(10)).1,
        Fact::LastYear => (bad.last_year.value = 2037, Condition::AtLeast(2039)).1,
        Fact::MinBytes => (bad.min_bytes.value = 2 << 20, Condition::AtMost(1 << 20)).1,
        Fact::MemoryBytes => {
            bad.memory.value = SeenMemory {
                works: 2 << 30,
                fails: Some(1 << 30),
            };
            Condition::AtMost(1 << 30)
        }
        Fact::CrashClass => {
            bad.crash_class.value = crate::CrashClass::None;
            Condition::Not(crate::CrashClass::None)
        }
        Fact::KernelOptions => {
            bad.kernel_options.value.push("CONFIG_Y".into());
            Condition::Among(["CONFIG_X_FS".to_owned()].into())
        }
        Fact::Care(Matter::Licence) => {
            bad.licences.value.push("GPL-3.0".into());
            Condition::Among(["GPL-2.0".to_owned()].into())
        }
        Fact::Care(matter) => {
            bad.care.insert(matter, can(Can::No, "a manual"));
            is(true)
        }
    };
    (bad, condition)
}

#[test]
fn every_fact_excludes_what_breaks_it_and_names_its_source() {
    for fact in Fact::all() {
        let (bad, condition) = planted(fact);
        let need = with_rule(fact, condition);
        let (kept, out) = exclude(&need, u64::MAX, std::slice::from_ref(&bad));
        assert!(kept.is_empty(), "{}", fact.name());
        assert_eq!(out[0].rule.as_deref(), Some(fact.name()));
        assert!(out[0].why.len() > 20 && out[0].why.ends_with(": it is wanted"));
        let source = out[0].source.as_deref().unwrap();
        assert!(source.starts_with(fact.source(&bad)) && source.ends_with("rule: a test"));
        let line = judge(
            &need,
            &Evidence {
                excluded: out,
                ..evidence(vec![])
            },
        )
        .unwrap();
        assert_eq!(line.rules[0].excludes, ["bad"]);
        assert!(line.rules[0].wants.len() > 7, "{}", line.rules[0].wants);
    }
}

#[test]
fn care_can_be_asked_for_while_mounted() {
    let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"w\"\n[weights.a]\nweight = 1\n\
                because = \"x\"\n[[rules]]\nfact = \"grow\"\ncan = \"online\"\n\
                because = \"it works on\"\nsource = \"a manual\"\n";
    let need = Need::parse("n.toml", text).unwrap();
    let (_, out) = exclude(&need, u64::MAX, &[able("offline")]);
    let why = "can grow only while it is not mounted: it works on";
    assert_eq!(out[0].why, why);
    let mut online = able("online");
    online
        .care
        .insert(Matter::Grow, can(Can::Online, "resize(8)"));
    assert_eq!(exclude(&need, u64::MAX, &[online]).0.len(), 1);
    let wrong = Need::parse("n.toml", &text.replace("\"online\"", "\"often\""));
    let said = wrong.unwrap_err().to_string();
    assert!(
        said.contains("n.toml:9: rules.can: 'often'; expected \"online\""),
        "{said}"
    );
    let wrong = Need::parse("n.toml", &text.replace("\"grow\"", "\"windows\""));
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("do not fit windows")
    );
}

#[test]
fn care_and_kernel_options_are_changed_from_the_command_line() {
    let mut need = two_metrics();
    for (given, kept) in [
        ("grow=yes", 1),
        ("grow=online", 0),
        ("grow=any", 1),
        ("grub=yes", 0),
        ("grub=any", 1),
        ("kernel_options=CONFIG_EXT4_FS,CONFIG_F2FS_FS", 0),
        ("kernel_options=CONFIG_X_FS", 1),
        ("licence=MIT", 0),
        ("licence=GPL-2.0,LGPL-2.1", 1),
        ("memory_bytes=16MiB", 0),
        ("memory_bytes=32MiB", 1),
    ] {
        need.set(given).unwrap();
        let (admitted, _) = exclude(&need, u64::MAX, &[able("a")]);
        assert_eq!(admitted.len(), kept, "{given}");
    }
    let said = need.set("grow=sometimes").unwrap_err().to_string();
    assert!(said.contains("expected yes, no, online or any"), "{said}");
    let said = need.set("licence=yes").unwrap_err().to_string();
    assert!(
        said.contains("expected a list of what is allowed"),
        "{said}"
    );
}

#[test]
fn contradictory_needs_name_the_rules_and_the_nearest() {
    let mut need = two_metrics();
    for given in ["windows=yes", "unix_permissions=yes", "grub=yes"] {
        need.set(given).unwrap();
    }
    let mut fat = able("vfat");
    fat.unix_permissions.value = false;
    let mut ext4 = able("ext4");
    ext4.windows.value = false;
    ext4.care.insert(Matter::Grub, can(Can::Yes, "GRUB"));
    let (kept, out) = exclude(&need, u64::MAX, &[fat, ext4]);
    assert!(kept.is_empty());
    assert_eq!(
        out[0].rules().collect::<Vec<_>>(),
        ["unix_permissions", "grub"]
    );
    let verdict = judge(
        &need,
        &Evidence {
            excluded: out,
            ..evidence(vec![])
        },
    )
    .unwrap();
    let excludes: Vec<(&str, usize)> = (verdict.rules.iter())
        .map(|rule| (rule.rule.as_str(), rule.excludes.len()))
        .collect();
    assert_eq!(
        excludes,
        [("windows", 1), ("unix_permissions", 1), ("grub", 1)]
    );
    assert_eq!(verdict.nearest.len(), 1);
    assert_eq!(verdict.nearest[0].candidate, "ext4");
    assert_eq!(verdict.nearest[0].allow, ["--need windows=any"]);
}

/// What is said to let a candidate in does.
#[test]
fn each_remedy_lets_its_candidate_in() {
    let partition = 64 << 20;
    for fact in Fact::all() {
        let (bad, condition) = planted(fact);
        let mut need = with_rule(fact, condition);
        let (_, out) = exclude(&need, partition, std::slice::from_ref(&bad));
        let Some(allow) = out[0].allow.clone() else {
            assert_eq!(
                fact,
                Fact::ReadOnly,
                "an image cannot do what a writer does"
            );
            continue;
        };
        let change = match allow.strip_prefix("--need ") {
            Some(change) => change.to_owned(),
            None => {
                assert_eq!(allow, "a kernel with CONFIG_Y (=y or =m)");
                "kernel_options=CONFIG_X_FS,CONFIG_Y=m".to_owned()
            }
        };
        need.set(&change).unwrap();
        assert_eq!(exclude(&need, partition, &[bad]).0.len(), 1, "{allow}");
    }
}

/// A rule of the user's is not a small card, nor the other way round.
#[test]
fn the_nearest_are_told_what_lets_them_in() {
    let nearest = |need: &Need, bytes: u64| {
        let mut small = able("small");
        small.min_bytes.value = 16 << 20;
        let (_, excluded) = exclude(need, bytes, &[small]);
        let given = Evidence {
            excluded,
            ..evidence(vec![])
        };
        let verdict = judge(need, &given).unwrap();
        verdict.nearest[0].allow.clone()
    };
    let mut need = two_metrics();
    assert_eq!(
        nearest(&need, 4 << 20),
        ["a card with a partition of 16 MiB or more"]
    );
    need.set("min_bytes=1").unwrap();
    assert_eq!(nearest(&need, 1 << 30), ["--need min_bytes=16MiB"]);
    assert_eq!(nearest(&need, 4 << 20).len(), 2);
    let mut image = able("image");
    image.read_only.value = true;
    let need = with_rule(Fact::ReadOnly, Condition::Is(false));
    let (_, excluded) = exclude(&need, 1 << 30, &[image]);
    let given = Evidence {
        excluded,
        ..evidence(vec![])
    };
    assert_eq!(judge(&need, &given).unwrap().nearest[0].allow, ["nothing"]);
}

/// A memory that nobody tried excludes nobody, and is told of.
#[test]
fn only_a_memory_that_is_known_to_be_too_small_excludes() {
    let mut need = two_metrics();
    for (asked, kept, unknown) in [("16MiB", 0, false), ("20MiB", 1, true), ("32MiB", 1, false)] {
        need.set(&format!("memory_bytes={asked}")).unwrap();
        let (admitted, out) = exclude(&need, u64::MAX, &[able("a")]);
        assert_eq!(admitted.len(), kept, "{asked}");
        let told = not_known(&need, &able("a"));
        assert_eq!(told.is_some(), unknown, "{asked}: {told:?}");
        for one in out {
            assert!(
                one.why.starts_with("fails in a memory of 16 MiB"),
                "{}",
                one.why
            );
        }
    }
    need.set("memory_bytes=20MiB").unwrap();
    let mut untried = able("a");
    untried.memory.value.fails = None;
    let said = not_known(&need, &untried).unwrap();
    assert!(
        said.contains("20 MiB of memory: 32 MiB is the least in which"),
        "{said}"
    );
    assert_eq!(not_known(&two_metrics(), &untried), None);
}

#[test]
fn lists_need_an_entry_and_options_are_options() {
    let mut need = two_metrics();
    for given in [
        "licence=",
        "licence=,",
        "kernel_options=",
        "kernel_options=cfg",
    ] {
        let said = need.set(given).unwrap_err().to_string();
        assert!(
            said.contains("is no value of") && said.contains("or any"),
            "{said}"
        );
    }
    assert!(need.rules.is_empty());
    let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"w\"\n[weights.a]\nweight = 1\n\
                because = \"x\"\n[[rules]]\nfact = \"licence\"\namong = []\n\
                because = \"x\"\nsource = \"y\"\n";
    let said = Need::parse("n.toml", text).unwrap_err().to_string();
    assert!(
        said.contains("n.toml:9: rules.among: an empty list"),
        "{said}"
    );
}

#[test]
fn options_of_extended_attributes_count_where_they_are_asked_for() {
    let mut need = two_metrics();
    need.set("kernel_options=CONFIG_X_FS=m").unwrap();
    assert_eq!(exclude(&need, u64::MAX, &[able("a")]).0.len(), 1);
    need.set("xattrs=yes").unwrap();
    let (_, out) = exclude(&need, u64::MAX, &[able("a")]);
    let why = "needs CONFIG_X_FS_XATTR, which the kernel has not: asked for on the command line";
    assert_eq!(out[0].why, why);
}

#[test]
fn what_nobody_measured_is_said_with_its_share() {
    let verdict = judge(&two_metrics(), &evidence(vec![sample("x", "a", 1, 1.0)])).unwrap();
    assert_eq!(verdict.unmeasured.len(), 1);
    let lacking = &verdict.unmeasured[0];
    assert_eq!((lacking.metric.as_str(), lacking.share), ("b", 0.5));
}

#[test]
fn a_candidate_that_failed_half_its_trials_is_shown_with_what_it_gave() {
    let mut given = evidence(vec![
        sample("half", "a", 1, 0.5),
        sample("half", "a", 2, 0.5),
        sample("whole", "a", 1, 1.0),
    ]);
    given.failures = vec![3, 4]
        .into_iter()
        .map(|seed| Failure {
            candidate: "half".into(),
            seed,
            reason: "out of memory".into(),
        })
        .collect();
    let verdict = judge(&two_metrics(), &given).unwrap();
    assert_eq!(verdict.ranking.len(), 1, "it is not judged");
    let half = &verdict.excluded[0];
    assert_eq!(
        half.why,
        "2 of its 4 trials failed, that with seed 3: out of memory"
    );
    let figure = &half.figures["a"];
    assert_eq!((figure.samples.len(), figure.ratio), (2, 1.0));
    assert!((figure.value - 0.5).abs() < 1e-12);
    assert_eq!(
        half.grades["a"],
        crate::Grade::Best,
        "its figures keep grades"
    );
    let failed = verdict.failed_of("half").unwrap();
    assert_eq!(failed.words(), "2 of 4 trials failed");
    let seeds: Vec<u64> = failed.failed.iter().map(|one| one.seed).collect();
    assert_eq!(seeds, [3, 4]);
    assert_eq!(verdict.failed_of("whole"), None);
}

#[test]
fn the_worst_tenth_of_a_fit_makes_less_sure() {
    let p_best = |fit_error| {
        let mut given = evidence(vec![sample("x", "a", 1, 1.0), sample("y", "a", 1, 1.3)]);
        given.fit_error = fit_error;
        let verdict = judge(&two_metrics(), &given).unwrap();
        assert_eq!(verdict.fit_error, fit_error);
        verdict.ranking[0].p_best.unwrap()
    };
    let fit = |p90| Some(crate::ModelError { median: 0.05, p90 });
    let [none, good, bad] = [None, fit(0.1), fit(1.0)].map(p_best);
    assert!(none > good && good > bad + 0.05, "{none} {good} {bad}");
}

/// A tenth of a second more decides nothing where a tenth is nothing; a second does.
#[test]
fn better_than_enough_is_no_better() {
    let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"w\"\n[weights.a]\nweight = 1\n\
                because = \"x\"\n[weights.b]\nweight = 1\nbecause = \"x\"\nenough = 0.1\n\
                enough_because = \"nobody sees it\"\n";
    let need = Need::parse("n.toml", text).unwrap();
    let leader = |slow: f64| {
        let given = evidence(vec![
            sample("x", "a", 1, 1.0),
            sample("x", "b", 1, slow),
            sample("y", "a", 1, 1.2),
            sample("y", "b", 1, 0.001),
        ]);
        let verdict = judge(&need, &given).unwrap();
        assert_eq!(verdict.metrics[1].enough, Some(0.1));
        assert_eq!(
            verdict.metrics[1].enough_because.as_deref(),
            Some("nobody sees it")
        );
        let first = &verdict.ranking[0];
        (first.candidate.clone(), first.figures["b"].value)
    };
    assert_eq!(leader(0.1), ("x".to_owned(), 0.1));
    assert_eq!(leader(1.0).0, "y");
    for (from, to, said) in [
        (
            "enough = 0.1",
            "enough = -1",
            "n.toml:10: weights.b.enough: -1; expected a number above",
        ),
        (
            "enough_because = \"nobody sees it\"\n",
            "",
            "weights.b.enough: no reason",
        ),
        (
            "enough = 0.1",
            "enough = 0.1\nenough_of_partition = 0.1",
            "expected one of them",
        ),
    ] {
        let error = Need::parse("n.toml", &text.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn enough_may_be_a_share_of_the_partition() {
    let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"w\"\n[weights.a]\nweight = 1\n\
                because = \"x\"\nenough_of_partition = 0.02\nenough_because = \"it is little\"\n";
    let need = Need::parse("n.toml", text).unwrap();
    let mut given = evidence(vec![sample("x", "a", 1, 15.0), sample("y", "a", 1, 2.0)]);
    given.partition_bytes = Some(1000);
    let verdict = judge(&need, &given).unwrap();
    assert_eq!(verdict.ranking[0].ties_with.len(), 1, "both are below 20");
    given.partition_bytes = Some(100);
    assert!(
        judge(&need, &given).unwrap().ranking[0]
            .ties_with
            .is_empty()
    );
}
