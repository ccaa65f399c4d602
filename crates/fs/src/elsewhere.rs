//! Filesystems that are asked for and are no candidates: `data/elsewhere.toml`.

use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A filesystem that is no candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// What it is called, in lower case.
    pub names: Vec<String>,
    /// Name for people.
    pub title: String,
    /// Why it is no candidate.
    pub why: String,
    /// Candidates that do what it is asked for.
    pub instead: Vec<String>,
    /// Where the reason is written.
    pub source: String,
}

#[derive(Deserialize)]
struct File {
    filesystem: Vec<Elsewhere>,
}

static ALL: LazyLock<Vec<Elsewhere>> = LazyLock::new(|| {
    let text = include_str!("../data/elsewhere.toml");
    let file: File = toml::from_str(text)
        .unwrap_or_else(|error| unreachable!("elsewhere.toml is part of the program: {error}"));
    file.filesystem
});

/// All of them.
pub fn elsewhere() -> &'static [Elsewhere] {
    &ALL
}

/// The one that is called `name`, whatever the case of its letters.
pub fn find_elsewhere(name: &str) -> Option<&'static Elsewhere> {
    let wanted = name.to_lowercase();
    ALL.iter().find(|one| one.names.contains(&wanted))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::catalogue::find;
    use std::collections::BTreeSet;

    #[test]
    fn each_is_no_candidate_and_names_candidates_instead() {
        let mut names = BTreeSet::new();
        for one in elsewhere() {
            for name in &one.names {
                assert!(find(name).is_err(), "{name} is a candidate");
                assert!(names.insert(name), "{name} stands twice");
                assert_eq!(*name, name.to_lowercase());
            }
            assert!(
                !one.why.is_empty() && !one.source.is_empty(),
                "{}",
                one.title
            );
            for name in &one.instead {
                assert!(find(name).is_ok(), "{}: {name}", one.title);
            }
        }
    }

    #[test]
    fn what_people_ask_for_is_there() {
        for name in [
            "ZFS",
            "bcachefs",
            "Reiser4",
            "Reliance Nitro",
            "CramFS",
            "jffs2",
        ] {
            assert!(find_elsewhere(name).is_some(), "{name}");
        }
        assert!(find_elsewhere("ext4").is_none());
    }
}
