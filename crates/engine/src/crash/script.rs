//! Scripts of the user: read whole, and held against the filesystems that are to run them.

use crate::error::{Error, Outcome};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use whichfs_crash::is_own;
use whichfs_fs::{Candidate, Names};
use whichfs_units::MIB;
use whichfs_workload::{Op, ScriptLine, script_lines};

/// Most bytes of a script, so that a device or an endless pipe is no script.
const BYTES_MAX: u64 = 64 * MIB;

/// The operations of the file `path`, each with its line.
///
/// # Errors
/// A file that cannot be read, or is no script.
pub fn read(path: &Path) -> Outcome<Vec<ScriptLine>> {
    let name = path.display();
    let unread = |e: std::io::Error| {
        Error::input(format!(
            "script {name}: {e}; name a file with one operation a line (docs/crash.md)"
        ))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unread)?;
    file.take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unread)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(Error::input(format!(
            "script {name}: it has more than {} MiB; take fewer operations",
            BYTES_MAX / MIB
        )));
    }
    script_lines(&text).map_err(|e| Error::input(format!("script {name}: {e}")))
}

/// Checks that each filesystem can do what each line says.
///
/// # Errors
/// The first line that one of them cannot.
pub fn suits(lines: &[ScriptLine], candidates: &[&'static Candidate], path: &Path) -> Outcome {
    let wrong = |(line, why): (usize, String)| {
        Error::input(format!("script {}: line {line}: {why}", path.display()))
    };
    judged(lines).map_err(wrong)?;
    for candidate in candidates {
        can(lines, candidate).map_err(wrong)?;
    }
    Ok(())
}

/// Refuses names that are not judged: a failure there would be seen by nobody.
fn judged(lines: &[ScriptLine]) -> Result<(), (usize, String)> {
    for line in lines {
        if let Some(path) = line.made().filter(|path| is_own(path)) {
            return Err((
                line.number,
                format!(
                    "{path}: a name that filesystems and their checkers make by themselves, and \
                     that is not judged: take another name, or put it in a directory"
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses what `candidate` cannot do.
fn can(lines: &[ScriptLine], candidate: &'static Candidate) -> Result<(), (usize, String)> {
    let (fs, facts) = (candidate.name, candidate.facts());
    let mut names = Names::on(candidate);
    for line in lines {
        let lacks = match &line.op {
            Op::Symlink { .. } if !facts.symlinks => Err("symbolic links"),
            Op::HardLink { .. } if !facts.hard_links => Err("hard links"),
            _ => Ok(()),
        };
        let made = line.made().map_or(Ok(()), |path| names.make(path));
        let done = made.and(lacks.map_err(|what| format!("{fs} has no {what}")));
        done.map_err(|why| {
            let remedy = format!("change the line, or leave {fs} out");
            (line.number, format!("{why}: {remedy}"))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Why a script of these lines does not suit these filesystems.
    fn refused(script: &str, names: &[&str]) -> Option<String> {
        let lines = script_lines(script).unwrap();
        let found: Vec<_> = names.iter().map(|n| whichfs_fs::find(n).unwrap()).collect();
        let refused = suits(&lines, &found, Path::new("x")).err();
        refused.map(|failure| failure.message)
    }

    #[test]
    fn what_a_filesystem_cannot_do_is_told_with_the_line_and_its_name() {
        let colon = "# a\n{\"op\":\"mkdir\",\"path\":\"d\"}\n{\"op\":\"mkdir\",\"path\":\"d/a:b\"}";
        assert_eq!(refused(colon, &["ext4", "ntfs3"]), None);
        let message = refused(colon, &["ext4", "exfat"]).unwrap();
        assert!(
            message.contains("script x: line 3: exfat has no ':'"),
            "{message}"
        );
        assert!(message.contains("leave exfat out"), "{message}");
        let link = "{\"op\":\"symlink\",\"path\":\"l\",\"target\":\"t\"}";
        assert!(
            refused(link, &["vfat"])
                .unwrap()
                .contains("no symbolic links")
        );
        let long = format!("{{\"op\":\"mkdir\",\"path\":\"{}\"}}", "n".repeat(300));
        for candidate in whichfs_fs::candidates() {
            assert!(
                refused(&long, &[candidate.name])
                    .unwrap()
                    .contains("at most 255")
            );
        }
        let case = "{\"op\":\"mkdir\",\"path\":\"a\"}\n{\"op\":\"mkdir\",\"path\":\"A\"}";
        assert!(
            refused(case, &["vfat"])
                .unwrap()
                .contains("line 2: A and a")
        );
    }

    #[test]
    fn names_that_nobody_judges_are_refused_on_every_filesystem() {
        let own = "{\"op\":\"mkdir\",\"path\":\"lost+found\"}";
        for fs in ["ext4", "vfat"] {
            let message = refused(own, &[fs]).unwrap();
            assert!(message.contains("lost+found: ") && message.contains("another name"));
        }
        let below =
            "{\"op\":\"mkdir\",\"path\":\"d\"}\n{\"op\":\"mkdir\",\"path\":\"d/lost+found\"}";
        assert_eq!(refused(below, &["ext4"]), None);
    }

    #[test]
    fn what_is_no_file_of_operations_is_refused_with_the_remedy() {
        for path in ["/no/such", "/tmp"] {
            let message = read(Path::new(path)).unwrap_err().message;
            assert!(
                message.contains("name a file with one operation a line"),
                "{message}"
            );
        }
        let endless = read(Path::new("/dev/zero")).unwrap_err().message;
        assert!(endless.contains("more than 64 MiB"), "{endless}");
    }
}
