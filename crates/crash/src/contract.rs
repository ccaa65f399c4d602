//! What each filesystem promises over a power cut, as it is mounted.
//!
//! Independent of any filesystem are the promises of the calls themselves: what fsync(2),
//! fdatasync(2), an O_SYNC write (open(2)) and syncfs(2) made durable. `Documentation/` and `fs/`
//! are those of Linux 6.12; manuals are those of Debian 12. A promise that no source gives is none.

use serde::Serialize;

/// A filesystem's promises. What is not promised may happen and is counted, but breaks nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Contract {
    /// After fsync of a file its name is durable too, without fsync of the directory; after fsync
    /// of a directory so are the names of files in it that were not synced, and its own.
    pub fsync_keeps_names: bool,
    /// After fsync of a directory the names in it are durable, of files that were synced and below
    /// directories that were synced.
    pub fsync_of_directory: bool,
    /// A file that was renamed is not lost if another file takes the name it had, and is synced
    /// (xfstests generic/342).
    pub fsync_keeps_renamed: bool,
    /// The filesystem mounts and is consistent after its own recovery, without fsck.
    pub structure: bool,
    /// A file holds old or new data or zeros where nothing durable was, never bytes of other files.
    pub no_garbage: bool,
    /// Everything that was there at the last sync and was not touched since is still there.
    pub keeps_untouched: bool,
    /// A file that was renamed over another is whole if it has that name, even without fsync.
    pub replace_keeps_data: bool,
    /// It flushes the card's cache where it promises something.
    pub flushes: bool,
    /// What was written is durable when the call returns.
    pub returned_writes: bool,
    /// A name that was made, changed or removed is so durably when the call returns.
    pub returned_names: bool,
    /// Where that is written.
    pub source: String,
}

impl Contract {
    /// The same for a moment at which nothing has begun since a syncfs or umount returned: no
    /// write can have hurt what was synced then, whatever the filesystem promises otherwise; but
    /// what the card's cache held may be lost, if nothing flushed it.
    #[must_use]
    pub fn settled(&self) -> Contract {
        if !self.flushes {
            return self.clone();
        }
        Contract {
            fsync_keeps_names: true,
            no_garbage: true,
            keeps_untouched: true,
            ..self.clone()
        }
    }

    /// Every promise in words, and whether it is made; beyond what fsync says of a file itself.
    pub fn promises(&self) -> [(bool, &'static str); 9] {
        [
            (self.structure, "it mounts and is whole without fsck"),
            (self.fsync_keeps_names, "fsync of a file keeps its name too"),
            (
                self.fsync_of_directory,
                "fsync of a directory keeps the names of synced files in it",
            ),
            (
                self.fsync_keeps_renamed,
                "a renamed file stays if another takes its old name and is synced",
            ),
            (
                self.replace_keeps_data,
                "a file renamed over another is whole under that name even without fsync",
            ),
            (
                self.keeps_untouched,
                "what was synced and not touched since stays",
            ),
            (self.no_garbage, "no file holds bytes of another"),
            (self.returned_writes, "a write is durable when it returns"),
            (
                self.returned_names,
                "a name that was made, changed or removed is so durably when the call returns",
            ),
        ]
    }

    /// What it promises, in words.
    pub fn sentences(&self) -> impl Iterator<Item = &'static str> {
        let held = self.promises().into_iter().filter(|(held, _)| *held);
        held.map(|(_, sentence)| sentence)
    }
}

/// A journal or log, or copy on write: the structure is always whole.
const JOURNALED: Contract = Contract {
    fsync_keeps_names: true,
    fsync_of_directory: true,
    fsync_keeps_renamed: true,
    structure: true,
    no_garbage: true,
    keeps_untouched: true,
    replace_keeps_data: false,
    flushes: true,
    returned_writes: false,
    returned_names: false,
    source: String::new(),
};

/// No promise beyond POSIX' of fsync for the file itself and for the names in a directory;
/// untouched data can suffer when a shared block (a table of inodes, the FAT, a directory) is
/// written in part.
const NONE: Contract = Contract {
    fsync_keeps_names: false,
    fsync_of_directory: true,
    fsync_keeps_renamed: false,
    structure: false,
    no_garbage: false,
    keeps_untouched: false,
    replace_keeps_data: false,
    flushes: true,
    returned_writes: false,
    returned_names: false,
    source: String::new(),
};

