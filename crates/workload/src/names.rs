//! Names of files and directories that every filesystem can hold.
//!
//! Only `a-z`, `0-9`, `-`, `_` and `.` inside: nothing that FAT forbids, and no two
//! names that differ in case only.

use std::collections::BTreeSet;
use whichfs_units::Rng;

/// Longest name that is made.
const NAME_MAX: usize = 60;

/// Names that DOS and Windows keep for devices, with any extension.
const RESERVED: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Whether FAT, exFAT and NTFS can hold `name` and Windows can open it.
pub fn is_portable(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let device = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    let legal = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.');
    !stem.is_empty()
        && name.len() <= 255
        && name.chars().all(legal)
        && !name.ends_with('.')
        && !RESERVED.contains(&stem)
        && !device("com")
        && !device("lpt")
}

/// Makes names that are unique within their directory.
pub struct Names {
    /// Every path given out.
    taken: BTreeSet<String>,
}

impl Names {
    /// No name is taken but those in `taken`.
    pub fn new(taken: impl IntoIterator<Item = String>) -> Names {
        Names {
            taken: taken.into_iter().collect(),
        }
    }

    /// A path in `dir` with a new name of about `len` characters and this `extension`
    /// (with its point, or empty).
    pub fn path(&mut self, rng: &mut Rng, dir: &str, len: u64, extension: &str) -> String {
        let wanted = (len as usize)
            .saturating_sub(extension.len())
            .clamp(1, NAME_MAX);
        loop {
            let mut name = word(rng, wanted);
            name.push_str(extension);
            let path = join(dir, &name);
            if is_portable(&name) && self.taken.insert(path.clone()) {
                return path;
            }
            // Short names run out: a number makes room.
            let path = join(
                dir,
                &format!("{}{}{extension}", word(rng, wanted), rng.below(100_000)),
            );
            if self.taken.insert(path.clone()) {
                return path;
            }
        }
    }
}

/// `dir/name`, or `name` in the root.
pub fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        name.to_owned()
    } else {
        format!("{dir}/{name}")
    }
}

/// A pronounceable word of `len` letters; long ones have a hyphen now and then.
fn word(rng: &mut Rng, len: usize) -> String {
    const CONSONANTS: &[u8] = b"bcdfghklmnprstvxz";
    const VOWELS: &[u8] = b"aeiouy";
    let pick = |rng: &mut Rng, from: &[u8]| char::from(from[rng.below(from.len() as u64) as usize]);
    let mut word = String::with_capacity(len);
    while word.len() < len {
        let left = len - word.len();
        if word.len() > 4 && left > 2 && rng.ratio(1, 8) {
            word.push(if rng.ratio(1, 2) { '-' } else { '_' });
        } else if word.len().is_multiple_of(2) {
            word.push(pick(rng, CONSONANTS));
        } else {
            word.push(pick(rng, VOWELS));
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checker_finds_what_fat_forbids() {
        for bad in [
            "", "a:b", "a?", "A", "a ", "a.", "con", "aux.txt", "com1", "lpt9.log", ".", "..",
            "a/b", "é",
        ] {
            assert!(!is_portable(bad), "{bad:?}");
        }
        for good in ["a", "libc.so.6", "comet", "con-fig", "x_y-z.tar.gz"] {
            assert!(is_portable(good), "{good:?}");
        }
    }

    #[test]
    fn names_are_portable_and_unique_even_when_short() {
        let mut names = Names::new([]);
        let mut rng = Rng::named(1, "names");
        let mut seen = BTreeSet::new();
        for at in 0..5_000 {
            let path = names.path(&mut rng, "d", at % 30, if at % 2 == 0 { ".gz" } else { "" });
            let name = path.strip_prefix("d/").unwrap_or_default();
            assert!(is_portable(name), "{path}");
            assert!(seen.insert(path.clone()), "{path} twice");
        }
    }
}
