//! What of the host's files a guest may read.
//!
//! Landlock enforces it on the guest's process, so root in the guest cannot reach more. Landlock
//! knows only what is allowed: what lies beside something hidden is allowed entry by entry. Names
//! and sizes can be asked for all the same.

use crate::shared::SharedDirectory;
use crate::userland::Userland;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Files of the host that the guest's own process needs: its libraries, and what its kernel asks.
/// Landlock itself keeps it from what other processes have in /proc.
const OWN: [&str; 9] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/proc",
    "/dev/null",
    "/dev/urandom",
    "/dev/random",
];

/// What programs need beside what `--see` names.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/etc"];

/// Secrets of the system, hidden unless they are named.
const SECRETS: [&str; 15] = [
    "/root",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/wireguard",
];

/// The same below each home directory.
const SECRETS_AT_HOME: [&str; 15] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".mozilla",
    ".config",
    ".local/share/keyrings",
    ".bash_history",
];

/// Never of the host: the guest has its own, or they are other programs' memory and devices.
const OTHERS: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/boot"];

/// From where a guest's programs come.
#[derive(Clone, Copy, Debug)]
pub enum Root<'a> {
    /// The sealed userland. Of the host it sees the directories of its job alone.
    Sealed(&'a Userland),
    /// The host's own files, read-only.
    Host(&'a HostView),
}

/// The part of the host's files that a guest sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostView {
    /// The directories that it is limited to, beside what programs need; all but secrets if there
    /// are none.
    pub only: Vec<PathBuf>,
}

/// Paths below which a process may read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Readable {
    /// Files and names.
    pub files: Vec<PathBuf>,
    /// Names alone.
    pub names: Vec<PathBuf>,
}

impl HostView {
    /// Whether a guest may read `path`, as far as the view decides.
    pub fn shows(&self, path: &Path) -> bool {
        let readable = self.readable();
        readable.files.iter().any(|shown| path.starts_with(shown))
    }

    /// Whether `path` is one that is hidden unless it is named, or lies below such.
    pub fn hides(&self, path: &Path) -> bool {
        !self.shows(path) && hidden().iter().any(|secret| path.starts_with(secret))
    }

    fn readable(&self) -> Readable {
        let hidden = hidden();
        let mut files = Vec::new();
        let begins = match self.only.is_empty() {
            true => vec![PathBuf::from("/")],
            false => SYSTEM.iter().map(PathBuf::from).collect(),
        };
        for begin in begins {
            add_without(&begin, &hidden, &mut files);
        }
        // Somebody who names a directory wants all of it.
        files.extend(self.only.iter().cloned());
        let names = match self.only.is_empty() {
            true => vec!["/".into()],
            false => ["/etc", "/usr"].map(PathBuf::from).to_vec(),
        };
        Readable { files, names }
    }
}

/// What a guest with `root` may read, its job's directories `shared` included.
pub(crate) fn readable(root: Root<'_>, shared: &[SharedDirectory]) -> Readable {
    let mut readable = match root {
        Root::Sealed(_) => Readable::default(),
        Root::Host(view) => view.readable(),
    };
    readable.files.extend(OWN.iter().map(PathBuf::from));
    // The host's root itself is shared with those that see the host, not allowed as a whole.
    let own = shared.iter().map(|directory| directory.path.clone());
    let own = own.filter(|path| path != Path::new("/"));
    readable.files.extend(own);
    readable
}

/// All that is hidden unless it is named.
fn hidden() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = entries(Path::new("/home"));
    homes.extend(std::env::var_os("HOME").map(PathBuf::from));
    let at_home = homes.iter().flat_map(|home| {
        let secret = |name: &&str| home.join(OsStr::new(name));
        SECRETS_AT_HOME.iter().map(secret).collect::<Vec<_>>()
    });
    let system = SECRETS.iter().chain(&OTHERS).map(PathBuf::from);
    system.chain(at_home).collect()
}

/// Adds `path` to `files` if nothing below it is hidden, else what of it is not.
fn add_without(path: &Path, hidden: &[PathBuf], files: &mut Vec<PathBuf>) {
    if hidden.iter().any(|secret| path.starts_with(secret)) {
        return;
    }
    if !hidden.iter().any(|secret| secret.starts_with(path)) {
        files.push(path.to_path_buf());
        return;
    }
    for entry in entries(path) {
        // What a link points to is allowed or hidden where it is.
        if !entry.is_symlink() {
            add_without(&entry, hidden, files);
        }
    }
}

/// What is in the directory `path`; nothing if it cannot be read.
fn entries(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = path.read_dir() else {
        return Vec::new();
    };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_a_secret_is_shown_entry_by_entry() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        for directory in ["open", "keys", "mixed/secret", "mixed/open"] {
            std::fs::create_dir_all(at(directory)).expect("made");
        }
        std::os::unix::fs::symlink(at("keys"), at("link")).expect("linked");
        let hidden = [at("keys"), at("mixed/secret")];
        let mut files = Vec::new();
        add_without(home.path(), &hidden, &mut files);
        assert_eq!(files, [at("mixed/open"), at("open")]);
        let mut all = Vec::new();
        add_without(home.path(), &[], &mut all);
        assert_eq!(all, [home.path()]);
    }

    #[test]
    fn secrets_are_hidden_and_a_named_directory_is_shown_whole() {
        let all = HostView::default();
        let shows = |view: &HostView, path: &str| view.shows(Path::new(path));
        assert!(shows(&all, "/usr/bin/env") && shows(&all, "/etc/passwd"));
        for secret in ["/etc/ssh/x", "/etc/shadow", "/proc/1/environ", "/dev/sda"] {
            assert!(!shows(&all, secret), "{secret}");
        }
        let some = HostView {
            only: vec!["/etc/ssh/shown".into()],
        };
        assert!(shows(&some, "/etc/ssh/shown/x") && shows(&some, "/usr/bin/env"));
        for other in ["/etc/ssh/other", "/srv/x", "/etc/shadow", "/var/x"] {
            assert!(!shows(&some, other), "{other}");
        }
    }

    #[test]
    fn a_sealed_guest_reads_what_its_job_names() {
        let tree = SharedDirectory {
            name: "tree",
            path: "/srv/tree".into(),
        };
        let view = HostView::default();
        let host = SharedDirectory {
            name: "root",
            path: "/".into(),
        };
        let shown = readable(Root::Host(&view), &[tree, host]);
        assert!(shown.files.contains(&"/srv/tree".into()));
        assert!(!shown.files.contains(&"/".into()), "only what is shown");
    }
}
