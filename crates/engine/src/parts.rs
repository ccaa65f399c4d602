//! The parts that the lab runs (kernel, agent, sealed userland), and where each is found.
//!
//! One order holds for all of them:
//!
//! 1. the file that a variable of the environment names;
//! 2. the file beside the program, if the manifest there lists it: the program was installed with
//!    it, and no other will do;
//! 3. the file that was built last into the cache; for what no build puts there, the file beside
//!    the program.
//!
//! The manifest is what `sha256sum` prints of the installed files, with paths from the directory
//! of the program. An installed part whose digest is another is refused.

use crate::error::{Error, Outcome};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use whichfs_lab::LabError;

/// Name of the manifest in the directory of the program.
pub const MANIFEST: &str = "manifest";
/// The lab kernel that runs if no other is asked for: its series.
pub const KERNEL_SERIES: &str = "6.12";
/// The remedy for what was installed and is not whole.
pub const REINSTALL: &str = "install whichfs again, from the package that it came from";

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// What it is, for people.
    pub what: &'static str,
    /// Variable of the environment that names the file, if one does.
    pub variable: Option<&'static str>,
    /// Path from the directory of the program.
    pub installed: String,
    /// Path in the cache; none if nothing builds it there.
    pub cached: Option<String>,
}

impl Sought {
    /// The kernel of guests.
    pub fn kernel() -> Sought {
        Sought {
            variable: Some("WHICHFS_KERNEL"),
            ..Sought::kernel_of(KERNEL_SERIES, false)
        }
    }

    /// The kernel of a `series` (`6.12`), without or with modules.
    pub fn kernel_of(series: &str, modules: bool) -> Sought {
        let kind = if modules { "-modules" } else { "" };
        Sought {
            what: "lab kernel",
            variable: None,
            installed: format!("kernel/{series}{kind}/linux"),
            cached: Some(format!("kernel/linux-{series}{kind}")),
        }
    }

    /// The program that does the jobs in guests.
    pub fn agent() -> Sought {
        Sought {
            what: "agent",
            variable: Some("WHICHFS_AGENT"),
            installed: "whichfs-agent.static".into(),
            cached: None,
        }
    }

    /// The image of the sealed userland.
    pub fn userland() -> Sought {
        Sought {
            what: "sealed userland",
            variable: Some("WHICHFS_USERLAND"),
            installed: "userland/image".into(),
            cached: Some("userland/image".into()),
        }
    }
}

/// Where a part was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOrigin {
    /// A variable of the environment names it.
    Variable(&'static str),
    /// It was installed with the program.
    Installed,
    /// It was built into the cache.
    Cache,
    /// It was built beside the program.
    Beside,
}

impl fmt::Display for PartOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartOrigin::Variable(name) => write!(f, "by {name}"),
            PartOrigin::Installed => f.write_str("installed"),
            PartOrigin::Cache => f.write_str("built into the cache"),
            PartOrigin::Beside => f.write_str("built beside the program"),
        }
    }
}

/// A part and where it is; nobody has looked yet whether it is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is, for people.
    pub what: &'static str,
    /// Where the part is on this machine.
    pub path: PathBuf,
    /// By which rule it is this file.
    pub origin: PartOrigin,
    /// The SHA-256 that the manifest has for it, in hex.
    sha256: Option<String>,
}

impl Part {
    /// Opens it with `open`, and compares the digest that `sha256` knows of what was opened.
    ///
    /// # Errors
    /// It cannot be opened, or is not the file that was installed.
    pub fn open<T>(
        &self,
        open: impl FnOnce(&Path) -> Result<T, LabError>,
        sha256: impl FnOnce(&T) -> &str,
    ) -> Outcome<T> {
        let Some(expected) = &self.sha256 else {
            return open(&self.path).map_err(Error::environment);
        };
        let opened = open(&self.path).map_err(|error| self.refused(&reason(error)))?;
        match sha256(&opened) == expected {
            true => Ok(opened),
            false => Err(self.refused("it is damaged: the manifest has another SHA-256")),
        }
    }

    /// What to say of `failure` to open it: for an installed part that, else `what` and `remedy`.
    pub fn or_remedy(&self, failure: Error, what: &str, remedy: &str) -> Error {
        match self.origin {
            PartOrigin::Installed => failure,
            _ => Error::environment(format!("{what}: {remedy}")),
        }
    }

    fn refused(&self, why: &str) -> Error {
        let (what, path) = (self.what, self.path.display());
        Error::environment(format!(
            "the installed {what} {path} cannot be used: {why}: {REINSTALL}"
        ))
    }
}