/// The contract of the catalogue's filesystem `candidate` with mount options `options`, of which
/// the last one wins; `None` for read-only and unknown ones.
pub fn contract(candidate: &str, options: &str) -> Option<Contract> {
    let (base, source) = base(candidate)?;
    let mut found = base.clone();
    let mut sources = vec![source];
    let options: Vec<&str> = options.split(',').collect();
    for (at, option) in options.iter().enumerate() {
        let overridden = |later: &&str| group(later) == group(option);
        if group(option).is_none() || !options[at + 1..].iter().any(overridden) {
            sources.extend(apply(&mut found, candidate, option));
        }
    }
    let mut said: Vec<&str> = Vec::new();
    for source in sources {
        if !said.contains(&source) {
            said.push(source);
        }
    }
    found.source = said.join("; ");
    Some(found)
}

/// The contract of a filesystem with its default options, and where that is written.
fn base(candidate: &str) -> Option<(Contract, &'static str)> {
    Some(match candidate {
        "ext4" | "ext3" => (
            Contract {
                replace_keeps_data: true,
                ..JOURNALED
            },
            "ext4(5), data=ordered: data are forced out before the metadata that refer to them are \
             committed; auto_da_alloc: before the rename that replaces a file is committed",
        ),
        "xfs" => (
            JOURNALED,
            "Documentation/filesystems/xfs/xfs-delayed-logging-design.rst; sizes change after the \
             data are on disk (fs/xfs/xfs_aops.c, xfs_end_ioend)",
        ),
        "jfs" => (
            Contract {
                structure: false,
                no_garbage: false,
                ..JOURNALED
            },
            "fs/jfs/jfs_mount.c: a dirty volume is refused until jfs_fsck has replayed the log; \
             metadata are journaled, data not ordered",
        ),
        "reiserfs" => (
            JOURNALED,
            "fs/reiserfs/super.c: data=ordered is the default",
        ),
        "ntfs3" => (
            NONE,
            "Documentation/filesystems/ntfs3.rst: the journal is replayed if present, but not \
             written by the driver",
        ),
        "btrfs" => (
            JOURNALED,
            "btrfs(5): copy on write of data and metadata; fsync through the log tree keeps names \
             (fs/btrfs/tree-log.c)",
        ),
        "f2fs" => (
            Contract {
                fsync_keeps_renamed: false,
                ..JOURNALED
            },
            "Documentation/filesystems/f2fs.rst, fsync_mode=posix: POSIX semantics, generic/342 \
             does not pass (fs/f2fs/recovery.c, recover_dentry deletes the old entry); fsync of a \
             directory writes a checkpoint (fs/f2fs/file.c, need_do_checkpoint)",
        ),
        "nilfs2" => (
            JOURNALED,
            "Documentation/filesystems/nilfs2.rst: continuous checkpoints",
        ),
        "ext2" | "ext4-nojournal" => (
            NONE,
            "Documentation/filesystems/ext2.rst: after an unclean end e2fsck must run",
        ),
        "vfat" | "vfat-factory" | "exfat" => (
            Contract {
                fsync_of_directory: false,
                ..NONE
            },
            "Documentation/filesystems/vfat.rst: no journal; a dirty flag asks for fsck. What an \
             inode is elsewhere is the entry of its directory here, which fsync of the directory \
             does not write (fs/fat/file.c, fat_file_fsync; fs/fat/namei_vfat.c, vfat_rename)",
        ),
        _ => return None,
    })
}

/// Mount options of `candidate` that change its promises, or give up on purpose what a cut asks
/// for ([`gives_up`]); those of the driver of Linux 6.12.
pub fn deciding_options(candidate: &str) -> &'static [&'static str] {
    match candidate {
        "ext4" | "ext3" => &[
            "sync",
            "dirsync",
            "data=writeback",
            "noauto_da_alloc",
            "barrier=0",
            "noload",
        ],
        "ext4-nojournal" => &["sync", "dirsync", "barrier=0"],
        "xfs" => &["sync", "dirsync", "norecovery"],
        "btrfs" => &["sync", "nobarrier"],
        "f2fs" => &[
            "sync",
            "dirsync",
            "fsync_mode=strict",
            "fsync_mode=nobarrier",
            "nobarrier",
            "checkpoint=disable",
            "disable_roll_forward",
        ],
        "nilfs2" => &["sync", "dirsync", "nobarrier", "norecovery"],
        "reiserfs" => &["sync", "data=writeback", "barrier=none"],
        "ext2" | "vfat" | "vfat-factory" | "exfat" => &["sync", "dirsync"],
        "jfs" | "ntfs3" => &["sync"],
        _ => &[],
    }
}

