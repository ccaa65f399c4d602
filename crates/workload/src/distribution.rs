//! What a tree is drawn from: measured quantiles and shares, in integers.

use crate::content::levels;
use crate::listing::{EntryKind, Listing};
use serde::Deserialize;
use std::sync::OnceLock;
use whichfs_units::Rng;

/// Quantiles and shares are given in parts of this.
pub const PARTS: u64 = 10_000;

/// A quantile function: pairs of parts of [`PARTS`] and value, both rising.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Quantiles(pub Vec<(u64, u64)>);

impl Quantiles {
    /// The value at `position / whole`, interpolated between the neighbours.
    pub fn at(&self, position: u64, whole: u64) -> u64 {
        // Fixed point, so that every machine gets the same tree.
        let wanted = u128::from(position) * u128::from(PARTS) * FINE / u128::from(whole);
        let upper = self
            .0
            .iter()
            .position(|&(parts, _)| u128::from(parts) * FINE >= wanted)
            .unwrap_or(self.0.len() - 1)
            .max(1);
        let (from, low) = self.0[upper - 1];
        let (to, high) = self.0[upper];
        let offset = wanted.saturating_sub(u128::from(from) * FINE);
        let width = u128::from(to - from) * FINE;
        low + (u128::from(high - low) * offset / width) as u64
    }

    /// A drawn value.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.at(rng.below(DRAWS), DRAWS)
    }

    /// Share of values at or below `value`, in parts of [`PARTS`].
    fn share_up_to(&self, value: u64) -> f64 {
        let at = self.0.partition_point(|&(_, knot)| knot <= value);
        if at == 0 {
            return 0.0;
        }
        let (from, low) = self.0[at - 1];
        match self.0.get(at) {
            Some(&(to, high)) => {
                from as f64 + (value - low) as f64 / (high - low) as f64 * (to - from) as f64
            }
            None => PARTS as f64,
        }
    }

    /// Mean of the interpolated distribution.
    pub fn mean(&self) -> f64 {
        let area =
            |two: &[(u64, u64)]| (two[1].0 - two[0].0) as f64 * (two[0].1 + two[1].1) as f64 / 2.0;
        self.0.windows(2).map(area).sum::<f64>() / PARTS as f64
    }

    /// Whether the pairs rise from 0 to [`PARTS`].
    fn is_sound(&self) -> bool {
        self.0.first().is_some_and(|first| first.0 == 0)
            && self.0.last().is_some_and(|last| last.0 == PARTS)
            && self
                .0
                .windows(2)
                .all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1)
    }
}

/// Resolution of positions between two parts.
const FINE: u128 = 1 << 20;

/// Number of equally likely positions of a draw.
const DRAWS: u64 = 1 << 32;

/// Content of the files of a size class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Largest file of the class, in bytes.
    pub up_to: u64,
    /// Files of each level (see [`levels`]) in the class, as counted.
    pub files: Vec<u64>,
}

/// A measured tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// What was measured, where, when, with what.
    pub source: String,
    /// Regular files counted.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Directories counted.
    pub directories: u64,
    /// Symbolic links counted.
    pub symlinks: u64,
    /// Additional names of files counted.
    pub hard_links: u64,
    /// Files with an execute permission.
    pub executables: u64,
    /// File sizes in bytes.
    pub size: Quantiles,
    /// Length of file names.
    pub name_length: Quantiles,
    /// Files in a directory.
    pub files_per_directory: Quantiles,
    /// Number of files in directories of depth 1, 2, …
    pub files_by_depth: Vec<u64>,
    /// Number of directories of depth 1, 2, …
    pub directories_by_depth: Vec<u64>,
    /// Extensions with the files that have them.
    pub extensions: Vec<(String, u64)>,
    /// Compressibility by size class, smallest first.
    pub class: Vec<Class>,
}

