//! Sessions that were left on a board: ended, unless somebody is still there.

use crate::refusal::Refusal;
use crate::wire::{Call, Reply, line};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Directories that sessions may lie in, as the script that makes them has them.
const BASES: [&str; 4] = ["/run", "/dev/shm", "/tmp", "/var/tmp"];
/// How directories of sessions are called.
const PREFIX: &str = "whichfs-";
/// Name of the socket in them.
pub(crate) const SOCKET: &str = "socket";
/// A session without a socket may be one that begins, for this long.
const BEGINNING: Duration = Duration::from_secs(300);
/// How long an interrupted trial may take to end.
const ENDING: Duration = Duration::from_secs(90);

/// Ends sessions whose asker is gone and removes what ended ones left, but for the one in `own`.
///
/// # Errors
/// Somebody else's session is at work.
pub(crate) fn retire_others(own: &Path) -> Result<(), Refusal> {
    let all = BASES.iter().flat_map(|base| sessions(Path::new(base)));
    for other in all.filter(|other| other != own) {
        retire(&other)?;
    }
    Ok(())
}

/// Directories of sessions in `base` that are ours to remove.
fn sessions(base: &Path) -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let is_session = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_ours = std::fs::symlink_metadata(path)
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == uid && meta.mode() & 0o077 == 0);
        name.starts_with(PREFIX) && is_ours && path.join("whichfs-agent").exists()
    };
    entries
        .map(|entry| entry.path())
        .filter(is_session)
        .collect()
}

fn retire(directory: &Path) -> Result<(), Refusal> {
    let socket = directory.join(SOCKET);
    let Ok(stream) = UnixStream::connect(&socket) else {
        let made = directory.metadata().and_then(|meta| meta.modified());
        let age = made.map(|made| SystemTime::now().duration_since(made).unwrap_or_default());
        if socket.exists() || age.is_ok_and(|age| age > BEGINNING) {
            let _ = std::fs::remove_dir_all(directory);
        }
        return Ok(());
    };
    match ask(stream) {
        // An end without a word is one, too.
        Some(Reply::Stays) => Err(Refusal::environment(format!(
            "another whichfs measures on this board now ({}): both would disturb each other; wait \
             until it has ended",
            directory.display()
        ))),
        _ => Ok(()),
    }
}

/// Asks for an end; the answer.
fn ask(mut stream: UnixStream) -> Option<Reply> {
    stream.set_read_timeout(Some(ENDING)).ok()?;
    stream.write_all(&line(&Call::Retire).ok()?).ok()?;
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let replies = lines.filter_map(|text| serde_json::from_str::<Reply>(&text).ok());
    replies
        .into_iter()
        .find(|reply| matches!(reply, Reply::Left | Reply::Stays))
}
