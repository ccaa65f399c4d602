//! Traces of one developer's machine: absolute home paths, package mirrors.

use crate::{RuleBreak, SourceFile, exception_in};

/// Directories that only one machine has. In two parts, so that this file keeps its own rule.
const PRIVATE: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
];
/// The only registry a lock file may name.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// What the configuration of a mirror looks like.
const MIRROR: [&str; 4] = [
    concat!("artifact", "ory"),
    "replace-with",
    "[source.",
    "sparse+http",
];

/// Applies the rules of this module to one file.
pub fn check(file: &SourceFile) -> Vec<RuleBreak> {
    if file.path == "Cargo.lock" {
        return check_lock(file);
    }
    // Prose and the kernel's text may name any path; recorded results name their machine.
    if file.path.ends_with(".md") || file.path.ends_with(".patch") || file.path.starts_with("docs/")
    {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if exception_in(line, "path").is_some() {
            continue;
        }
        for path in PRIVATE {
            if starts_a_path(line, path) {
                let message = format!(
                    "absolute path {path} of one machine: derive it, or say why it is meant \
                     (tidy: path: REASON on the line)"
                );
                findings.push(RuleBreak::new(&file.path, index + 1, message));
            }
        }
        if file.path.ends_with(".toml") && MIRROR.iter().any(|mirror| line.contains(mirror)) {
            let message = "a package mirror of one site: keep it in the user's own configuration";
            findings.push(RuleBreak::new(&file.path, index + 1, message));
        }
    }
    findings
}

/// True if `path` stands in `line` as the start of a path and not inside a longer one.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~})$/*".contains(c))
    })
}

fn check_lock(file: &SourceFile) -> Vec<RuleBreak> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(source) = line.strip_prefix("source = ")
            && source.trim_matches('"') != CRATES_IO
        {
            let message = format!("{source}: a lock file names crates.io alone");
            findings.push(RuleBreak::new(&file.path, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn private_paths_are_found() {
        for path in PRIVATE {
            assert_eq!(
                count("a.rs", &format!("let a = \"{path}somebody/x\";")),
                1,
                "{path}"
            );
            assert_eq!(count("Makefile", &format!("A = {path}x")), 1, "{path}");
        }
    }

    #[test]
    fn paths_inside_a_tree_prose_and_reasons_are_free() {
        let home = PRIVATE[0];
        assert_eq!(count("a.rs", &format!("\"rootfs{home}pi\"")), 0);
        assert_eq!(count("README.md", &format!("{home}pi")), 0);
        let line = format!("\"{home}pi\" // tidy: path: a directory of the modelled rootfs");
        assert_eq!(count("a.rs", &line), 0);
    }

    #[test]
    fn mirrors_are_found() {
        let text = "[source.crates-io]\nreplace-with = \"x\"\n";
        assert_eq!(count(".cargo/config.toml", text), 2);
        let lock = "source = \"registry+https://mirror.example/index\"\n";
        assert_eq!(count("Cargo.lock", lock), 1);
        assert_eq!(
            count("Cargo.lock", &format!("source = \"{CRATES_IO}\"\n")),
            0
        );
    }
}
