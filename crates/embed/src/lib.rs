//! For build scripts: every data file of a directory becomes part of a crate, so that adding a
//! card, board, need, study or layout is one new file and no line of code.
//!
//! A crate that ships `cards/*.toml` has this `build.rs`
//! ```no_run
//! whichfs_embed::directory("cards", "toml", &[]);
//! ```
//! and takes the list, sorted by name, with
//! `include!(concat!(env!("OUT_DIR"), "/cards.rs"))`: `&[("a1-32gb", "title = …"), …]`.

use std::path::{Path, PathBuf};

/// Writes the list of all files `DIRECTORY/*.EXTENSION` of the repository, but those of `except`,
/// to `OUT_DIR/DIRECTORY.rs`; Cargo builds the crate anew when a file comes, goes or changes.
///
/// # Panics
/// Outside of a build script of this repository, and where the directory cannot be read.
pub fn directory(directory: &str, extension: &str, except: &[&str]) {
    let variable = |name| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| missing(name)));
    let root = variable("CARGO_MANIFEST_DIR").join("../..");
    let place = root.join(directory);
    println!("cargo::rerun-if-changed={}", place.display());
    let list = list(&place, extension, except);
    let out = variable("OUT_DIR").join(format!("{directory}.rs"));
    std::fs::write(&out, list).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

fn missing(name: &str) -> ! {
    panic!("{name} is not set: this is for build scripts")
}

/// The list as an expression of Rust.
fn list(place: &Path, extension: &str, except: &[&str]) -> String {
    let entries = std::fs::read_dir(place);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let mut files: Vec<(String, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .filter(|(name, _)| !except.contains(&name.as_str()))
        .collect();
    files.sort();
    let item = |(name, path): &(String, PathBuf)| {
        println!("cargo::rerun-if-changed={}", path.display());
        format!("    ({name:?}, include_str!({path:?})),\n")
    };
    let items: String = files.iter().map(item).collect();
    format!("&[\n{items}]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_by_name_and_leaves_out_what_is_asked() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../needs");
        let list = list(&place, "toml", &["logger"]);
        let at = |name: &str| list.find(&format!("({name:?}, "));
        assert!(at("fio") < at("fio-job") && at("fio").is_some());
        assert!(at("logger").is_none() && at("README").is_none());
    }
}
