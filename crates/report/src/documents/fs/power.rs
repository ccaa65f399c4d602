//! What a filesystem promises over a power cut, and which mount options change that: the contracts
//! by which the crash lab judges.

use crate::text::folded;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use whichfs_crash::{Contract, contract, deciding_options, gives_up};

/// Where it is written what holds whatever the filesystem.
const CALLS: &str = "fsync(2), fdatasync(2), open(2) O_SYNC, syncfs(2)";

/// What survives a power cut.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Power {
    /// Mount options that it holds for.
    mount_options: String,
    /// What survives.
    survives: Vec<String>,
    /// What may be lost, or be otherwise.
    not_promised: Vec<String>,
    /// Where that is written.
    source: String,
    /// What other mount options change.
    options: Vec<Changed>,
}

/// What a mount option changes.
#[derive(Debug, Serialize, JsonSchema)]
struct Changed {
    option: &'static str,
    /// What survives with it that does not without.
    adds: Vec<String>,
    /// What it takes away.
    takes: Vec<String>,
    source: String,
}

/// The contract of `candidate` mounted with `options`; none if nothing is ever written to it.
pub fn of(candidate: &str, options: &str) -> Option<Power> {
    let own = contract(candidate, options)?;
    let (survives, not_promised) = parted(&own);
    let other = deciding_options(candidate).iter();
    Some(Power {
        mount_options: options.to_owned(),
        survives,
        not_promised,
        source: format!("{CALLS}; {}", own.source),
        options: other
            .filter_map(|option| changed(candidate, options, &own, option))
            .collect(),
    })
}

/// What is promised, and what is not.
fn parted(contract: &Contract) -> (Vec<String>, Vec<String>) {
    let all = lines(contract);
    let of = |wanted: bool| {
        let side = all.iter().filter(|(_, held)| *held == wanted);
        side.map(|(what, _)| (*what).to_owned()).collect()
    };
    (of(true), of(false))
}

/// Every promise, and whether it is made.
pub fn lines(contract: &Contract) -> Vec<(&'static str, bool)> {
    let synced = "what fsync, fdatasync, an O_SYNC write or syncfs made durable stays";
    let promises = contract.promises().into_iter();
    let own = promises.map(|(held, what)| (what, held));
    // Without flushes a card may lose what it has in its cache, and with it what was synced.
    [(synced, contract.flushes)]
        .into_iter()
        .chain(own)
        .collect()
}

fn changed(
    candidate: &str,
    options: &str,
    own: &Contract,
    option: &'static str,
) -> Option<Changed> {
    if let Some(why) = gives_up(candidate, option) {
        return Some(Changed {
            option,
            adds: Vec::new(),
            takes: vec!["all of this".to_owned()],
            source: why.to_owned(),
        });
    }
    let joined = match options {
        "" => option.to_owned(),
        options => format!("{options},{option}"),
    };
    let with = contract(candidate, &joined)?;
    let pairs = || lines(own).into_iter().zip(lines(&with));
    let turned = |to: bool| -> Vec<String> {
        pairs()
            .filter(|((_, before), (_, after))| before != after && *after == to)
            .map(|((what, _), _)| what.to_owned())
            .collect()
    };
    let source = with.source.strip_prefix(own.source.as_str());
    Some(Changed {
        option,
        adds: turned(true),
        takes: turned(false),
        source: source
            .unwrap_or(&with.source)
            .trim_start_matches("; ")
            .to_owned(),
    })
}

/// That in lines of at most `width` columns.
pub fn text(power: Option<&Power>, width: usize) -> String {
    let Some(power) = power else {
        return "\nOver a power cut: nothing is written to it, so nothing is lost.\n".to_owned();
    };
    let mut text = match power.mount_options.as_str() {
        "" => "\nOver a power cut:\n".to_owned(),
        options => format!("\nOver a power cut, mounted with {options}:\n"),
    };
    let mut line = |said: String| {
        let _ = writeln!(text, "{}", folded(&format!("  {said}"), 4, width));
    };
    for what in &power.survives {
        line(format!("promised: {what}"));
    }
    for what in &power.not_promised {
        line(format!("not promised: {what}"));
    }
    line(format!("({})", power.source));
    for Changed {
        option,
        adds,
        takes,
        source,
    } in &power.options
    {
        let adds = adds.iter().map(|what| format!("+ {what}"));
        let takes = takes.iter().map(|what| format!("- {what}"));
        let all: Vec<String> = adds.chain(takes).collect();
        line(format!("with {option}: {} ({source})", all.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_survives_is_told_for_each_that_is_written() {
        for candidate in whichfs_fs::candidates() {
            let power = of(candidate.name, "noatime");
            assert_eq!(
                power.is_none(),
                candidate.facts().read_only,
                "{}",
                candidate.name
            );
            let Some(power) = power else { continue };
            assert_eq!(power.survives.len() + power.not_promised.len(), 10);
            assert!(!power.options.is_empty() && !power.source.is_empty());
            for one in &power.options {
                let said = one.adds.len() + one.takes.len();
                assert!(
                    said > 0 && one.source.len() > 8,
                    "{} {}",
                    candidate.name,
                    one.option
                );
            }
        }
    }

    #[test]
    fn mount_options_change_what_survives() {
        let power = of("ext4", "noatime").unwrap();
        let option = |name: &str| power.options.iter().find(|one| one.option == name).unwrap();
        assert_eq!(option("data=writeback").takes.len(), 2);
        assert!(
            option("data=writeback")
                .source
                .starts_with("ext4(5), data=writeback")
        );
        assert_eq!(option("sync").adds.len(), 2);
        assert!(option("barrier=0").takes[0].starts_with("what fsync"));
        let said = text(Some(&power), 80);
        let too_long = |line: &&str| line.chars().count() > 80;
        assert_eq!(said.lines().find(too_long), None);
        assert!(
            said.contains("  promised: it mounts and is whole without fsck\n"),
            "{said}"
        );
        let unsynced = "  not promised: a write is durable when it returns\n";
        assert!(said.contains(unsynced), "{said}");
        let f2fs = text(of("f2fs", "").as_ref(), 999);
        assert!(
            f2fs.contains("with fsync_mode=strict: + a renamed file stays"),
            "{f2fs}"
        );
        assert!(
            f2fs.contains("with checkpoint=disable: - all of this"),
            "{f2fs}"
        );
    }
}
