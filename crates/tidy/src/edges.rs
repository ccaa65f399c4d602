//! Which crate may depend on which: the arrows of the house point inward.
//!
//! Only `[dependencies]` (also those of a target) count; tests may use more.
//! A new edge needs a line here and one in ARCHITECTURE.md.

use crate::{RuleBreak, SourceFile};

/// A crate and the crates of this workspace that it may depend on.
/// `whichfs` alone may see everything and is not listed; `tidy` sees nothing.
const INNER: [(&str, &[&str]); 28] = [
    ("embed", &[]),
    ("units", &[]),
    ("trial", &["units"]),
    ("card", &["units", "embed"]),
    ("blockdev", &["units", "trial", "card"]),
    ("curves", &["units", "card", "blockdev"]),
    ("logs", &["units", "curves"]),
    ("fit", &["units", "card", "curves", "logs"]),
    (
        "posterior",
        &["embed", "units", "card", "curves", "logs", "fit"],
    ),
    ("probe", &["units", "card", "curves"]),
    ("spill", &["card"]),
    ("attach", &["units", "card", "blockdev", "device", "spill"]),
    ("device", &["units", "curves", "trial"]),
    ("fs", &["embed", "units", "trial"]),
    ("layout", &["embed", "units", "fs"]),
    ("format", &["units", "fs", "device", "layout"]),
    ("workload", &["embed", "units", "trial"]),
    ("agent", &["units", "trial", "workload"]),
    (
        "remote",
        &["units", "trial", "workload", "agent", "device", "format"],
    ),
    ("lab", &["units", "trial", "card", "blockdev"]),
    (
        "crash",
        &["embed", "units", "trial", "card", "blockdev", "workload"],
    ),
    ("decide", &["embed", "units", "trial", "fs"]),
    ("study", &["embed", "units", "trial", "fs", "decide"]),
    ("store", &["units", "trial", "decide"]),
    (
        "report",
        &[
            "units",
            "trial",
            "card",
            "blockdev",
            "curves",
            "logs",
            "fit",
            "posterior",
            "probe",
            "crash",
            "fs",
            "layout",
            "workload",
            "decide",
            "study",
        ],
    ),
    (
        "engine",
        &[
            "embed",
            "units",
            "trial",
            "card",
            "blockdev",
            "curves",
            "logs",
            "posterior",
            "probe",
            "crash",
            "spill",
            "device",
            "fs",
            "layout",
            "format",
            "workload",
            "agent",
            "remote",
            "lab",
            "decide",
            "study",
            "store",
        ],
    ),
    ("testkit", &[]),
    ("tidy", &[]),
];

/// A crate from outside and the only crates that may use it.
const OUTER: [(&str, &[&str]); 17] = [
    // One measure of nearness for all names (`units::UnknownName`).
    ("strsim", &["units"]),
    ("rusqlite", &["store"]),
    ("askama", &["report"]),
    ("landlock", &["device", "lab"]),
    ("seccompiler", &["lab"]),
    ("clap", &["whichfs"]),
    ("clap_complete", &["whichfs"]),
    ("clap_mangen", &["whichfs"]),
    ("indicatif", &["whichfs"]),
    ("comfy-table", &["whichfs", "report"]),
    (
        "libc",
        &[
            "agent", "lab", "attach", "device", "format", "engine", "whichfs",
        ],
    ),
    (
        "rustix",
        &[
            "agent", "lab", "attach", "device", "format", "spill", "remote", "engine", "whichfs",
        ],
    ),
    ("fuser", &["attach"]),
    ("io-uring", &["attach"]),
    // YAML of labgrid and of LAVA.
    ("serde_norway", &["report", "engine"]),
    ("rand", &[]),
    ("chrono", &[]),
];

/// Checks the manifests among the files.
pub fn check(files: &[SourceFile]) -> Vec<RuleBreak> {
    files
        .iter()
        .filter_map(|file| Some((file, crate_of_manifest(&file.path)?)))
        .flat_map(|(file, name)| check_manifest(file, name))
        .collect()
}

/// `crates/card/Cargo.toml` is the manifest of `card`.
fn crate_of_manifest(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

fn check_manifest(file: &SourceFile, name: &str) -> Vec<RuleBreak> {
    let manifest: toml::Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![RuleBreak::new(&file.path, 0, format!("not TOML: {error}"))],
    };
    dependencies(&manifest)
        .into_iter()
        .filter_map(|dependency| Some(RuleBreak::new(&file.path, 0, forbidden(name, &dependency)?)))
        .collect()
}