/// Why a part could not be opened, without the remedy for those who build it themselves.
fn reason(error: LabError) -> String {
    match error {
        LabError::NoKernel { .. } => "it is missing or cannot be read".into(),
        LabError::NoAgent { why, .. } | LabError::NoUserland { why, .. } => why,
        other => other.to_string(),
    }
}

/// Digests of the files that were installed with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    files: BTreeMap<String, String>,
}

impl Manifest {
    /// The manifest in `directory`; none if there is no such file, so nothing was installed.
    ///
    /// # Errors
    /// It cannot be read, or is no manifest.
    pub fn read(directory: &Path) -> Outcome<Option<Manifest>> {
        let path = directory.join(MANIFEST);
        let refused = |why: String| {
            let path = path.display();
            Error::environment(format!("cannot use {path}: {why}: {REINSTALL}"))
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Manifest::parse(&text).map(Some).map_err(refused),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Reads what `sha256sum` prints.
    ///
    /// # Errors
    /// The number of the line that is something else.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let file = |line: &str| {
            let (sha256, path) = line.split_once("  ")?;
            let is_digest = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
            let is_below =
                !path.is_empty() && path.split('/').all(|name| !matches!(name, "" | ".."));
            (is_digest && is_below).then(|| (path.to_owned(), sha256.to_owned()))
        };
        let lines = text.lines().enumerate();
        let files = lines.map(|(at, line)| file(line).ok_or_else(|| format!("line {}", at + 1)));
        let files = files.collect::<Result<_, _>>()?;
        Ok(Manifest { files })
    }

    /// The files, by path from the directory of the program, with their SHA-256 in hex.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let files = self.files.iter();
        files.map(|(path, sha256)| (path.as_str(), sha256.as_str()))
    }
}

/// What is around the program.
#[derive(Debug)]
pub struct Surroundings {
    /// Directory of the program.
    pub program: PathBuf,
    /// What was installed there.
    pub manifest: Option<Manifest>,
    /// Directory of what was built, or why there is none.
    pub cache: Outcome<PathBuf>,
}

impl Surroundings {
    /// Those of this process, with `cache`.
    ///
    /// # Errors
    /// Where this program is cannot be told; its manifest is broken.
    pub fn of_this_program(cache: Outcome<PathBuf>) -> Outcome<Surroundings> {
        let program = std::env::current_exe()
            .and_then(|path| path.canonicalize())
            .map_err(|e| Error::environment(format!("cannot tell where this program is: {e}")))?;
        let program = program.with_file_name("");
        Ok(Surroundings {
            manifest: Manifest::read(&program)?,
            program,
            cache,
        })
    }

    /// Where `sought` is; `named` is the value of its variable.
    ///
    /// # Errors
    /// It would be in the cache, and there is none.
    pub fn find(self, sought: &Sought, named: Option<PathBuf>) -> Outcome<Part> {
        let part = |path, origin, sha256| Part {
            what: sought.what,
            path,
            origin,
            sha256,
        };
        if let (Some(path), Some(variable)) = (named, sought.variable) {
            return Ok(part(path, PartOrigin::Variable(variable), None));
        }
        let beside = self.program.join(&sought.installed);
        let files = self.manifest.as_ref().map(|manifest| &manifest.files);
        if let Some(sha256) = files.and_then(|files| files.get(&sought.installed)) {
            return Ok(part(beside, PartOrigin::Installed, Some(sha256.clone())));
        }
        match &sought.cached {
            Some(path) => Ok(part(self.cache?.join(path), PartOrigin::Cache, None)),
            None => Ok(part(beside, PartOrigin::Beside, None)),
        }
    }
}