impl Distribution {
    /// That of `workloads/rootfs.toml`.
    pub fn rootfs() -> &'static Distribution {
        static ROOTFS: OnceLock<Distribution> = OnceLock::new();
        ROOTFS.get_or_init(|| {
            let text = include_str!("../../../workloads/rootfs.toml");
            Distribution::parse(text)
                .unwrap_or_else(|error| unreachable!("rootfs.toml is tested: {error}"))
        })
    }

    /// Reads and checks a data file.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
    pub fn parse(text: &str) -> Result<Distribution, String> {
        let read: Distribution = toml::from_str(text).map_err(|error| error.to_string())?;
        let named = [
            ("size", &read.size),
            ("name_length", &read.name_length),
            ("files_per_directory", &read.files_per_directory),
        ];
        for (name, quantiles) in named {
            if !quantiles.is_sound() {
                return Err(format!("{name}: pairs must rise from 0 to {PARTS}"));
            }
        }
        if read
            .class
            .iter()
            .any(|class| class.files.len() != levels().len())
        {
            return Err(format!("class: files must have {} figures", levels().len()));
        }
        if read.class.is_empty() || read.class.iter().any(|class| sum(&class.files) == 0) {
            return Err("class: a class without files".to_owned());
        }
        let depths = [&read.files_by_depth, &read.directories_by_depth];
        if depths
            .iter()
            .any(|counts| sum(counts) == 0 || counts[0] == 0)
        {
            return Err("the depths must begin with directories in the root".to_owned());
        }
        Ok(read)
    }

    /// The class of a file of `size` bytes.
    pub fn class_of(&self, size: u64) -> &Class {
        self.class
            .iter()
            .find(|class| size <= class.up_to)
            .unwrap_or(&self.class[self.class.len() - 1])
    }

    /// Checks that `listing` looks like this distribution: sizes (after scaling to its
    /// own mean), depths, links, compressibility.
    ///
    /// # Errors
    /// The first property that is too far off, with both figures.
    pub fn check(&self, listing: &Listing) -> Result<(), String> {
        self.check_sizes(listing)?;
        self.check_depths(listing)?;
        self.check_content(listing)?;
        let count = |wanted: fn(&EntryKind) -> bool| {
            listing
                .entries
                .iter()
                .filter(|entry| wanted(&entry.kind))
                .count() as f64
        };
        let files = listing.files().count() as f64;
        let links = count(|kind| matches!(kind, EntryKind::Symlink { .. })) / files;
        within(
            "symlinks a file",
            links,
            self.symlinks as f64 / self.files as f64,
            0.02,
        )?;
        let directories = count(|kind| matches!(kind, EntryKind::Directory)) / files;
        let wanted = self.directories as f64 / self.files as f64;
        within("directories a file", directories, wanted, 0.02)
    }

    fn check_sizes(&self, listing: &Listing) -> Result<(), String> {
        let files = listing.files().count() as f64;
        let scale = listing.bytes() as f64 / files / self.size.mean();
        let mut sizes: Vec<u64> = listing
            .files()
            .map(|(_, size, _)| (size as f64 / scale) as u64)
            .collect();
        sizes.sort_unstable();
        for (at, &size) in sizes.iter().enumerate() {
            let found = (at + 1) as f64 / files;
            let wanted = self.size.share_up_to(size) / PARTS as f64;
            within(
                &format!("share of files up to {size} B"),
                found,
                wanted,
                0.03,
            )?;
        }
        Ok(())
    }

    fn check_depths(&self, listing: &Listing) -> Result<(), String> {
        let mut counts = vec![0_u64; self.files_by_depth.len()];
        for (path, _, _) in listing.files() {
            let depth = path.matches('/').count();
            let place = depth.checked_sub(1).and_then(|at| counts.get_mut(at));
            *place.ok_or_else(|| format!("{path} lies at depth {depth}"))? += 1;
        }
        let (found, wanted) = (sum(&counts) as f64, sum(&self.files_by_depth) as f64);
        for (at, (&count, &measured)) in counts.iter().zip(&self.files_by_depth).enumerate() {
            let what = format!("share of files at depth {}", at + 1);
            within(&what, count as f64 / found, measured as f64 / wanted, 0.02)?;
        }
        Ok(())
    }

    fn check_content(&self, listing: &Listing) -> Result<(), String> {
        let mut counts = vec![0_u64; levels().len()];
        for (_, _, content) in listing.files() {
            if let whichfs_trial::Content::Generated { level, .. } = content {
                counts[usize::from(*level)] += 1;
            }
        }
        for (level, &count) in counts.iter().enumerate() {
            let measured: u64 = self.class.iter().map(|class| class.files[level]).sum();
            let whole: u64 = self.class.iter().map(|class| sum(&class.files)).sum();
            let found = count as f64 / sum(&counts).max(1) as f64;
            let what = format!("share of files of level {level}");
            within(&what, found, measured as f64 / whole as f64, 0.03)?;
        }
        Ok(())
    }
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

