//! Names that a filesystem can keep, by their length and characters, and which it takes for one.
//!
//! As Linux 6.12 has it: tried name by name in the lab, and read in the sources named here.

use crate::model::Candidate;
use std::collections::BTreeMap;

/// Longest name, in the units of the filesystem: bytes (NAME_MAX, statfs(2) f_namelen), UTF-16
/// units on FAT (`fs/fat/fat.h`, FAT_LFN_LEN) and exFAT (`fs/exfat/exfat_fs.h`, MAX_NAME_LENGTH).
const LONGEST: usize = 255;

/// Characters that FAT and exFAT refuse beside control characters (`fs/fat/namei_vfat.c`,
/// `vfat_bad_char`; `fs/exfat/nls.c`, `bad_uni_chars`).
const FAT_FORBIDS: &str = "\"*:<>?\\|";

/// Names as FAT and its successors keep them.
struct FatNames {
    /// What a name cannot end with. FAT refuses a space and drops a period; exFAT drops a period
    /// (`fs/fat/namei_vfat.c`, `vfat_striptail_len`; `fs/exfat/namei.c`, `exfat_striptail_len`).
    no_end: &'static [char],
}

fn fat_names(candidate: &Candidate) -> Option<FatNames> {
    match candidate.name {
        "vfat" | "vfat-factory" => Some(FatNames {
            no_end: &['.', ' '],
        }),
        "exfat" => Some(FatNames { no_end: &['.'] }),
        _ => None,
    }
}

/// Names that are made on a filesystem, one after the other.
pub struct Names {
    candidate: &'static Candidate,
    /// Each path that was made, by what the filesystem takes for the same.
    known: BTreeMap<String, String>,
}

impl Names {
    /// None on `candidate` yet.
    pub fn on(candidate: &'static Candidate) -> Names {
        Names {
            candidate,
            known: BTreeMap::new(),
        }
    }

    /// Makes `path`, of which the last part is new.
    ///
    /// # Errors
    /// Why the filesystem cannot keep that name, or what it takes it for.
    pub fn make(&mut self, path: &str) -> Result<(), String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        refuse(self.candidate, name)?;
        if self.candidate.facts().case_sensitive {
            return Ok(());
        }
        let known = self.known.entry(path.to_lowercase());
        let first = known.or_insert_with(|| path.to_owned());
        match first == path {
            true => Ok(()),
            false => Err(format!(
                "{path} and {first} are one name on {}",
                self.candidate.name
            )),
        }
    }
}

/// Refuses a name that `candidate` cannot keep as it is.
fn refuse(candidate: &Candidate, name: &str) -> Result<(), String> {
    let fs = candidate.name;
    let fat = fat_names(candidate);
    let (length, unit) = match fat {
        Some(_) => (name.encode_utf16().count(), "UTF-16 units"),
        None => (name.len(), "bytes"),
    };
    if length > LONGEST {
        return Err(format!(
            "the name {} has {length} {unit}; {fs} has at most {LONGEST}",
            shown(name)
        ));
    }
    let Some(fat) = fat else {
        return Ok(());
    };
    let forbidden = |c: &char| FAT_FORBIDS.contains(*c) || *c < ' ';
    if let Some(found) = name.chars().find(forbidden) {
        return Err(format!("{fs} has no {found:?} in names ({name:?})"));
    }
    match name.ends_with(fat.no_end) {
        true => Err(format!(
            "{fs} keeps no {} at the end of a name ({name:?})",
            if name.ends_with('.') {
                "period"
            } else {
                "space"
            }
        )),
        false => Ok(()),
    }
}

/// The beginning of a long name.
fn shown(name: &str) -> String {
    const SHOWN: usize = 16;
    let begin: String = name.chars().take(SHOWN).collect();
    format!("{begin}…")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(fs: &str, path: &str) -> Option<String> {
        let mut names = Names::on(crate::find(fs).unwrap());
        names.make(path).err()
    }

    #[test]
    fn a_name_has_at_most_255_units() {
        for candidate in crate::candidates() {
            let longest = format!("{}/{}", "d".repeat(255), "n".repeat(255));
            assert_eq!(refused(candidate.name, &longest), None);
            let error = refused(candidate.name, &"n".repeat(300)).unwrap();
            assert!(
                error.contains("has 300 ") && error.contains("at most 255"),
                "{error}"
            );
        }
        // 86 characters of three bytes, and of one unit; 127 of four bytes and two units.
        for (name, units) in [("中".repeat(86), 86), ("😀".repeat(127), 254)] {
            assert!(refused("ntfs3", &name).unwrap().contains("bytes"));
            assert_eq!(refused("exfat", &name), None, "{units}");
        }
        let error = refused("vfat", &"😀".repeat(128)).unwrap();
        assert!(error.contains("256 UTF-16 units"), "{error}");
    }

    #[test]
    fn fat_and_exfat_refuse_what_windows_does_and_others_keep_it() {
        for name in ["a:b", "a?", "*", "a\\b", "a\tb", "\"", "<", ">", "|"] {
            for fs in ["vfat", "vfat-factory", "exfat"] {
                assert!(refused(fs, name).unwrap().contains(fs), "{fs} {name}");
            }
            for fs in ["ext4", "ntfs3", "f2fs"] {
                assert_eq!(refused(fs, name), None, "{fs} {name}");
            }
        }
        for fs in ["vfat", "exfat"] {
            assert!(refused(fs, "d/a.").unwrap().contains("period"), "{fs}");
            assert_eq!(
                refused(fs, "d./a"),
                None,
                "its directory was told of before"
            );
        }
        assert!(refused("vfat", "a ").unwrap().contains("space"));
        assert_eq!(refused("exfat", "a "), None);
        assert_eq!(refused("ntfs3", "a. "), None);
    }

    #[test]
    fn names_that_differ_in_case_are_one_on_fat() {
        for (fs, one) in [
            ("vfat", true),
            ("exfat", true),
            ("ntfs3", false),
            ("ext4", false),
        ] {
            let mut names = Names::on(crate::find(fs).unwrap());
            names.make("etc").unwrap();
            names.make("etc").unwrap();
            let other = names.make("Etc");
            assert_eq!(
                other.is_err_and(|why| why.contains("Etc and etc")),
                one,
                "{fs}"
            );
        }
    }
}
