//! `whichfs lab kernel`: which kernel the lab runs, and how to get it.

use crate::cli::KernelArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::output;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use whichfs_engine::places;
use whichfs_lab::Kernel;

/// What the build script leaves beside the kernel.
const BUILD_INFO: &str = "build-info.txt";
/// The build script in a source tree, and a file that tells that the tree is ours.
const SCRIPT: &str = "kernel/build";
const FRAGMENT: &str = "kernel/lab.config";
/// Directories above the program that may be its source tree: target/release/whichfs.
const LEVELS: usize = 4;

/// The JSON document.
#[derive(Serialize)]
struct Document {
    path: PathBuf,
    release: String,
    sha256: String,
    /// Lines of build-info.txt by their first word; a word that comes again is joined by ", ".
    build: BTreeMap<String, String>,
}

/// Runs the command.
pub fn run(args: &KernelArgs) -> Outcome<u8> {
    let version = args.version.as_deref();
    let kernel = match (args.build, version) {
        (true, _) => Kernel::open(&build(args)?).map_err(Failure::environment)?,
        (false, Some(version)) if args.modules => places::kernel_with_modules(version)?.0,
        (false, None) if args.modules => {
            let own = places::kernel()?.release;
            places::kernel_with_modules(&places::series(&own))?.0
        }
        (false, Some(version)) => places::kernel_of(version)?,
        (false, None) => places::kernel()?,
    };
    // The cache's stable name is a link: its target carries the key.
    let path = kernel.path;
    let document = Document {
        build: build_info(&path),
        path,
        release: kernel.release,
        sha256: kernel.sha256,
    };
    if args.json {
        output::json(&document)?;
    } else {
        output::text_line(&text(&document))?;
    }
    Ok(0)
}

fn text(kernel: &Document) -> String {
    let mut text = format!(
        "path      {}\nrelease   {}\nsha256    {}",
        kernel.path.display(),
        kernel.release,
        kernel.sha256
    );
    let known = ["release", "sha256"];
    for (word, rest) in kernel
        .build
        .iter()
        .filter(|(word, _)| !known.contains(&word.as_str()))
    {
        let line = format!("{word:<9} {rest}");
        let _ = write!(
            text,
            "\n{}",
            output::folded_after(&line, 10, output::width())
        );
    }
    text
}

/// What is known of how the kernel at `path` was built; empty if it is from elsewhere.
fn build_info(path: &Path) -> BTreeMap<String, String> {
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
fn build(args: &KernelArgs) -> Outcome<PathBuf> {
    let script = script()?;
    // Progress is for the user; standard output is the path alone.
    let output = Command::new(&script)
        .args(wanted(args))
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

/// The arguments of the script that say which kernel.
fn wanted(args: &KernelArgs) -> Vec<&str> {
    let version = args.version.iter().flat_map(|v| ["--version", v.as_str()]);
    let modules = args.modules.then_some("--modules");
    version.chain(modules).collect()
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
