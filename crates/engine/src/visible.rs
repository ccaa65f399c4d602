//! Files of this machine that a command names, and whether a guest that sees the host sees them.

use crate::error::{Error, Outcome};
use std::path::{Path, PathBuf};
use whichfs_lab::HostView;

/// Directories in whose place a guest has empty ones of its own (`agent/src/boot.rs`).
const COVERED: [&str; 4] = ["/tmp", "/run", "/mnt", "/dev/shm"];
/// Directories that are the guest's kernel's, not files of anybody.
const OF_THE_KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Checks that a guest with `view` sees the files and directories of this machine that the words
/// of a command name.
///
/// # Errors
/// The first that it does not see, with the remedy.
pub fn check(words: &[String], view: &HostView) -> Outcome {
    for path in words.iter().flat_map(|word| paths(word)) {
        if let Some(why) = hidden(&path, view) {
            return Err(Error::input(format!("{}: {why}", path.display())));
        }
    }
    Ok(())
}

/// Why a guest does not see `path`, which is of this machine; nothing if it does.
fn hidden(path: &Path, view: &HostView) -> Option<String> {
    let below = |directory: &&&str| path.starts_with(directory) && path != Path::new(directory);
    let real = path.canonicalize().ok()?;
    if let Some(directory) = COVERED.iter().find(below) {
        return Some(format!(
            "guests of the lab have an empty {directory} of their own: copy it to another \
             directory, for example in /var/tmp, and name that"
        ));
    }
    if OF_THE_KERNEL
        .iter()
        .any(|directory| path.starts_with(directory))
        || view.shows(&real)
    {
        return None;
    }
    // Directories above what is shown are seen in part.
    let is_above = view.only.iter().any(|shown| shown.starts_with(&real));
    if is_above || view.only.is_empty() && real.is_dir() && !view.hides(&real) {
        return None;
    }
    Some(match view.only.is_empty() {
        true => "guests of the lab do not see secrets of this machine, /root among them: copy it \
                 elsewhere, or show its directory to the guest"
            .to_owned(),
        false => "nothing shows it to the guest: show it its directory, too".to_owned(),
    })
}

/// The absolute paths in `word`, which may be a line for a shell or `name=path`.
fn paths(word: &str) -> Vec<PathBuf> {
    let is_end = |c: char| c.is_whitespace() || "'\"`=;|&<>(){}$,:".contains(c);
    let parts = word.split(is_end);
    let absolute = parts.filter(|part| part.starts_with('/'));
    absolute.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(line: &str, view: &HostView) -> Option<String> {
        let words = line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        check(&words, view).err().map(|error| error.message)
    }

    #[test]
    fn what_a_guest_does_not_see_is_refused_with_the_remedy() {
        let (below_tmp, elsewhere) = (tempfile::tempdir(), tempfile::tempdir_in("/var/tmp"));
        let (below_tmp, elsewhere) = (below_tmp.unwrap(), elsewhere.unwrap());
        let shown = |directory: &tempfile::TempDir| directory.path().display().to_string();
        let all = HostView::default();
        let why = refused(&format!("dd if={} of=x", shown(&below_tmp)), &all).unwrap();
        assert!(why.contains("/var/tmp"), "{why}");
        for fine in [
            format!("sh -c 'cp {}/* .'", shown(&elsewhere)),
            "ls / /etc /tmp /tmp/not-there /dev/null /mnt/test".to_owned(),
            "cat /proc/self/mounts".to_owned(),
        ] {
            assert_eq!(refused(&fine, &all), None, "{fine}");
        }
        let why = refused("cat /etc/passwd;cat </etc/shadow", &all).unwrap();
        assert!(
            why.contains("/etc/shadow") && why.contains("to the guest"),
            "{why}"
        );
        let some = HostView {
            only: vec!["/usr/share".into()],
        };
        let why = refused(&shown(&elsewhere), &some).unwrap();
        assert!(why.contains("its directory, too"), "{why}");
        assert_eq!(refused("ls / /usr/share /usr/bin/env", &some), None);
    }
}
