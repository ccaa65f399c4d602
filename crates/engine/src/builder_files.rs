//! Layouts by name or file, and the files for image builders.

use crate::error::{Error as Failure, Outcome};
use crate::places;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use whichfs_layout::{BUILTIN, DiskPlan, Layout, emit};
use whichfs_units::{Bytes, UnknownName};

/// The shipped layout, or the file, called `name`.
pub fn layout(name: &str) -> Outcome<Layout> {
    if let Some((name, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
        return Ok(Layout::parse(name, text)?);
    }
    if name.contains('/') || name.ends_with(".toml") {
        let text = crate::input::read_text(name).map_err(|error| {
            Failure::input(format!(
                "layout {name}: {error}; name a file that can be read"
            ))
        })?;
        return Ok(Layout::parse(name, &text)?);
    }
    let names: Vec<&str> = BUILTIN.iter().map(|(name, _)| *name).collect();
    Err(Failure::input(format!(
        "{}, or a file (./mine.toml)",
        UnknownName::new("layout", name, &names, Some("docs/format.md"))
    )))
}

/// The seed of identifiers: `given`, or a new one, because two products with the same identifiers
/// are taken for each other.
///
/// # Errors
/// The system gives no random bits.
pub fn seed(given: Option<u64>) -> Outcome<u64> {
    if let Some(seed) = given {
        return Ok(seed);
    }
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::environment(format!("/dev/urandom: {error}; is /dev mounted?")))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Writes the files for builders into `directory`, as `command` asked for; their names.
///
/// # Errors
/// They cannot be written.
pub fn write(plan: &DiskPlan, directory: &Path, command: &str) -> Outcome<Vec<String>> {
    let unit = &plan.medium.unit;
    let origin = format!(
        "whichfs {}: {}; allocation unit of {}: {}",
        env!("CARGO_PKG_VERSION"),
        command,
        Bytes(unit.bytes),
        unit.why
    );
    let origin = origin.replace('\n', " ");
    let mut names = Vec::new();
    for output in emit::all(plan, &origin) {
        let path = directory.join(&output.path);
        places::make(path.parent().unwrap_or(directory))?;
        places::write_whole(&path, output.text.as_bytes())?;
        names.push(output.path);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn layouts_are_found_by_name_and_unknown_ones_are_told() {
        assert_eq!(layout("ab").unwrap().partitions.len(), 4);
        assert!(
            layout("boot-rot")
                .unwrap_err()
                .message
                .contains("boot-root")
        );
        assert!(
            layout("./none.toml")
                .unwrap_err()
                .message
                .contains("No such file")
        );
    }
}