/// Names in `[dependencies]`, `[build-dependencies]` and `[target.*.dependencies]`, under the name
/// of the package.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut tables = vec![
        manifest.get("dependencies"),
        manifest.get("build-dependencies"),
    ];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().map(|target| target.get("dependencies")));
    }
    let tables = tables
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_table);
    tables
        .flatten()
        .map(|(key, value)| {
            let renamed = value.get("package").and_then(toml::Value::as_str);
            renamed.unwrap_or(key).to_owned()
        })
        .collect()
}

/// Says why this edge is forbidden, if it is.
fn forbidden(name: &str, dependency: &str) -> Option<String> {
    if let Some((_, allowed)) = OUTER.iter().find(|(outer, _)| *outer == dependency) {
        return (!allowed.contains(&name)).then(|| match allowed {
            [] => format!("{dependency} is not used here: the seeded generator and Nanos serve"),
            _ => format!("{dependency} belongs to {} alone", allowed.join(", ")),
        });
    }
    let inner = dependency.strip_prefix("whichfs-").or(
        // The command itself has no prefix; nothing may depend on it.
        (dependency == "whichfs").then_some("whichfs"),
    )?;
    if name == "whichfs" {
        return (inner == "tidy").then(|| "tidy is for tests alone".to_owned());
    }
    let Some((_, allowed)) = INNER.iter().find(|(listed, _)| *listed == name) else {
        return Some(format!(
            "crate {name} has no line in crates/tidy/src/edges.rs: add its edges"
        ));
    };
    (!allowed.contains(&inner)).then(|| {
        format!(
            "{name} must not depend on {inner}; it may on: {}",
            match allowed {
                [] => "none".to_owned(),
                _ => allowed.join(", "),
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(name: &str, manifest: &str) -> Vec<String> {
        let file = SourceFile::new(format!("crates/{name}/Cargo.toml"), manifest);
        check(&[file])
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    fn depends(name: &str, on: &str) -> Vec<String> {
        messages(name, &format!("[dependencies]\n{on}.workspace = true\n"))
    }

    #[test]
    fn edges_against_the_arrows_are_found() {
        for (name, on) in [
            ("card", "whichfs-lab"),
            ("card", "whichfs-trial"),
            ("units", "whichfs-trial"),
            ("study", "whichfs-store"),
            ("report", "whichfs-store"),
            ("lab", "whichfs"),
            ("whichfs", "whichfs-tidy"),
        ] {
            assert_eq!(depends(name, on).len(), 1, "{name} on {on}");
        }
    }

    #[test]
    fn outer_crates_out_of_place_are_found() {
        for (name, on) in [
            ("study", "rusqlite"),
            ("report", "rusqlite"),
            ("lab", "clap"),
            ("card", "libc"),
            ("workload", "rand"),
        ] {
            assert_eq!(depends(name, on).len(), 1, "{name} on {on}");
        }
    }

    #[test]
    fn edges_along_the_arrows_pass() {
        for (name, on) in [
            ("report", "whichfs-study"),
            ("whichfs", "whichfs-store"),
            ("store", "rusqlite"),
            ("card", "serde"),
        ] {
            assert!(depends(name, on).is_empty(), "{name} on {on}");
        }
    }

    #[test]
    fn a_renamed_or_target_dependency_hides_nothing() {
        let renamed = "[dependencies]\nsql = { package = \"rusqlite\", version = \"1\" }\n";
        assert_eq!(messages("study", renamed).len(), 1);
        let target = "[target.'cfg(unix)'.dependencies]\nwhichfs-lab.workspace = true\n";
        assert_eq!(messages("card", target).len(), 1);
        let tests = "[dev-dependencies]\nwhichfs-lab.workspace = true\n";
        assert!(messages("card", tests).is_empty());
    }

    #[test]
    fn a_new_crate_needs_its_line() {
        assert!(depends("camera", "whichfs-units")[0].contains("edges.rs"));
    }

    #[test]
    fn an_unreadable_manifest_is_found() {
        assert!(messages("card", "[dependencies")[0].contains("not TOML"));
    }
}