/// Where `sought` is on this machine; `cache` is the directory of what was built.
///
/// # Errors
/// As [`Surroundings::of_this_program`] and [`Surroundings::find`].
pub fn find(sought: &Sought, cache: Outcome<PathBuf>) -> Outcome<Part> {
    let named = sought.variable.and_then(std::env::var_os);
    Surroundings::of_this_program(cache)?.find(sought, named.map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DIGEST: &str = "25d5e88c887579246acdc20f25045c2d2e9483de9161a708954d425dd198641e";

    fn around(installed: &[&str], cache: Option<&str>) -> Surroundings {
        let lines = installed.iter().map(|path| format!("{DIGEST}  {path}\n"));
        Surroundings {
            program: "/usr/lib/whichfs".into(),
            manifest: Some(Manifest::parse(&lines.collect::<String>()).unwrap()),
            cache: cache
                .map(PathBuf::from)
                .ok_or(Error::environment("no HOME")),
        }
    }

    fn found(around: Surroundings, sought: &Sought, named: Option<&str>) -> (String, PartOrigin) {
        let part = around.find(sought, named.map(PathBuf::from)).unwrap();
        (part.path.display().to_string(), part.origin)
    }

    #[test]
    fn a_variable_comes_before_what_is_installed_and_that_before_the_cache() {
        let (kernel, all) = (Sought::kernel(), ["kernel/6.12/linux"]);
        let (_, origin) = found(around(&all, Some("/c")), &kernel, Some("/k"));
        assert_eq!(origin, PartOrigin::Variable("WHICHFS_KERNEL"));
        let expected = (
            "/usr/lib/whichfs/kernel/6.12/linux".into(),
            PartOrigin::Installed,
        );
        assert_eq!(found(around(&all, Some("/c")), &kernel, None), expected);
        let expected = ("/c/kernel/linux-6.12".into(), PartOrigin::Cache);
        assert_eq!(found(around(&[], Some("/c")), &kernel, None), expected);
        let source_tree = Surroundings {
            manifest: None,
            ..around(&[], Some("/c"))
        };
        assert_eq!(found(source_tree, &kernel, None), expected);
    }

    #[test]
    fn what_is_installed_needs_no_cache_and_the_rest_says_that_there_is_none() {
        let userland = Sought::userland();
        let (_, origin) = found(around(&["userland/image"], None), &userland, None);
        assert_eq!(origin, PartOrigin::Installed);
        let refused = around(&[], None).find(&userland, None).unwrap_err();
        assert_eq!(refused.message, "no HOME");
        let expected = "/usr/lib/whichfs/whichfs-agent.static";
        let beside = found(around(&[], None), &Sought::agent(), None);
        assert_eq!(beside, (expected.into(), PartOrigin::Beside));
    }

    #[test]
    fn kernels_of_other_series_and_with_modules_are_apart() {
        let all = ["kernel/6.12/linux", "kernel/6.12-modules/linux"];
        let at = |series, modules| {
            let sought = Sought::kernel_of(series, modules);
            found(around(&all, Some("/c")), &sought, None).0
        };
        assert_eq!(
            at("6.12", true),
            "/usr/lib/whichfs/kernel/6.12-modules/linux"
        );
        assert_eq!(at("6.1", false), "/c/kernel/linux-6.1");
        assert_eq!(at("6.1", true), "/c/kernel/linux-6.1-modules");
    }

    #[test]
    fn an_installed_part_that_is_missing_or_another_is_refused_with_the_remedy() {
        let part = around(&["userland/image"], None).find(&Sought::userland(), None);
        let part = part.unwrap();
        let open = |sha256: &str| part.open(|_| Ok(sha256.to_owned()), |opened| opened);
        assert_eq!(open(DIGEST).unwrap(), DIGEST);
        let damaged = open("00").unwrap_err().message;
        let missing = part.open(
            |path| {
                Err::<String, _>(LabError::NoUserland {
                    path: path.into(),
                    why: "no such file".into(),
                })
            },
            |opened| opened,
        );
        let missing = missing.unwrap_err().message;
        assert!(damaged.contains("damaged"), "{damaged}");
        assert!(missing.contains("no such file"), "{missing}");
        for text in [damaged, missing] {
            assert!(
                text.contains(REINSTALL) && !text.contains("make "),
                "{text}"
            );
        }
    }

    #[test]
    fn a_manifest_is_what_sha256sum_prints() {
        let manifest = Manifest::parse(&format!("{DIGEST}  a b/c\n")).unwrap();
        assert_eq!(manifest.files().collect::<Vec<_>>(), [("a b/c", DIGEST)]);
        assert_eq!(Manifest::parse("").unwrap(), Manifest::default());
        for bad in ["a", "12  a", "  a", "../x", "/etc/passwd"] {
            let line = format!(
                "{DIGEST}  ok\n{}",
                bad.replace("../", &format!("{DIGEST}  ../"))
            );
            assert_eq!(Manifest::parse(&line), Err("line 2".into()), "{bad}");
        }
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap(), None);
        std::fs::write(directory.path().join(MANIFEST), "x").unwrap();
        let refused = Manifest::read(directory.path()).unwrap_err();
        assert!(refused.message.contains("line 1"), "{refused}");
    }
}
