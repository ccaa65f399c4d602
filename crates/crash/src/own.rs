//! Names that are not the user's.

use whichfs_trial::EXERCISE_NAME;

/// Names that filesystems and their checkers make by themselves.
const OWN_NAMES: [&str; 6] = [
    "lost+found",
    ".nilfs",
    "System Volume Information",
    "$RECYCLE.BIN",
    "found.000",
    EXERCISE_NAME,
];

/// Whether `path` is, or lies below, a name that a filesystem, its checker or the exercise makes by
/// itself: whatever is there is not judged.
pub fn is_own(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or_default();
    // Checkers of FAT and exFAT write theirs in capitals.
    let own = |name: &&str| name.eq_ignore_ascii_case(top);
    OWN_NAMES.iter().any(own) || (top.starts_with("FSCK") && top.ends_with(".REC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_at_the_top_are_own() {
        for own in ["lost+found", "LOST+FOUND/a", "FSCK0001.REC", ".nilfs"] {
            assert!(is_own(own), "{own}");
        }
        for user in ["etc/lost+found", "lost", "FSCK0001", "a.REC"] {
            assert!(!is_own(user), "{user}");
        }
    }
}