/// What a mount option decides, where another may decide it otherwise: the last one wins.
fn group(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or_default();
    match name.trim_start_matches("no") {
        "data" => Some("data"),
        "barrier" => Some("barrier"),
        "auto_da_alloc" => Some("auto_da_alloc"),
        "fsync_mode" => Some("fsync_mode"),
        "flushoncommit" => Some("flushoncommit"),
        _ => None,
    }
}

/// Why nothing can be judged with these mount options: they give up on purpose what a cut asks for.
pub fn gives_up(candidate: &str, options: &str) -> Option<&'static str> {
    let gives = |option: &str| match (candidate, option) {
        ("f2fs", _) if option.starts_with("checkpoint=disable") => Some(
            "checkpoint=disable: after a cut all is as it was when it was mounted \
             (Documentation/filesystems/f2fs.rst)",
        ),
        ("f2fs", "disable_roll_forward" | "norecovery") => Some(
            "without recovery the kernel refuses to mount what an fsync left \
             (Documentation/filesystems/f2fs.rst, disable_roll_forward)",
        ),
        ("ext4" | "ext3", "noload" | "norecovery") => {
            Some("noload: the journal is not replayed (ext4(5))")
        }
        ("xfs" | "nilfs2", "norecovery") => Some(
            "norecovery: the log is not replayed (mount options in the kernel's documentation)",
        ),
        _ => None,
    };
    let write = options
        .split(',')
        .rfind(|option| ["ro", "rw"].contains(option));
    let read_only = (write == Some("ro")).then_some("ro: nothing can be written to it (mount(8))");
    read_only.or_else(|| options.split(',').find_map(gives))
}

/// What one mount option changes, and where that is written.
fn apply(found: &mut Contract, candidate: &str, option: &str) -> Option<&'static str> {
    let of = |names: &[&str]| names.contains(&candidate);
    let ext = of(&["ext4", "ext3"]);
    Some(match option {
        "sync" => return synchronous(found, candidate),
        "dirsync" => {
            found.returned_names = has_synchronous_names(candidate);
            "mount(8), dirsync: creat, link, unlink, symlink, mkdir, rmdir, mknod, rename"
        }
        "async" => {
            (found.returned_writes, found.returned_names) = (false, false);
            return None;
        }
        "nobarrier" | "barrier=0" | "barrier=none" => {
            (found.structure, found.no_garbage) = (false, false);
            (found.keeps_untouched, found.replace_keeps_data) = (false, false);
            found.flushes = false;
            without_barriers(candidate)
        }
        "data=writeback" => {
            (found.no_garbage, found.replace_keeps_data) = (false, false);
            "ext4(5), data=writeback: old data can appear in files after a crash"
        }
        "data=journal" if ext => {
            "ext4(5), data=journal: all data are committed into the journal before they are \
             written to their place"
        }
        "noauto_da_alloc" | "auto_da_alloc=0" if ext => {
            found.replace_keeps_data = false;
            "ext4(5), noauto_da_alloc: replacing by rename forces no data out"
        }
        "flushoncommit" if candidate == "btrfs" => {
            "btrfs(5), flushoncommit: a commit includes all completed operations; fsync goes \
             through the log, which is no commit"
        }
        "fsync_mode=strict" if candidate == "f2fs" => {
            found.fsync_keeps_renamed = true;
            "Documentation/filesystems/f2fs.rst, fsync_mode=strict: as xfs, ext4 and btrfs"
        }
        "fsync_mode=nobarrier" if candidate == "f2fs" => {
            (found.fsync_keeps_names, found.fsync_keeps_renamed) = (false, false);
            "Documentation/filesystems/f2fs.rst, fsync_mode=nobarrier: posix without flushes"
        }
        "flush" if of(&["vfat", "vfat-factory"]) => {
            "Documentation/filesystems/vfat.rst, flush: tries to write earlier than normal, which \
             is no promise"
        }
        _ => return None,
    })
}

