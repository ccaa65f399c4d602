//! One public type name in one crate only: a reader who meets a name knows the type.
//!
//! Public is what `lib.rs` defines or re-exports from a module of its own, and all that a chain of
//! `pub mod` reaches. A re-export from another crate is the same type and counts there.

use std::collections::{BTreeMap, BTreeSet};

use crate::{RuleBreak, SourceFile, mask};

/// Name of a type → crates that have a public one.
type Owners = BTreeMap<String, BTreeSet<String>>;

/// Finds names that several crates have.
pub fn check(files: &[SourceFile]) -> Vec<RuleBreak> {
    let owners = owners(files).into_iter();
    let shared = owners.filter_map(|(name, crates)| {
        let mut crates = crates.into_iter();
        let (first, others) = (crates.next()?, crates.collect::<Vec<_>>());
        (!others.is_empty()).then(|| {
            let message = format!(
                "the public type {name} has the name of one in {}: say more of it in its name",
                others.join(", ")
            );
            RuleBreak::new(&format!("crates/{first}/src/lib.rs"), 0, message)
        })
    });
    shared.collect()
}

/// The public types of all crates.
fn owners(files: &[SourceFile]) -> Owners {
    let rust = files.iter().filter(|file| file.is_rust());
    let rust: BTreeMap<&str, &SourceFile> = rust.map(|file| (file.path.as_str(), file)).collect();
    let mut owners = Owners::new();
    for path in rust.keys() {
        let Some(name) = path
            .strip_prefix("crates/")
            .and_then(|path| path.strip_suffix("/src/lib.rs"))
        else {
            continue;
        };
        let mut types = BTreeSet::new();
        public_types(&rust, path, &format!("crates/{name}/src"), &mut types);
        for one in types {
            owners.entry(one).or_default().insert(name.to_owned());
        }
    }
    owners
}

/// Adds the public types of the module in the file `path`, whose submodules lie in `dir`.
fn public_types(
    files: &BTreeMap<&str, &SourceFile>,
    path: &str,
    dir: &str,
    types: &mut BTreeSet<String>,
) {
    let Some(file) = files.get(path) else {
        return;
    };
    let code = mask::without_tests(&mask::code(&file.text));
    let items = items(&code);
    let modules = modules(&items);
    for item in items.iter().filter_map(|item| item.strip_prefix("pub ")) {
        let (word, rest) = item.split_once(' ').unwrap_or((item, ""));
        match word {
            "struct" | "enum" | "trait" | "type" | "union" => {
                types.insert(first_name(rest).to_owned());
            }
            "mod" => {
                for (path, dir) in places(dir, first_name(rest)) {
                    public_types(files, &path, &dir, types);
                }
            }
            "use" => {
                let used = own_path(rest);
                let module = first_name(used);
                if !modules.contains(module) {
                    continue;
                }
                let mut foreign = BTreeSet::new();
                for (path, dir) in places(dir, module) {
                    foreign.extend(
                        files
                            .get(path.as_str())
                            .into_iter()
                            .flat_map(|file| foreign_names(file)),
                    );
                    if used.contains("::*") {
                        public_types(files, &path, &dir, types);
                    }
                }
                let own = exported(used).filter(|name| is_type(name) && !foreign.contains(*name));
                types.extend(own.map(str::to_owned));
            }
            _ => {}
        }
    }
}

/// Where the module may be that a file with submodules in `dir` declares: its file and directory.
fn places(dir: &str, module: &str) -> [(String, String); 2] {
    let below = format!("{dir}/{module}");
    [
        (format!("{below}.rs"), below.clone()),
        (format!("{below}/mod.rs"), below),
    ]
}

/// The modules that these items declare.
fn modules<'a>(items: &[&'a str]) -> BTreeSet<&'a str> {
    let declared = items.iter().filter_map(|item| {
        item.strip_prefix("pub ")
            .unwrap_or(item)
            .strip_prefix("mod ")
    });
    declared.map(first_name).collect()
}

/// A path of `pub use` without the words for the module or crate itself.
fn own_path(path: &str) -> &str {
    path.trim_start_matches("self::")
        .trim_start_matches("crate::")
}

/// The names that a file re-exports from other crates.
fn foreign_names(file: &SourceFile) -> BTreeSet<String> {
    let code = mask::code(&file.text);
    let items = items(&code);
    let uses = items
        .iter()
        .filter_map(|item| item.strip_prefix("pub use "));
    let foreign = uses.filter(|path| path.starts_with("whichfs_"));
    foreign.flat_map(exported).map(str::to_owned).collect()
}

/// Items that begin at the left margin outside of braces, each up to its `;` or its first line.
fn items(code: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    for line in code.split_inclusive('\n') {
        if depth == 0 {
            let rest = &code[at..];
            let end = match line.starts_with("pub use ") {
                true => rest.find(';'),
                false => line.find('\n'),
            };
            items.push(&rest[..end.unwrap_or(rest.len().min(line.len()))]);
        }
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        at += line.len();
    }
    items
}

/// The names that a `pub use` gives to others: the last of each path, or what stands behind `as`.
fn exported(path: &str) -> impl Iterator<Item = &str> {
    let paths = path.split(['{', '}', ',']).map(str::trim);
    paths.filter_map(|path| path.rsplit("::").next()?.rsplit(" as ").next())
}

/// The name with which `text` begins.
fn first_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Types are written in camel case, constants in capitals, functions in small letters.
fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Vec<SourceFile> {
        files
            .iter()
            .map(|(path, text)| SourceFile::new(format!("crates/{path}"), *text))
            .collect()
    }

    #[test]
    fn types_that_others_can_name_are_public() {
        let files = tree(&[
            (
                "a/src/lib.rs",
                "//! A.\nmod b;\npub mod c;\nmod e;\n\
                 pub use b::{\n    Used, There, fun, MAX,\n    deep::Old as New,\n};\n\
                 pub use e::*;\npub use whichfs_x::Other;\npub(crate) struct Own;\n\
                 pub struct Direct<T> {\n    pub struct_: T,\n}\n",
            ),
            (
                "a/src/b.rs",
                "pub use whichfs_x::There;\npub struct Used;\npub struct Unused;\n",
            ),
            (
                "a/src/c/mod.rs",
                "mod d;\npub use d::Inner;\npub trait Reached {}\n",
            ),
            ("a/src/c/d.rs", "pub enum Inner {}\npub enum Hidden {}\n"),
            ("a/src/e.rs", "pub type Globbed = u8;\nstruct Private;\n"),
        ]);
        let found: Vec<String> = owners(&files).into_keys().collect();
        assert_eq!(
            found,
            ["Direct", "Globbed", "Inner", "New", "Reached", "Used"]
        );
    }

    #[test]
    fn a_name_of_two_crates_is_found() {
        let found = check(&tree(&[
            ("a/src/lib.rs", "pub struct Step;\npub struct One;\n"),
            ("b/src/lib.rs", "mod c;\npub use c::Step;\n"),
            ("b/src/c.rs", "pub struct Step;\npub struct One;\n"),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        let told = found[0].to_string();
        assert!(told.starts_with("crates/a/src/lib.rs"), "{told}");
        assert!(
            told.contains("public type Step") && told.contains("one in b"),
            "{told}"
        );
    }
}
