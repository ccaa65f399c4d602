//! Why a filesystem is no candidate, or not for a need.

use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_decide::Excluded;
use whichfs_fs::Elsewhere;

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

impl Document for FsWhy {
    const NAME: &'static str = "fs why";
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
    out.text()
}
