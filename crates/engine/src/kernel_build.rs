//! The build script of the lab kernel, and what it leaves beside a kernel.

use crate::error::{Error as Failure, ErrorKind as Kind, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the build script leaves beside the kernel.
const BUILD_INFO: &str = "build-info.txt";
/// The build script in a source tree, and a file that tells that the tree is ours.
const SCRIPT: &str = "kernel/build";
const FRAGMENT: &str = "kernel/lab.config";
/// Directories above the program that may be its source tree: target/release/whichfs.
const LEVELS: usize = 4;

/// What is known of how the kernel at `path` was built; empty if it is from elsewhere.
pub fn build_info(path: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path.with_file_name(BUILD_INFO)).unwrap_or_default();
    let mut info: BTreeMap<String, String> = BTreeMap::new();
    for (word, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
        info.entry(word.to_owned())
            .and_modify(|known| {
                let _ = write!(known, ", {rest}");
            })
            .or_insert_with(|| rest.to_owned());
    }
    info
}

/// Builds the kernel, the lab's own or the one that is asked for, if the cache does not have it;
/// gives its path.
///
/// # Errors
/// There is no build script, or it fails.
pub fn build(version: Option<&str>, modules: bool) -> Outcome<PathBuf> {
    let script = script()?;
    // Progress is for the user; standard output is the path alone.
    let output = Command::new(&script)
        .args(version.iter().flat_map(|version| ["--version", version]))
        .args(modules.then_some("--modules"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| Failure::environment(format!("cannot run {}: {e}", script.display())))?;
    if !output.status.success() {
        let kind = match output.status.code() {
            Some(130) => Kind::Interrupted,
            _ => Kind::Environment,
        };
        let message = format!(
            "{} ended with {}; see above",
            script.display(),
            output.status
        );
        return Err(Failure::new(kind, message));
    }
    Ok(PathBuf::from(
        String::from_utf8_lossy(&output.stdout).trim(),
    ))
}

/// The build script: in the source tree the program was built in, or in the current directory.
fn script() -> Outcome<PathBuf> {
    let program = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .ok();
    let above = program
        .iter()
        .flat_map(|path| path.ancestors().skip(1).take(LEVELS));
    let here = std::env::current_dir().ok();
    let trees = above.map(Path::to_path_buf).chain(here);
    script_in(trees).ok_or_else(|| {
        Failure::environment(
            "the source tree with kernel/build is neither above this program nor here: change \
             to the source tree, or run `make kernel` there",
        )
    })
}

fn script_in(mut trees: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    trees
        .find(|tree| tree.join(SCRIPT).is_file() && tree.join(FRAGMENT).is_file())
        .map(|tree| tree.join(SCRIPT))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn build_info_joins_words_that_come_again() {
        let directory = tempfile::tempdir().unwrap();
        let text = "key 12ab\npatch 0001-a.patch\npatch 0002-b.patch\nodd\n";
        std::fs::write(directory.path().join(BUILD_INFO), text).unwrap();
        let info = build_info(&directory.path().join("linux"));
        assert_eq!(info["key"], "12ab");
        assert_eq!(info["patch"], "0001-a.patch, 0002-b.patch");
        assert_eq!(info.len(), 2);
        assert!(build_info(Path::new("/nonexistent/linux")).is_empty());
    }

    #[test]
    fn a_script_counts_only_in_a_tree_of_ours() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("kernel")).unwrap();
        std::fs::write(tree.path().join(SCRIPT), "").unwrap();
        let look = || script_in([PathBuf::from("/nonexistent"), tree.path().into()].into_iter());
        assert_eq!(look(), None, "some other project's kernel/build");
        std::fs::write(tree.path().join(FRAGMENT), "").unwrap();
        assert_eq!(look(), Some(tree.path().join(SCRIPT)));
    }
}
