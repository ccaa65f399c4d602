//! What each filesystem promises over a power cut, as mounted by the catalogue's recipe.

use serde::Serialize;

/// A filesystem's promises. What is not promised may happen and is counted, but breaks nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Contract {
    /// After fsync of a file its name is durable too, without fsync of the directory.
    pub fsync_keeps_names: bool,
    /// The filesystem mounts and is consistent after its own recovery, without fsck.
    pub structure: bool,
    /// A file holds old or new data or zeros where nothing durable was, never bytes of other files.
    pub no_garbage: bool,
    /// Everything that was there at the last sync and was not touched since is still there.
    pub keeps_untouched: bool,
    /// Where that is written.
    pub source: &'static str,
}

const JOURNALED: Contract = Contract {
    fsync_keeps_names: true,
    structure: true,
    no_garbage: true,
    keeps_untouched: true,
    source: "",
};

/// No promise beyond POSIX' of fsync for the file itself; untouched data can suffer when a
/// shared block (a table of inodes, the FAT, a directory) is written in part.
const NONE: Contract = Contract {
    fsync_keeps_names: false,
    structure: false,
    no_garbage: false,
    keeps_untouched: false,
    source: "",
};

/// The contract of the catalogue's filesystem `candidate` with mount options `options`; `None`
/// for read-only and unknown ones.
pub fn contract(candidate: &str, options: &str) -> Option<Contract> {
    let of = |base: Contract, source| Some(Contract { source, ..base });
    let has = |option: &str| options.split(',').any(|word| word == option);
    let mut found = match candidate {
        "ext4" | "ext3" => of(
            JOURNALED,
            "Linux 6.12 Documentation/filesystems/ext4/journal.rst, data=ordered: data are \
             written before the metadata that refer to them are committed",
        ),
        "xfs" => of(
            JOURNALED,
            "Linux 6.12 Documentation/filesystems/xfs/xfs-delayed-logging-design.rst; sizes \
             change after the data are on disk (fs/xfs/xfs_aops.c, xfs_end_ioend)",
        ),
        "jfs" => of(
            Contract {
                structure: false,
                no_garbage: false,
                ..JOURNALED
            },
            "Linux 6.12 fs/jfs/jfs_mount.c: a dirty volume is refused until jfs_fsck has replayed \
             the log; metadata are journaled, data not ordered",
        ),
        "reiserfs" => of(
            JOURNALED,
            "Linux 6.12 fs/reiserfs/super.c: data=ordered is the default",
        ),
        "ntfs3" => of(
            NONE,
            "Linux 6.12 Documentation/filesystems/ntfs3.rst: the journal is replayed if present, \
             but not written by the driver",
        ),
        "btrfs" => of(
            JOURNALED,
            "btrfs(5): copy on write of data and metadata; fsync through the log tree keeps names",
        ),
        "f2fs" => of(
            JOURNALED,
            "Linux 6.12 Documentation/filesystems/f2fs.rst, fsync_mode=posix: the file and what is \
             needed to find it after roll-forward recovery",
        ),
        "nilfs2" => of(
            JOURNALED,
            "Linux 6.12 Documentation/filesystems/nilfs2.rst: continuous checkpoints",
        ),
        "ext2" | "ext4-nojournal" => of(
            NONE,
            "Linux 6.12 Documentation/filesystems/ext2.rst: after an unclean end e2fsck must run",
        ),
        "vfat" | "vfat-factory" | "exfat" => of(
            NONE,
            "Linux 6.12 Documentation/filesystems/vfat.rst: no journal; a dirty flag asks for fsck",
        ),
        _ => None,
    }?;
    if has("nobarrier") || has("barrier=0") || has("data=writeback") {
        found.no_garbage = false;
        found.structure &= !(has("nobarrier") || has("barrier=0"));
    }
    if has("fsync_mode=nobarrier") {
        found.fsync_keeps_names = false;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_weaken_a_contract() {
        let whole = contract("ext4", "noatime").unwrap();
        assert!(whole.structure && whole.no_garbage && !whole.source.is_empty());
        let weak = contract("ext4", "noatime,data=writeback").unwrap();
        assert!(weak.structure && !weak.no_garbage);
        assert!(!contract("ext4", "barrier=0").unwrap().structure);
        assert!(!contract("ext2", "").unwrap().structure);
        assert_eq!(contract("squashfs-xz", ""), None);
    }
}
