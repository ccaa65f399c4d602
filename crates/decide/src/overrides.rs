//! `--need KEY=VALUE`: one change to a shipped need.

use crate::facts::{CrashClass, Fact};
use crate::need::{Condition, FACTS, HardRule, Need, NeedError, SETTINGS};
use std::collections::BTreeSet;
use whichfs_units::{Bytes, hint};

impl Need {
    /// Applies `KEY=VALUE` as given after `--need`:
    /// `power_loss=tolerated` or `none`, `weight.METRIC=NUMBER`, `FACT=yes|no|any` for flags,
    /// `max_file_bytes=8GiB`, `last_year=2050`, `crash_class=any|not-none`, `grow=online`,
    /// `kernel_options=CONFIG_EXT4_FS,…`, `licence=GPL-2.0,LGPL-2.0`.
    ///
    /// # Errors
    /// [`NeedError::Override`] with what is legal.
    pub fn set(&mut self, given: &str) -> Result<(), NeedError> {
        let fail = |problem: String, expected: String| NeedError::Override {
            given: given.to_owned(),
            problem,
            expected,
        };
        let Some((key, value)) = given.split_once('=') else {
            return Err(fail(
                "no '='".into(),
                "KEY=VALUE, for example windows=yes".into(),
            ));
        };
        if let Some((_, legal)) = SETTINGS.iter().find(|(name, _)| *name == key) {
            if !legal.contains(&value) {
                return Err(fail(
                    format!("'{value}' is no value of {key}"),
                    legal.join(" or "),
                ));
            }
            self.settings.insert(key.to_owned(), value.to_owned());
            return Ok(());
        }
        if let Some(metric) = key.strip_prefix("weight.") {
            return self
                .set_weight(metric, value)
                .map_err(|(problem, expected)| fail(problem, expected));
        }
        let Some(fact) = Fact::from_name(key) else {
            let mut names: Vec<String> = Fact::all().map(|f| f.name().to_owned()).collect();
            names.extend(SETTINGS.iter().map(|(name, _)| (*name).to_owned()));
            names.push("weight.METRIC".to_owned());
            return Err(fail(
                format!("no need is called '{key}'"),
                hint(key, &names, FACTS),
            ));
        };
        let condition = condition(fact, value).map_err(|expected| {
            fail(
                format!("'{value}' is no value of {key}"),
                expected.to_owned(),
            )
        })?;
        if let (Fact::MinBytes, Some(Condition::AtMost(most))) = (fact, &condition) {
            let all = whichfs_fs::candidates().iter();
            let largest = all.map(|one| one.facts().min_bytes).max().unwrap_or(0);
            if *most >= largest {
                return Err(fail(
                    format!(
                        "it excludes nobody: it is the size of the smallest partition on which \
                         the filesystem must work, and all work on {}",
                        Bytes(largest)
                    ),
                    "a smaller size, or --card with a card of the size that you have".to_owned(),
                ));
            }
        }
        self.rules.retain(|rule| rule.fact != fact);
        self.rules.extend(condition.map(|condition| HardRule {
            fact,
            condition,
            unless: None,
            because: "asked for on the command line".to_owned(),
            source: match given.len() {
                0..=60 => format!("--need {given}"),
                _ => format!("--need {key}=…"),
            },
        }));
        Ok(())
    }

    fn set_weight(&mut self, metric: &str, value: &str) -> Result<(), (String, String)> {
        let names: Vec<String> = self.weights.keys().cloned().collect();
        let Some(weight) = self.weights.get(metric) else {
            return Err((
                format!("'{metric}' has no weight in {}", self.name),
                hint(metric, &names, None),
            ));
        };
        let number = value
            .parse::<f64>()
            .ok()
            .filter(|n| (0.0..=1000.0).contains(n));
        let Some(number) = number else {
            return Err((
                format!("'{value}' is no weight"),
                "a number 0 to 1000".to_owned(),
            ));
        };
        let others = self.weights.iter().filter(|(name, _)| *name != metric);
        if number == 0.0 && others.map(|(_, w)| w.weight).sum::<f64>() == 0.0 {
            return Err((
                "no weight above 0 is left".into(),
                "one metric that counts".into(),
            ));
        }
        let mut changed = weight.clone();
        changed.weight = number;
        changed.because = "set on the command line".to_owned();
        self.weights.insert(metric.to_owned(), changed);
        Ok(())
    }
}

/// The condition that `value` means; `None` for `any`.
pub(crate) fn condition(fact: Fact, value: &str) -> Result<Option<Condition>, &'static str> {
    if value == "any" {
        return Ok(None);
    }
    if fact == Fact::CrashClass {
        return match value.strip_prefix("not-").and_then(CrashClass::from_word) {
            Some(class) => Ok(Some(Condition::Not(class))),
            None => Err("not-none, not-journaled, not-cow, not-log or any"),
        };
    }
    if fact.is_list() && matches!(value, "yes" | "no" | "true" | "false") {
        return Err("a list of what is allowed (licence=GPL-2.0,LGPL-2.1) or any");
    }
    if fact.is_list() {
        return list(fact, value).map(|all| Some(Condition::Among(all)));
    }
    if fact.is_number() {
        let number = bytes(value).ok_or("a whole number (4GiB, 512MiB, 2050) or any")?;
        return Ok(Some(match fact {
            fact if fact.is_at_most() => Condition::AtMost(number),
            _ => Condition::AtLeast(number),
        }));
    }
    match value {
        "yes" | "true" => Ok(Some(Condition::Is(true))),
        "no" | "false" => Ok(Some(Condition::Is(false))),
        "online" if fact.is_care() => Ok(Some(Condition::Online)),
        _ if fact.is_care() => Err("yes, no, online or any"),
        _ => Err("yes, no or any"),
    }
}

/// The entries of a list, at least one; a kernel option may say how it is on (`=y`, `=m`).
fn list(fact: Fact, value: &str) -> Result<BTreeSet<String>, &'static str> {
    let entries = value.split([',', ' ', '\n']);
    let entries = entries.filter(|entry| !entry.is_empty());
    let all: BTreeSet<String> = match fact {
        Fact::KernelOptions => entries
            .map(|entry| {
                let name = entry
                    .strip_suffix("=y")
                    .or_else(|| entry.strip_suffix("=m"));
                let name = name.unwrap_or(entry);
                let is_option = name.starts_with("CONFIG_") && !name.contains('=');
                is_option.then(|| name.to_owned()).ok_or(OPTIONS)
            })
            .collect::<Result<_, _>>()?,
        _ => entries.map(str::to_owned).collect(),
    };
    match (all.is_empty(), fact) {
        (false, _) => Ok(all),
        (true, Fact::KernelOptions) => Err(OPTIONS),
        (true, _) => Err("at least one of what is allowed (licence=GPL-2.0,LGPL-2.1) or any"),
    }
}

const OPTIONS: &str = "options that the kernel has (kernel_options=CONFIG_EXT4_FS,CONFIG_XFS_FS), \
     its configuration (kernel_options=/boot/config-6.1) or any";

/// A whole number with an optional binary unit.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" | "K" => whichfs_units::KIB,
        "MiB" | "M" => whichfs_units::MIB,
        "GiB" | "G" => whichfs_units::GIB,
        "TiB" | "T" => whichfs_units::GIB << 10,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
