//! The figures of a profile on their way to a TOML file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_card::limits::COMPOSED_PERCENT;
use whichfs_card::{Family, Profile, ProfileError, Residual};

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

impl Note {
    /// A source alone: the file's uncertainty holds.
    pub fn plain(source: String) -> Note {
        Note {
            source,
            uncertainty_percent: None,
        }
    }

    /// A figure that nothing measured tells: if it is a time or a rate, it may be far off.
    pub fn composed(path: &str, source: &str) -> Note {
        let varied = path.ends_with("_us") || path.ends_with("_per_s");
        Note {
            source: source.to_owned(),
            uncertainty_percent: varied.then_some(COMPOSED_PERCENT),
        }
    }
}

/// What a profile begins with.
#[derive(Clone, Debug)]
pub(crate) struct Head<'a> {
    pub title: &'a str,
    pub interface: &'static str,
    /// Whether the card was put together, not fitted.
    pub composed: bool,
    /// Lines above it all.
    pub comments: Vec<String>,
}

impl Sheet {
    /// The profile, for a simulation: sources do not matter.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        let head = Head {
            title: "fit",
            interface: "sd",
            composed: false,
            comments: Vec::new(),
        };
        Profile::parse("fit", &self.toml(&head, |_| Note::plain("fit".into())))
    }

    /// The profile as a TOML file, with the note of each figure.
    pub fn toml(&self, head: &Head, note: impl Fn(&str) -> Note) -> String {
        let mut text = String::new();
        for line in &head.comments {
            let _ = writeln!(text, "# {}", printable(line));
        }
        let _ = writeln!(text, "title = {}", quoted(head.title));
        let _ = writeln!(text, "interface = \"{}\"", head.interface);
        let _ = writeln!(text, "family = \"{}\"", self.family.name());
        if head.composed {
            text.push_str("composed = true\n");
        }
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

/// A residual as the section of a TOML file.
pub(crate) fn residual(of: &Residual) -> String {
    let rows = |table: &[Vec<u64>]| {
        let rows: Vec<String> = table.iter().map(|row| format!("  {row:?},\n")).collect();
        format!("[\n{}]", rows.concat())
    };
    format!(
        "[residual]\nsource = {}\nuncertainty_percent = {}\nblock_bytes = {:?}\n\
         # In percent of what the family takes; 1, 2, … AUs in turns.\n\
         in_order = {}\nat_random = {}\n",
        quoted(&of.source),
        of.uncertainty_percent,
        of.block_bytes,
        rows(&of.in_order),
        rows(&of.at_random)
    )
}

/// Text without control characters.
fn printable(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(plain).collect()
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let escaped = printable(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
