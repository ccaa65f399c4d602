//! The folder of a report: a new one for each run, or the one that the user names.

use crate::error::{Error, Outcome};
use crate::places::{WholeFile, make_out};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the link to the newest folder.
pub const LATEST: &str = "latest";

/// Where a report will be. That its files can be written is known before the first trial.
pub struct ReportFolder {
    /// The folder that the user named, or the one above the folders of all runs.
    path: PathBuf,
    /// Name of the folder of this run in `path`; none if the user named the folder.
    run: Option<String>,
}

impl ReportFolder {
    /// The folder `named`, which will hold `files`; without one, a new folder in `above` that is
    /// called after the time `now_unix`, in seconds since 1970. A report that is in `named` is
    /// replaced, with a remark.
    ///
    /// # Errors
    /// It is no directory, or nothing can be written there.
    pub fn new(
        named: Option<&Path>,
        above: &str,
        files: &[&str],
        now_unix: i64,
    ) -> Outcome<ReportFolder> {
        let path = named.unwrap_or(Path::new(above)).to_owned();
        make_out(&path)?;
        if named.is_none() {
            let run = Some(whichfs_units::utc_name(now_unix));
            return Ok(ReportFolder { path, run });
        }
        let mut replaced = Vec::new();
        for name in files {
            let file = path.join(name);
            replaced.extend(file.exists().then_some(*name));
            drop(WholeFile::new(&file)?);
        }
        if !replaced.is_empty() {
            log::info!(
                "note: {}: {} of an earlier run will be replaced; without a name each run has a \
                 folder of its own",
                path.display(),
                replaced.join(", ")
            );
        }
        Ok(ReportFolder { path, run: None })
    }

    /// Writes the files; where the first of them is. The link `latest` beside a new folder then
    /// leads to it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(self, files: &[(&str, Vec<u8>)]) -> Outcome<PathBuf> {
        let folder = match &self.run {
            None => self.path.clone(),
            Some(name) => new_folder(&self.path, name)?,
        };
        for (name, bytes) in files {
            WholeFile::new(&folder.join(name))?.write(bytes)?;
        }
        if self.run.is_some()
            && let Err(why) = link(&self.path, &folder)
        {
            let place = self.path.join(LATEST);
            log::info!("note: {} does not lead to it: {why}", place.display());
        }
        let first = files.first().map_or("", |(name, _)| name);
        Ok(folder.join(first))
    }
}

/// A folder in `above` that was not there: called `name`, or with a number behind it.
fn new_folder(above: &Path, name: &str) -> Outcome<PathBuf> {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.to_owned()).chain(numbered) {
        let folder = above.join(name);
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(Error::input(format!(
                    "cannot make {}: {error}; name a directory that can be written",
                    folder.display()
                )));
            }
            Ok(()) => return Ok(folder),
        }
    }
    unreachable!("there are endless numbers")
}

/// Makes `latest` in `above` a link to `folder`, in one step.
fn link(above: &Path, folder: &Path) -> Result<(), String> {
    let latest = above.join(LATEST);
    match std::fs::symlink_metadata(&latest) {
        Ok(meta) if !meta.is_symlink() => return Err("it is no link; move it away".to_owned()),
        _ => {}
    }
    let name = folder.file_name().unwrap_or_default();
    let new = above.join(format!(".{LATEST}.{}.part", std::process::id()));
    let made = std::os::unix::fs::symlink(name, &new).and_then(|()| std::fs::rename(&new, latest));
    made.map_err(|error| {
        let _ = std::fs::remove_file(&new);
        error.to_string()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: i64 = 1_764_087_745;

    fn report(text: &str) -> [(&'static str, Vec<u8>); 1] {
        [("report.html", text.as_bytes().to_vec())]
    }

    #[test]
    fn each_run_has_a_folder_and_the_newest_a_link() {
        let home = tempfile::tempdir().unwrap();
        let above = home.path().join("reports");
        let above = above.to_str().unwrap();
        let new = |now| ReportFolder::new(None, above, &["report.html"], now).unwrap();
        let (first, twin, later) = (new(NOW), new(NOW), new(NOW + 61));
        // Nothing is there before something is known.
        assert_eq!(Path::new(above).read_dir().unwrap().count(), 0);
        let first = first.write(&report("a")).unwrap();
        let twin = twin.write(&report("b")).unwrap();
        let later = later.write(&report("c")).unwrap();
        let name = |path: &Path| path.strip_prefix(above).unwrap().display().to_string();
        assert_eq!(name(&first), "20251125T162225Z/report.html");
        assert_eq!(name(&twin), "20251125T162225Z-2/report.html");
        assert_eq!(name(&later), "20251125T162326Z/report.html");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!([read(&first), read(&twin), read(&later)], ["a", "b", "c"]);
        let latest = Path::new(above).join("latest");
        assert_eq!(read(&latest.join("report.html")), "c");
        let to = std::fs::read_link(&latest).unwrap();
        assert_eq!(
            to,
            Path::new("20251125T162326Z"),
            "it moves with its folder"
        );
    }

    #[test]
    fn what_is_no_link_of_ours_stays() {
        let home = tempfile::tempdir().unwrap();
        let above = home.path().to_str().unwrap();
        std::fs::write(home.path().join("latest"), "mine").unwrap();
        let folder = ReportFolder::new(None, above, &["report.html"], NOW).unwrap();
        assert!(folder.write(&report("a")).unwrap().is_file());
        let kept = std::fs::read_to_string(home.path().join("latest")).unwrap();
        assert_eq!(kept, "mine");
    }

    #[test]
    fn a_named_folder_is_that_folder_and_is_checked_before() {
        let home = tempfile::tempdir().unwrap();
        let named = home.path().join("mine");
        let new = || ReportFolder::new(Some(&named), "whichfs-report", &["report.html"], NOW);
        let path = new().unwrap().write(&report("a")).unwrap();
        assert_eq!(path, named.join("report.html"));
        new().unwrap().write(&report("b")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(named.read_dir().unwrap().count(), 1);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let refused = new().err().unwrap();
        assert!(refused.message.contains("report.html"), "{refused}");
    }
}
