//! Makes a failing list smaller while it still fails.
//!
//! Delta debugging as A. Zeller and R. Hildebrandt describe it (IEEE TSE 28(2), 2002, `ddmin`):
//! halves and their complements are tried first, then quarters, down to single elements. The
//! result is 1-minimal: without any one of its elements it no longer fails.

/// Tells whether a list fails; `None`: there is no time left to try.
type Fails<'a, T, E> = dyn FnMut(&[T]) -> Result<Option<bool>, E> + 'a;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimised<T> {
    /// The smallest list that fails.
    pub list: Vec<T>,
    /// It is 1-minimal; if not, the time was over before.
    pub minimal: bool,
}

/// The smallest list that it finds among sublists of `all` that still `fails`; `all` itself is
/// taken to fail. Stops early, with the best so far, when `fails` returns `None` (out of time).
///
/// # Errors
/// What `fails` says.
pub fn minimise<T: Clone, E>(all: Vec<T>, fails: &mut Fails<'_, T, E>) -> Result<Minimised<T>, E> {
    let mut list = all;
    let mut parts = 2;
    let mut minimal = true;
    while list.len() > 1 {
        match smaller(&list, parts, fails)? {
            Step::OutOfTime => {
                minimal = false;
                break;
            }
            Step::Part(part) => (list, parts) = (part, 2),
            Step::Complement(rest) => (list, parts) = (rest, (parts - 1).max(2)),
            Step::None if parts >= list.len() => break,
            Step::None => parts = (parts * 2).min(list.len()),
        }
    }
    if minimal && list.len() == 1 {
        match fails(&[])? {
            Some(true) => list.clear(),
            Some(false) => {}
            None => minimal = false,
        }
    }
    Ok(Minimised { list, minimal })
}

enum Step<T> {
    /// One part alone fails.
    Part(Vec<T>),
    /// It fails without one part.
    Complement(Vec<T>),
    None,
    OutOfTime,
}

fn smaller<T: Clone, E>(
    list: &[T],
    parts: usize,
    fails: &mut Fails<'_, T, E>,
) -> Result<Step<T>, E> {
    let size = list.len().div_ceil(parts);
    let mut tried = |candidate: &[T]| fails(candidate);
    for part in list.chunks(size) {
        match tried(part)? {
            Some(true) => return Ok(Step::Part(part.to_vec())),
            Some(false) => {}
            None => return Ok(Step::OutOfTime),
        }
    }
    // With two parts the complements are the parts.
    for begin in (0..list.len()).step_by(size).filter(|_| parts > 2) {
        let end = (begin + size).min(list.len());
        let rest = [&list[..begin], &list[end..]].concat();
        match tried(&rest)? {
            Some(true) => return Ok(Step::Complement(rest)),
            Some(false) => {}
            None => return Ok(Step::OutOfTime),
        }
    }
    Ok(Step::None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// Fails if it has all of `needed`; the result and the number of tries.
    fn of(count: u32, needed: &[u32]) -> (Vec<u32>, usize) {
        let mut tries = 0;
        let best = minimise::<u32, Infallible>((0..count).collect(), &mut |list| {
            tries += 1;
            Ok(Some(needed.iter().all(|n| list.contains(n))))
        });
        let best = best.unwrap();
        assert!(best.minimal);
        (best.list, tries)
    }

    #[test]
    fn what_is_needed_is_left_and_nothing_else() {
        assert_eq!(of(1000, &[7]).0, [7]);
        assert_eq!(of(1000, &[3, 500, 998]).0, [3, 500, 998]);
        assert_eq!(of(1000, &[]).0, [0; 0]);
        assert_eq!(of(5, &[0, 1, 2, 3, 4]).0, [0, 1, 2, 3, 4]);
        assert!(of(1000, &[7]).1 < 40);
    }

    #[test]
    fn out_of_time_the_best_so_far_is_kept() {
        let mut tries = 0;
        let best = minimise::<u32, Infallible>((0..1000).collect(), &mut |list| {
            tries += 1;
            Ok((tries < 4).then(|| list.contains(&7)))
        });
        let best = best.unwrap();
        assert!(!best.minimal && best.list.contains(&7));
        assert!(best.list.len() < 1000 && best.list.len() > 1);
        let none = minimise::<u32, Infallible>(vec![7], &mut |_| Ok(None)).unwrap();
        assert!(!none.minimal && none.list == [7]);
    }

    proptest! {
        #[test]
        fn the_result_is_minimal(
            count in 1_u32..60,
            needed in proptest::collection::btree_set(0_u32..60, 0..5),
        ) {
            let needed: Vec<u32> = needed.into_iter().filter(|n| *n < count).collect();
            prop_assert_eq!(of(count, &needed).0, needed);
        }
    }
}