/// Where it is written what a mount without flushes leaves to the card's cache.
fn without_barriers(candidate: &str) -> &'static str {
    match candidate {
        "btrfs" => {
            "btrfs(5), nobarrier: the device cache is not flushed at a consistency checkpoint"
        }
        "f2fs" => {
            "Documentation/filesystems/f2fs.rst, nobarrier: no cache_flush commands are issued, \
             for storage whose cache is never lost"
        }
        "nilfs2" => "Documentation/filesystems/nilfs2.rst, nobarrier: write barriers are not used",
        _ => {
            "ext4(5), barrier: barriers enforce the order of journal commits, making volatile \
             caches safe to use"
        }
    }
}

/// What `sync` promises. VFS makes each write as one with O_DSYNC; names depend on the filesystem.
fn synchronous(found: &mut Contract, candidate: &str) -> Option<&'static str> {
    found.returned_writes = true;
    found.returned_names = has_synchronous_names(candidate);
    Some(match found.returned_names {
        true => "mount(8), sync: all I/O is done synchronously",
        false => {
            "include/linux/fs.h, iocb_is_dsync: sync makes each write synchronous; this filesystem \
             does not look at IS_DIRSYNC, so names wait"
        }
    })
}

/// Whether `sync` and `dirsync` make changes of names synchronous: those that mount(8) names, and
/// exfat (fs/exfat/namei.c), f2fs (fs/f2fs/namei.c) and nilfs2 (fs/nilfs2/dir.c). btrfs, jfs,
/// reiserfs and, but for rename, ntfs3 do not look at IS_DIRSYNC.
fn has_synchronous_names(candidate: &str) -> bool {
    const NAMED: [&str; 10] = [
        "ext2",
        "ext3",
        "ext4",
        "ext4-nojournal",
        "vfat",
        "vfat-factory",
        "xfs",
        "exfat",
        "f2fs",
        "nilfs2",
    ];
    NAMED.contains(&candidate)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(candidate: &str, options: &str) -> Contract {
        contract(candidate, options).unwrap()
    }

    #[test]
    fn options_weaken_a_contract() {
        let whole = of("ext4", "noatime");
        assert!(whole.structure && whole.no_garbage && !whole.source.is_empty());
        let weak = of("ext4", "noatime,data=writeback");
        assert!(weak.structure && !weak.no_garbage && !weak.replace_keeps_data);
        assert!(!of("ext4", "barrier=0").structure);
        assert!(!of("ext4", "barrier=0").keeps_untouched);
        for (candidate, manual) in [("btrfs", "btrfs(5)"), ("f2fs", "f2fs.rst, nobarrier")] {
            let none = of(candidate, "nobarrier");
            assert!(
                !none.structure && none.source.contains(manual),
                "{candidate}"
            );
        }
        assert!(!of("ext2", "").structure);
        assert_eq!(contract("squashfs-xz", ""), None);
    }

    #[test]
    fn a_contract_is_told_by_what_it_holds() {
        let told =
            |candidate, options| -> Vec<&str> { of(candidate, options).sentences().collect() };
        assert!(told("ext4", "").contains(&"it mounts and is whole without fsck"));
        assert!(!told("ext4", "").contains(&"a write is durable when it returns"));
        assert_eq!(told("vfat", ""), [""; 0]);
        assert_eq!(told("vfat", "sync").len(), 2);
        assert_eq!(told("ext4", "sync").len(), 9, "every promise has its words");
    }

    #[test]
    fn each_deciding_option_decides_something_and_names_its_source() {
        let promised = |candidate, options: &str| Contract {
            source: String::new(),
            ..of(candidate, options)
        };
        for candidate in [
            "ext2",
            "ext3",
            "ext4",
            "ext4-nojournal",
            "xfs",
            "btrfs",
            "f2fs",
            "nilfs2",
            "jfs",
            "reiserfs",
            "ntfs3",
            "vfat",
            "vfat-factory",
            "exfat",
        ] {
            assert!(!deciding_options(candidate).is_empty(), "{candidate}");
            for option in deciding_options(candidate) {
                if gives_up(candidate, option).is_none() {
                    let (with, without) = (promised(candidate, option), promised(candidate, ""));
                    assert_ne!(with, without, "{candidate} {option}");
                    let said = of(candidate, option).source;
                    assert!(
                        said.len() > of(candidate, "").source.len(),
                        "{candidate} {option}"
                    );
                }
            }
        }
        assert!(deciding_options("squashfs-xz").is_empty());
    }

    #[test]
    fn the_last_option_wins_and_each_names_its_source() {
        let journal = of("ext4", "data=writeback,data=journal");
        assert!(journal.no_garbage && journal.replace_keeps_data);
        assert!(journal.source.contains("data=journal"));
        assert!(of("ext4", "data=journal,data=writeback").source.len() > 100);
        assert!(!of("ext4", "data=journal,data=writeback").no_garbage);
        assert!(!of("ext4", "noauto_da_alloc").replace_keeps_data);
        assert!(of("ext4", "noauto_da_alloc,auto_da_alloc").replace_keeps_data);
        assert!(of("ext4", "nobarrier,barrier=1").structure);
        // Options that decide different things: their order means nothing.
        for (one, other) in [
            ("noauto_da_alloc", "data=ordered"),
            ("nobarrier", "data=journal"),
            ("data=writeback", "auto_da_alloc"),
        ] {
            let both = [format!("{one},{other}"), format!("{other},{one}")];
            let [a, b] = both.map(|options| Contract {
                source: String::new(),
                ..of("ext4", &options)
            });
            assert_eq!(a, b, "{one} {other}");
        }
        let done = of("ext4", "sync,async");
        assert!(!done.returned_writes && !done.returned_names);
        assert!(of("vfat", "flush").source.contains("no promise"));
        // Options of one filesystem mean nothing to another.
        assert_eq!(of("xfs", "fsync_mode=strict"), of("xfs", ""));
    }

    #[test]
    fn replacing_without_fsync_is_promised_by_ext4_alone() {
        for candidate in ["xfs", "btrfs", "f2fs", "nilfs2", "ext2", "vfat"] {
            assert!(!of(candidate, "").replace_keeps_data, "{candidate}");
        }
        assert!(of("ext4", "").replace_keeps_data);
    }

    #[test]
    fn synchronous_mounts_promise_what_the_filesystem_looks_at() {
        for candidate in ["ext2", "ext4", "vfat", "xfs", "f2fs", "exfat"] {
            let sync = of(candidate, "sync");
            assert!(sync.returned_writes && sync.returned_names, "{candidate}");
            let names = of(candidate, "dirsync");
            assert!(
                !names.returned_writes && names.returned_names,
                "{candidate}"
            );
            assert_eq!(sync.structure, of(candidate, "").structure);
        }
        for candidate in ["btrfs", "jfs", "reiserfs", "ntfs3"] {
            let sync = of(candidate, "sync");
            assert!(sync.returned_writes && !sync.returned_names, "{candidate}");
        }
    }

    #[test]
    fn fsync_of_a_directory_promises_nothing_on_fat() {
        for candidate in ["vfat", "exfat"] {
            assert!(!of(candidate, "").fsync_of_directory, "{candidate}");
        }
        for candidate in ["ext2", "ext4", "btrfs", "f2fs"] {
            assert!(of(candidate, "").fsync_of_directory, "{candidate}");
        }
        let flushed = of("btrfs", "flushoncommit");
        assert!(!flushed.replace_keeps_data && flushed.source.contains("no commit"));
    }

    #[test]
    fn f2fs_keeps_a_renamed_file_in_strict_mode_only() {
        assert!(!of("f2fs", "").fsync_keeps_renamed);
        assert!(of("f2fs", "fsync_mode=strict").fsync_keeps_renamed);
        assert!(!of("f2fs", "fsync_mode=strict,fsync_mode=posix").fsync_keeps_renamed);
        for fs in ["ext4", "vfat"] {
            assert!(gives_up(fs, "noatime,ro").is_some_and(|why| why.contains("ro: ")));
            assert!(gives_up(fs, "ro,rw").is_none(), "the last one wins");
        }
        assert!(gives_up("f2fs", "noatime,checkpoint=disable").is_some());
        assert!(gives_up("f2fs", "noatime,checkpoint=enable").is_none());
        assert!(gives_up("ext4", "noload").is_some() && gives_up("ext4", "sync").is_none());
        assert!(!of("f2fs", "fsync_mode=nobarrier").fsync_keeps_names);
        assert!(of("ext4", "").fsync_keeps_renamed && of("btrfs", "").fsync_keeps_renamed);
    }
}
