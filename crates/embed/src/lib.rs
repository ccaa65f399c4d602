//! For build scripts: every file of a directory becomes part of a crate, so that adding a card,
//! board, need, study or layout (data), a filesystem, a workload, a fault or a family of
//! translation layers (a module) is one new file.
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
    let root = variable("CARGO_MANIFEST_DIR").join("../..");
    let place = root.join(directory);
    println!("cargo::rerun-if-changed={}", place.display());
    let list = list(&place, extension, except);
    let out = variable("OUT_DIR").join(format!("{directory}.rs"));
    write(&out, &list);
}

/// Writes to `OUT_DIR/DIRECTORY.rs` the declarations of all modules `src/DIRECTORY/*.rs` of the
/// crate, and `FILES`: a list of pairs of the module's name and the expression `item`, of type
/// `kind`, with the name for each `{}`. So adding such a module is one new file.
///
/// # Panics
/// As [`directory`].
pub fn modules(directory: &str, kind: &str, item: &str) {
    let place = variable("CARGO_MANIFEST_DIR").join("src").join(directory);
    println!("cargo::rerun-if-changed={}", place.display());
    let out = variable("OUT_DIR").join(format!("{directory}.rs"));
    write(&out, &declarations(&place, kind, item));
}

/// Writes to `OUT_DIR/DIRECTORY.rs` the declarations of all modules `src/DIRECTORY/*.rs` of the
/// crate, and a call of the macro `DIRECTORY!` with a line for each: the name of the module, the
/// same as a type, and the same in words joined by hyphens. The macro makes an enum of them, where
/// a list of trait objects would be too slow.
///
/// # Panics
/// As [`directory`].
pub fn variants(directory: &str) {
    let place = variable("CARGO_MANIFEST_DIR").join("src").join(directory);
    println!("cargo::rerun-if-changed={}", place.display());
    let out = variable("OUT_DIR").join(format!("{directory}.rs"));
    write(&out, &call(&place, directory));
}

fn declarations(place: &Path, kind: &str, item: &str) -> String {
    let (modules, items) = each_module(place, |name| {
        format!("    ({name:?}, {}),\n", item.replace("{}", name))
    });
    format!("{modules}const FILES: &[(&str, {kind})] = &[\n{items}];\n")
}

fn call(place: &Path, called: &str) -> String {
    let (modules, items) = each_module(place, |name| {
        format!(
            "    {name} {} {:?},\n",
            type_name(name),
            name.replace('_', "-")
        )
    });
    format!("{modules}{called}! {{\n{items}}}\n")
}

/// Declarations of the modules in `place`, and the `item` of each.
fn each_module(place: &Path, item: impl Fn(&str) -> String) -> (String, String) {
    let (mut modules, mut items) = (String::new(), String::new());
    for (name, path) in files(place, "rs") {
        modules += &format!("#[path = {path:?}]\nmod {name};\n");
        items += &item(&name);
    }
    (modules, items)
}

/// `log_block` as `LogBlock`.
fn type_name(module: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    module.split('_').map(capital).collect()
}

fn variable(name: &str) -> PathBuf {
    let value = std::env::var_os(name);
    PathBuf::from(value.unwrap_or_else(|| missing(name)))
}

fn write(out: &Path, text: &str) {
    std::fs::write(out, text).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

fn missing(name: &str) -> ! {
    panic!("{name} is not set: this is for build scripts")
}

/// The list as an expression of Rust.
fn list(place: &Path, extension: &str, except: &[&str]) -> String {
    let mut files = files(place, extension);
    files.retain(|(name, _)| !except.contains(&name.as_str()));
    let item = |(name, path): &(String, PathBuf)| {
        println!("cargo::rerun-if-changed={}", path.display());
        format!("    ({name:?}, include_str!({path:?})),\n")
    };
    let items: String = files.iter().map(item).collect();
    format!("&[\n{items}]\n")
}

/// Names and paths of all files with `extension` in `place`, by name.
fn files(place: &Path, extension: &str) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(place);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let mut files: Vec<(String, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_list_is_sorted_by_name_and_leaves_out_what_is_asked() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../needs");
        let list = list(&place, "toml", &["logger"]);
        let at = |name: &str| list.find(&format!("({name:?}, "));
        assert!(at("fio") < at("fio-job") && at("fio").is_some());
        assert!(at("logger").is_none() && at("README").is_none());
    }

    #[test]
    fn each_file_of_a_directory_becomes_a_module_and_an_item() {
        let place = std::env::temp_dir().join(format!("whichfs-embed-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        for name in ["two.rs", "one.rs", "README.md"] {
            std::fs::write(place.join(name), "").unwrap();
        }
        let text = declarations(&place, "u8", "{}::ITEM");
        let called = call(&place, "both");
        std::fs::remove_dir_all(&place).unwrap();
        let (one, two) = (place.join("one.rs"), place.join("two.rs"));
        let expected = format!(
            "#[path = {one:?}]\nmod one;\n#[path = {two:?}]\nmod two;\n\
             const FILES: &[(&str, u8)] = &[\n    (\"one\", one::ITEM),\n    \
             (\"two\", two::ITEM),\n];\n"
        );
        assert_eq!(text, expected);
        let items = "both! {\n    one One \"one\",\n    two Two \"two\",\n}\n";
        assert!(
            called.starts_with("#[path = ") && called.ends_with(items),
            "{called}"
        );
        assert_eq!(type_name("log_block"), "LogBlock");
    }
}