fn within(what: &str, found: f64, wanted: f64, slack: f64) -> Result<(), String> {
    if (found - wanted).abs() <= slack {
        return Ok(());
    }
    Err(format!("{what}: {found:.3}, measured were {wanted:.3}"))
}

/// An index into `weights`, drawn in proportion to them.
pub fn weighted(rng: &mut Rng, weights: &[u64]) -> usize {
    let mut left = rng.below(sum(weights));
    for (at, &weight) in weights.iter().enumerate() {
        if left < weight {
            return at;
        }
        left -= weight;
    }
    unreachable!("the draw is below the sum of the weights")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::{prop_assert, proptest};

    fn quantiles() -> Quantiles {
        Quantiles(vec![(0, 10), (5_000, 20), (9_000, 20), (10_000, 120)])
    }

    #[test]
    fn quantiles_are_interpolated() {
        let check = |position, expected| assert_eq!(quantiles().at(position, 100), expected);
        check(0, 10);
        check(25, 15);
        check(50, 20);
        check(70, 20);
        check(95, 70);
        check(100, 120);
        let mean = 0.5 * 15.0 + 0.4 * 20.0 + 0.1 * 70.0;
        assert!((quantiles().mean() - mean).abs() < 1e-9);
    }

    #[test]
    fn shares_are_the_inverse_of_quantiles() {
        let check = |value, expected: f64| {
            let found = quantiles().share_up_to(value);
            assert!((found - expected).abs() < 1e-9, "{value}: {found}");
        };
        check(9, 0.0);
        check(15, 2_500.0);
        check(20, 9_000.0);
        check(70, 9_500.0);
        check(120, 10_000.0);
        check(500, 10_000.0);
    }

    proptest! {
        #[test]
        fn quantiles_rise(a in 0..=1_000_000_u64, b in 0..=1_000_000_u64) {
            let at = |position| Distribution::rootfs().size.at(position, 1_000_000);
            prop_assert!(at(a.min(b)) <= at(a.max(b)));
        }
    }

    #[test]
    fn the_data_file_agrees_with_itself() {
        let rootfs = Distribution::rootfs();
        assert_eq!(sum(&rootfs.files_by_depth), rootfs.files);
        assert_eq!(sum(&rootfs.directories_by_depth), rootfs.directories);
        let counted: u64 = rootfs.class.iter().map(|class| sum(&class.files)).sum();
        assert_eq!(counted, rootfs.files);
        let mean = rootfs.bytes as f64 / rootfs.files as f64;
        assert!((rootfs.size.mean() / mean - 1.0).abs() < 0.05);
    }

    #[test]
    fn planted_faults_in_the_data_are_refused() {
        let text = include_str!("../../../workloads/rootfs.toml");
        let refused = |from: &str, to: &str, expected: &str| {
            assert!(text.contains(from), "{from}");
            let error = Distribution::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        refused("size = [", "sizes = [", "sizes");
        refused("[100, 92]", "[100, 920]", "size: pairs must rise");
        refused("[10000, 63]", "[9990, 63]", "name_length: pairs must rise");
        refused(
            "files = [2343, 321, ",
            "files = [",
            "class: files must have",
        );
        refused("files_by_depth = [30, ", "files_by_depth = [0, ", "depths");
        Distribution::parse(text).unwrap();
    }

    #[test]
    fn weights_decide_how_often() {
        let mut rng = Rng::named(1, "weights");
        let mut counts = [0_u64; 3];
        for _ in 0..4_000 {
            counts[weighted(&mut rng, &[1, 0, 3])] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((900..1_100).contains(&counts[0]), "{counts:?}");
    }
}
