//! Several logs of one card as one run.

use crate::{LoggedIdentity, LoggedRun};
use std::collections::BTreeMap;
use std::fmt::Display;

/// One run from `runs`, which are parts of the measurement of one card, each from a file of its
/// own: `flashbench -a` in one, `-O` in another. It has the name and lines of the first.
///
/// # Errors
/// What two of them both have or contradict each other in, in words; or that there is none.
pub fn join(runs: Vec<LoggedRun>) -> Result<LoggedRun, String> {
    let mut runs = runs.into_iter();
    let mut all = runs.next().ok_or("no run")?;
    for run in runs {
        let place = |run: &LoggedRun| format!("{} (from line {})", run.name, run.lines.0);
        let both = format!("{} and {}", place(&all), place(&run));
        add(&mut all, run).map_err(|what| format!("{both} {what}"))?;
    }
    Ok(all)
}

fn add(all: &mut LoggedRun, run: LoggedRun) -> Result<(), String> {
    identify(&mut all.card, run.card)?;
    same("erase size", &mut all.erase_bytes, run.erase_bytes)?;
    let (to, from) = (&mut all.curves, run.curves);
    merge("-a of the boundary", &mut to.align, from.align)?;
    merge("-O of open AUs", &mut to.linear, from.linear)?;
    merge("-O --random of open AUs", &mut to.random, from.random)?;
    merge("-f of the block size", &mut to.fat, from.fat)?;
    all.rates.extend(run.rates);
    Ok(())
}

fn identify(all: &mut LoggedIdentity, one: LoggedIdentity) -> Result<(), String> {
    // The device's path is the machine's, not the card's: a reader may name it anew.
    all.device = all.device.take().or(one.device);
    same("CID", &mut all.cid, one.cid)?;
    same("manufacturer", &mut all.manufacturer, one.manufacturer)?;
    same("product", &mut all.product, one.product)?;
    same("date", &mut all.date, one.date)?;
    same("capacity", &mut all.capacity_bytes, one.capacity_bytes)
}

/// What one of them does not tell, the other does.
fn same<T: PartialEq>(what: &str, all: &mut Option<T>, one: Option<T>) -> Result<(), String> {
    if all.is_some() && one.is_some() && *all != one {
        return Err(format!("differ in the card's {what}"));
    }
    *all = all.take().or(one);
    Ok(())
}

/// A test that two logs have may have gone differently: which one counts is not ours to say.
fn merge<K: Ord + Display, V>(
    what: &str,
    all: &mut BTreeMap<K, V>,
    one: BTreeMap<K, V>,
) -> Result<(), String> {
    if let Some(key) = one.keys().find(|key| all.contains_key(key)) {
        return Err(format!("both have flashbench {what} {key}"));
    }
    all.extend(one);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(name: &str, open: &[u32]) -> LoggedRun {
        let mut run = LoggedRun {
            name: name.to_owned(),
            lines: (1, 2),
            card: LoggedIdentity::default(),
            erase_bytes: Some(1 << 22),
            curves: whichfs_curves::Curves::default(),
            rates: Vec::new(),
        };
        for open in open {
            run.curves
                .linear
                .insert(*open, BTreeMap::from([(4096, 1e6)]));
        }
        run
    }

    #[test]
    fn parts_become_one_and_what_one_does_not_tell_the_other_does() {
        let mut first = run("align", &[]);
        first.erase_bytes = None;
        first.curves.align.insert(4096, Vec::new());
        let mut second = run("open", &[1, 2]);
        second.card.capacity_bytes = Some(8 << 30);
        let joined = join(vec![first, second, run("more", &[3])]).unwrap();
        assert_eq!(joined.name, "align");
        assert_eq!(joined.curves.linear.len(), 3);
        assert_eq!(joined.curves.align.len(), 1);
        assert_eq!(joined.card.capacity_bytes, Some(8 << 30));
        assert_eq!(joined.erase_bytes, Some(1 << 22));
        assert!(join(Vec::new()).is_err());
    }

    #[test]
    fn a_test_in_two_logs_and_another_card_are_refused() {
        let twice = join(vec![run("a", &[1, 2]), run("b", &[2])]).unwrap_err();
        assert_eq!(
            twice,
            "a (from line 1) and b (from line 1) both have flashbench -O of open AUs 2"
        );
        let mut other = run("b", &[3]);
        let mut first = run("a", &[1]);
        first.card.cid = Some("1".into());
        other.card.cid = Some("2".into());
        let other = join(vec![first, other]).unwrap_err();
        assert_eq!(
            other,
            "a (from line 1) and b (from line 1) differ in the card's CID"
        );
    }
}
