//! How a filesystem gets files into its image without being mounted.

use whichfs_fs::Recipe;

/// How a filesystem gets files without being mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builder {
    /// The program that builds a read-only image.
    Image,
    /// `mke2fs -d`.
    Mke2fs,
    /// `mkfs.btrfs --rootdir`.
    Btrfs,
    /// `sload.f2fs`.
    Sload,
    /// `mkfs.xfs -p` with a prototype file.
    Proto,
    /// `mcopy` of mtools.
    Mcopy,
    /// No tool does: the lab mounts it and copies the files.
    Lab,
}

/// How files get into `recipe`'s filesystem.
pub fn builder(recipe: &Recipe) -> Builder {
    match recipe.kernel_fs {
        _ if recipe.image.is_some() => Builder::Image,
        "ext2" | "ext3" | "ext4" => Builder::Mke2fs,
        "btrfs" => Builder::Btrfs,
        "f2fs" => Builder::Sload,
        "xfs" => Builder::Proto,
        "vfat" => Builder::Mcopy,
        _ => Builder::Lab,
    }
}

/// The remedy for what only a mounted filesystem can be given.
pub(crate) const LAB: &str = "whichfs image --lab mounts the image in the lab and copies the files";
