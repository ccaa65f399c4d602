//! No circle of imports between the modules of a crate: what is read first needs nothing that is
//! read later. A module and its submodules are one.

use crate::{RuleBreak, SourceFile, mask};
use std::collections::{BTreeMap, BTreeSet};

/// Crates that still have circles: each is to leave this list, none is to join it.
const STILL: [&str; 5] = ["decide", "probe", "report", "whichfs", "workload"];

/// Module → modules of the same crate that it names.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// One finding for each crate with a circle, which it names.
pub fn check(files: &[SourceFile]) -> Vec<RuleBreak> {
    let mut crates: BTreeMap<&str, Vec<(&str, &SourceFile)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some((name, path)) = place(&file.path) else {
            continue;
        };
        crates.entry(name).or_default().push((path, file));
    }
    let findings = crates.iter().filter_map(|(name, files)| {
        let circle = circle(&imports(files))?;
        if STILL.contains(name) {
            return None;
        }
        let message = format!(
            "modules import each other in a circle: {}; move what both need to a module of its own",
            circle.join(" → ")
        );
        Some(RuleBreak::new(&format!("crates/{name}/src"), 0, message))
    });
    findings.collect()
}

/// The crate of a file of code, and its path below `src`; none for tests and roots of crates.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, below) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = below.split('/').any(|part| {
        part.trim_end_matches(".rs")
            .split('_')
            .any(|word| word == "tests")
    });
    (!is_test && below != "lib.rs" && below != "main.rs").then_some((name, below))
}

/// The module of the crate to which the file at `path` belongs.
fn module(path: &str) -> &str {
    path.split('/')
        .next()
        .unwrap_or(path)
        .trim_end_matches(".rs")
}

fn imports(files: &[(&str, &SourceFile)]) -> Imports {
    let modules: BTreeSet<&str> = files.iter().map(|(path, _)| module(path)).collect();
    let mut imports = Imports::new();
    for (path, file) in files {
        let own = module(path);
        let code = mask::without_tests(&mask::code(&file.text));
        let named = named(&code)
            .into_iter()
            .filter(|name| modules.contains(name.as_str()) && name != own);
        imports.entry(own.to_owned()).or_default().extend(named);
    }
    imports
}

/// What stands behind `crate::` in `code`, one by one or in braces.
fn named(code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let first = |text: &str| {
        text.trim_start()
            .split(|c| !is_name(c))
            .next()
            .map(str::to_owned)
    };
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(inside) = rest.strip_prefix('{') else {
            names.extend(first(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut item = String::new();
        for c in inside.chars() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => names.extend(first(&std::mem::take(&mut item))),
                c => item.push(c),
            }
        }
        names.extend(first(&item));
    }
    names
}

/// A circle, from a module back to it; none if there is none.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    imports
        .keys()
        .find_map(|module| walk(imports, module, &mut Vec::new(), &mut done))
}

fn walk<'a>(
    imports: &'a Imports,
    module: &'a str,
    way: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<String>> {
    if let Some(begin) = way.iter().position(|known| *known == module) {
        let circle = way[begin..].iter().chain([&module]);
        return Some(circle.map(|name| (*name).to_owned()).collect());
    }
    if done.contains(module) {
        return None;
    }
    way.push(module);
    let next = imports.get(module).into_iter().flatten();
    for name in next {
        if let Some(found) = walk(imports, name, way, done) {
            return Some(found);
        }
    }
    way.pop();
    done.insert(module);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile::new(*path, *text))
            .collect();
        let findings = check(&files);
        findings.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_circle_over_three_modules_is_named() {
        let found = messages(&[
            ("crates/card/src/a.rs", "use crate::b::X;"),
            ("crates/card/src/b/mod.rs", "pub struct X;"),
            (
                "crates/card/src/b/deep.rs",
                "use crate::{units, c::{self, Y}};",
            ),
            ("crates/card/src/c.rs", "fn f() { crate::a::g() }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a → b → c → a"), "{found:?}");
    }

    #[test]
    fn tests_comments_and_roots_make_no_circle() {
        let found = messages(&[
            ("crates/card/src/lib.rs", "use crate::a::X;"),
            ("crates/card/src/a.rs", "use crate::b::X;\n// crate::a::X\n"),
            (
                "crates/card/src/b.rs",
                "//! [`crate::a`]\n#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n",
            ),
            ("crates/card/src/b_tests.rs", "use crate::a::X;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
