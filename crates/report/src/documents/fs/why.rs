//! Why a filesystem is no candidate, or not for a need.

use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_decide::Excluded;
use whichfs_fs::{Elsewhere, Reservation, reservations};

/// Whether a filesystem takes part, and why not.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FsWhy {
    /// No candidate at all.
    Elsewhere(Elsewhere),
    /// A candidate that a rule of the need excludes.
    Excluded(Excluded),
    /// A candidate that takes part.
    Candidate {
        /// As `--fs` takes it.
        name: &'static str,
        /// Full name, for people.
        title: &'static str,
    },
}

/// The document of `fs why`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FsWhyDocument {
    /// Whether it takes part in the need, and the rule that excludes it.
    #[serde(flatten)]
    answer: FsWhy,
    /// What speaks against the filesystem beside the rules of the need.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reservations: Vec<Reservation>,
}

impl Document for FsWhyDocument {
    const NAME: &'static str = "fs why";
}

impl FsWhy {
    /// The answer with what speaks against the filesystem beside it.
    pub fn document(&self) -> FsWhyDocument {
        FsWhyDocument {
            answer: self.clone(),
            reservations: self.reservations(),
        }
    }

    fn reservations(&self) -> Vec<Reservation> {
        match self {
            FsWhy::Elsewhere(_) => Vec::new(),
            FsWhy::Excluded(excluded) => reservations(&excluded.candidate),
            FsWhy::Candidate { name, .. } => reservations(name),
        }
    }
}

/// The answer for the need called `needs` on `card`, in lines of at most `width` columns.
pub fn fs_why_text(answer: &FsWhy, needs: &str, card: &str, width: usize) -> String {
    let mut out = Lines::new(width);
    match answer {
        FsWhy::Elsewhere(found) => {
            out.paragraph(
                &format!("{} is no candidate: {}.", found.title, found.why),
                0,
            );
            out.paragraph(&format!("Instead: {}.", found.instead.join(", ")), 0);
            out.paragraph(&format!("Source: {}", found.source), 0);
        }
        FsWhy::Excluded(excluded) => {
            let rule = excluded.rule.as_deref().unwrap_or_default();
            let name = &excluded.candidate;
            let why = &excluded.why;
            out.paragraph(
                &format!("{name} is not for {needs}: it {why} (rule {rule})."),
                0,
            );
            if let Some(source) = &excluded.source {
                out.paragraph(&format!("Source: {source}"), 0);
            }
            let allowed: Option<Vec<&str>> = excluded.allows().collect();
            let remedy = match allowed {
                Some(all) => format!("What lets it in: {}.", all.join(" and ")),
                None => "Nothing lets it in.".to_owned(),
            };
            out.paragraph(&remedy, 0);
        }
        FsWhy::Candidate { name, title } => out.paragraph(
            &format!(
                "{name} ({title}) is a candidate for {needs} on {}; whichfs choose --for {needs} \
                 measures it, whichfs fs show {name} says what it is.",
                card
            ),
            0,
        ),
    }
    for Reservation { what, source } in answer.reservations() {
        out.paragraph(&format!("It {what} (source: {source})."), 0);
    }
    out.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &'static str) -> FsWhy {
        FsWhy::Candidate { name, title: name }
    }

    #[test]
    fn what_no_rule_looks_at_is_told_with_its_source() {
        let text = |name| fs_why_text(&candidate(name), "archive", "a1-32gb", 400);
        let ext2 = text("ext2");
        assert!(
            ext2.contains("that end in 2038") && ext2.contains("S32_MAX"),
            "{ext2}"
        );
        let jfs = text("jfs");
        assert!(
            jfs.contains("Odd Fixes") && jfs.contains("MAINTAINERS"),
            "{jfs}"
        );
        let ext4 = text("ext4");
        assert!(
            !ext4.contains("(source: "),
            "nothing speaks against it: {ext4}"
        );
    }

    #[test]
    fn reservations_stand_beside_the_answer() {
        let json = serde_json::to_value(candidate("jfs").document()).unwrap_or_default();
        assert_eq!(json["candidate"]["name"], "jfs");
        assert!(json["reservations"][0]["what"].is_string(), "{json}");
        let json = serde_json::to_value(candidate("ext4").document()).unwrap_or_default();
        assert!(json.get("reservations").is_none(), "{json}");
    }
}
