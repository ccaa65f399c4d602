//! The figures of a profile on their way to a TOML file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_card::{Family, Profile, ProfileError};

/// Family and figures by path (`section.key`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sheet {
    pub family: Family,
    pub values: BTreeMap<&'static str, u64>,
}

/// Where a figure is from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Note {
    pub source: String,
    pub uncertainty_percent: Option<u64>,
}

impl Sheet {
    /// The profile, for a simulation: sources do not matter.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        let note = |_: &str| Note {
            source: "fit".into(),
            uncertainty_percent: None,
        };
        Profile::parse("fit", &self.toml("fit", "sd", &[], note))
    }

    /// The file: `head` are comment lines above it.
    pub fn toml(
        &self,
        title: &str,
        interface: &str,
        head: &[String],
        note: impl Fn(&str) -> Note,
    ) -> String {
        let mut text = String::new();
        for line in head {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "title = {}", quoted(title));
        let _ = writeln!(text, "interface = \"{interface}\"");
        let _ = writeln!(text, "family = \"{}\"", family_name(self.family));
        let mut section = "";
        for (path, value) in &self.values {
            let (of, key) = path.split_once('.').unwrap_or(("", path));
            if of != section {
                section = of;
                let _ = writeln!(text, "\n[{section}]");
            }
            let Note {
                source,
                uncertainty_percent,
            } = note(path);
            let source = quoted(&source);
            let _ = write!(text, "{key} = {{ value = {value}, source = {source}");
            if let Some(percent) = uncertainty_percent {
                let _ = write!(text, ", uncertainty_percent = {percent}");
            }
            text.push_str(" }\n");
        }
        text
    }
}

/// Name of a family in profiles.
pub(crate) fn family_name(family: Family) -> &'static str {
    Family::NAMES
        .iter()
        .find(|(_, of)| *of == family)
        .map_or("", |(name, _)| name)
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.push(' '),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
