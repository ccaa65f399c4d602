//! Need files, overrides and hard rules.
use super::able;
use crate::{CrashClass, Need, NeedError, exclude};

const GOOD: &str = "name = \"n\"
title = \"T\"
workload = \"rootfs\"
requires = [\"mount\"]
[weights.mount]
weight = 1
because = \"boot\"
[[rules]]
fact = \"symlinks\"
is = true
because = \"links\"
source = \"FHS\"
";

/// The message about `GOOD` with `from` replaced by `to`.
fn error(from: &str, to: &str) -> String {
    let text = GOOD.replace(from, to);
    assert_ne!(text, GOOD, "'{from}' is in the file");
    Need::parse("my.toml", &text).unwrap_err().to_string()
}

#[test]
fn shipped_needs_are_valid_and_sorted() {
    let names: Vec<String> = Need::builtin().into_iter().map(|need| need.name).collect();
    assert_eq!(
        names.join(" "),
        "appstart camera command database exchange fio fio-job logger ota packages rootfs \
         rootfs-readonly video"
    );
    for need in Need::builtin() {
        assert!(
            need.weights.values().all(|w| w.because.len() > 10),
            "{}",
            need.name
        );
        assert!(
            need.weights
                .values()
                .all(|w| w.short != w.label || w.label.len() <= 6)
        );
    }
}

#[test]
fn a_wrong_file_is_told_by_line_key_and_what_is_legal() {
    let cases = [
        (
            "weight = 1",
            "weight = -1",
            "my.toml:6: weights.mount.weight: -1; expected a number 0",
        ),
        (
            "weight = 1",
            "weight = nan",
            "my.toml:6: weights.mount.weight: NaN; expected a number",
        ),
        ("weight = 1", "weight = \"x\"", "my.toml:6: "),
        (
            "weight = 1",
            "weight = 0",
            "my.toml:5: weights: no weight above 0",
        ),
        (
            "[\"mount\"]",
            "[\"mont\"]",
            "my.toml:4: requires: 'mont'; expected a metric",
        ),
        (
            "\"symlinks\"",
            "\"symlink\"",
            "my.toml:9: rules.fact: 'symlink'; did you mean 'symlinks'",
        ),
        (
            "is = true",
            "at_least = 4",
            "conditions that do not fit symlinks; expected exactly one",
        ),
        (
            "is = true\n",
            "",
            "symlinks without condition; expected exactly one of `is = true`",
        ),
        (
            "is = true",
            "is = true\nunless = \"x=y\"",
            "'x=y'; expected power_loss=matters or",
        ),
        (
            "\"links\"",
            "\" \"",
            "my.toml:11: rules.because: an empty text",
        ),
        (
            "title",
            "titel",
            "my.toml:2: the file: unknown key 'titel'; did you mean 'title'?",
        ),
        ("name = \"n\"", "name = ", "my.toml:1: "),
    ];
    for (from, to, expected) in cases {
        let message = error(from, to);
        assert!(message.contains(expected), "{to}: {message}");
    }
    assert!(Need::parse("my.toml", GOOD).is_ok());
}

#[test]
fn unknown_needs_offer_the_nearest() {
    let message = Need::named("rootf").unwrap_err().to_string();
    assert!(message.contains("did you mean 'rootfs'?"), "{message}");
    assert!(matches!(Need::named("zzz"), Err(NeedError::Unknown(_))));
}

#[test]
fn rules_exclude_with_reason_and_source() {
    let need = Need::named("rootfs").unwrap();
    let mut fat = able("vfat");
    fat.unix_permissions.value = false;
    fat.unix_permissions.source = "vfat.rst".into();
    let mut ext2 = able("ext2");
    ext2.crash_class.value = CrashClass::None;
    let (kept, out) = exclude(&need, 1 << 30, &[fat, able("ext4"), ext2]);
    assert_eq!(
        kept.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
        ["ext4"]
    );
    assert_eq!(out[0].candidate, "vfat");
    assert!(
        out[0]
            .why
            .starts_with("keeps no Unix permissions: a Linux system")
    );
    assert_eq!(out[0].rule.as_deref(), Some("unix_permissions"));
    assert!(
        out[0]
            .source
            .as_ref()
            .unwrap()
            .contains("vfat.rst; rule: POSIX")
    );
    assert_eq!(out[1].rule.as_deref(), Some("crash_class"));
}

#[test]
fn power_loss_none_keeps_the_rules_that_tolerated_lifts() {
    let mut need = Need::named("rootfs").unwrap();
    need.set("power_loss=none").unwrap();
    assert_eq!(need.settings["power_loss"], "none");
    assert!(need.rules.iter().all(|rule| need.applies(rule)));
}

#[test]
fn power_loss_tolerated_admits_unprotected_candidates() {
    let mut need = Need::named("rootfs").unwrap();
    let mut ext2 = able("ext2");
    ext2.crash_class.value = CrashClass::None;
    assert_eq!(exclude(&need, 1 << 30, &[ext2.clone()]).0.len(), 0);
    need.set("power_loss=tolerated").unwrap();
    assert_eq!(exclude(&need, 1 << 30, &[ext2]).0.len(), 1);
}

#[test]
fn a_partition_too_small_excludes() {
    let need = Need::named("rootfs").unwrap();
    let mut xfs = able("xfs");
    xfs.min_bytes.value = 300 << 20;
    let (kept, out) = exclude(&need, 128 << 20, &[xfs]);
    assert!(kept.is_empty());
    assert_eq!(
        out[0].why,
        "needs a partition of 300 MiB, this one has 128 MiB"
    );
}

#[test]
fn read_only_candidates_fit_the_read_only_need_alone() {
    let mut squashfs = able("squashfs");
    squashfs.read_only.value = true;
    let fits = |name: &str| {
        let need = Need::named(name).unwrap();
        exclude(&need, 1 << 30, std::slice::from_ref(&squashfs))
            .0
            .len()
    };
    assert_eq!(fits("rootfs-readonly"), 1);
    assert_eq!(fits("rootfs") + fits("logger") + fits("exchange"), 0);
}

#[test]
fn overrides_change_rules_and_weights() {
    let mut need = Need::named("rootfs").unwrap();
    need.set("windows=yes").unwrap();
    need.set("max_file_bytes=8GiB").unwrap();
    need.set("weight.mount=5").unwrap();
    assert_eq!(need.weights["mount"].weight, 5.0);
    let mut ext4 = able("ext4");
    ext4.windows.value = false;
    let mut small = able("vfat");
    small.max_file_bytes.value = u64::from(u32::MAX);
    let (_, out) = exclude(&need, 1 << 30, &[ext4.clone(), small]);
    assert_eq!(
        out[0].why,
        "is not read by Windows: asked for on the command line"
    );
    assert!(
        out[1].why.starts_with("holds files up to 4 GiB only"),
        "{}",
        out[1].why
    );
    need.set("windows=any").unwrap();
    assert_eq!(exclude(&need, 1 << 30, &[ext4]).0.len(), 1);
}

#[test]
fn wrong_overrides_say_what_is_legal() {
    let cases = [
        ("windows", "no '='"),
        ("window=yes", "did you mean 'windows'?"),
        ("windows=perhaps", "expected yes, no or any"),
        ("grow=perhaps", "expected yes, no, online or any"),
        ("power_loss=ok", "expected matters or tolerated or none"),
        ("weight.mont=1", "did you mean 'mount'?"),
        ("weight.mount=-1", "expected a number 0 to 1000"),
        ("weight.mount=NaN", "expected a number 0 to 1000"),
        ("max_file_bytes=4GB", "expected a whole number"),
        ("max_file_bytes=99999999999TiB", "expected a whole number"),
        ("crash_class=none", "expected not-none"),
    ];
    for (given, expected) in cases {
        let mut need = Need::named("rootfs").unwrap();
        let before = need.clone();
        let message = need.set(given).unwrap_err().to_string();
        assert!(
            message.contains(expected) && message.contains(given),
            "{message}"
        );
        assert_eq!(need, before, "a refused override changes nothing");
    }
}

#[test]
fn a_file_like_a_shipped_need_differs_by_its_name_alone() {
    for need in Need::builtin() {
        let text = Need::file_like(&need.name, "mine").unwrap();
        let mine = Need::parse("mine.toml", &text).unwrap();
        let renamed = Need {
            name: "mine".into(),
            ..need
        };
        assert_eq!(mine, renamed);
    }
    let wrong = |like, name| Need::file_like(like, name).unwrap_err().to_string();
    assert!(wrong("loger", "mine").contains("did you mean 'logger'?"));
    assert!(wrong("logger", "my need").contains("lower-case letters"));
}

#[test]
fn a_smallest_partition_on_which_every_filesystem_works_excludes_nobody() {
    let mut need = Need::named("rootfs").unwrap();
    let told = need.set("min_bytes=99TiB").unwrap_err().to_string();
    assert!(
        told.contains("excludes nobody") && told.contains("--card"),
        "{told}"
    );
    need.set("min_bytes=16MiB").unwrap();
}
