//! The smallest partition that a filesystem can be used on, by bisection. Pure: whoever asks tries
//! the sizes.

/// A search between a size that fails and one that works.
///
/// That what works on one size works on all larger ones is taken for granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    resolution: u64,
    largest: u64,
    /// The largest multiple of the resolution known to fail; 0 does.
    fails: u64,
    works: Option<u64>,
    /// `largest` fails as well.
    hopeless: bool,
}

impl Bisection {
    /// A search up to `largest` bytes in steps of `resolution` bytes, both above 0.
    pub fn new(resolution: u64, largest: u64) -> Bisection {
        let resolution = resolution.max(1);
        Bisection {
            resolution,
            largest: largest / resolution * resolution,
            fails: 0,
            works: None,
            hopeless: false,
        }
    }

    /// The size that is to be tried next; `None` if the answer is known.
    pub fn next(&self) -> Option<u64> {
        if self.hopeless {
            return None;
        }
        let Some(works) = self.works else {
            return Some(self.largest).filter(|size| *size > 0);
        };
        let steps = (works - self.fails) / self.resolution;
        (steps > 1).then(|| self.fails + steps / 2 * self.resolution)
    }

    /// Takes what became of `size`.
    pub fn hear(&mut self, size: u64, worked: bool) {
        match worked {
            true => self.works = Some(self.works.map_or(size, |known| known.min(size))),
            false if size >= self.largest => self.hopeless = true,
            false => self.fails = self.fails.max(size),
        }
    }

    /// The smallest size that works, once nothing is left to be tried; `None` if none does.
    pub fn smallest(&self) -> Option<u64> {
        self.works.filter(|_| self.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: u64, resolution: u64, largest: u64) -> (Option<u64>, usize) {
        let mut search = Bisection::new(resolution, largest);
        let mut tries = 0;
        while let Some(size) = search.next() {
            assert!(size > 0 && size <= largest && size.is_multiple_of(resolution));
            search.hear(size, size >= limit);
            tries += 1;
            assert!(tries < 64);
        }
        (search.smallest(), tries)
    }

    #[test]
    fn it_finds_every_limit_in_as_many_tries_as_the_logarithm() {
        for limit in 1..=200 {
            let (found, tries) = search(limit * 4, 4, 800);
            assert_eq!(found, Some(limit * 4));
            assert!(tries <= 9, "{tries}");
        }
        assert_eq!(search(5, 4, 800).0, Some(8), "rounded up to whole steps");
    }

    #[test]
    fn where_nothing_works_one_try_tells() {
        assert_eq!(search(801, 4, 800), (None, 1));
        assert_eq!(Bisection::new(4096, 100).next(), None);
    }
}
