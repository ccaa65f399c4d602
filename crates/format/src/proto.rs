//! A tree as a prototype file of mkfs.xfs (mkfs.xfs(8), `-p`).

use crate::builder::LAB;
use crate::error::FormatError;
use crate::image::failed;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The prototype file for the tree at `root`.
///
/// # Errors
/// Something in it cannot be read or be said in a prototype.
pub(crate) fn of(root: &Path) -> Result<String, FormatError> {
    let meta = std::fs::metadata(root).map_err(|error| failed(root, &error))?;
    // Two lines that mkfs.xfs reads and does not use: a boot program, and sizes.
    let mut text = format!("/dev/null\n0 0\n{}\n", mode('d', &meta));
    directory(root, &mut text, 1)?;
    text.push_str("$\n");
    Ok(text)
}

fn mode(kind: char, meta: &std::fs::Metadata) -> String {
    let bits = meta.mode();
    let set = |bit: u32, letter: char| if bits & bit != 0 { letter } else { '-' };
    format!(
        "{kind}{}{}{:03o} {} {}",
        set(0o4000, 'u'),
        set(0o2000, 'g'),
        bits & 0o777,
        meta.uid(),
        meta.gid()
    )
}

fn directory(path: &Path, text: &mut String, depth: usize) -> Result<(), FormatError> {
    let entries = std::fs::read_dir(path).map_err(|error| failed(path, &error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let indent = " ".repeat(depth);
    for path in paths {
        let meta = path
            .symlink_metadata()
            .map_err(|error| failed(&path, &error))?;
        let name = plain(&path, path.file_name().and_then(|name| name.to_str()))?;
        let kind = meta.file_type();
        if kind.is_dir() {
            let _ = writeln!(text, "{indent}{name} {}", mode('d', &meta));
            directory(&path, text, depth + 1)?;
            let _ = writeln!(text, "{indent}$");
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).map_err(|error| failed(&path, &error))?;
            let target = plain(&path, target.to_str())?.to_owned();
            let _ = writeln!(text, "{indent}{name} {} {target}", mode('l', &meta));
        } else if kind.is_file() {
            let from = plain(&path, path.to_str())?.to_owned();
            let _ = writeln!(text, "{indent}{name} {} {from}", mode('-', &meta));
        } else {
            return Err(refused(&path, "is a device, pipe or socket"));
        }
    }
    Ok(())
}

/// `word`, if a prototype, whose words end at blanks, can have it.
fn plain<'a>(path: &Path, word: Option<&'a str>) -> Result<&'a str, FormatError> {
    let legal = |word: &&str| !word.contains(char::is_whitespace) && !word.starts_with('$');
    word.filter(legal)
        .ok_or_else(|| refused(path, "has a blank or a byte that is no text in it"))
}

fn refused(path: &Path, why: &str) -> FormatError {
    FormatError::Tree {
        what: format!(
            "{} {why}, which a prototype of mkfs.xfs cannot say",
            path.display()
        ),
        remedy: LAB.into(),
    }
}
