//! The checks of `setup/setup.sh`: one for each row of `setup/packages.tsv`.

use super::{CheckNeed as Need, MachineCheck as Check};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;

const TABLE: &str = include_str!("../../../../setup/packages.tsv");
/// Where programs of the administrator are, besides PATH.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A row of the table.
struct Package<'a> {
    package: &'a str,
    check: &'a str,
    need: Need,
    purpose: &'a str,
    without: &'a str,
}

/// One check for each package.
pub(super) fn check() -> Vec<Check> {
    rows(TABLE)
        .map(|row| row.checked(present(row.check)))
        .collect()
}

/// The rows of the table; the house rules check that each is whole.
fn rows(table: &str) -> impl Iterator<Item = Package<'_>> {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut columns = line.split('\t');
            Some(Package {
                package: columns.next()?,
                check: columns.next()?,
                need: match columns.next()? {
                    "essential" => Need::Essential,
                    "candidate" => Need::Candidate,
                    _ => Need::Extra,
                },
                purpose: columns.next()?,
                without: columns.next()?,
            })
        })
}

impl Package<'_> {
    fn checked(&self, found: Option<String>) -> Check {
        match found {
            Some(found) => Check::ok(self.package, self.need, found),
            None => {
                let what = format!("no {}: {}", self.check, self.purpose);
                let mut remedy = format!("apt-get install {}", self.package);
                if self.check.starts_with("cargo:") {
                    remedy.push_str(", or rustup (https://rustup.rs)");
                }
                Check::missing(self.package, self.need, what, self.without, remedy)
            }
        }
    }
}

/// What the check `bin:NAME`, `file:PATH` or `cargo:VERSION` finds, in words.
fn present(check: &str) -> Option<String> {
    let (kind, what) = check.split_once(':')?;
    match kind {
        "bin" => program(what).map(|path| path.display().to_string()),
        "file" => Path::new(what).exists().then(|| what.to_owned()),
        "cargo" => cargo(what),
        _ => None,
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SBIN.map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .or_else(|| tools::find(name))
}

/// The first cargo that is new enough and has such a rustc beside it, as `setup/cargo` finds it.
fn cargo(wanted: &str) -> Option<String> {
    let wanted = version(wanted)?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let places = [
        program("cargo"),
        home.map(|home| home.join("bin/cargo")),
        Some(PathBuf::from("/usr/bin/cargo")),
    ];
    places.into_iter().flatten().find_map(|cargo| {
        let said = said(&cargo)?;
        let compiler = self::said(&cargo.with_file_name("rustc"))?;
        let new_enough = version_in(&said)? >= wanted && version_in(&compiler)? >= wanted;
        new_enough.then(|| format!("{} ({})", cargo.display(), said.trim()))
    })
}

/// What a tool answers to `--version`.
fn said(tool: &Path) -> Option<String> {
    let output = Command::new(tool).arg("--version").output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `cargo 1.96.0 (…)` → (1, 96).
fn version_in(said: &str) -> Option<(u32, u32)> {
    version(said.split_whitespace().nth(1)?)
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read_with_a_check_that_is_known() {
        let lines = TABLE
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(rows(TABLE).count(), lines.count());
        for row in rows(TABLE) {
            let kind = row.check.split(':').next().unwrap_or_default();
            assert!(["bin", "file", "cargo"].contains(&kind), "{}", row.check);
        }
        assert!(rows(TABLE).any(|row| row.need == Need::Extra));
    }

    #[test]
    fn every_candidate_has_a_row_that_installs_its_tools() {
        for candidate in whichfs_fs::candidates() {
            for package in candidate.facts().packages {
                let row = rows(TABLE).find(|row| row.package == *package);
                assert!(
                    row.is_some_and(|row| row.need == Need::Candidate),
                    "{package}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert!(present("bin:sh").is_some());
        assert!(present("bin:no-such-program").is_none());
        assert!(present("file:/").is_some());
        assert!(present("file:/no/such/file").is_none());
        assert!(present("cargo:999.0").is_none());
        assert!(present("package:gcc").is_none());
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version_in("cargo 1.96.0 (abc 2026-01-01)"), Some((1, 96)));
        assert!(version("1.100") > version("1.89"));
        assert_eq!(version_in("cargo"), None);
    }
}
