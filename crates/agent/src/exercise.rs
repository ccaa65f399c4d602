//! Whether a filesystem can be used: one file through its life.

use crate::error::AgentError;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use whichfs_trial::EXERCISE_NAME;
use whichfs_units::KIB;

/// Bytes of the file: more than one block.
const BYTES: usize = 64 * KIB as usize;

/// Makes a directory in `dir` and a file in it, makes that durable, renames it, reads it back,
/// deletes both. What an earlier attempt left is taken over.
///
/// # Errors
/// The first call that fails, or content that differs.
pub fn exercise(dir: &Path) -> Result<(), AgentError> {
    let own = dir.join(EXERCISE_NAME);
    let (first, second) = (own.join("made"), own.join("renamed"));
    let content: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let fail = |operation: &'static str| {
        let path = first.display().to_string();
        move |error: std::io::Error| AgentError::io(operation, path.clone(), &error)
    };
    match fs::create_dir(&own) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(fail("mkdir")(error)),
        _ => {}
    }
    let mut file = File::create(&first).map_err(fail("create"))?;
    file.write_all(&content).map_err(fail("write"))?;
    file.sync_all().map_err(fail("fsync"))?;
    drop(file);
    fs::rename(&first, &second).map_err(fail("rename"))?;
    let mut found = Vec::new();
    File::open(&second)
        .and_then(|mut file| file.read_to_end(&mut found))
        .map_err(fail("read back"))?;
    if found != content {
        return Err(AgentError::new(format!(
            "read back {}: other bytes than were written",
            second.display()
        )));
    }
    fs::remove_file(&second).map_err(fail("delete"))?;
    fs::remove_dir(&own).map_err(fail("rmdir"))?;
    File::open(dir)
        .and_then(|dir| Ok(rustix::fs::syncfs(&dir)?))
        .map_err(fail("syncfs"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_good_directory_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        exercise(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        fs::create_dir(dir.path().join(EXERCISE_NAME)).unwrap();
        exercise(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_is_gone_fails() {
        let error = exercise(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("mkdir"), "{error}");
    }
}
