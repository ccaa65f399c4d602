//! Reads the repository: the only part that touches the disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::SourceFile;

/// Directories that are not the project's text.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];
/// Endings and names of the files that rules read.
const ENDINGS: [&str; 11] = [
    ".rs", ".toml", ".sh", ".tsv", ".csv", ".config", ".html", ".css", ".js", ".md", ".lock",
];
const NAMES: [&str; 4] = ["Makefile", "build", "run", "cargo"];

/// The repository's root, from the place of this crate.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}

/// Reads all files below `root` that rules read, in the order of their paths.
///
/// # Errors
/// What the operating system says, with the path, if a directory or file cannot be read.
pub fn read(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(dir).map_err(|error| at(dir, &error))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if kind.is_file() && is_read(&name) {
            let bytes = fs::read(entry.path()).map_err(|error| at(&entry.path(), &error))?;
            files.push(SourceFile::new(path, String::from_utf8_lossy(&bytes)));
        }
    }
    Ok(())
}

fn is_read(name: &str) -> bool {
    NAMES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
